"""What the definition says about pictures of which one knows what must be seen."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from sights import Twins, paint, plain_sight

from pixelpong.sight.blobs import (
    MIDDLE,
    Blob,
    find_blobs,
    find_cells,
    find_player,
    find_row_background,
)
from pixelpong.sight.sharing import share_among_cells
from pixelpong.sight.view import (
    NEAR,
    NUM_FEATURES,
    START_FAR,
    START_FAR_WAYS,
    START_MOVES,
    START_NEAR_WAYS,
    START_ROUGH,
    find_moves,
    find_place,
    observe,
    see,
)


def blobs_of(picture, **options):
    return find_blobs(*find_cells(plain_sight(**options), picture))[0]


def test_the_class_of_a_cell_is_that_of_its_first_pixel_that_differs():
    for first in range(4):
        picture = paint()
        pixels = [(20, 30), (20, 31), (21, 30), (21, 31)]
        for k in range(first, 4):
            picture[pixels[k]] = 2 * (k + 1)
        cells, classes = find_cells(plain_sight(), picture)
        assert (cells.tolist(), classes.tolist()) == ([10 * 80 + 15], [first + 1])


def test_a_blob_is_of_one_class_and_holds_together_at_corners():
    blobs = blobs_of(paint((2, 10, 10, 2, 2), (2, 12, 12, 1, 3), (4, 13, 12, 1, 1)))
    assert [(it.kind, it.size) for it in blobs] == [(1, 7), (2, 1)]
    assert blobs[0][1:5] == (10, 14, 10, 12)
    # The columns of its cells are 10, 11, 10, 11, 12, 13, 14; the rows 10, 10, 11, 11, 12, 12, 12.
    assert blobs[0][6:] == (round(2 * 81 / 7), round(2 * 78 / 7))


def test_the_middle_is_the_mean_of_the_cells_and_a_half_is_rounded_up():
    (blob,) = blobs_of(paint((2, 0, 0, 1, 4), (2, 1, 0, 1, 1)))
    assert (blob.x, blob.y) == (2, 0)  # 12/5 and 2/5
    (blob,) = blobs_of(paint((2, 0, 0, 1, 3), (2, 1, 0, 1, 1)))
    assert (blob.x, blob.y) == (2, 1)  # 6/4 and 2/4


def test_the_background_by_row_is_the_colour_of_most_pixels():
    picture = np.repeat(np.arange(105, dtype=np.uint8) * 2, 2)[:, None] * np.ones(160, np.uint8)
    wanted = picture[:, :1].copy()
    rng = np.random.default_rng(0)
    for row in range(210):
        picture[row, rng.permutation(40)[:19] * 4] = rng.integers(256, size=19)
    np.testing.assert_array_equal(find_row_background(picture), wanted)
    picture = np.where(np.arange(160) < 20, picture, wanted)
    cells, _ = find_cells(plain_sight(is_by_row=True), picture)
    assert {*cells % 80} == {*range(0, 10, 2)}


def test_the_player_is_nearest_in_size_and_to_its_last_place():
    sight = plain_sight(1, 9)
    boxes = [(2, 10, 10, 3, 3), (2, 40, 40, 3, 4), (4, 60, 40, 3, 3), (2, 80, 40, 6, 5)]
    blobs = blobs_of(paint(*boxes))
    assert find_player(sight, blobs, None) == 1  # in the middle of the screen
    assert find_player(sight, blobs, (2 * 20, 2 * 20)) == 0
    assert find_player(sight, blobs, (2 * 40, 2 * 40)) == 1  # near
    assert find_player(sight, blobs, (2 * 40, 2 * 90)) == 1  # the last one is too large
    assert find_player(sight, blobs[2:], (2 * 40, 2 * 60)) is None  # another class
    assert find_player(plain_sight(), blobs, None) is None
    for height, width, is_found in ((1, 9, 0), (1, 10, 1), (2, 45, 1), (7, 13, 0)):
        (blob,) = blobs_of(paint((2, 10, 10, height, width)))
        assert (find_player(plain_sight(1, 30), [blob], None) == 0) == is_found


def features_of(*views):
    return [set(view.features.tolist()) for view in views]


def test_what_the_player_sees_is_relative_to_it():
    """The same scene elsewhere has the same tiles; only the player's own place differs."""
    sight = plain_sight(1, 9)
    scene = [(2, 40, 30, 3, 3), (4, 48, 36, 2, 2), (6, 60, 10, 3, 3)]
    moved = [(colour, row + 9, column + 5, *size) for colour, row, column, *size in scene]
    here, there = features_of(*(see(sight, paint(*each), None) for each in (scene, moved)))
    assert {it for it in here if it < START_MOVES} == {it for it in there if it < START_MOVES}
    assert here - there == {*find_place(62, 82)} - {*find_place(72, 100)} != set()
    # The player's middle is in cell (41, 31); it does not see itself.
    assert 1 * NEAR * NEAR + (7 + 33) // 2 * NEAR + (5 + 33) // 2 in here
    assert START_FAR + (1 * 27 + (7 + 108) // 8) * 20 + (5 + 80) // 8 in here
    assert not [it for it in here if it < NEAR * NEAR]
    assert not [it for it in here if START_FAR <= it < START_FAR + 27 * 20]


def test_near_tiles_reach_33_cells_to_the_left_and_above_and_32_to_the_right_and_below():
    sight = plain_sight(1, 1)
    for dx, dy, is_near in [(-33, 0, 1), (-34, 0, 0), (32, 0, 1), (33, 0, 0),
                            (0, -33, 1), (0, -34, 0), (0, 32, 1), (0, 33, 0)]:  # fmt: skip
        (here,) = features_of(
            see(sight, paint((2, 50, 40, 1, 1), (4, 50 + dy, 40 + dx, 1, 1)), None)
        )
        assert len([it for it in here if it < START_FAR]) == is_near, (dx, dy)
        assert len([it for it in here if START_FAR <= it < START_MOVES]) == 1


def test_cells_of_the_players_class_are_seen_outside_its_box_only():
    sight = plain_sight(1, 9)
    scene = paint((2, 40, 30, 3, 3), (2, 40, 36, 1, 1), (4, 41, 31, 1, 1))
    view = see(sight, scene, None)
    tiles = view.features[(view.features >= START_FAR) & (view.features < START_MOVES)]
    assert sorted((tiles - START_FAR) // (27 * 20)) == [0, 1]
    assert {*view.links[view.links[:, 0] < START_MOVES, 1]} == {40 * 80 + 36, 41 * 80 + 31}


def test_until_the_player_is_seen_it_is_in_the_middle_and_has_no_place():
    lonely, empty = paint((4, 52, 40, 1, 1)), paint()
    view = see(plain_sight(1, 9), lonely, None)
    tiles = {1 * NEAR * NEAR + 16 * NEAR + 16, START_FAR + (1 * 27 + 13) * 20 + 10}
    assert (view.position, features_of(view)) == (None, [tiles])
    seen = see(plain_sight(1, 9), paint((2, 10, 20, 3, 3)), view)
    assert (seen.position, {*find_place(42, 22)} <= features_of(seen)[0]) == ((42, 22), True)
    lost = see(plain_sight(1, 9), empty, seen)  # the last place stays; that it is there is not said
    assert (lost.position, features_of(lost)) == ((42, 22), [set()])
    assert (
        START_FAR + (1 * 27 + (52 - 11 + 108) // 8) * 20 + (40 - 21 + 80) // 8
        in features_of(see(plain_sight(1, 9), lonely, lost))[0]
    )


def test_places_differ_by_column_or_by_row():
    places = [(x, y) for x in (0, 2, 158) for y in (0, 2, 208)]
    assert len({find_place(*place) for place in places}) == 9
    each = np.array([find_place(x, y) for x in range(160) for y in range(210)])
    assert (each.min(), each.max()) == (START_ROUGH, START_FAR_WAYS - 1)
    assert [len({*column}) for column in each.T] == [80 * 7, 5 * 105, 20 * 27]
    assert (each[:, :-1].max(axis=0) < each[:, 1:].min(axis=0)).all()


def moves_between(before, now):
    pairs = find_moves(blobs_of(paint(*now)), blobs_of(paint(*before)), MIDDLE)
    moves = [divmod(it - START_MOVES, 17 * 17) for _, it in pairs if it < START_ROUGH]
    return [(kind + 1, move // 17 - 8, move % 17 - 8) for kind, move in moves]


def ways_between(before, now, place=MIDDLE):
    """The class and way of each blob, and its tiles: far, then near if it is near."""
    pairs = find_moves(blobs_of(paint(*now)), blobs_of(paint(*before)), place)
    ways = {}
    for i, feature in pairs:
        if feature >= START_FAR_WAYS:
            is_near = feature >= START_NEAR_WAYS
            place = feature - (START_NEAR_WAYS if is_near else START_FAR_WAYS)
            way, column, row = np.unravel_index(place, (36, 16, 16) if is_near else (36, 20, 27))
            found = way // 9, way % 9 // 3 - 1, way % 3 - 1, column, row
            ways.setdefault(i, []).append(tuple(map(int, found)))
    return list(ways.values())


@pytest.mark.parametrize(
    ("before", "now", "wanted"),
    [
        ([(4, 40, 40, 2, 2)], [(4, 43, 38, 2, 2)], [(2, -2, 3)]),
        ([(4, 40, 40, 2, 2)], [(4, 40, 40, 2, 2)], []),  # it did not move
        ([(4, 40, 40, 2, 2)], [(6, 43, 38, 2, 2)], []),  # another class
        ([(4, 40, 40, 2, 2)], [(4, 48, 32, 2, 2)], [(2, -8, 8)]),
        ([(4, 40, 40, 2, 2)], [(4, 49, 40, 2, 2)], []),  # too far
        ([(4, 40, 40, 2, 2)], [(4, 40, 31, 2, 2)], []),
        ([(4, 40, 40, 2, 3)], [(4, 42, 40, 2, 2)], [(2, -1, 2)]),  # half as large again
        ([(4, 40, 40, 2, 4)], [(4, 42, 41, 1, 2)], []),
        ([(16, 40, 40, 2, 2)], [(16, 41, 40, 2, 2)], [(8, 0, 1)]),
        ([(18, 40, 40, 2, 2)], [(18, 41, 40, 2, 2)], []),  # the ninth class
        ([(4, 40, 4, 1, 40)], [(4, 41, 4, 1, 40)], [(2, 0, 1)]),
        ([(4, 40, 4, 1, 41)], [(4, 41, 4, 1, 41)], []),  # too wide
        ([(4, 4, 40, 41, 1)], [(4, 5, 40, 41, 1)], []),
        # Each of them may have moved to each place.
        ([(4, 40, 40, 1, 1), (4, 40, 44, 1, 1)], [(4, 40, 42, 1, 1)], [(2, 2, 0), (2, -2, 0)]),
    ],
)
def test_small_blobs_of_the_same_class_and_a_similar_size_move(before, now, wanted):
    assert moves_between(before, now) == wanted


@pytest.mark.parametrize(
    ("before", "now", "ways"),
    [
        ([(4, 40, 40, 2, 2)], [(4, 43, 38, 2, 2)], [(-1, 1)]),
        ([(4, 40, 40, 2, 2)], [(4, 40, 41, 2, 2)], [(1, 0)]),
        ([(4, 40, 40, 2, 2)], [(4, 39, 40, 2, 2)], [(0, -1)]),
        ([(4, 40, 40, 2, 2)], [(4, 40, 40, 2, 2)], []),
        ([(4, 40, 40, 2, 2)], [(4, 49, 40, 2, 2)], []),  # too far
        ([(4, 40, 40, 2, 2)], [(6, 41, 40, 2, 2)], []),  # another class
        # From the nearest, and if two are as near, from the first.
        ([(4, 40, 40, 1, 1), (4, 40, 45, 1, 1)], [(4, 40, 42, 1, 1)], [(1, 0)]),
        ([(4, 40, 40, 1, 1), (4, 40, 44, 1, 1)], [(4, 40, 42, 1, 1)], [(1, 0)]),
        # One was where it is, so it may have stayed.
        ([(4, 40, 40, 1, 1), (4, 40, 42, 1, 1)], [(4, 40, 42, 1, 1)], []),
    ],
)
def test_a_small_blob_that_moved_goes_the_way_from_the_nearest(before, now, ways):
    assert [far[1:3] for far, *_ in ways_between(before, now)] == ways


@pytest.mark.parametrize(
    ("place", "far", "near"),
    [
        ((81, 81), (10, 13), [(8, 8)]),
        ((82, 82), (9, 13), [(7, 7)]),  # one half cell to the left, and above
        ((81 + 64, 81 + 64), (6, 9), [(0, 0)]),
        ((81 + 65, 81 + 64), (5, 9), []),
        ((81 + 64, 81 + 65), (6, 9), []),
        ((81 - 63, 81 - 63), (13, 17), [(15, 15)]),
        ((81 - 64, 81 - 63), (14, 17), []),
        ((81 - 63, 81 - 64), (13, 17), []),
        ((0, 0), (15, 18), []),
        ((159, 209), (5, 5), []),
    ],
)
def test_the_way_is_seen_where_the_blob_is_from_the_player(place, far, near):
    # The blob's middle is at (81, 81), in half cells.
    (found,) = ways_between([(4, 40, 39, 2, 2)], [(4, 40, 40, 2, 2)], place)
    assert found == [(1, 1, 0, *each) for each in (far, *near)]


def test_every_fourth_class_shares_its_ways():
    moves = [([(2 * c, 40, 40, 2, 2)], [(2 * c, 41, 40, 2, 2)]) for c in range(1, 10)]
    assert [it[0][0][0] if (it := ways_between(*move)) else None for move in moves] == [
        0, 1, 2, 3, 0, 1, 2, 3, None,
    ]  # fmt: skip


def test_features_stay_appear_and_vanish():
    twins = Twins(plain_sight(1, 9))
    scenes = [[(2, 40, 30, 3, 3), (4, 48, 36, 1, 1)], [(2, 40, 30, 3, 3), (6, 48, 36, 1, 1)]]
    first = twins.look(paint(*scenes[0]), 5)
    assert {*first // NUM_FEATURES} == {1, 3}
    assert first[-1] == 3 * NUM_FEATURES + 5
    second = twins.look(paint(*scenes[1]), 0)
    stayed, appeared, vanished = ([it % NUM_FEATURES for it in second if it // NUM_FEATURES == k]
                                  for k in range(3))  # fmt: skip
    assert {*stayed} == {*find_place(62, 82)}
    assert {it // (NEAR * NEAR) for it in appeared if it < START_FAR} == {2}
    assert {it // (NEAR * NEAR) for it in vanished if it < START_FAR} == {1}
    assert (len(appeared), len(vanished), second[-1]) == (2, 2, 3 * NUM_FEATURES)


# --- explanations -----------------------------------------------------------------------------


def test_each_contribution_goes_to_the_cells_that_caused_it():
    sight = plain_sight(1, 9)
    before = see(sight, paint((2, 40, 30, 3, 3), (4, 48, 36, 1, 1)), None)
    now = see(sight, paint((2, 41, 30, 3, 3), (6, 60, 60, 1, 2)), before)
    inputs = observe(now, before, 3)
    vanished, far = 2 * NUM_FEATURES, 3 * NUM_FEATURES
    figure = np.zeros((105, 80), np.bool_)
    figure[41:44, 30:33] = True
    for index in inputs:
        cells = share_among_cells(now, before, inputs, (inputs == index) * 3.0)
        is_on, feature = cells != 0, index % NUM_FEATURES
        if index >= far:
            assert not is_on.any()
        elif index >= vanished and feature < START_MOVES:
            assert np.argwhere(is_on).tolist() == [[48, 36]]
        elif index >= vanished:
            assert is_on[40:43, 30:33].all()
            assert is_on.sum() == 9
        elif feature >= START_MOVES:
            assert (is_on == figure).all()
        else:
            assert {(60, 60), (60, 61)} >= {*map(tuple, np.argwhere(is_on))} != set()
        assert cells.sum() == pytest.approx(0 if index >= far else 3)
        assert np.ptp(cells[is_on]) < 1e-12 if is_on.any() else True


@pytest.mark.parametrize("is_first", [False, True])
def test_nothing_of_the_contributions_is_lost(is_first):
    """With more features than are kept, and with blobs that move in more than one way."""
    rng = np.random.default_rng(0)
    sight, views = plain_sight(2, 1), []
    for density in (0.002, 0.03):
        noise = 2 * rng.integers(1, 15, (210, 160)) * (rng.random((210, 160)) < density)
        views.append(see(sight, noise.astype(np.uint8), views[-1] if views else None))
    now, before = views[::-1]
    before = None if is_first else before
    inputs = observe(now, before, 7)
    shares = rng.integers(-1000, 1000, len(inputs)).astype(np.float64)
    cells = share_among_cells(now, before, inputs, shares)
    assert cells.sum() == pytest.approx(shares[:-1].sum(), abs=1e-8)
    assert np.count_nonzero(cells) > 300


def test_a_blob_that_may_have_come_from_two_places_counts_once():
    now = paint((4, 20, 20, 1, 2), (4, 20, 60, 1, 2))
    before = see(plain_sight(), paint(), None)
    old = [Blob(2, 0, 0, 0, 0, size=2, x=x, y=40) for x in (41 - 2, 41 - 3, 121 - 2)]
    before = dataclasses.replace(before, blobs=old)
    view = see(plain_sight(), now, before)
    (move,) = [it for it in view.features if START_MOVES <= it < START_ROUGH]
    cells = share_among_cells(view, before, np.array([NUM_FEATURES + move]), np.array([4.0]))
    assert cells[20, [20, 21, 60, 61]].tolist() == [1, 1, 1, 1]
    assert cells.sum() == 4
