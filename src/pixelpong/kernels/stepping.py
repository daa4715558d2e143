"""Steps of many games at once for `pixelpong.faces.envs`, in compiled code without Python's lock.

Each thread plays its share of the games, one after the other, on two machines of its own. A game is
a row in a few arrays (`PLACE` and what it shows), so a state is a copy of these rows. A step of a
share is one call, which Python cannot interrupt, and it is noted there that it was played.

The picture "atari" is that of ale-py's ``AtariVectorEnv``, to the bit: the maximum of a step's last
two frames in grey or in colour, made smaller by averaging areas as OpenCV does, in float32 and in
its order of sums. If a game ends within a step, that class leaves its loop before it takes the
picture, so the newest picture is then made of what it had taken before; so it is here. The
console draws its pictures in grey, if that is all that is seen of them, and otherwise they are
looked up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from pixelpong.atari.machine import DRAW_PICTURE, FRAME_DONE
from pixelpong.env.field import DRAW_FIELD
from pixelpong.kernels.compiling import compiled
from pixelpong.kernels.intrinsics import call_play_frames, call_shrink, lowest_bit

_kernel = compiled(error_model="numpy")
_part: Any = register_jitable(error_model="numpy")

RESET, LEAVE = -1, -2  # in place of a move: begin an episode, show the last observation again


@_part
def _copy(source, target):  # type: ignore[no-untyped-def]
    """Copy an array [N], faster than an assignment does."""
    for k in range(len(source)):
        target[k] = source[k]


@_part
def _emulate(g, place, which, first, count):  # type: ignore[no-untyped-def]
    """Emulate frames with actions from `first` on; return how many were played."""
    if count <= 0:
        return 0
    address, draws = g.actions + first, DRAW_PICTURE if g.draws_pictures else DRAW_FIELD
    stop, played, reward, is_over, may_end = call_play_frames(
        g.play_frames, g.machine[which], address, count, draws
    )
    if stop != FRAME_DONE:
        place.fault, place.is_on = stop, 0
        return 0
    place.reward += reward
    place.points[np.int64(reward < 0)] += reward != 0
    place.is_over, place.may_end = is_over, may_end
    place.episode_frames += played
    place.total_frames += played
    return played


@_part
def _begin(g, place, console, begin, start, machine, actions):  # type: ignore[no-untyped-def]
    """Begin an episode; what happens in its opening frames does not count."""
    place.seed, place.episode, place.is_on = begin.seed, begin.episode, 1
    if place.episode == 0:
        place.total_frames = 0
    place.steps = place.num_frames = place.fault = 0
    fires = g.first_action >= 0
    count = max(begin.waits, fires)
    actions[:count] = g.no_action | g.no_action << 4 * (g.num_sides - 1)
    place.held[:] = g.no_action
    if fires:
        actions[0] = g.first_action
        place.held[0] = g.first_action if count == 1 else g.no_action
    played, place.is_over = 0, 1
    while place.is_over:  # a game may end in the opening frames: then another begins, as in ALE
        machine[: len(start)] = start
        place.is_over = place.may_end = place.episode_frames = 0
        played += _emulate(g, place, 0, played, count - played)
    place.reward = place.is_cut = 0
    place.points[:] = 0
    place.may_end |= g.max_frames <= g.most_frames
    console[:] = machine[: len(console)]


@_part
def _play(g, place, console, move, draws, machines, actions):  # type: ignore[no-untyped-def]
    """Play a step.

    Returns how many of the pictures of its last two frames were taken before it ended, and which of
    the machines has played the last frame.
    """
    size, width = len(console), len(draws) // len(move)
    machines[0][:size] = console
    wanted = g.fewest_frames + np.int64(draws[1] * (g.most_frames - g.fewest_frames + 1))
    count = min(wanted, g.max_frames - place.num_frames)
    actions[:count] = 0
    for side in range(len(move)):
        held = place.held[side]
        for k in range(count):
            if draws[side * width + 2 + k] >= g.sticky:
                held = move[side]
            actions[k] |= held << 4 * side
        place.held[side] = held
    place.reward = place.is_over = place.is_cut = place.fault = 0
    place.steps += 1
    early = g.takes_two and count == wanted and wanted > 1
    place.num_frames += _emulate(g, place, 0, 0, count - early)
    which = taken = 0
    if early and not place.is_over and not place.fault:
        taken = which = 1
        machines[1][:size] = machines[0][:size]
        place.num_frames += _emulate(g, place, 1, count - 1, 1)
    console[:] = machines[which][:size]
    place.is_cut = place.num_frames >= g.max_frames and not place.is_over
    place.is_on = not (place.is_over or place.is_cut or place.fault)
    place.may_end |= place.num_frames + g.most_frames >= g.max_frames
    return 2 if place.is_on else taken, which


# --- the picture that others use ----------------------------------------------------------------


@_part
def _look_up(picture, levels, out):  # type: ignore[no-untyped-def]
    """Write the levels of a picture's palette indices to `out`."""
    for y in range(len(picture)):
        for x in range(picture.shape[1]):
            out[y, x] = levels[picture[y, x]]


