"""Steps of many games at once for `atari.games`, in compiled code that releases the GIL.

Each thread plays its part of the games, one after the other, on its own console. A game is a row in
a few arrays (`GAME` and its observations), so a state is a copy of these rows. A step of a part is
one call. Python cannot interrupt it, and the call itself records that the step was played.

The observation "atari" equals that of ale-py's ``AtariVectorEnv`` bit for bit. It is the maximum of
a step's last two frames, in grey or in colour, reduced by averaging areas as OpenCV does, in
float32 and with the same order of sums. If a game ends within a step, ale-py leaves its loop before
it takes the last picture, and the observation is made of the pictures it took before; this code
does the same. If only grey is needed, the console draws in grey; otherwise colours are looked up.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine.record import STATE
from pixelpong.atari.steps.compiling import kernel, kernel_part
from pixelpong.atari.steps.episode import Console, copy, play_step, save
from pixelpong.atari.steps.intrinsics import call_shrink
from pixelpong.atari.steps.opening import Starts, start_episode, toss_coins, use_coins

# Instead of a move: start an episode; repeat the last observation; do nothing. Nothing ends then.
RESET, LEAVE, SKIP = -1, -2, -3
# When the next episode of a game starts that has ended: by a RESET, in the next step whatever its
# move, in the same step.
NEVER, NEXT_STEP, SAME_STEP = range(3)


class Rows(NamedTuple):
    """The N games; changed in place."""

    rows: NDArray[np.void]  # [N] `GAME`
    chances: NDArray[np.void]  # [N] `CHANCE`
    states: NDArray[np.uint8]  # [N, ·], the states of their consoles
    memories: NDArray[np.uint8]  # [N or 0, ·], the memories of those who play the second side
    frames: NDArray[np.uint8]  # [N or 0, rows, 160], the newest frames if they are kept


class Orders(NamedTuple):
    """The orders for the next step."""

    # [N, 2], the console's actions of both sides; the first may be RESET, LEAVE or SKIP. If actions
    # are continuous, the second says how far the first turns a paddle.
    moves: NDArray[np.int64]
    counts: NDArray[np.int64]  # [N], the frames of a step; 0: as the rules and `uniforms` say
    seeds: NDArray[np.int64]  # [N], for a RESET; −1: the next episode of the same seed
    slots: NDArray[np.int64]  # [N], where in `Results` those of a game go, unless it is skipped
    uniforms: NDArray[np.float64]  # [N, ·, sides × width], one row per step, see `play_step`
    remembered: NDArray[np.uint8]  # [N or 0, ·], `memories` after these moves


class Results(NamedTuple):
    """The results of a step of B games, which the kernel writes."""

    observations: NDArray[Any]  # [B, …]
    # The last observations of episodes that ended, in games where the next episode has already
    # started; else [0, …].
    final_observations: NDArray[Any]
    numbers: NDArray[np.int32]  # [8, B], each line as REWARD and so on say
    ends: NDArray[np.bool_]  # [3, B], each line as IS_OVER and so on say
    rams: NDArray[np.uint8]  # [B or 0, 128], the consoles' memory if it is shown


# The lines of `Results.numbers`. The last four are 0 in games that do not play; steps and return
# are those of the episode that was played, also if the next one has already started. The last line
# is the second side's reward.
REWARD, LIVES, TOTAL_FRAMES, EPISODE_FRAMES, EPISODE_STEPS, EPISODE_RETURN, FAULT, SECOND = range(8)
# The lines of `Results.ends`: the episode is over; the frame limit ended it; a life was lost.
IS_OVER, IS_CUT, IS_LOST = range(3)
# Where the console's memory is in its state.
RAM_START = int(STATE.fields["ram"][1])  # type: ignore[index]
RAM_SIZE = 128

Pictures = tuple[NDArray[np.uint8], NDArray[np.uint8]]  # [rows, 160] each


class AtariView(NamedTuple):
    """The data for the observation "atari"; all but `pictures` and `colours` change."""

    pictures: Pictures
    stacks: NDArray[np.uint8]  # [N, stack, height × width × channels], reduced pictures
    kept: NDArray[np.uint8]  # [N, channels, rows, 160], the newest picture if the game may end
    # [channels, 256], the level of each palette index; [0, 256] if the console draws levels.
    colours: NDArray[np.uint8]
    planes: Pictures  # [channels, rows, 160] each, the channels of both pictures
    shrink: int  # address of the function from `atari.machine.shrinking`
    scratch: NDArray[np.float32]
    small: NDArray[np.uint8]  # [height, width], one channel of a reduced picture


class FrameView(NamedTuple):
    """The data for the observation "frame"."""

    frames: NDArray[np.uint8]  # [N, rows, 160], the newest frames
    words: NDArray[np.uint64]  # [N, rows, 20], the same bytes as 64-bit words
    palette: NDArray[np.uint8]  # [256, 3]


class GreyView(NamedTuple):
    """The data for the observation "grayscale"."""

    frames: NDArray[np.uint8]  # [N, rows, 160], the newest frames
    levels: NDArray[np.uint8]  # [256], the level of each palette index


class RamView(NamedTuple):
    """The data for the observation "ram"."""

    states: NDArray[np.uint8]  # [N, ·], the states of the consoles


class NoView(NamedTuple):
    """Nothing is observed."""


class Part(NamedTuple):
    """The data that a thread needs to play some games of the same cartridge."""

    console: Console
    starts: Starts
    row: NDArray[np.float64]  # [·], numbers for a step or an opening
    number: int  # of the part
    which: NDArray[np.int64]  # [·], the games
    autoresets: int  # NEVER, NEXT_STEP or SAME_STEP
    pictures: Pictures  # the pictures of the console's machines
    observed: Any  # `AtariView`, or another kind of observation's


# --- the observation "atari" --------------------------------------------------------------------


@kernel_part
def _look_up(picture, levels, out):  # type: ignore[no-untyped-def]
    """Look up the levels of a picture's palette indices and write them to `out`."""
    for y in range(len(picture)):
        for x in range(picture.shape[1]):
            out[y, x] = levels[picture[y, x]]


