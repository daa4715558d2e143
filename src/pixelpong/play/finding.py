"""Learn how a game looks from random play: its background, its colours, and the player's figure.

The same cartridge gives the same sight in every process and on every processor: random play has a
seed of its own, and everything is decided with integers and fractions.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.games.rules import Rules, make_console, make_starts, switch_on
from pixelpong.atari.machine.cartridge import Cartridge
from pixelpong.atari.machine.compiled import not_covered
from pixelpong.atari.machine.record import DRAW_PICTURE, ROWS, WIDTH
from pixelpong.atari.steps.opening import MOST_AT_ONCE
from pixelpong.atari.steps.records import CHANCE, GAME
from pixelpong.kernels.blobs import make_view_scratch, make_view_sight
from pixelpong.kernels.wandering import (
    NUM,
    NUM_COLOURS,
    NUM_SUMS,
    NUM_TYPES,
    SUM_BOX,
    SUM_SIZE,
    SUM_X,
    SUM_XX,
    SUM_Y,
    SUM_YY,
    Wanderer,
    count_colours,
    count_moves,
    wander,
)
from pixelpong.seeding import make_rng
from pixelpong.sight.blobs import MAX_LIT, NUM_CLASSES, Sight

SEED = 0
NUM_GAMES, NUM_STEPS = 8, 500  # in each of the two passes; steps of each game
EVERY = 7  # the first pass looks at every seventh picture
CHANGES = (0.5, 0.3)  # the probability of a new action at a step of each pass
OFTEN = Fraction(1, 4)  # of the pictures: then the background that is worse in them is not used
# The player's figure is seen alone in so much of the steps, its moves vary by so much (in half
# cells squared), and the actions explain so much of that. It fills so much of its bounding box, as
# lines do not: the far end of Enduro's road moves, too, when the car is steered.
LEAST_SEEN, LEAST_VARIANCE, LEAST_SHARE = Fraction(1, 10), Fraction(1, 20), Fraction(1, 50)
LEAST_FILLED = Fraction(1, 4)


@functools.cache
def find_sight(facts: Cartridge) -> Sight:
    """Learn a game's sight from random play; do not change its arrays.

    Raises:
        EmulatorError: the cartridge needs something that the console does not support.
    """
    sight = find_colours(np.concatenate([each.copy() for each, _, _ in _wander(facts, 0, EVERY)]))
    counts = np.zeros((NUM_TYPES, len(facts.actions), NUM_SUMS), np.int64)
    looks, scratch = make_view_sight(sight), make_view_scratch()
    seen = np.zeros((2, NUM_TYPES, 3), np.int64)
    for pictures, are_first, actions in _wander(facts, 1, 1):
        count_moves(pictures, are_first, actions, looks, scratch, seen, counts)
    kind, size = find_player(counts, NUM_GAMES * NUM_STEPS)
    return Sight(sight.background, sight.is_by_row, sight.classes, kind, size)


def find_colours(pictures: NDArray[np.uint64]) -> Sight:
    """Choose the background and the classes, given pictures, [K, 210, 20] words.

    The background is the most frequent colour of each pixel. If it is often worse than one by row,
    because it scrolls or flashes, the background is by row. The colours that are lit most often
    have a class of their own; the last class is for all others.
    """
    colours = np.zeros((NUM_COLOURS, ROWS, WIDTH), np.int32)
    most = np.zeros((len(pictures), ROWS // 2), np.uint8)
    count_colours(pictures, colours, most)
    background, pixels = (2 * colours.argmax(axis=0)).astype(np.uint8), pictures.view(np.uint8)
    are_lit = pixels != background, pixels != np.repeat(most, 2, axis=1)[..., None]
    nums_lit = [np.count_nonzero(each, axis=(1, 2)) for each in are_lit]
    is_by_row = int(np.count_nonzero(nums_lit[1] < nums_lit[0]) > OFTEN * len(pictures))
    # Pictures with more lit pixels have no features.
    is_seen = are_lit[is_by_row] & (nums_lit[is_by_row] <= 4 * MAX_LIT)[:, None, None]
    counts = np.bincount(pixels[is_seen], minlength=256)
    order = np.argsort(-counts, kind="stable")[: NUM_CLASSES - 1]
    classes = np.full(256, NUM_CLASSES, np.uint8)
    classes[order] = np.where(counts[order] > 0, np.arange(len(order)) + 1, NUM_CLASSES)
    return Sight(background, bool(is_by_row), classes, player=0, player_size=0)


def find_player(counts: NDArray[np.int64], num_steps: int) -> tuple[int, int]:
    """Find the class and the size of the player's figure, given what `count_moves` counted.

    It is the type of blob, lines left out, whose moves the actions explain best: the largest share
    of the variance of x or of y. (0, 0) if there is none.
    """
    best, player = LEAST_SHARE, (0, 0)
    for index, of_actions in enumerate(counts.tolist()):
        num, size, box = (
            sum(each[column] for each in of_actions) for column in (NUM, SUM_SIZE, SUM_BOX)
        )
        if num < LEAST_SEEN * num_steps or not all(each[NUM] for each in of_actions):
            continue
        if size < LEAST_FILLED * box:
            continue
        for axis in ((SUM_X, SUM_XX), (SUM_Y, SUM_YY)):
            share = _explain(of_actions, *axis)
            if share > best:
                best, player = share, (index // 4 + 1, size // num)
    return player


def _explain(of_actions: list[list[int]], first: int, second: int) -> Fraction:
    """Return the share of a variance that the actions explain; 0 if it hardly varies.

    The first and the second name the sums of the moves and of their squares.
    """
    num, total = (sum(each[column] for each in of_actions) for column in (NUM, first))
    variation = sum(each[second] for each in of_actions) - Fraction(total * total, num)
    if variation <= LEAST_VARIANCE * num:
        return Fraction(0)
    explained = sum(Fraction(each[first] ** 2, each[NUM]) for each in of_actions)
    return (explained - Fraction(total * total, num)) / variation


def make_wanderer(facts: Cartridge) -> Wanderer:
    """Make a console on which games are played as in ALE/…-v5, and room for one game.

    Up to 29 frames are played before the first step.
    """
    rules = Rules(facts, 4, 4, 108_000, sticky=(0.25, 0.25), max_noops=30, tosses_coins=True)
    start = switch_on(facts)
    console = make_console(rules, draws=DRAW_PICTURE, start=start)
    at = start.dtype.fields["picture"][1]  # type: ignore[index]
    return Wanderer(
        console,
        make_starts(facts, has_sticky_menu=rules.has_sticky_menu),
        row=np.zeros(2 + MOST_AT_ONCE),
        games=np.zeros(1, GAME),
        chances=np.zeros(1, CHANCE),
        state=np.zeros(facts.kept_size, np.uint8),
        screen=console.machines[0][at : at + ROWS * WIDTH].view(np.uint64).reshape(ROWS, -1),
    )


def _wander(
    facts: Cartridge, number: int, every: int
) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.bool_], NDArray[np.int64]]]:
    """Play some games at random; yield each one's pictures, and what `count_moves` needs to know.

    The arrays are used again for the next game. `number` is that of the pass.
    """
    wanderer, count = make_wanderer(facts), NUM_STEPS // every
    pictures = np.zeros((count, *wanderer.screen.shape), np.uint64)
    are_first = np.zeros(count, np.bool_)
    codes = np.array(facts.codes)[list(facts.actions)]
    for game in range(NUM_GAMES):
        rng = make_rng(SEED, "sight", number, game)
        is_new = rng.random(NUM_STEPS) < CHANGES[number]
        held = np.maximum.accumulate(np.where(is_new, np.arange(NUM_STEPS), 0))
        actions = rng.integers(len(codes), size=NUM_STEPS)[held]
        seed = number * NUM_GAMES + game
        wander(wanderer, seed, codes[actions], every, pictures, are_first)
        if fault := wanderer.games["fault"][0]:
            raise not_covered(int(fault))
        yield pictures, are_first, actions
