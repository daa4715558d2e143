"""What waits, what is done, what failed: the book that every engine with workers keeps."""

from __future__ import annotations

import pytest

from pixelpong.engines.batch import MAX_ATTEMPTS, Batch, Pace
from pixelpong.errors import WorkerError

PARCEL_SECONDS = 0.05


def quick() -> Pace:
    """A pace at which ten items would travel together."""
    pace = Pace(PARCEL_SECONDS)
    for _ in range(100):
        pace.learn(10, PARCEL_SECONDS)
    return pace


def test_items_of_unknown_length_travel_alone():
    batch = Batch(range(100), Pace(PARCEL_SECONDS))
    assert batch.take(2, 60.0) == (0,)


def test_short_items_travel_together_and_long_ones_alone():
    pace = quick()
    assert len(Batch(range(1000), pace).take(2, 60.0)) == 10
    for _ in range(100):
        pace.learn(1, 1.0)
    assert len(Batch(range(1000), pace).take(2, 60.0)) == 1


def test_items_that_travel_together_keep_the_deadline_of_one():
    assert len(Batch(range(1000), quick()).take(2, timeout=PARCEL_SECONDS)) == 1


def test_nobody_gets_more_than_a_fair_share_so_the_last_ones_travel_alone():
    batch, sizes = Batch(range(40), quick()), []
    while batch.num_waiting:
        sizes.append(len(batch.take(4, 60.0)))
    assert sizes[0] == 5
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-11:] == [1] * 11
    assert sum(sizes) == 40


def test_workers_that_share_get_all_that_is_theirs():
    batch = Batch(range(30), quick())
    assert [len(batch.take_share(size, left, 60.0)) for size, left in ((4, 6), (2, 2))] == [20, 10]
    batch = Batch(range(300), quick())
    assert len(batch.take_share(4, 6, 60.0)) == 40, "ten each, so that not all hangs on one node"
    batch = Batch(range(8), quick())
    assert len(batch.take_share(4, 8, 60.0)) == 4, "the other four, which play, are done soon"


def test_what_a_lost_node_played_goes_to_another_as_one():
    """One item alone would keep a whole crew from its work; it may be given up all the same."""
    batch = Batch("abcdefgh", quick())
    for _ in range(MAX_ATTEMPTS - 1):
        batch.give_back(batch.take_share(4, 4, 60.0), 8, "died")
    with pytest.raises(WorkerError, match="got 3 workers that failed"):
        batch.give_back(batch.take_share(4, 4, 60.0), 8, "died")


def test_what_is_given_back_comes_first_again_and_alone_where_it_was_played():
    batch = Batch("abcdefghijklmnopqrst", quick())
    taken = batch.take(1, 60.0)
    assert taken == (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
    batch.give_back(taken, 2, "died")
    assert [batch.take(1, 60.0) for _ in range(3)] == [(0,), (1,), (2, 3, 4, 5, 6, 7, 8, 9, 10)]


def test_an_item_that_cost_too_many_workers_is_given_up_and_named():
    batch = Batch("ab", Pace(PARCEL_SECONDS))
    for _ in range(MAX_ATTEMPTS - 1):
        batch.give_back(batch.take(1, 60.0), 1, "died")
    with pytest.raises(WorkerError, match="result for a, got 3 workers that failed, .* died"):
        batch.give_back(batch.take(1, 60.0), 1, "died")


def test_items_that_only_waited_at_a_worker_do_not_count_as_failed():
    batch = Batch("ab", Pace(PARCEL_SECONDS))
    for _ in range(MAX_ATTEMPTS + 1):
        taken = batch.take(1, 60.0) + batch.take(1, 60.0)
        batch.give_back(taken, 0, "died")
    assert batch.num_waiting == 2


def test_results_are_kept_by_position():
    batch = Batch("abc", Pace(PARCEL_SECONDS))
    batch.put((2, 0), ("C", "A"), 0.1)
    assert batch.results == {2: "C", 0: "A"}
