"""Playing in compiled code: what the network sees of a frame, what it decides, and whole episodes.

`play_plain` and `play_gated` play streams until an episode ends, without Python and without its
lock. Without a game they return after each decision.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from pixelpong.atari.machine import FRAME_DONE
from pixelpong.env.field import DRAW_FIELD
from pixelpong.items import ACTIONS, DOWN, NUM_PIXELS, UP
from pixelpong.kernels.compiling import compiled
from pixelpong.kernels.intrinsics import call_play_frames
from pixelpong.kernels.observing import find_difference, observe_features

# The NumPy error model: a division that cannot fail needs no check.
_kernel = compiled(error_model="numpy")
# A part of kernels, which is compiled with its callers.
_part: Any = register_jitable(error_model="numpy")


@_part
def take_field(field, stream):  # type: ignore[no-untyped-def]
    """Copy `field` [80, 2], as from `pack_field`, to the newest of the two fields of a stream."""
    m = stream.memory
    m.newest, m.is_new = 1 - m.newest, 0
    newest = stream.fields[m.newest]
    for row in range(len(field)):
        newest[row, 0], newest[row, 1] = field[row, 0], field[row, 1]


@_part
def _begin(stream, machine, start):  # type: ignore[no-untyped-def]
    """Begin an episode."""
    m, tally = stream.memory, stream.tally
    m.is_on = m.is_new = 1
    m.steps = m.num_frames = m.newest = m.fault = 0
    for side in range(2):
        player = stream.sides[side]
        player.last_action = player.wanted = player.held = 0
    for row in range(80):
        for word in range(2):
            stream.fields[0, row, word] = stream.fields[1, row, word] = 0
    tally.entropy = 0.0
    tally.ups = tally.points = 0
    _copy(start, machine)


@_part
def _copy(source, target):  # type: ignore[no-untyped-def]
    """Copy an array [N]; an assignment compiles for seconds."""
    for k in range(len(source)):
        target[k] = source[k]


@_part
def _count(tally, step, place, up):  # type: ignore[no-untyped-def]
    """Add the learning side's newest step to its statistics."""
    tally.entropy += step.entropy
    tally.ups += step.action == up
    if step.reward != 0 and 0 <= tally.points < len(tally.ends):  # always, but in an invalid state
        tally.ends[tally.points], tally.rewards[tally.points] = place, step.reward
        tally.points += 1


@_part
def _emulate(game, stream, num_sides, draw):  # type: ignore[no-untyped-def]
    """Emulate the frames of a step, with its draws; return the right side's reward.

    There is one side for each network, the right side first; the console may play the left side.
    """
    about, actions, m = game[0], game[1], stream.memory
    g, width = about[0], len(draw) // num_sides
    num_frames = g.fewest_frames + np.int64(draw[1] * (g.most_frames - g.fewest_frames + 1))
    num_frames = min(num_frames, g.max_frames - m.num_frames)
    actions[:num_frames] = 0
    for side in range(num_sides):
        player = stream.sides[side]
        held = player.held
        for k in range(num_frames):
            if draw[side * width + 2 + k] >= g.sticky:
                held = player.wanted
            actions[k] |= (held | g.serve) << 4 * side
    stop, played, reward, is_over, _ = call_play_frames(
        g.play_frames, g.machine, g.actions, num_frames, DRAW_FIELD
    )
    if stop != FRAME_DONE:
        m.fault = stop
        return 0
    if num_frames > 0:
        for side in range(num_sides):
            player = stream.sides[side]
            player.held = actions[num_frames - 1] >> 4 * side & 7
    m.num_frames += played
    m.is_on, m.is_new = 1 - (is_over | (m.num_frames >= g.max_frames)), 1
    return reward


# --- the classic network ----------------------------------------------------------------------