@_part
def _see_atari(place, i, taken, which, seen, view):  # type: ignore[no-untyped-def]
    """Add the newest picture to the stack of a game."""
    (stacks, kept, colours, planes, shrink, scratch, small), pixels = view, seen[0]
    is_start, num_channels = place.steps == 0, kept.shape[1]
    before, place.newest = place.newest, (place.newest + 1) % stacks.shape[1]
    if is_start:
        stacks[i] = 0
    stack = stacks[i, place.newest]
    if taken == 0:
        stack[:] = stacks[i, before]
        return
    newest = which if taken == 2 else 0
    for c in range(len(colours)):
        _look_up(pixels[0], colours[c], planes[0][c])
        if newest:
            _look_up(pixels[newest], colours[c], planes[newest][c])
    for c in range(num_channels):
        out = stack.reshape(small.shape) if num_channels == 1 else small
        one, two = planes[0][c], planes[newest][c]
        first = kept[i, c] if taken == 1 else one
        call_shrink(
            shrink, first.ctypes.data, two.ctypes.data, out.ctypes.data, scratch.ctypes.data
        )
        if num_channels > 1:
            flat = out.reshape(-1)
            for k in range(len(flat)):
                stack[num_channels * k + c] = flat[k]
        if place.may_end:  # the next step may need this
            for y in range(len(one)):
                for x in range(one.shape[1]):
                    kept[i, c, y, x] = max(one[y, x], two[y, x])


@_part
def _show_atari(place, i, seen, view, out):  # type: ignore[no-untyped-def]
    """Write the stack of a game, the newest picture last."""
    stacks = view[0]
    for k in range(stacks.shape[1]):
        _copy(stacks[i, (place.newest + 1 + k) % stacks.shape[1]], out[i, k])


# --- frames and fields --------------------------------------------------------------------------


@_part
def _see_field(place, i, taken, which, seen, view):  # type: ignore[no-untyped-def]
    """Keep the newest field; if frames are kept, it is made of one, as `preprocess` does."""
    (pictures, drawn, fields, frames, _), is_active = seen, view
    place.newest = 1 - place.newest
    field, picture = fields[i, place.newest], pictures[which]
    for row in range(len(field)):
        field[row, 0], field[row, 1] = drawn[row, 0], drawn[row, 1]
        if len(frames):
            field[row] = 0
            for x in range(80):
                is_on = is_active[picture[35 + 2 * row, 2 * x]]
                field[row, x >> 6] |= np.uint64(is_on) << np.uint64(x & 63)


@_part
def _see_frame(place, i, taken, which, seen, view):  # type: ignore[no-untyped-def]
    """Frames are kept anyway."""


@_part
def _show_frame(place, i, seen, view, out):  # type: ignore[no-untyped-def]
    """Write a frame in colour, [210, 3 × 160]."""
    (frames, palette), words = seen[3:], view
    for y in range(frames.shape[1]):
        is_new = y == 0
        for k in range(words.shape[2]):
            is_new |= words[i, y, k] != words[i, y - 1, k]
        row = out[i, y]
        if is_new:
            for x in range(frames.shape[2]):
                for c in range(3):
                    row[3 * x + c] = palette[frames[i, y, x], c]
        else:
            _copy(out[i, y - 1], row)


@_part
def _show_field(place, i, seen, view, out):  # type: ignore[no-untyped-def]
    """Write a 1 for each pixel that is on, [80, 80]."""
    fields = seen[2][i]
    _write_signs(fields[place.newest], fields[:0], out[i])


