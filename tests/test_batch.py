"""What waits, what is done, what failed: the book that the Ray engine keeps."""

from __future__ import annotations

import pytest

from pixelpong.engines import RunStats
from pixelpong.engines.batch import LEAST_SECONDS, MAX_ATTEMPTS, MOST_SECONDS, Batch, Pace
from pixelpong.errors import WorkerError


def paced(seconds: float) -> Pace:
    """A pace at which an item takes so long."""
    pace = Pace()
    pace.learn(10, 10 * seconds)
    return pace


def batch_of(items, pace: Pace) -> Batch:
    return Batch(items, pace, RunStats())


def test_items_of_unknown_length_travel_one_for_each_worker():
    assert batch_of(range(100), Pace()).take(2, 2, 60.0) == (0, 1)


def test_short_items_travel_together_and_long_ones_alone():
    assert len(batch_of(range(1000), paced(LEAST_SECONDS / 10)).take(1, 100, 60.0)) == 10
    assert len(batch_of(range(1000), paced(MOST_SECONDS / 10)).take(1, 10, 60.0)) == 10
    assert len(batch_of(range(1000), paced(2 * MOST_SECONDS)).take(1, 10, 60.0)) == 1


def test_items_that_travel_together_keep_the_deadline_of_one():
    assert len(batch_of(range(1000), paced(0.01)).take(1, 1, timeout=0.1)) == 1


def test_calls_get_smaller_so_that_all_workers_are_done_together():
    batch, sizes = batch_of(range(40), paced(LEAST_SECONDS)), []
    while batch.num_waiting:
        sizes.append(len(batch.take(1, 4, 60.0)))
    assert sizes[0] == 5
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-11:] == [1] * 11
    assert sum(sizes) == 40


def test_nobody_gets_more_than_a_fair_share():
    batch = batch_of(range(30), paced(1e-4))
    assert [len(batch.take(size, left, 60.0)) for size, left in ((4, 6), (2, 2))] == [20, 10]


def test_what_is_given_back_comes_first_again():
    batch = batch_of(range(20), paced(1e-3))
    taken = batch.take(1, 2, 60.0)
    assert taken == tuple(range(10))
    batch.give_back(taken[4:], "died")
    assert batch.take(1, 1, 60.0)[:6] == taken[4:]
    assert batch.stats.items_again == 6


def test_an_item_that_was_in_too_many_failed_calls_is_given_up_and_named():
    batch = batch_of("ab", Pace())
    for _ in range(MAX_ATTEMPTS - 1):
        batch.give_back(batch.take(1, 1, 60.0), "died")
    with pytest.raises(WorkerError, match="result for a, got 3 workers that failed, .* died"):
        batch.give_back(batch.take(1, 1, 60.0), "died")


def test_results_are_kept_by_position():
    batch = batch_of("abc", Pace())
    batch.put((2, 0), ("C", "A"), 0.1)
    assert batch.results == {2: "C", 0: "A"}


def test_a_call_ends_with_a_group_where_one_ends_near():
    batch = Batch(range(45), paced(LEAST_SECONDS / 100), RunStats(), group_size=20)
    calls = []
    while batch.num_waiting:
        calls.append(batch.take(1, 2, 60.0))
    assert [call[-1] for call in calls[:2]] == [19, 39]
    assert [batch.parts_of(call) for call in calls[:2]] == [[20], [20]]


def test_only_whole_groups_are_gathered_the_last_may_be_smaller():
    batch = Batch(range(10), Pace(), RunStats(), group_size=4)
    assert batch.parts_of(range(10)) == [4, 4, 2]
    assert batch.parts_of((1, 2, 3, 4, 5, 6, 7, 8)) == [1, 1, 1, 4, 1]
    assert batch.parts_of((0, 1, 3, 4, 5, 6)) == [1] * 6
    assert batch.parts_of((9,)) == [1]
