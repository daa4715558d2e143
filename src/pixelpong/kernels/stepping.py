"""Steps of many games at once for `pixelpong.games`, in compiled code without Python's lock.

Each thread plays its share of the games, one after the other, on a console of its own. A game is a
row in a few arrays (`GAME` and what it shows), so a state is a copy of these rows. A step of a
share is one call, which Python cannot interrupt, and it is noted there that it was played.

The picture "atari" is that of ale-py's ``AtariVectorEnv``, to the bit: the maximum of a step's last
two frames in grey or in colour, made smaller by averaging areas as OpenCV does, in float32 and in
its order of sums. If a game ends within a step, that class leaves its loop before it takes the
picture, so the newest picture is then made of what it had taken before; so it is here. The
console draws its pictures in grey, if that is all that is seen of them, and otherwise they are
looked up.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from pixelpong.kernels.compiling import compiled
from pixelpong.kernels.games import Console, begin, copy, load, play_step, save
from pixelpong.kernels.intrinsics import call_shrink, lowest_bit

_kernel = compiled(error_model="numpy")
_part: Any = register_jitable(error_model="numpy")

RESET, LEAVE = -1, -2  # in place of a move: begin an episode, show the last observation again


class Games(NamedTuple):
    """N games; changed."""

    games: NDArray[np.void]  # [N] `GAME`
    memories: NDArray[np.uint8]  # [N or 0, ·], what the left side's networks remember
    fields: NDArray[np.uint64]  # [N, 2, 80, 2], in either order (`newest`)
    frames: NDArray[np.uint8]  # [N or 0, 210, 160], the newest ones if they are kept


class Orders(NamedTuple):
    """What the next step does."""

    moves: NDArray[np.int64]  # [N, sides], the console's actions; or RESET or LEAVE in the first
    begins: NDArray[np.void]  # [N] `BEGIN`
    uniforms: NDArray[np.float64]  # [N, ·, sides × width], a row for each step, see `play_step`
    remembered: NDArray[np.uint8]  # [N or 0, ·], as `memories`, after these moves


class Results(NamedTuple):
    """What a step returns; changed."""

    observations: NDArray[Any]  # [N, …]
    # Those with which episodes ended, of games in which the next one has begun; else [0, …].
    final_observations: NDArray[Any]
    rewards: NDArray[np.float64]  # [N]
    is_over: NDArray[np.bool_]  # [N]
    is_cut: NDArray[np.bool_]  # [N], by the limit of frames
    total_frames: NDArray[np.int32]  # [N]
    episode_frames: NDArray[np.int32]  # [N]


class AtariView(NamedTuple):
    """What the observation "atari" is made of; all but `colours` is changed."""

    stacks: NDArray[np.uint8]  # [N, stack, height × width × channels], small pictures
    kept: NDArray[np.uint8]  # [N, channels, 210, 160], the newest picture, if the game may end
    # [channels, 256], levels by palette index; [0, 256] if the console draws levels.
    colours: NDArray[np.uint8]
    planes: tuple[NDArray[np.uint8], NDArray[np.uint8]]  # [channels, 210, 160] of both pictures
    shrink: int  # address of the function of `pixelpong.atari.shrinking`
    scratch: NDArray[np.float32]
    small: NDArray[np.uint8]  # [height, width], a channel


class Thread(NamedTuple):
    """What one thread needs to play its share of the games."""

    console: Console
    share: int
    first: int  # its first game
    last: int  # the game after its last one
    autoresets: int  # 1 if the next episode begins in the step in which one ends
    pictures: tuple[NDArray[np.uint8], NDArray[np.uint8]]  # [210, 160], of the console's machines
    # By observation: `AtariView`; for "frame" the kept frames as words, [N, 210, 20]; for the
    # others [256], whether a palette index is not background.
    observer: Any
    palette: NDArray[np.uint8]  # [256, 3]


# --- the picture that others use ----------------------------------------------------------------


@_part
def _look_up(picture, levels, out):  # type: ignore[no-untyped-def]
    """Write the levels of a picture's palette indices to `out`."""
    for y in range(len(picture)):
        for x in range(picture.shape[1]):
            out[y, x] = levels[picture[y, x]]


