"""The fast mode through `train`: the same bits, nothing lost, and the verdict on the target."""

from __future__ import annotations

import math
import shutil

import numpy as np
import pytest
from test_train import result_of, with_updates

from pixelpong import session as session_module
from pixelpong.config.presets import load_preset
from pixelpong.errors import NumericsError
from pixelpong.learners import progress as progress_module
from pixelpong.learners.progress import POINT_WINDOW, Progress, expected_return
from pixelpong.loop import Judged, Updated, train
from pixelpong.play.streams import StreamPlayer
from pixelpong.run.directory import RunDirectory

TOY = {
    "environment": "Catch-v0", "hidden": 16, "streams": 4, "horizon": 25, "engine": "serial",
    "updates": 3, "save_every": 1,
}  # fmt: skip

STEPS_AN_UPDATE = TOY["streams"] * TOY["horizon"]


@pytest.fixture
def make_run(tmp_path):
    def make(name="run", **changes) -> RunDirectory:
        config = load_preset("fast").updated(TOY | changes, "test")
        return RunDirectory.create(tmp_path / name, config, [].append)

    return make


# --- the same bits ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_threads_give_the_bits_of_one_worker(make_run, workers):
    reference = make_run("reference")
    train(reference)
    run = make_run("run", engine="threads", workers=workers)
    train(run)
    assert result_of(run) == result_of(reference)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_stopping_and_resuming_at_every_update_changes_nothing(make_run, dtype):
    reference = make_run("reference", updates=5, dtype=dtype)
    train(reference)
    for stop in range(1, 5):
        run = make_run(f"stop-{stop}", updates=stop, dtype=dtype)
        train(run)
        train(with_updates(RunDirectory.open(run.path), 5))
        assert result_of(run) == result_of(reference), stop
    run = make_run("every", updates=1, dtype=dtype)
    for updates in range(1, 6):
        train(with_updates(RunDirectory.open(run.path), updates))
    assert result_of(run) == result_of(reference)


@pytest.mark.slow
def test_a_killed_training_resumes_from_its_last_checkpoint_to_the_same_bits(make_run):
    reference = make_run("reference", updates=6)
    train(reference)
    run = make_run("run", updates=5, save_every=2)
    train(run)
    shutil.rmtree(run.checkpoints.path(5))
    train(with_updates(run, 6))
    assert result_of(run) == result_of(reference)


@pytest.mark.slow
def test_an_interrupted_training_is_saved_and_resumes_to_the_same_bits(make_run):
    reference = make_run("reference", updates=4)
    train(reference)
    run = make_run("run", updates=4, save_every=100)
    asked = iter([False] * 10 + [True] * 10)  # in the middle of the third update
    assert train(run, should_stop=lambda: next(asked)).reason == "interrupted"
    assert run.checkpoints.updates() == [0, 2]
    train(run)
    assert result_of(run) == result_of(reference)


def test_it_learns_to_catch(make_run):
    """Twenty thousand steps of the toy, from missing nearly all to catching nearly all."""
    run = make_run(updates=50, hidden=32, streams=16, save_every=100, discount=0.95)
    train(run)
    shares = [line["points_won_share"] for line in run.metrics.read()]
    assert np.mean(shares[:3]) < 0.4
    assert np.mean(shares[-5:]) > 0.75


# --- numbers ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_number_that_is_not_finite_never_reaches_the_disk(make_run, monkeypatch):
    run = make_run(updates=4)
    real, calls = StreamPlayer.play_segment, []

    def play(self, *args):
        result = real(self, *args)
        calls.append(1)
        if len(calls) == 10:  # in the third update
            result.segment.values[3] = np.nan
        return result

    monkeypatch.setattr(StreamPlayer, "play_segment", play)
    with pytest.raises(NumericsError, match="update 3"):
        train(run)
    monkeypatch.undo()
    assert run.checkpoints.load_latest().update == 2
    train(run)
    reference = make_run("reference", updates=4)
    train(reference)
    assert result_of(run) == result_of(reference)


# --- the target -------------------------------------------------------------------------------


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
    progress.count(10, 40, [1] * (POINT_WINDOW - 1))
    assert (progress.points_won_1000, progress.estimated_return) == (1.0, None)
    progress.count(10, 40, [-1])
    assert progress.estimated_return == pytest.approx(expected_return(0.999))
    progress.count(10, 40, [-1] * POINT_WINDOW)
    assert progress.estimated_return == -21
    assert Progress.from_dict(progress.to_dict()) == progress


