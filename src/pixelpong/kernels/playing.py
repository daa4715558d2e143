"""Playing in compiled code: observations, decisions and whole episodes.

`play_plain` and `play_gated` play streams until an episode ends, outside Python and without the
GIL. Without a machine they return after each decision.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.steps.compiling import kernel, kernel_part
from pixelpong.atari.steps.episode import begin, copy, play_step, save
from pixelpong.items import ACTIONS, DOWN, NUM_PIXELS, UP
from pixelpong.kernels.observing import Seen, Sight, find_difference, observe_features


class Record(NamedTuple):
    """One side's observations and actions, as in `pixelpong.items.Played`, with room for more.

    Changed in place.
    """

    indices: NDArray[np.uint16]  # [·], the inputs of step t start at ``offsets[t]``
    offsets: NDArray[np.int64]  # [T + 1]
    steps: NDArray[np.void]  # [T] `PLAIN_STEP` or `GATED_STEP`
    hidden: NDArray[Any]  # [T, H], or [T, 0]


class Network(NamedTuple):
    """One side's network."""

    params: Any  # `PlainParams` or `GatedParams`
    scratch: Any  # `GatedScratch` for the gated network
    max_inputs: int  # the most inputs that a step can have


class PlainParams(NamedTuple):
    """Parameters of the classic network."""

    W1: NDArray[Any]  # [NUM_PIXELS, H]
    W2: NDArray[Any]  # [H]


class GatedParams(NamedTuple):
    """Parameters of the gated network; the two columns of a unit are next to each other."""

    W1: NDArray[Any]  # [D, 2H]
    W2: NDArray[Any]  # [4, 2H]
    b2: NDArray[Any]  # [4]


class Layers(NamedTuple):
    """The gated network's activations at one step; changed."""

    z: NDArray[Any]  # [2H], the sums of the first layer, in the parameters' type
    lanes: NDArray[Any]  # [8], partial sums of an output, in the parameters' type
    outputs: NDArray[np.float64]  # [4]
    log_probabilities: NDArray[np.float64]  # [3]
    probabilities: NDArray[np.float64]  # [3]


class GatedScratch(NamedTuple):
    """The arrays that the gated network needs for its decisions."""

    sight: Sight
    seen: Seen
    layers: Layers


@kernel_part
def take_field(field, stream):  # type: ignore[no-untyped-def]
    """Copy `field` [80, 2], as `pack_field` returns it, to a stream as its newest field."""
    game = stream.game
    game.newest, stream.is_new = 1 - game.newest, 0
    newest = stream.fields[game.newest]
    for row in range(len(field)):
        newest[row, 0], newest[row, 1] = field[row, 0], field[row, 1]


@kernel_part
def _begin_stream(console, stream):  # type: ignore[no-untyped-def]
    """Start an episode of a stream."""
    begin(console, stream.game)
    stream.game.newest, stream.is_new = 0, 1
    stream.last_actions[0] = stream.last_actions[1] = 0
    for row in range(80):
        for word in range(2):
            stream.fields[0, row, word] = stream.fields[1, row, word] = 0
    tally = stream.tally
    tally.entropy = 0.0
    tally.ups = tally.points = 0


@kernel_part
def _count(stream, step, up):  # type: ignore[no-untyped-def]
    """Add the learning side's newest step to its statistics."""
    tally = stream.tally
    tally.entropy += step.entropy
    tally.ups += step.action == up
    if step.reward != 0 and 0 <= tally.points < len(tally.ends):  # always, unless state is invalid
        tally.ends[tally.points] = stream.game.steps - 1
        tally.rewards[tally.points] = step.reward
        tally.points += 1


# --- the classic network ----------------------------------------------------------------------


@kernel_part
def up_probability(params, indices, start, stop, hidden, t):  # type: ignore[no-untyped-def]
    """Compute the probability of UP for the observation ``indices[start:stop]``.

    Definition: `pixelpong.learn.network.forward`. Writes the hidden activations to ``hidden[t]``.
    """
    W1, W2, h = params.W1, params.W2, hidden[t]
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
    # Four partial sums in a fixed order; with a single sum, each addition would wait for the last.
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


_UP_INDEX, _DOWN_INDEX = ACTIONS.index(UP), ACTIONS.index(DOWN)


@kernel_part
def _forget_plain(network):  # type: ignore[no-untyped-def]
    """Do nothing, because this network keeps no state besides the stream."""


@kernel_part
def _decide_plain(network, record, stream, side, uniform, t):  # type: ignore[no-untyped-def]
    """Observe, decide, and record the decision with its probability."""
    start = record.offsets[t]
    stop = find_difference(stream, record.indices, start)
    record.offsets[t + 1] = stop
    p = up_probability(network.params, record.indices, start, stop, record.hidden, t)
    goes_up = p >= 0.5 if uniform < 0 else uniform < p
    stream.last_actions[side] = _UP_INDEX if goes_up else _DOWN_INDEX
    step = record.steps[t]
    step.up_probability, step.action, step.entropy = p, UP if goes_up else DOWN, 0.0
    if 0 < p < 1:
        step.entropy = -(p * np.log(p) + (1 - p) * np.log(1 - p))


# --- the gated network ------------------------------------------------------------------------