@_part
def _see_atari(games, i, num_pictures, which, thread):  # type: ignore[no-untyped-def]
    """Add the newest picture to the stack of a game."""
    view, game = thread.observer, games.games[i]
    before, game.newest = game.newest, (game.newest + 1) % view.stacks.shape[1]
    if game.steps == 0:
        view.stacks[i] = 0
    stack = view.stacks[i, game.newest]
    if num_pictures == 0:  # the game ended before one was taken
        stack[:] = view.stacks[i, before]
        return
    second = which if num_pictures == 2 else 0
    for c in range(len(view.colours)):
        _look_up(thread.pictures[0], view.colours[c], view.planes[0][c])
        if second:
            _look_up(thread.pictures[second], view.colours[c], view.planes[second][c])
    for c in range(view.kept.shape[1]):
        one, two = view.planes[0][c], view.planes[second][c]
        _shrink(view, stack, c, view.kept[i, c] if num_pictures == 1 else one, two)
        if game.may_end:  # the next step may need this
            for y in range(len(one)):
                for x in range(one.shape[1]):
                    view.kept[i, c, y, x] = max(one[y, x], two[y, x])


@_part
def _shrink(view, stack, c, first, second):  # type: ignore[no-untyped-def]
    """Write channel c of the maximum of two pictures, made smaller, to ``stack`` [·]."""
    num_channels = view.kept.shape[1]
    out = stack.reshape(view.small.shape) if num_channels == 1 else view.small
    call_shrink(
        view.shrink, first.ctypes.data, second.ctypes.data, out.ctypes.data,
        view.scratch.ctypes.data,
    )  # fmt: skip
    if num_channels > 1:
        flat = out.reshape(-1)
        for k in range(len(flat)):
            stack[num_channels * k + c] = flat[k]


@_part
def _show_atari(games, i, thread, out):  # type: ignore[no-untyped-def]
    """Write the stack of a game, the newest picture last."""
    stacks, newest = thread.observer.stacks, games.games[i].newest
    for k in range(stacks.shape[1]):
        copy(stacks[i, (newest + 1 + k) % stacks.shape[1]], out[i, k])


# --- frames and fields --------------------------------------------------------------------------


@_part
def _see_field(games, i, num_pictures, which, thread):  # type: ignore[no-untyped-def]
    """Keep the newest field; if frames are kept, it is made of one, as `preprocess` does."""
    game, drawn, is_active = games.games[i], thread.console.field, thread.observer
    game.newest = 1 - game.newest
    field, picture = games.fields[i, game.newest], thread.pictures[which]
    for row in range(len(field)):
        field[row, 0], field[row, 1] = drawn[row, 0], drawn[row, 1]
        if len(games.frames):
            field[row] = 0
            for x in range(80):
                is_on = is_active[picture[35 + 2 * row, 2 * x]]
                field[row, x >> 6] |= np.uint64(is_on) << np.uint64(x & 63)


@_part
def _see_frame(games, i, num_pictures, which, thread):  # type: ignore[no-untyped-def]
    """Frames are kept anyway."""


@_part
def _show_frame(games, i, thread, out):  # type: ignore[no-untyped-def]
    """Write a frame in colour, [210, 3 × 160]."""
    frame, words, palette = games.frames[i], thread.observer[i], thread.palette
    for y in range(len(frame)):
        is_new = y == 0
        for k in range(words.shape[1]):
            is_new |= words[y, k] != words[y - 1, k]
        row = out[i, y]
        if is_new:
            for x in range(frame.shape[1]):
                for c in range(3):
                    row[3 * x + c] = palette[frame[y, x], c]
        else:
            copy(out[i, y - 1], row)