@_part
def up_probability(params, indices, start, stop, hidden, t):  # type: ignore[no-untyped-def]
    """Compute the probability of UP for the observation ``indices[start:stop]``.

    Definition: `pixelpong.learn.network.forward`. Writes the hidden activations to ``hidden[t]``.
    """
    (W1, W2), h = params, hidden[t]
    for unit in range(len(h)):
        h[unit] = 0
    for k in range(start, stop):
        index = indices[k]
        if index < NUM_PIXELS:
            for unit in range(len(h)):
                h[unit] += W1[index, unit]
        else:
            for unit in range(len(h)):
                h[unit] -= W1[index - NUM_PIXELS, unit]
    for unit in range(len(h)):
        if h[unit] < 0:
            h[unit] = 0
    # Four partial sums, in a fixed order: additions to a single sum would wait for each other.
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    whole = len(h) - len(h) % 4
    for i in range(0, whole, 4):
        s0 += h[i] * W2[i]
        s1 += h[i + 1] * W2[i + 1]
        s2 += h[i + 2] * W2[i + 2]
        s3 += h[i + 3] * W2[i + 3]
    for i in range(whole, len(h)):
        s0 += h[i] * W2[i]
    z = (s0 + s1) + (s2 + s3)
    smaller = np.exp(-abs(z))
    return (1.0 if z >= 0 else smaller) / (1.0 + smaller)


@_part
def _forget_plain(network):  # type: ignore[no-untyped-def]
    """This network remembers nothing besides the stream."""


@_part
def _decide_plain(network, stream, side, draw, t):  # type: ignore[no-untyped-def]
    """Observe, decide, and record the decision with its probability."""
    (params, _, (indices, offsets, steps, hidden), _), player = network, stream.sides[side]
    end = find_difference(stream, indices, offsets[t])
    p = up_probability(params, indices, offsets[t], end, hidden, t)
    action = UP if (p >= 0.5 if draw < 0 else draw < p) else DOWN
    offsets[t + 1], player.wanted, step = end, action, steps[t]
    step.up_probability, step.action, step.entropy = p, action, 0.0
    if 0 < p < 1:
        step.entropy = -(p * np.log(p) + (1 - p) * np.log(1 - p))


# --- the gated network ------------------------------------------------------------------------


@_part
def _read_out(params, scratch, indices, start, stop):  # type: ignore[no-untyped-def]
    """Compute the outputs from the inputs ``indices[start:stop]``.

    The parameters are W1 [D, 2H], W2 [4, 2H], b2 [4]; the scratch, changed, is [2H] and [8] of
    their type, and [4], [3], [3] float64.
    """
    (W1, W2, b2), (z, lanes, y, _, _) = params, scratch
    for i in range(len(z)):
        z[i] = 0
    k = start
    while k + 4 <= stop:  # four rows at a time, as in `pixelpong.kernels.sum_rows`
        r0, r1 = W1[indices[k]], W1[indices[k + 1]]
        r2, r3 = W1[indices[k + 2]], W1[indices[k + 3]]
        for i in range(len(z)):
            z[i] += (r0[i] + r1[i]) + (r2[i] + r3[i])
        k += 4
    while k < stop:
        row = W1[indices[k]]
        for i in range(len(z)):
            z[i] += row[i]
        k += 1
    for i in range(0, len(z), 2):
        if z[i] < 0:
            z[i] = 0
        z[i + 1] *= z[i]
    whole = len(z) - len(z) % 8
    for output in range(4):
        # Eight partial sums, in a fixed order: additions to a single sum would wait for each other.
        for lane in range(8):
            lanes[lane] = 0
        for i in range(0, whole, 8):
            for lane in range(8):
                lanes[lane] += W2[output, i + lane] * z[i + lane]
        for i in range(whole, len(z)):
            lanes[0] += W2[output, i] * z[i]
        left = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
        right = (lanes[4] + lanes[5]) + (lanes[6] + lanes[7])
        y[output] = np.float64(left) + np.float64(right) + b2[output]


@_part
def _choose(scratch, steps, t, draw):  # type: ignore[no-untyped-def]
    """Choose an action by a softmax of the outputs; record it with its probability."""
    _, _, y, logs, p = scratch
    highest, total, entropy, best = y[0], 0.0, 0.0, 2
    for action in range(1, 3):
        if y[action] > highest:
            highest = y[action]
    for action in range(3):
        total += np.exp(y[action] - highest)
    log_total = highest + np.log(total)
    for action in range(3):
        logs[action] = y[action] - log_total
        p[action] = np.exp(logs[action])
        entropy += p[action] * logs[action]
        if y[2 - action] == highest:
            best = 2 - action
    if draw >= 0:
        best = 0 if draw < p[0] else 1 if draw < p[0] + p[1] else 2
    step = steps[t]
    step.action, step.log_probability, step.entropy = best, logs[best], -entropy


