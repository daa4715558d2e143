"""What is learned about a game from random play."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from sights import paint, plain_sight, play_at_random

from pixelpong.atari.envs.vector import VectorEnv
from pixelpong.atari.machine.cartridges import cartridge
from pixelpong.atari.machine.palette import PALETTES
from pixelpong.kernels.blobs import make_view_scratch, make_view_sight
from pixelpong.kernels.wandering import (
    NUM_SUMS,
    NUM_TYPES,
    SUM_BOX,
    SUM_SIZE,
    count_moves,
    wander,
)
from pixelpong.play.finding import find_colours, find_player, find_sight, make_wanderer
from pixelpong.sight.blobs import find_blobs, find_cells
from pixelpong.sight.blobs import find_player as see_player

# The rows and columns of cells in which each game's figure is found, at least four times in five.
FIGURES = {
    "seaquest": (20, 80, 8, 80),
    "breakout": (93, 98, 3, 77),  # the paddle
    "demon_attack": (82, 98, 0, 80),
    "pong": (10, 100, 68, 73),  # the paddle on the right
    "enduro": (65, 80, 15, 70),  # the car; when it is steered, the far end of the road moves, too
    "asterix": (10, 80, 3, 77),
    "space_invaders": (90, 100, 10, 70),
    "boxing": (10, 100, 10, 70),
    "ms_pacman": (0, 88, 0, 80),
    "qbert": (10, 100, 0, 80),
    "freeway": (4, 98, 20, 26),
}


def find_anew(game):
    return find_sight.__wrapped__(cartridge(game))


def fingerprint(sight):
    facts = (sight.is_by_row, sight.player, sight.player_size)
    return hashlib.sha256(sight.background.tobytes() + sight.classes.tobytes()).hexdigest(), *facts


@pytest.mark.slow
@pytest.mark.parametrize("game", FIGURES)
def test_the_players_figure_is_found(game):
    """A blob of its class and size is where the figure is, and moves."""
    sight, (top, bottom, left, right) = find_sight(cartridge(game)), FIGURES[game]
    assert sight.player > 0
    pictures, are_first = play_at_random(game, 250)
    places, place = [], None
    for picture, is_first in zip(pictures, are_first, strict=True):
        place = None if is_first else place
        blobs, _ = find_blobs(*find_cells(sight, picture))
        index = see_player(sight, blobs, place)
        if index is not None:
            place = blobs[index].x, blobs[index].y
            places.append(place)
    assert len(places) > 80
    x, y = np.array(places).T / 2
    is_there = (left <= x) & (x <= right) & (top <= y) & (y <= bottom)
    assert is_there.mean() >= 0.8, [*zip(x.tolist(), y.tolist(), strict=True)]
    assert len({*places}) > 5


@pytest.mark.slow
def test_the_sight_is_the_same_each_time_and_in_another_process():
    game = "breakout"
    once = fingerprint(find_anew(game))
    assert fingerprint(find_anew(game)) == once
    assert find_sight(cartridge(game)) is find_sight(cartridge(game))
    script = (
        f"import sys; sys.path += {sys.path!r}\n"
        f"from test_finding import *\nprint(fingerprint(find_anew({game!r})))"
    )
    out = subprocess.check_output([sys.executable, "-c", script], text=True)
    assert out.splitlines()[-1] == str(once)


@pytest.mark.slow
@pytest.mark.parametrize("game", ["breakout", "yars_revenge"])
def test_random_play_is_that_of_the_environment(game):
    """Across the ends of games, with sticky actions and the frames before the first step.

    A start of Yars' Revenge depends on what the game before left in the memory.
    """
    facts, steps, seed = cartridge(game), 800, 5
    moves = np.random.default_rng(1).integers(len(facts.actions), size=steps)
    envs = VectorEnv(
        1, "frame", game=game, frameskip=4, repeat_action_probability=0.25, noop_max=30,
        autoreset_mode="SameStep", use_fire_reset=False, full_action_space=False,
    )  # fmt: skip
    pictures, are_first = np.zeros((steps, 210, 20), np.uint64), np.zeros(steps, np.bool_)
    wanderer = make_wanderer(facts)
    assert wander(wanderer, seed, np.array(facts.actions)[moves], 1, pictures, are_first) == steps
    some = np.zeros((steps // 7, 210, 20), np.uint64), np.zeros(steps // 7, np.bool_)
    wander(wanderer, seed, np.array(facts.actions)[moves], 7, *some)
    np.testing.assert_array_equal(some[0], pictures[6::7])
    firsts = [are_first[k : k + 7].any() for k in range(0, steps - 6, 7)]
    assert some[1].tolist() == firsts
    palette, frames = PALETTES[facts.palette], pictures.view(np.uint8)
    envs.reset(seed=seed)
    has_ended, ends = True, 0
    for t in range(steps):
        assert are_first[t] == has_ended
        seen, _, terminated, truncated, info = envs.step(moves[t : t + 1])
        has_ended = bool(terminated[0] or truncated[0])
        ends += has_ended
        wanted = info["final_obs"][0] if has_ended else seen[0]
        np.testing.assert_array_equal(palette[frames[t]], wanted, err_msg=f"step {t}")
    assert ends


# --- the decisions ----------------------------------------------------------------------------


def words(pictures):
    return np.ascontiguousarray(np.stack(pictures)).view(np.uint64)


def test_the_background_is_the_most_frequent_colour_and_the_others_are_classes_by_frequency():
    boxes = [(colour, 10 + 3 * k, 2 * k, 1, 1 + 17 - k) for k, colour in enumerate(range(2, 36, 2))]
    pictures = [paint(*boxes, background=40) for _ in range(2)] + [paint(background=40)] * 4
    pictures[3] = paint((90, 0, 0, 105, 80))  # a flash, in which nothing is seen
    sight = find_colours(words(pictures))
    assert (sight.is_by_row, sight.player) == (False, 0)
    assert (sight.background == 40).all()
    assert sight.classes[2:30:2].tolist() == [*range(1, 15)]
    assert {*sight.classes[[0, 1, 30, 34, 40, 90, 255]]} == {15}


@pytest.mark.parametrize(("num_striped", "is_by_row"), [(2, False), (3, True)])
def test_the_background_is_by_row_if_it_often_leaves_fewer_pixels_lit(num_striped, is_by_row):
    """In more than a quarter of the pictures. The classes are then of what that leaves lit."""
    column, band = (6, 0, 0, 105, 60), (8, 0, 0, 30, 80)
    plain, striped = paint(column), paint(band, (10, 5, 5, 2, 2), (6, 80, 0, 1, 1))
    sight = find_colours(words([plain] * (8 - num_striped) + [striped] * num_striped))
    assert sight.is_by_row == is_by_row
    assert (sight.classes[0] < 15) == is_by_row


def count(paths, sight, are_first=None, actions=None):
    """Count the moves of a box of 3 × 3 cells that is at these places, and of what does not act."""
    pictures = [paint((2, y, x, 3, 3), (4, y + 20, x, 3, 3), (4, 5, 5, 3, 3)) for y, x in paths]
    counts = np.zeros((NUM_TYPES, 2, NUM_SUMS), np.int64)
    first = np.zeros(len(paths), np.bool_) if are_first is None else are_first
    actions = np.arange(len(paths)) % 2 if actions is None else actions
    seen = np.ones((2, NUM_TYPES, 3), np.int64)  # from the game before
    arrays = make_view_sight(sight), make_view_scratch(), seen, counts
    count_moves(words(pictures), first, actions, *arrays)
    return counts


def test_moves_are_counted_by_type_and_action():
    paths = [(10, 10), (12, 11), (13, 40), (13, 39)]
    counts = count(paths, plain_sight())
    # In half cells. The second move is too far; there are two blobs of the other class.
    kind = 4 * 0 + 1
    assert counts[kind].tolist() == [[0] * 7, [2, 2 - 2, 4 + 4, 4, 16, 18, 18]]
    counts[kind] = 0
    assert not counts.any()


def test_moves_across_a_start_are_not_counted():
    paths, first = [(10, 10), (11, 10), (13, 10)], np.array([True, False, True])
    assert count(paths, plain_sight(), first)[1, :, 0].tolist() == [0, 1]


def test_only_what_is_alone_in_both_pictures_has_moved():
    one, other = (2, 10, 10, 3, 3), (2, 30, 10, 3, 3)
    pictures = [paint(*boxes) for boxes in ([one, other], [one], [one, other], [other], [other])]
    counts = np.zeros((NUM_TYPES, 1, NUM_SUMS), np.int64)
    arrays = make_view_sight(plain_sight()), make_view_scratch(), np.zeros((2, NUM_TYPES, 3), int)
    count_moves(words(pictures), np.zeros(5, np.bool_), np.zeros(5, int), *arrays, counts)
    assert counts[1].tolist() == [[1, 0, 0, 0, 0, 9, 9]]


def test_a_type_is_a_class_and_one_of_four_sizes():
    found = []
    for size in (5, 6, 24, 25, 64, 65):
        pictures = [paint((6, 10, 5, 1, size))] * 2
        counts = np.zeros((NUM_TYPES, 1, NUM_SUMS), np.int64)
        arrays = (
            make_view_sight(plain_sight()),
            make_view_scratch(),
            np.zeros((2, NUM_TYPES, 3), int),
        )
        count_moves(words(pictures), np.zeros(2, np.bool_), np.zeros(2, int), *arrays, counts)
        found.append(np.flatnonzero(counts[:, 0, 0]).tolist())
    assert found == [[8], [9], [9], [10], [10], [11]]


def moves(*of_actions):
    """What is counted of moves along x, after each action."""
    counts = np.zeros((NUM_TYPES, len(of_actions), NUM_SUMS), np.int64)
    for action, each in enumerate(of_actions):
        squares = sum(x * x for x in each)
        counts[9, action] = len(each), 0, 0, sum(each), squares, 20 * len(each), 80 * len(each)
    return counts


def test_the_player_is_what_the_actions_explain_best():
    counts = moves([0, 1, 0, 1], [2, 3, 2, 3])  # the shares are 4/5 and 1
    counts[3] = moves([0, 0, 0, 0], [2, 2, 2, 2])[9]
    counts[3, :, SUM_SIZE:] = 31
    assert find_player(counts, 8) == (1, 7)
    counts[3] = 0
    assert find_player(counts, 8) == (9 // 4 + 1, 20)
    assert find_player(counts, 81) == (0, 0)  # rarely seen
    counts[9, 1] = 0
    assert find_player(counts, 8) == (0, 0)  # not after each action
    assert find_player(moves([2, 2], [2, 2]), 4) == (0, 0)  # it always moves like that
    assert find_player(moves([0] * 99 + [1], [0] * 99 + [1]), 200) == (0, 0)


def test_a_line_is_not_the_player():
    """It fills less than a quarter of its bounding box."""
    counts = moves([0, 1], [2, 3])
    assert find_player(counts, 4) == (9 // 4 + 1, 20)
    counts[9, 0, SUM_BOX] += 1
    assert find_player(counts, 4) == (0, 0)


def test_the_bounding_box_is_counted_in_cells():
    pictures = [paint((2, 10, 5, 1, 4), (2, 11, 8, 2, 1))] * 2  # an L of six cells, 3 × 4
    counts = np.zeros((NUM_TYPES, 1, NUM_SUMS), np.int64)
    seen = np.zeros((2, NUM_TYPES, 3), int)
    arrays = make_view_sight(plain_sight()), make_view_scratch(), seen, counts
    count_moves(words(pictures), np.zeros(2, np.bool_), np.zeros(2, int), *arrays)
    assert counts[1, 0, SUM_SIZE:].tolist() == [6, 12]


def test_a_share_of_a_fiftieth_is_not_enough():
    """Two actions of N moves ±a with means ±1: the share is 1/a², decided exactly."""
    for a, is_found in ((7, True), (8, False)):
        first = [a] * (a + 1) + [-a] * (a - 1)
        share = Fraction(1, a * a)
        assert (share > Fraction(1, 50)) == is_found
        found = find_player(moves(first, [-x for x in first]), 4 * a)
        assert (found != (0, 0)) == is_found
    # Exactly 1/50: the variance is 50, and the means are ±1.
    edge = [7] * 3 + [-7] * 2 + [8] * 1
    n, total, squares = len(edge), sum(edge), sum(x * x for x in edge)
    assert Fraction(total * total, n * squares) != Fraction(1, 50)
    counts = moves([1], [-1])
    counts[9, :, 0], counts[9, :, 3], counts[9, :, 4] = 100, (100, -100), 5000
    assert find_player(counts, 200) == (0, 0)
    counts[9, 0, 4] -= 1
    assert find_player(counts, 200) != (0, 0)
