"""Random play, and what is counted in its pictures; `pixelpong.play.finding` decides with it.

All counts are integers, so they are the same on every processor.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.steps.compiling import kernel, kernel_part
from pixelpong.atari.steps.episode import Console, play_step, save
from pixelpong.atari.steps.opening import Starts, start_episode, toss_coins, use_coins
from pixelpong.kernels.blobs import (
    BOTTOM,
    KIND,
    LEFT,
    RIGHT,
    SIZE,
    TOP,
    find_blobs,
    find_cells,
    vote,
)
from pixelpong.sight.blobs import NUM_CLASSES

NUM_COLOURS = 128  # palette indices are even
# A type of blob is its class and one of four sizes: at most as many cells as here, or more.
SIZES = (5, 24, 64)
NUM_TYPES = 4 * NUM_CLASSES
FARTHEST = 40  # the most that a blob moves in a step, in half cells

# What `count_moves` counts: moves, and the sums of x, x², y, y² and, in cells, of the sizes and the
# bounding boxes.
NUM, SUM_X, SUM_XX, SUM_Y, SUM_YY, SUM_SIZE, SUM_BOX = range(7)
NUM_SUMS = SUM_BOX + 1
_BYTE = np.uint64(0xFF)


class Wanderer(NamedTuple):
    """One game and its console; all but the rules change."""

    console: Console
    starts: Starts
    row: NDArray[np.float64]  # [≥ 2 + frames], room for random numbers
    games: NDArray[np.void]  # [1] `GAME`
    chances: NDArray[np.void]  # [1] `CHANCE`
    state: NDArray[np.uint8]  # [·], the console's state between two episodes
    screen: NDArray[np.uint64]  # [≥ 210, 20], what the console draws


@kernel
def wander(wanderer, seed, moves, every, pictures, are_first):  # type: ignore[no-untyped-def]
    """Play these moves from the first game of a seed on, and copy some pictures.

    Args:
        wanderer: `Wanderer`; changed.
        seed: of the game.
        moves: [T], the console's actions.
        every: the number of steps from one copied picture to the next.
        pictures: [T / every, 210, 20] uint64; changed.
        are_first: [T / every] bool; changed: whether an episode has started since the picture
            before.

    Returns the number of pictures, less if the console stopped.
    """
    console, starts, row, state = wanderer.console, wanderer.starts, wanderer.row, wanderer.state
    game, chance, screen = wanderer.games[0], wanderer.chances[0], wanderer.screen
    rules, machine = console.rules[0], console.machines[0]
    game.is_on = count = 0
    is_first = True
    for t in range(len(moves)):
        if game.is_on == 0:
            start_episode(console, starts, row, game, chance, state, seed if t == 0 else -1)
            is_first = True
        toss_coins(chance.coins, rules.most_frames, row)
        console.now[0].moves[0] = moves[t]
        played = game.num_frames
        play_step(console, game, row)
        use_coins(rules, chance, game.num_frames - played)
        if game.fault:
            break
        if game.is_on == 0:
            save(machine, state, rules.state_size)
        if t % every == every - 1:
            picture = pictures[count]
            for y in range(len(picture)):
                for k in range(picture.shape[1]):
                    picture[y, k] = screen[y, k]
            are_first[count] = is_first
            is_first = False
            count += 1
    return count


@kernel
def count_colours(pictures, colours, most):  # type: ignore[no-untyped-def]
    """Count how often each pixel has each colour, and find the colour of most pixels in a row.

    Args:
        pictures: [K, 210, 20] uint64.
        colours: [NUM_COLOURS, 210, 160] int32; changed.
        most: [K, 105] uint8; changed: the background of each pair of rows in each picture.
    """
    for index in range(len(pictures)):
        picture = pictures[index]
        for y in range(len(picture)):
            if y % 2 == 0:
                most[index, y // 2] = vote(picture[y])
            for x in range(8 * picture.shape[1]):
                pixel = picture[y, x >> 3] >> np.uint64(8 * (x & 7)) & _BYTE
                colours[pixel >> np.uint64(1), y, x] += 1


@kernel
def count_moves(pictures, are_first, actions, sight, scratch, seen, counts):  # type: ignore[no-untyped-def]
    """Count how far the only blob of each type moves after each action.

    Args:
        pictures: [T, 210, 20] uint64.
        are_first: [T] bool, whether an episode has started since the picture before.
        actions: [T], the index of the action before each picture.
        sight: `ViewSight`.
        scratch: `ViewScratch`; changed.
        seen: [2, NUM_TYPES, 3] int64; changed: how many blobs of each type there were in two
            pictures, and twice the middle of the last one's bounding box.
        counts: [NUM_TYPES, A, NUM_SUMS] int64; changed, see NUM and so on.
    """
    blobs = scratch.blobs
    for t in range(len(pictures)):
        now, before = seen[t % 2], seen[1 - t % 2]
        for kind in range(NUM_TYPES):
            now[kind, 0] = 0
        num_blobs = find_blobs(scratch, find_cells(pictures[t], sight, scratch))
        for i in range(num_blobs):
            kind = _find_type(blobs[i])
            now[kind, 0] += 1
            now[kind, 1] = blobs[i, LEFT] + blobs[i, RIGHT]
            now[kind, 2] = blobs[i, TOP] + blobs[i, BOTTOM]
        if are_first[t] or t == 0:
            continue
        for i in range(num_blobs):
            kind = _find_type(blobs[i])
            dx, dy = now[kind, 1] - before[kind, 1], now[kind, 2] - before[kind, 2]
            is_only = now[kind, 0] == 1 and before[kind, 0] == 1
            if is_only and abs(dx) <= FARTHEST and abs(dy) <= FARTHEST:
                count = counts[kind, actions[t]]
                count[NUM] += 1
                count[SUM_X] += dx
                count[SUM_XX] += dx * dx
                count[SUM_Y] += dy
                count[SUM_YY] += dy * dy
                count[SUM_SIZE] += blobs[i, SIZE]
                width = blobs[i, RIGHT] - blobs[i, LEFT] + 1
                count[SUM_BOX] += width * (blobs[i, BOTTOM] - blobs[i, TOP] + 1)


@kernel_part
def _find_type(blob):  # type: ignore[no-untyped-def]
    """Return the type of a blob."""
    kind = 4 * (blob[KIND] - 1)
    for most in SIZES:
        kind += blob[SIZE] > most
    return kind