@kernel_part
def _see_atari(game, i, num_pictures, which, atari):  # type: ignore[no-untyped-def]
    """Add the newest picture to the stack of a game."""
    before, game.newest = game.newest, (game.newest + 1) % atari.stacks.shape[1]
    if game.steps == 0:
        atari.stacks[i] = 0
    stack = atari.stacks[i, game.newest]
    if num_pictures == 0:  # the game ended before a picture was taken
        copy(atari.stacks[i, before], stack)
        return
    second = which if num_pictures == 2 else 0
    for c in range(len(atari.colours)):
        _look_up(atari.pictures[0], atari.colours[c], atari.planes[0][c])
        if second:
            _look_up(atari.pictures[second], atari.colours[c], atari.planes[second][c])
    for c in range(atari.kept.shape[1]):
        one, two = atari.planes[0][c], atari.planes[second][c]
        _shrink(atari, stack, c, atari.kept[i, c] if num_pictures == 1 else one, two)
        if game.may_end:  # the next step may need this
            for y in range(len(one)):
                for x in range(one.shape[1]):
                    atari.kept[i, c, y, x] = max(one[y, x], two[y, x])


@kernel_part
def _shrink(atari, stack, c, first, second):  # type: ignore[no-untyped-def]
    """Reduce channel c of the maximum of two pictures and write it to ``stack`` [·]."""
    num_channels = atari.kept.shape[1]
    out = stack.reshape(atari.small.shape) if num_channels == 1 else atari.small
    call_shrink(
        atari.shrink, first.ctypes.data, second.ctypes.data, out.ctypes.data,
        atari.scratch.ctypes.data,
    )  # fmt: skip
    if num_channels > 1:
        flat = out.reshape(-1)
        for k in range(len(flat)):
            stack[num_channels * k + c] = flat[k]


