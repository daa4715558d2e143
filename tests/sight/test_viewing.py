"""The compiled form of what a player sees equals its definition, whatever the picture.

`make test` runs this once more with bounds checked:

    NUMBA_BOUNDSCHECK=1 pytest tests/sight/test_viewing.py
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sights import SEEING, Twins, paint, plain_sight, play_at_random

from pixelpong.atari.machine.cartridges import cartridge
from pixelpong.kernels.viewing import MAX_VIEW_INPUTS, VIEW, VIEW_FIELDS, are_views
from pixelpong.play.finding import find_sight
from pixelpong.sight.blobs import MAX_BLOBS, MAX_LIT, Sight
from pixelpong.sight.view import MAX_FEATURES, MAX_SMALL, NUM_FEATURES

REAL = ["breakout", "boxing", "qbert", "freeway", "ms_pacman", "seaquest", "krull"]


@pytest.mark.slow
@pytest.mark.parametrize("game", REAL)
def test_both_forms_see_the_same_in_real_games(game):
    """Across the ends of games, if there are any. The background of Krull is by row."""
    sight = find_sight(cartridge(game))
    assert sight.is_by_row == (game == "krull")
    pictures, are_first = play_at_random(game, 600)
    twins, positions = Twins(sight), []
    for t in range(0, 600, 5):
        forgets = bool(are_first[max(t - 4, 0) : t + 1].any())
        twins.look(pictures[t], t % 18, forgets=forgets)
        positions.append(twins.view.position)
    assert len({*positions}) > 10
    assert len(twins.view.blobs) > 5


@pytest.mark.slow
@pytest.mark.parametrize("is_by_row", [False, True])
@given(st.data())
@settings(max_examples=60)
def test_both_forms_see_the_same_in_noise(is_by_row, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    player, size = data.draw(st.integers(0, 15)), data.draw(st.integers(0, 9))
    classes = rng.integers(1, 1 + data.draw(st.integers(1, 15)), 256).astype(np.uint8)
    background = rng.integers(0, 3, (210, 160)).astype(np.uint8)
    twins = Twins(Sight(background, is_by_row, classes, player, size))
    bands = rng.integers(0, 256, 105).astype(np.uint8).repeat(2)[:, None]
    for _ in range(3):
        density, most = 10 ** data.draw(st.floats(-4, -0.8)), data.draw(st.integers(1, 12))
        is_lit = rng.random((210, 160)) < density
        for _ in range(most):  # figures, some of them large
            row, column = rng.integers(210), rng.integers(160)
            is_lit[row : row + rng.integers(1, 40), column : column + rng.integers(1, 40)] = True
        noise = rng.integers(0, 256, (210, 160)).astype(np.uint8)
        if data.draw(st.booleans()):
            noise[:] = rng.integers(0, 256)
        picture = np.where(is_lit, noise, bands if is_by_row else background)
        twins.look(picture, data.draw(st.integers(0, 17)), forgets=data.draw(st.booleans()))


def checkerboard(step):
    picture = np.zeros((210, 160), np.uint8)
    cells = picture.reshape(105, 2, 80, 2)
    cells[::step, :, ::step] = 2
    return picture


def lit(count):
    """A picture with so many lit cells."""
    cells = np.zeros(105 * 80, np.uint8)
    cells[:count] = 2
    return cells.reshape(105, 80).repeat(2, axis=0).repeat(2, axis=1)


def comb():
    """Many runs that the last row joins to one blob, from the right to the left."""
    teeth = [(2, 10, x, 20 + x // 4, 1) for x in range(0, 80, 2)]
    return paint(*teeth, (2, 49, 0, 1, 80))


def bare_majority():
    """A picture in which the most frequent colour of a row has 21 of 40 votes."""
    picture, rng = paint(background=30), np.random.default_rng(0)
    for row in range(0, 210, 2):
        picture[row, rng.permutation(40)[:19] * 4] = rng.integers(256, size=19)
    return picture


def no_majority():
    """A picture with rows of three colours, in which the order of the votes decides."""
    picture = paint()
    picture[:60] = 2 * np.random.default_rng(0).integers(1, 4, (60, 160))
    return picture


HOSTILE = {
    "everything is lit": lit(105 * 80),
    "as many cells as may be lit": lit(MAX_LIT),
    "one cell more": lit(MAX_LIT + 1),
    "too many blobs": checkerboard(2),
    "all blobs touch at corners": paint(*((2, k, k % 2, 1, 1) for k in range(105))),
    "a comb": comb(),
    "nothing": np.zeros((210, 160), np.uint8),
    "rows below the others": paint((2, 3, 3, 4, 4), (4, 104, 79, 30, 1), rows=250),
    "in the corners": paint(*((2, y, x, 1, 1) for y in (0, 104) for x in (0, 79))),
    "a middle that is rounded up": paint((2, 60, 40, 1, 1), (2, 61, 40, 1, 3)),
    "bands": paint((6, 10, 0, 30, 80), (8, 20, 0, 9, 41), (2, 24, 50, 2, 2), (2, 90, 3, 2, 2)),
    "a bare majority": bare_majority(),
    "no majority": no_majority(),
    "in all colours": np.arange(210 * 160, dtype=np.uint32).reshape(210, 160).astype(np.uint8),
}


@pytest.mark.parametrize("is_by_row", [False, True])
@pytest.mark.parametrize("player", [0, 1, 15])
@pytest.mark.parametrize("name", HOSTILE)
def test_both_forms_see_the_same_in_hostile_pictures(name, player, is_by_row):
    twins = Twins(plain_sight(player, 4, is_by_row=is_by_row))
    picture = HOSTILE[name]
    for action, shown in enumerate((picture, np.roll(picture, 2, axis=1), picture[:, ::-1])):
        twins.look(shown, action)


def test_the_limits_are_reached_and_not_passed():
    twins = Twins(plain_sight(1, 4))
    twins.look(lit(MAX_LIT + 1))
    assert (len(twins.view.blobs), len(twins.view.features)) == (0, 0)
    twins.look(lit(MAX_LIT))
    assert (len(twins.view.blobs), len(twins.view.features) > 0) == (1, True)
    twins.look(checkerboard(2))
    assert len(twins.view.blobs) == MAX_BLOBS
    rng = np.random.default_rng(3)
    noise = [2 * rng.integers(1, 15, (210, 160)) * (rng.random((210, 160)) < 0.06) for _ in "ab"]
    for picture in noise:
        inputs = twins.look(picture.astype(np.uint8))
        assert len(twins.view.features) == MAX_FEATURES
    assert 1.5 * MAX_FEATURES < len(inputs) <= MAX_VIEW_INPUTS
    assert twins.streams["num_small"] == MAX_SMALL


@pytest.mark.parametrize("num_others", [MAX_BLOBS - 1, MAX_BLOBS])
def test_the_player_may_be_the_last_blob(num_others):
    cells = np.zeros((105, 80), np.uint8)
    cells[[2 * (k // 40) for k in range(num_others)], [2 * (k % 40) for k in range(num_others)]] = 4
    picture = cells.repeat(2, axis=0).repeat(2, axis=1) + paint((2, 100, 40, 2, 2))
    twins = Twins(plain_sight(1, 4))
    twins.look(picture)
    assert (twins.view.position is not None) == (num_others < MAX_BLOBS)


def test_an_episode_starts_as_if_nothing_had_been_seen():
    pictures = [paint((2, 40 + k, 30, 2, 2), (4, 5 * k, 50, 3, 3)) for k in range(3)]
    used, new = (Twins(plain_sight(1, 4)) for _ in range(2))
    for picture in pictures:
        used.look(picture)
    first = used.look(pictures[1], 4, forgets=True)
    assert first.tolist() == new.look(pictures[1], 4).tolist()
    empty = paint()
    for twins in (used, new):  # also where the player was is forgotten
        twins.look(empty, forgets=True)
        assert not twins.streams["has_position"][0]


# --- records from files -----------------------------------------------------------------------


def test_the_record_has_no_padding_and_can_be_a_part_of_another_one():
    assert VIEW.itemsize == sum(VIEW[name].itemsize for name in VIEW.names)
    assert VIEW.names == tuple(each[0] for each in VIEW_FIELDS)
    assert VIEW.itemsize % 8 == 0
    assert are_views(np.zeros(3, VIEW))
    assert are_views(np.zeros(3, SEEING))


@pytest.mark.parametrize(
    ("name", "index", "good", "bad"),
    [
        ("position", 0, (0, 159), (-1, 160)),
        ("position", 1, (0, 209), (-1, 210)),
        ("has_position", None, (0, 1), (-1, 2)),
        ("num_small", None, (0, MAX_SMALL), (-1, MAX_SMALL + 1, 2**62)),
        ("num_features", 0, (0, MAX_FEATURES), (-1, MAX_FEATURES + 1)),
        ("num_features", 1, (0, MAX_FEATURES), (-(2**63), MAX_FEATURES + 1)),
        ("features", (0, 0), (0, NUM_FEATURES - 1), (NUM_FEATURES, 0xFFFF)),
        ("features", (1, MAX_FEATURES - 1), (0, NUM_FEATURES - 1), (NUM_FEATURES, 0xFFFF)),
    ],
)
def test_a_record_that_would_leave_the_arrays_is_refused(name, index, good, bad):
    for values, is_good in ((good, True), (bad, False)):
        for value in values:
            records = np.zeros(2, SEEING)
            field = records[1:][name]
            field[(0,) if index is None else (0, *np.atleast_1d(index))] = value
            assert are_views(records) == is_good, (name, index, value)


@given(st.integers(0, 2**32))
@example(0)
@settings(max_examples=40)
def test_whatever_is_accepted_keeps_to_the_arrays(seed):
    """Repeated features, blobs that cannot be, positions where nothing is."""
    rng = np.random.default_rng(seed)
    twins = Twins(dataclasses.replace(plain_sight(int(rng.integers(16)), 4)))
    stream = twins.streams
    stream["position"], stream["has_position"] = rng.integers([160, 210]), rng.integers(2)
    stream["small"] = rng.integers(-(2**15), 2**15, (MAX_SMALL, 4))
    stream["small"][0, : MAX_SMALL // 2] = rng.integers(0, 9, (MAX_SMALL // 2, 4))
    stream["num_small"] = rng.integers(MAX_SMALL + 1)
    few = rng.integers(NUM_FEATURES, size=rng.integers(1, 3000))
    stream["features"] = rng.choice(few, (2, MAX_FEATURES))
    stream["num_features"] = rng.integers(MAX_FEATURES + 1, size=2)
    stream["game"]["newest"] = rng.integers(2)
    assert are_views(stream)
    for picture in [*HOSTILE.values()][:3]:
        assert twins.look_compiled(picture, 17).max() < 3 * NUM_FEATURES + 18
        assert are_views(stream)