class Verdicts:
    """Keeps those that it is shown."""

    def __init__(self):
        self.seen = []

    def __call__(self, event):
        if isinstance(event, Judged):
            self.seen.append(event.verdict)


@pytest.fixture
def short_windows(monkeypatch):
    """An estimate after the first update, and evaluations of five episodes."""
    monkeypatch.setattr(progress_module, "POINT_WINDOW", 8)
    monkeypatch.setattr(session_module, "VERDICT_EPISODES", 5)
    monkeypatch.setattr(session_module, "SAMPLED_EPISODES", 4)
    monkeypatch.setattr(session_module, "LOOKS", ((1, -42.0), (2, 0.0)))
    monkeypatch.setattr(session_module, "LOOK_EVERY", 2 * STEPS_AN_UPDATE)


def test_a_target_that_an_evaluation_confirms_ends_the_training(make_run, short_windows):
    run = make_run(updates=50)
    run = run.with_config(run.config.updated({"updates": 50, "until_return": -21.0}, "test"))
    outcome = train(run, display := Verdicts())
    assert outcome.reason == "until_return"
    assert outcome.verdict == display.seen[-1]
    verdict = outcome.verdict
    assert verdict.is_won
    assert verdict.update == outcome.progress.update == run.checkpoints.load_best().update < 5
    assert (len(verdict.greedy.returns), len(verdict.sampled.returns)) == (5, 4)
    assert 0 < verdict.seconds < outcome.wall_seconds
    (line,) = run.evaluations.read()
    assert line["mean_return"] == verdict.greedy.mean_return


@pytest.mark.slow
def test_a_target_that_is_not_reached_is_tried_again_and_at_the_end(make_run, short_windows):
    run = make_run(updates=6)
    run = run.with_config(run.config.updated({"updates": 6, "until_return": 21.0}, "test"))
    real = Progress.estimated_return
    try:
        Progress.estimated_return = property(lambda self: 21.0)  # it always looks like winning
        outcome = train(run, display := Verdicts())
    finally:
        Progress.estimated_return = real
    assert outcome.reason == "updates"
    assert [verdict.update for verdict in display.seen] == [1, 3, 5, 6]
    assert not any(verdict.is_won for verdict in display.seen)
    assert all(verdict.sampled is None for verdict in display.seen)
    assert [len(verdict.greedy.returns) for verdict in display.seen] == [2, 2, 2, 5]  # hopeless


def _count_updates(events) -> int:
    return sum(isinstance(event, Updated) for event in events)


@pytest.mark.slow
@pytest.mark.parametrize("stop", [1, 2, 3, 4])
def test_a_stop_does_not_change_when_the_target_is_tried(
    make_run, short_windows, monkeypatch, stop
):
    monkeypatch.setattr(Progress, "estimated_return", property(lambda self: 21.0))
    reference, run = (
        each.with_config(each.config.updated({"updates": 6, "until_return": 21.0}, "test"))
        for each in (make_run("reference", updates=6), make_run("run", updates=6))
    )
    train(reference)

    shown = []
    outcome = train(run, shown.append, should_stop=lambda: _count_updates(shown) >= stop)
    assert (outcome.reason, outcome.progress.update) == ("interrupted", stop)
    train(RunDirectory.open(run.path))
    assert result_of(run) == result_of(reference)
    tried = [[line["update"] for line in each.evaluations.read()] for each in (run, reference)]
    assert tried[0] == tried[1] == [1, 3, 5, 6]


@pytest.mark.slow
def test_the_time_to_win_leaves_the_evaluations_out(make_run, short_windows, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(session_module.time, "monotonic", lambda: clock[0])
    evaluate = session_module.evaluate

    def slow(*args, **kwargs):
        clock[0] += 100
        return evaluate(*args, **kwargs)

    monkeypatch.setattr(session_module, "evaluate", slow)
    run = make_run(updates=3)
    run = run.with_config(run.config.updated({"updates": 3, "until_return": 21.0}, "test"))
    outcome = train(run, began=-7.0)
    assert outcome.wall_seconds == 107
    assert outcome.training_seconds == 7
    run = RunDirectory.open(run.path)
    again = train(run.with_config(run.config.updated({"updates": 4, "until_return": 21.0}, "t")))
    assert (again.wall_seconds, again.training_seconds) == (207, 7)


@pytest.mark.slow
def test_evaluating_on_the_way_changes_no_bit(make_run, short_windows):
    reference, run = make_run("reference", updates=4), make_run("run", updates=4)
    train(reference)
    run = run.with_config(run.config.updated({"updates": 4, "until_return": 21.0}, "test"))
    train(run)
    assert result_of(run)[:3] == result_of(reference)[:3]
