"""The rule when a target is tested, and what confirms it, without a run."""

from __future__ import annotations

import dataclasses

import pytest

from pixelpong.evaluation import summarize
from pixelpong.learners.progress import Progress
from pixelpong.target import TEST_EVERY, TEST_MARGIN, Target


@pytest.fixture
def progress(monkeypatch):
    """After one update and 70,000 steps, with an estimate of 18."""
    monkeypatch.setattr(Progress, "estimated_return", 18.0)
    return Progress(update=1, steps=70_000)


def is_tested(target, progress, **changes):
    return target.should_test(dataclasses.replace(progress, **changes), is_final=False)


@pytest.mark.parametrize(
    ("value", "tested"),
    [(17.0, True), (18.0, True), (18.0 + TEST_MARGIN, True), (18.2, False), (None, False)],
)
def test_a_target_is_tested_if_the_estimate_is_at_most_the_margin_below(progress, value, tested):
    assert Target(value).should_test(progress, is_final=False) is tested


def test_at_the_end_every_target_is_tested(progress):
    assert Target(21.0, next_test=10**9).should_test(progress, is_final=True)
    assert not Target(None).should_test(progress, is_final=True), "there is none"


def test_parameters_that_have_not_learned_are_not_tested(progress):
    untrained = dataclasses.replace(progress, update=0)
    assert not Target(-21.0).should_test(untrained, is_final=True)


def test_without_an_estimate_only_the_end_is_tested(progress, monkeypatch):
    monkeypatch.setattr(Progress, "estimated_return", None)
    assert not Target(-21.0).should_test(progress, is_final=False)
    assert Target(-21.0).should_test(progress, is_final=True)


def test_after_a_failed_test_the_next_one_waits_for_its_step(progress):
    target = Target(18.0).after_test(70_000, is_passed=False)
    first = 70_000 + TEST_EVERY
    steps = [70_000, first - 1, first, first + 1]
    assert [is_tested(target, progress, steps=it) for it in steps] == [False, False, True, True]


def test_every_failed_test_makes_the_next_one_wait(progress):
    target = Target(18.0).after_test(70_000, is_passed=False).after_test(200_000, is_passed=False)
    assert target == Target(18.0, next_test=200_000 + TEST_EVERY)
    assert not is_tested(target, progress, steps=200_000)


def test_a_win_may_be_tested_again_at_once(progress):
    """The process may die before the win is recorded."""
    target = Target(18.0, next_test=3).after_test(70_000, is_passed=True)
    assert is_tested(target, progress)


WON = dataclasses.replace(summarize([19.0, 20.0], [900, 900], 0), is_won=True, target=18.0)


@pytest.mark.parametrize(
    ("value", "evaluation", "is_win"),
    [
        (18.0, WON, True),
        (17.0, WON, True),
        (18.5, WON, False),
        (None, WON, False),
        (18.0, dataclasses.replace(WON, is_won=False), False),
        (18.0, dataclasses.replace(WON, target=None), False),
        (18.0, None, False),
    ],
)
def test_a_win_is_an_evaluation_that_has_confirmed_a_target_as_high(value, evaluation, is_win):
    assert Target(value).find_win(evaluation) is (evaluation if is_win else None)