@_part
def _forget_gated(network):  # type: ignore[no-untyped-def]
    """Forget the features of the previous frame, which is another stream's."""
    marks, count, _ = network[1][1]
    marks[:2] = 0
    count[0] = -1


@_part
def _decide_gated(network, stream, side, draw, t):  # type: ignore[no-untyped-def]
    """Observe, and record a decision; with a `draw` above 1, record only the value."""
    params, (sight, seen, scratch), (indices, offsets, steps, _), _ = network
    end = observe_features(sight, stream, side, seen, indices, offsets[t])
    _read_out(params, scratch, indices, offsets[t], end)
    offsets[t + 1], steps[t].value = offsets[t], scratch[2][3]
    if draw <= 1:
        player, offsets[t + 1] = stream.sides[side], end
        _choose(scratch, steps, t, draw)
        player.last_action = steps[t].action
        player.wanted = ACTIONS[player.last_action]


# --- both -------------------------------------------------------------------------------------


def _make_play(decide: Any, forget: Any, up: int) -> Any:
    """Make the kernel that plays with a network's `decide`; `up` is the action UP in its record."""

    @_kernel
    def play(game, networks, streams, draws, first, t, own):  # type: ignore[no-untyped-def]
        """Play streams, one after the other, until an episode ends or a record has no room.

        If there is no game, decide once: ``wanted`` is the action.

        Args:
            game: [1] `GAME`; actions [≥ frames of a step] uint8, changed; the field [80, 2] uint64,
                where the machine writes it; the machine [·] uint8, and as it starts.
            networks: the right side's, and in the two-player game the left side's. Each has the
                params and scratch for `decide`; the record, written at step t: indices [·]
                uint16, from ``offsets[t]`` on, offsets [≥ t + 2] int64, steps [≥ t + 1], and
                anything else that `decide` writes; and the most indices that a step can have.
            streams: [N] `STREAM`; changed.
            draws: [N, T, ·], for each step numbers in [0, 1), the left side's after the right
                side's: one chooses the action (if negative, the most probable is taken), one the
                number of frames, the others at each frame whether the held action sticks. A step
                whose first number is above 1 is not played: only its value is recorded.
            first: the index in the record of the first stream's first step.
            t: where to go on, up to ``first + N · T``.
            own: the side whose statistics are counted.

        Returns the index after the last step.
        """
        about, _, field, machine, start = game
        length, width = draws.shape[1], draws.shape[2] // len(networks)
        while t < first + len(draws) * length:
            number, place = (t - first) // length, (t - first) % length
            stream, draw = streams[number], draws[number, place]
            m, has_game = stream.memory, about[0].play_frames != 0
            for side in range(len(networks)):
                record, most = networks[side][2], networks[side][3]
                if t >= len(record[2]) or record[1][t] + most > len(record[0]):
                    return t
            if place == 0 and has_game:
                _copy(stream.console, machine)
            if m.is_on == 0:
                _begin(stream, machine, start)
            if place == 0 or m.steps == 0:
                for side in range(len(networks)):
                    forget(networks[side])
            if m.is_new:
                take_field(field, stream)
            for side in range(len(networks)):
                decide(networks[side], stream, side, draw[side * width], t)
            t += 1
            if draw[0] <= 1:
                m.steps += 1
                if not has_game:
                    return t
                reward = _emulate(game, stream, len(networks), draw)
                for side in range(len(networks)):
                    step = networks[side][2][2][t - 1]
                    step.reward = -reward if side else reward
                    step.is_end = reward != 0 or m.is_on == 0
                _count(stream.tally, networks[own][2][2][t - 1], m.steps - 1, up)
            if place == length - 1:
                for k in range(len(stream.console)):
                    stream.console[k] = machine[k]
            if m.is_on == 0 or m.fault:
                return t
        return t

    return play


# Definitions: `pixelpong.learn.network.forward`; and `pixelpong.learn.gated.forward` with a
# softmax, on the inputs of `observe_features`.
play_plain = _make_play(_decide_plain, _forget_plain, UP)
play_gated = _make_play(_decide_gated, _forget_gated, ACTIONS.index(UP))