@kernel_part
def _show_atari(game, i, atari, out):  # type: ignore[no-untyped-def]
    """Write the stack of a game, with the newest picture last."""
    stacks = atari.stacks
    for k in range(stacks.shape[1]):
        copy(stacks[i, (game.newest + 1 + k) % stacks.shape[1]], out[k])


# --- frames --------------------------------------------------------------------------


@kernel_part
def see_nothing(game, i, num_pictures, which, view):  # type: ignore[no-untyped-def]
    """Do nothing, because frames are stored in any case."""


@kernel_part
def _show_frame(game, i, view, out):  # type: ignore[no-untyped-def]
    """Write the newest frame of a game in colour, [rows, 3 × 160]."""
    frame, words, palette = view.frames[i], view.words[i], view.palette
    for y in range(len(frame)):
        is_new = y == 0
        for k in range(words.shape[1]):
            is_new |= words[y, k] != words[y - 1, k]
        row = out[y]
        if is_new:
            for x in range(frame.shape[1]):
                for c in range(3):
                    row[3 * x + c] = palette[frame[y, x], c]
        else:
            copy(out[y - 1], row)


@kernel_part
def _show_grayscale(game, i, view, out):  # type: ignore[no-untyped-def]
    """Write the newest frame of a game in grey, [rows, 160]."""
    _look_up(view.frames[i], view.levels, out)


@kernel_part
def _show_ram(game, i, view, out):  # type: ignore[no-untyped-def]
    """Write the memory of a game's console, [128, 1]."""
    for k in range(len(out)):
        out[k, 0] = view.states[i, RAM_START + k]


@kernel_part
def _show_nothing(game, i, view, out):  # type: ignore[no-untyped-def]
    """Nothing is observed."""


@kernel_part
def _play_one(console, row, game, chance, state, moves, count, uniforms):  # type: ignore[no-untyped-def]
    """Play one step of a game and return what `play_step` returns.

    `moves` [2], `count` and `uniforms` [·, width] are the game's; `row` is room for random numbers.
    """
    rules, now, machine = console.rules[0], console.now[0], console.machines[0]
    for side in range(rules.num_sides):
        now.moves[side] = moves[side]
    for k in range(rules.state_size):
        machine[k] = state[k]
    now.lives[0] = chance.lives
    now.turns[0], now.turns[1] = chance.turn, moves[1]
    now.count = count
    played = game.num_frames
    if rules.tosses_coins:
        toss_coins(chance.coins, rules.most_frames, row)
        num_pictures, which = play_step(console, game, row)
    else:
        num_pictures, which = play_step(console, game, uniforms[game.steps % len(uniforms)])
    used = game.num_frames - played
    if rules.wastes_coins:
        used = count if count > 0 else rules.most_frames
    use_coins(rules, chance, used)
    chance.lives, chance.turn = now.lives[1], now.turns[0]
    save(console.machines[which], state, rules.state_size)
    return num_pictures, which


@kernel_part
def _copy_rows(source, target):  # type: ignore[no-untyped-def]
    """Copy all of an array [M, N]."""
    for k in range(len(source)):
        copy(source[k], target[k])