@_part
def _show_field(games, i, thread, out):  # type: ignore[no-untyped-def]
    """Write a 1 for each pixel that is on, [80, 80]."""
    fields = games.fields[i]
    _write_signs(fields[games.games[i].newest], fields[:0], out[i])


@_part
def _show_pixels(games, i, thread, out):  # type: ignore[no-untyped-def]
    """Write the difference of two fields, [80, 80]; at the first step of an episode zeros."""
    fields, game = games.fields[i], games.games[i]
    before = 1 - game.newest if game.steps > 0 else game.newest
    _write_signs(fields[game.newest], fields[before : before + 1], out[i])


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


@_part
def _reset(games, orders, i, console):  # type: ignore[no-untyped-def]
    """Begin the next episode of a game."""
    game, order = games.games[i], orders.begins[i]
    game.seed, game.episode = order.seed, order.episode
    if order.episode == 0:
        game.total_frames = 0
    begin(console, game, order.waits)
    save(console.machines[0], game)
    games.memories[i : i + 1] = 0


@_part
def _advance(games, orders, i, console):  # type: ignore[no-untyped-def]
    """Play a step of a game; return what `play_step` does."""
    game = games.games[i]
    for side in range(orders.moves.shape[1]):
        console.moves[side] = orders.moves[i, side]
    load(game, console.machines[0])
    row = orders.uniforms[i, game.steps % orders.uniforms.shape[1]]
    num_pictures, which = play_step(console, game, row)
    save(console.machines[which], game)
    if len(games.memories):
        copy(orders.remembered[i], games.memories[i])
    return num_pictures, which


def _make_step(see: Any, show: Any) -> Any:
    """Make the kernel for one kind of observation."""

    @_part
    def observe(games, i, num_pictures, which, thread, out):  # type: ignore[no-untyped-def]
        """See what a game shows after `play_step` has returned these numbers, and write it."""
        see(games, i, num_pictures, which, thread)
        for y in range(games.frames.shape[1] if len(games.frames) else 0):
            copy(thread.pictures[which][y], games.frames[i, y])
        show(games, i, thread, out)

    @_kernel
    def step(games, orders, thread, results, done):  # type: ignore[no-untyped-def]
        """Play a step of a thread's share of the games, or begin their next episodes.

        Args:
            games: `Games`.
            orders: `Orders`.
            thread: `Thread`.
            results: `Results`.
            done: [shares] bool, set for this share. If it was, this step was played before, and
                nothing is done.
        """
        console, out = thread.console, results.observations
        if done[thread.share]:
            return
        for i in range(thread.first, thread.last):
            game = games.games[i]
            if orders.moves[i, 0] == LEAVE:
                show(games, i, thread, out)
            else:
                num_pictures, which = 2, 0
                if orders.moves[i, 0] == RESET:
                    _reset(games, orders, i, console)
                else:
                    num_pictures, which = _advance(games, orders, i, console)
                observe(games, i, num_pictures, which, thread, out)
                results.rewards[i] = game.reward
                results.is_over[i], results.is_cut[i] = game.is_over != 0, game.is_cut != 0
                # Always, if `may_end` was right.
                is_ready = orders.begins[i].episode == game.episode + 1
                if thread.autoresets and is_ready and game.is_over | game.is_cut:
                    show(games, i, thread, results.final_observations)
                    _reset(games, orders, i, console)
                    observe(games, i, 2, 0, thread, out)
            results.total_frames[i] = game.total_frames
            results.episode_frames[i] = game.episode_frames
        done[thread.share] = True

    return step


@_part
def _show_nothing(games, i, thread, out):  # type: ignore[no-untyped-def]
    """Nothing is observed."""


STEPS = {  # by observation
    "nothing": _make_step(_see_frame, _show_nothing),
    "atari": _make_step(_see_atari, _show_atari),
    "frame": _make_step(_see_frame, _show_frame),
    "field": _make_step(_see_field, _show_field),
    "pixels": _make_step(_see_field, _show_pixels),
}
