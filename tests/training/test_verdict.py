"""The target: what a training is expected to return, when it is tried, and the verdict."""

from __future__ import annotations

import dataclasses
import functools
import math

import pytest
from toys import TOY, same_training, stop_after

from pixelpong import evaluation
from pixelpong import session as session_module
from pixelpong.items import BUILTIN
from pixelpong.learners import progress as progress_module
from pixelpong.learners.progress import POINT_WINDOW, Progress, expected_return
from pixelpong.loop import Evaluated, train, training
from pixelpong.run.directory import RunDirectory
from pixelpong.run.lines import Evaluation
from pixelpong.run.record import Record
from pixelpong.schema import convert


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.73, 0.999, 1.0])
def test_the_expected_return_is_that_of_games_of_independent_points(share):
    """The literal sum over all ways a game to 21 can end."""
    wanted = 0.0
    for loser in range(21):
        ways = math.comb(20 + loser, loser)
        wanted += ways * share**21 * (1 - share) ** loser * (21 - loser)
        wanted -= ways * (1 - share) ** 21 * share**loser * (21 - loser)
    assert expected_return(share) == pytest.approx(wanted, abs=1e-12)
    assert expected_return(1 - share) == pytest.approx(-wanted, abs=1e-12)


def test_the_estimate_waits_for_a_thousand_points():
    progress = Progress()
    progress.recent_points += [1] * (POINT_WINDOW - 1)
    assert (progress.points_won_1000, progress.estimated_return) == (1.0, None)
    progress.count([], [(BUILTIN, -1)], 10, 5.0, 5)
    assert progress.estimated_return == pytest.approx(expected_return(0.999))
    progress.count([], [(BUILTIN, -1)] * POINT_WINDOW, 10, 5.0, 5)
    assert progress.estimated_return == -21
    assert convert(dataclasses.asdict(progress), Progress) == progress


def train_and_watch(run):
    """The outcome, and the verdicts on the way."""
    events = list(training(run))
    return events[-1], [it.evaluation for it in events if isinstance(it, Evaluated)]


@pytest.fixture
def make_fast(make_run, monkeypatch):
    """Make a run of the fast mode with an estimate after its first update, and short evaluations.

    Two games at a look that finds it hopeless, or else five.
    """
    monkeypatch.setattr(progress_module, "POINT_WINDOW", 8)
    monkeypatch.setattr(evaluation, "VERDICT_EPISODES", 5)
    monkeypatch.setattr(evaluation, "LOOKS", ((1, -42.0), (2, 0.0)))
    monkeypatch.setattr(
        session_module, "LOOK_EVERY", 2 * TOY["fast"]["num_envs"] * TOY["fast"]["num_steps"]
    )
    return functools.partial(make_run, preset="fast")


def test_a_target_that_an_evaluation_confirms_ends_the_training_for_good(make_fast):
    """Resumed, as after a death just after it has won, it makes not a single update more."""
    run = make_fast(updates=50, until_return=-21.0)
    outcome, seen = train_and_watch(run)
    assert outcome.reason == "until_return"
    verdict = outcome.verdict
    assert verdict == seen[-1]
    assert verdict.is_won
    assert verdict.update == outcome.progress.update == run.checkpoints.find_best() < 5
    assert len(verdict.returns) == 5
    assert 0 < verdict.total_seconds == Record.read(run.path).total_seconds
    (line,) = run.evaluations.read()
    assert convert(line, Evaluation) == verdict
    assert (line["target"], line["is_won"]) == (-21.0, True)
    assert run.checkpoints.updates() == [0, verdict.update], "of a run that has won, the last alone"
    again, seen = train_and_watch(RunDirectory(run.path))
    assert (again.reason, again.params_sha256) == (outcome.reason, outcome.params_sha256)
    assert seen == [verdict]


@pytest.mark.slow
def test_a_target_that_is_not_reached_is_tried_again_whatever_stops_the_training(
    make_fast, monkeypatch
):
    """And at its end."""
    monkeypatch.setattr(Progress, "estimated_return", property(lambda self: 21.0))  # looks like it
    run = make_fast(updates=6, until_return=21.0)
    outcome, seen = train_and_watch(run)
    assert outcome.reason == "updates"
    assert [verdict.update for verdict in seen] == [1, 3, 5, 6]
    assert not any(verdict.is_won for verdict in seen)
    assert [len(verdict.returns) for verdict in seen] == [2, 2, 2, 5]  # hopeless
    for stop in (1, 2):
        stopped = make_fast(f"stopped {stop}", updates=6, until_return=21.0)
        stop_after(stopped, stop)
        train(RunDirectory(stopped.path))
        assert same_training(stopped, run) == []


@pytest.mark.slow
def test_the_time_to_win_leaves_the_evaluations_out(make_fast, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(session_module.time, "monotonic", lambda: clock[0])
    evaluate = session_module.evaluate

    def slow(*args, **kwargs):
        clock[0] += 100
        return evaluate(*args, **kwargs)

    monkeypatch.setattr(session_module, "evaluate", slow)
    run = make_fast()
    for updates, began in ((3, -7.0), (4, None)):
        budget = {"until_return": 21.0, "updates": updates}
        train(run.with_config(run.config.updated(budget, "test")), began=began)
        found = Record.read(run.path)
        assert (found.total_seconds, found.training_seconds) == (100 * updates - 193, 7)