@_part
def _show_pixels(place, i, seen, view, out):  # type: ignore[no-untyped-def]
    """Write the difference of two fields, [80, 80]; at the first step of an episode zeros."""
    fields, newest = seen[2][i], place.newest
    before = 1 - newest if place.steps > 0 else newest
    _write_signs(fields[newest], fields[before : before + 1], out[i])


@_part
def _write_signs(now, before, out):  # type: ignore[no-untyped-def]
    """Write 1 for each pixel that is on; with a field before, [1, 80, 2], ±1 for the changes."""
    out[:] = 0
    for row in range(len(now)):
        for word in range(2):
            bits = now[row, word]
            changed = bits ^ before[0, row, word] if len(before) else bits
            while changed != 0:
                bit = lowest_bit(changed)
                out[row, 64 * word + bit] = 1 if bits >> np.uint64(bit) & np.uint64(1) else -1
                changed &= changed - np.uint64(1)


def _make_step(see: Any, show: Any) -> Any:
    """Make the kernel for one kind of observation."""

    @_part
    def observe(place, i, taken, which, seen, view, out):  # type: ignore[no-untyped-def]
        """See what a game shows after a step, of which `_play` has returned `taken` and `which`."""
        frames = seen[3]
        see(place, i, taken, which, seen, view)
        for y in range(frames.shape[1] if len(frames) else 0):
            _copy(seen[0][which][y], frames[i, y])
        show(place, i, seen, view, out)

    @_kernel
    def step(games, orders, start, thread, results, done):  # type: ignore[no-untyped-def]
        """Play a step of a thread's share of the games, or begin their next episodes.

        Args:
            games: [N] `PLACE`, the consoles' states [N, ·] uint8, and the memory of the left side's
                networks [N or 0, ·] uint8; changed.
            orders: moves [N, sides], int64 actions of the console; or RESET or LEAVE in the first
                column. [N] `BEGIN`. Draws [N, ·, sides × width], numbers in [0, 1): a row for each
                step, as in `pixelpong.kernels.playing`. What the left side's networks remember
                after their moves, as in `games`.
            start: [·] uint8, a machine at the start of a game.
            thread: of this thread, changed: [1] `GAMES`; two machines, [·] uint8; the actions of a
                step's frames, [·] uint8; what is seen of the games; what is shown.
            results: changed. The observations [N, …]; those with which episodes ended, of games in
                which the next one has begun; rewards [N] float64; whether it was over, and cut off,
                [N] bool; `total_frames` and `episode_frames` [N] int32.
            done: [shares] bool, set for this share. If it was, this step was played before, and
                nothing is done.
        """
        (rules, machines, actions, seen, view) = thread
        g = rules[0]
        if done[g.share]:
            return
        (places, consoles, memories), (moves, begins, draws, remembered) = games, orders
        out, final, rewards, is_over, is_cut, total_frames, episode_frames = results
        for i in range(g.first, g.last):
            place, console, taken, which = places[i], consoles[i], 2, 0
            if moves[i, 0] == LEAVE:
                show(place, i, seen, view, out)
            else:
                if moves[i, 0] == RESET:
                    _begin(g, place, console, begins[i], start, machines[0], actions)
                    memories[i : i + 1] = 0
                else:
                    row = draws[i, place.steps % draws.shape[1]]
                    taken, which = _play(g, place, console, moves[i], row, machines, actions)
                    if len(memories):
                        _copy(remembered[i], memories[i])
                observe(place, i, taken, which, seen, view, out)
                rewards[i] = place.reward
                is_over[i], is_cut[i] = place.is_over != 0, place.is_cut != 0
                is_ready = begins[i].episode == place.episode + 1  # always, if `may_end` was right
                if g.goes_on and is_ready and place.is_over | place.is_cut:
                    show(place, i, seen, view, final)
                    _begin(g, place, console, begins[i], start, machines[0], actions)
                    memories[i : i + 1] = 0
                    observe(place, i, 2, 0, seen, view, out)
            total_frames[i], episode_frames[i] = place.total_frames, place.episode_frames
        done[g.share] = True

    return step


STEPS = {  # by observation
    "atari": _make_step(_see_atari, _show_atari),
    "frame": _make_step(_see_frame, _show_frame),
    "field": _make_step(_see_field, _show_field),
    "pixels": _make_step(_see_field, _show_pixels),
}