def make_step(see: Any, show: Any) -> Any:
    """Make the kernel for one kind of observation.

    Args:
        see: a part ``(game, i, num_pictures, which, view)``: look at what the console has drawn of
            game i after a step, in which it took `num_pictures` pictures; `which` machine played
            the last frame. `view` is ``Part.observed``.
        show: a part ``(game, i, view, out)``: write the observation of game i to `out`.
    """

    @kernel
    def step(games, orders, part, results, done):  # type: ignore[no-untyped-def]
        """Play a step of some games, or start their next episodes.

        Args:
            games: `Rows`.
            orders: `Orders`.
            part: `Part`.
            results: `Results`.
            done: [parts] bool; the entry of this part is set. If it was already set, this step
                has been played, and nothing is done.
        """
        if done[part.number]:
            return
        # Each call with fewer and smaller arguments compiles sooner.
        console, starts, row, view = part.console, part.starts, part.row, part.observed
        rules, now, pictures = console.rules[0], console.now[0], part.pictures
        out, numbers, ends = results.observations, results.numbers, results.ends
        memories, frames, rams = games.memories, games.frames, results.rams
        for i in part.which:
            game, chance, state = games.rows[i], games.chances[i], games.states[i]
            move, seed, slot = orders.moves[i, 0], orders.seeds[i], orders.slots[i]
            if move == SKIP:
                continue
            # 1. Clear the results.
            for line in (REWARD, EPISODE_STEPS, EPISODE_RETURN, FAULT, SECOND):
                numbers[line, slot] = 0
            for line in range(3):
                ends[line, slot] = False
            if move >= 0 and part.autoresets == NEXT_STEP and not game.is_on:
                move = RESET
            is_first = goes_on = True
            while goes_on:
                # 2. Play a step, or begin an episode.
                before, num_pictures, which, is_lost = np.int64(-1), 2, 0, False
                if move >= 0:
                    before = game.total_frames
                    num_pictures, which = _play_one(
                        console, row, game, chance, state, orders.moves[i], orders.counts[i],
                        orders.uniforms[i],
                    )  # fmt: skip
                    is_lost = 0 < now.lives[1] < now.lives[0]
                    if len(memories):
                        copy(orders.remembered[i], memories[i])
                elif move == RESET:
                    start_episode(console, starts, row, game, chance, state, seed)
                    memories[i : i + 1] = 0
                # 3. Look at it.
                if move != LEAVE:
                    see(game, i, num_pictures, which, view)
                    # A start beyond the limit leaves no frame for the step.
                    if len(frames) and game.total_frames > before:
                        _copy_rows(pictures[which], frames[i])
                show(game, i, view, out[slot])
                # 4. Write the results of what was ordered.
                if is_first and move != LEAVE:
                    is_told = is_lost and rules.ends_at_lost_life | rules.tells_lost_life
                    reward, second = game.reward, now.second
                    if rules.clips_rewards:
                        reward, second = min(max(reward, -1), 1), min(max(second, -1), 1)
                    numbers[REWARD, slot], numbers[SECOND, slot] = reward, second
                    ends[IS_OVER, slot] = game.is_over or is_told
                    # A start may be beyond the limit, but only a step reports it.
                    ends[IS_CUT, slot] = game.is_cut and game.steps > 0 and not is_told
                    ends[IS_LOST, slot] = is_lost
                    numbers[EPISODE_STEPS, slot] = game.steps
                    numbers[EPISODE_RETURN, slot] = game.points[0] - game.points[1]
                if move != LEAVE:
                    numbers[FAULT, slot] = game.fault
                # 5. Begin the next episode in the same step.
                has_ended = not game.is_on and not game.fault and move != LEAVE
                goes_on = is_first and has_ended and part.autoresets == SAME_STEP
                if goes_on:
                    _copy_rows(out[slot], results.final_observations[slot])
                    move, seed, is_first = np.int64(RESET), np.int64(-1), False
            numbers[LIVES, slot] = chance.lives
            numbers[TOTAL_FRAMES, slot] = game.total_frames
            numbers[EPISODE_FRAMES, slot] = game.episode_frames
            if len(rams):
                for k in range(RAM_SIZE):
                    rams[slot, k] = state[RAM_START + k]
        done[part.number] = True

    return step


step_atari = make_step(_see_atari, _show_atari)
step_frame = make_step(see_nothing, _show_frame)
step_grayscale = make_step(see_nothing, _show_grayscale)
step_ram = make_step(see_nothing, _show_ram)
step_nothing = make_step(see_nothing, _show_nothing)
