"""The time of a run, with the clock moved by hand."""

from __future__ import annotations

import pytest

from pixelpong import stopwatch
from pixelpong.stopwatch import Stopwatch


@pytest.fixture
def clock(monkeypatch):
    """A clock at 100; the test sets its only entry."""
    times = [100.0]
    monkeypatch.setattr(stopwatch.time, "monotonic", lambda: times[0])
    return times


def test_time_counts_from_the_start_given_on_top_of_earlier_sessions(clock):
    watch = Stopwatch(97.0, total=50.0, evaluations=20.0)
    assert (watch.read(), watch.evaluations) == (53.0, 20.0)


def test_time_counts_once_however_often_it_is_read(clock):
    watch = Stopwatch(100.0)
    clock[0] = 104.0
    assert [watch.read(), watch.read()] == [4.0, 4.0]
    clock[0] = 105.0
    assert watch.read() == 5.0


def test_a_clock_that_jumps_back_takes_nothing_away(clock):
    watch = Stopwatch(100.0)
    readings = []
    for clock[0] in (103.0, 10.0, 12.0):
        readings.append(watch.read())
    assert readings == [3.0, 3.0, 5.0]


def test_only_the_time_inside_an_evaluation_counts_as_an_evaluations(clock):
    watch = Stopwatch(100.0)
    clock[0] = 101.0
    for _ in range(2):
        with watch.evaluating():
            clock[0] += 10.0
        clock[0] += 100.0
    assert (watch.evaluations, watch.read()) == (20.0, 221.0)


def test_the_time_of_an_evaluation_that_fails_counts(clock):
    watch = Stopwatch(100.0)
    with pytest.raises(KeyError), watch.evaluating():
        clock[0] += 10.0
        raise KeyError
    assert watch.evaluations == 10.0