@kernel_part
def _read_out(params, layers, indices, start, stop):  # type: ignore[no-untyped-def]
    """Compute the outputs from the inputs ``indices[start:stop]``."""
    W1, W2, b2 = params.W1, params.W2, params.b2
    z, lanes = layers.z, layers.lanes
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
        # Eight partial sums in a fixed order; with one, each addition would wait for the last.
        for lane in range(8):
            lanes[lane] = 0
        for i in range(0, whole, 8):
            for lane in range(8):
                lanes[lane] += W2[output, i + lane] * z[i + lane]
        for i in range(whole, len(z)):
            lanes[0] += W2[output, i] * z[i]
        left = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
        right = (lanes[4] + lanes[5]) + (lanes[6] + lanes[7])
        layers.outputs[output] = np.float64(left) + np.float64(right) + b2[output]


@kernel_part
def _choose(layers, step, uniform):  # type: ignore[no-untyped-def]
    """Sample an action from the softmax of the outputs; record it with its probability."""
    y, logs, p = layers.outputs, layers.log_probabilities, layers.probabilities
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
    if uniform >= 0:
        best = 0 if uniform < p[0] else 1 if uniform < p[0] + p[1] else 2
    step.action, step.log_probability, step.entropy = best, logs[best], -entropy


@kernel_part
def _forget_gated(network):  # type: ignore[no-untyped-def]
    """Forget the features of the previous frame, which belong to another stream."""
    seen = network.scratch.seen
    seen.marks[:2] = 0
    seen.num_before[0] = -1


@kernel_part
def _decide_gated(network, record, stream, side, uniform, t):  # type: ignore[no-untyped-def]
    """Observe and record a decision, or only the value if `uniform` is above 1."""
    scratch = network.scratch
    start, step = record.offsets[t], record.steps[t]
    stop = observe_features(scratch.sight, stream, side, scratch.seen, record.indices, start)
    _read_out(network.params, scratch.layers, record.indices, start, stop)
    step.value = scratch.layers.outputs[3]
    if uniform <= 1:
        record.offsets[t + 1] = stop
        _choose(scratch.layers, step, uniform)
        stream.last_actions[side] = step.action
    else:
        record.offsets[t + 1] = start


# --- both -------------------------------------------------------------------------------------


@kernel_part
def _has_room(record, max_inputs, t):  # type: ignore[no-untyped-def]
    """Whether a record has room for step t, however many inputs that step has."""
    return t < len(record.steps) and record.offsets[t] + max_inputs <= len(record.indices)


def _make_play(decide: Any, forget: Any, up: int) -> Any:
    """Make the kernel that plays with a network's `decide`; `up` is the action UP in its record."""

    @kernel
    def play_streams(  # type: ignore[no-untyped-def]
        console, networks, records, streams, uniforms, first, t, learner
    ):
        """Play streams, one after the other, until an episode ends or a record is full.

        If the console has no machine, decide once and put the action in ``last_actions``.

        Args:
            console: `Console`.
            networks: the right side's `Network`; in the two-player game, also the left side's.
            records: `Record`, one for each network.
            streams: [N] `STREAM`; changed.
            uniforms: [N, T, ·], one row per step, see `play_step`. A side's first number chooses
                its action; if it is negative, the most probable action is taken. If the first
                number is above 1, the step is not played, and only its value is recorded.
            first: the index in the record of the first stream's first step.
            t: where to continue, up to ``first + N · T``.
            learner: the side whose statistics are recorded.

        Returns the index after the last step.
        """
        idle, has_machine = console.rules[0].idle, console.rules[0].play_frames != 0
        machine, max_inputs = console.machines[0], networks[0].max_inputs
        length, width = uniforms.shape[1], uniforms.shape[2] // len(networks)
        while t < first + len(streams) * length:
            number, index = (t - first) // length, (t - first) % length
            stream, row = streams[number], uniforms[number, index]
            game = stream.game
            for side in range(len(networks)):
                if not _has_room(records[side], max_inputs, t):
                    return t
            # 1. Load the game onto the console.
            if index == 0 and has_machine:
                copy(stream.console, machine)
            if game.is_on == 0:
                _begin_stream(console, stream)
            # 2. Decide.
            if index == 0 or game.steps == 0:
                for side in range(len(networks)):
                    forget(networks[side])
            if stream.is_new:
                take_field(console.drawn, stream)
            for side in range(len(networks)):
                decide(networks[side], records[side], stream, side, row[side * width], t)
            t += 1
            if not has_machine:
                game.steps += 1
                return t
            # 3. Play, and record the reward.
            if row[0] <= 1:
                for side in range(len(networks)):
                    console.now[0].moves[side] = idle | ACTIONS[stream.last_actions[side]]
                play_step(console, game, row)
                stream.is_new = 1
                for side in range(len(networks)):
                    step = records[side].steps[t - 1]
                    step.reward = -game.reward if side else game.reward
                    step.is_end = game.reward != 0 or game.is_on == 0
                _count(stream, records[learner].steps[t - 1], up)
            # 4. Leave the console to the next stream.
            if index == length - 1:
                save(machine, stream.console, len(stream.console))
            if game.is_on == 0 or game.fault:
                return t
        return t

    return play_streams


# Definitions: `pixelpong.learn.network.forward`; and `pixelpong.learn.gated.forward` with a
# softmax, on the inputs of `observe_features`.
play_plain = _make_play(_decide_plain, _forget_plain, UP)
play_gated = _make_play(_decide_gated, _forget_gated, ACTIONS.index(UP))
