"""The loop: its order, its budget, and the promise of the same bits."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from fakes import Tape
from toys import result_of

from pixelpong import kernels, learners
from pixelpong.config import Config
from pixelpong.errors import CheckpointError, RunError, WorkerError
from pixelpong.learners.progress import Progress
from pixelpong.learners.reinforce import ReinforceLearner
from pixelpong.loop import Began, Ended, Updated, train, training
from pixelpong.play.worker import Worker
from pixelpong.run.directory import RunDirectory
from pixelpong.run.record import Record
from pixelpong.session import Session

# --- the loop ---------------------------------------------------------------------------------


def test_the_parts_are_called_in_the_order_of_the_map(make_run, monkeypatch):
    tape = Tape()
    tape.wrap(ReinforceLearner, "items", "items", monkeypatch)
    tape.wrap(ReinforceLearner, "apply", "apply", monkeypatch)
    tape.wrap(Worker, "play", "play", monkeypatch)
    tape.wrap(Session, "evaluate", "evaluate", monkeypatch)
    tape.wrap(Session, "record", "record", monkeypatch)
    run = make_run(updates=2, batch_size=2, save_every=2, evaluate_every=2, evaluate_episodes=1)
    tape.wrap(type(run.checkpoints), "save", "save", monkeypatch)
    train(run)
    one = ["items", "apply", "play", "play", "record"]
    first = [*one[:2], "play", *one[2:]]  # a frame, to compile
    assert tape.calls == ["save", *first, *one, "evaluate", "play", "save"]


def test_the_disk_has_the_lines_before_the_checkpoint(make_run, monkeypatch):
    """Else a loss of power could leave a checkpoint of updates whose lines are gone."""
    run = make_run(updates=1, evaluate_every=1, evaluate_episodes=1, save_agent_every=0)
    synced, real = [], os.fsync

    def noted(descriptor):
        synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    train(run)
    ending = f".safetensors-{os.getpid()}"
    first, last = (place for place, name in enumerate(synced) if name.endswith(ending))
    assert {"metrics.jsonl", "episodes.jsonl", "evaluations.jsonl"} <= {*synced[first:last]}


def test_a_run_directory_holds_what_the_design_says(make_run):
    run = make_run(evaluate_every=2, evaluate_episodes=4)
    outcome = train(run)
    assert outcome.reason == "updates"
    assert sorted(path.name for path in run.path.iterdir()) == [
        "agents", "checkpoints", "config.json", "episodes.jsonl", "evaluations.jsonl",
        "metrics.jsonl", "run.lock",
    ]  # fmt: skip
    metrics, episodes = list(run.metrics.read()), list(run.episodes.read())
    assert [line["update"] for line in metrics] == [1, 2, 3]
    assert [line["episode"] for line in episodes] == list(range(1, 10))
    (evaluation,) = run.evaluations.read()
    assert (evaluation["update"], len(evaluation["returns"])) == (2, 4)
    assert metrics[-1]["steps"] == sum(line["steps"] for line in episodes) == outcome.progress.steps
    assert metrics[0]["mean_return"] == pytest.approx(
        np.mean([line["episode_return"] for line in episodes[:3]])
    )
    assert metrics[0]["timing"]["steps_per_second"] > 0
    assert outcome.params_sha256 == run.checkpoints.load(3).card["about"]["params_sha256"]


def test_the_budget_that_is_reached_first_ends_the_training():
    for budget, progress, reason in (
        ({"updates": 2}, {"update": 1}, None),
        ({"updates": 2}, {"update": 2}, "updates"),
        ({"episodes": 30}, {"episodes": 30}, "episodes"),
        ({"total_timesteps": 100}, {"steps": 99}, None),
        ({"total_timesteps": 100}, {"steps": 140}, "total_timesteps"),
        ({"updates": 9, "total_timesteps": 100}, {"update": 1, "steps": 100}, "total_timesteps"),
    ):
        assert Config(**budget).reached(Progress(**progress)) == reason


@pytest.mark.slow
def test_the_fast_mode_learns(make_run):
    """70,000 steps of short games: from losing nearly every point to winning a quarter of them."""
    run = make_run(preset="fast", updates=60, hidden=32, num_envs=16, num_steps=75, max_frames=600)
    train(run)
    shares = [line["points_won_share"] or 0 for line in run.metrics.read()]
    assert np.mean(shares[:10]) < 0.12
    assert np.mean(shares[-10:]) > 0.2


# --- the same bits ----------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(make_run):
    runs = [make_run(name, seed=seed) for name, seed in (("a", 0), ("b", 0), ("c", 1))]
    for run in runs:
        train(run)
    one, same, other = map(result_of, runs)
    assert one == same
    assert one[1] != other[1]


@pytest.mark.slow
def test_threads_give_the_bits_of_one_worker(make_run, mode):
    reference = make_run("reference")
    train(reference)
    for workers in (1, 2, 3):
        run = make_run(f"{workers}", engine="threads", workers=workers)
        train(run)
        assert result_of(run) == result_of(reference)


# --- stops and faults -------------------------------------------------------------------------


@pytest.mark.slow
def test_an_interrupted_training_is_saved_and_resumes_to_the_same_bits(make_run, mode):
    reference = make_run("reference", updates=4)
    train(reference)
    run = make_run("run", updates=4, save_every=100)
    items = 3 if mode == "classic" else 4
    asked = iter([False] * (2 * items + 1) + [True] * 10)  # in the middle of the third update
    outcome = train(run, should_stop=lambda: next(asked))
    assert outcome.reason == "interrupted"
    assert run.checkpoints.updates() == [0, 2]
    train(run)
    assert result_of(run) == result_of(reference)


def test_a_worker_that_raises_costs_no_complete_update(make_run, monkeypatch):
    run = make_run(updates=4, save_every=100)
    real = Worker.play

    def play(self, item, params):
        if item.update == 3:
            raise RuntimeError("planted")
        return real(self, item, params)

    monkeypatch.setattr(Worker, "play", play)
    with pytest.raises(WorkerError, match="planted"):
        train(run)
    assert run.checkpoints.updates() == [0, 2]


def test_a_training_that_cannot_start_notes_why(make_run, monkeypatch):
    def refuse(*_):
        raise WorkerError("no room for a worker")

    run = make_run()
    monkeypatch.setattr("pixelpong.loop.make_engine", refuse)
    with pytest.raises(WorkerError):
        train(run)
    assert Record.read(run.path).problem == "no room for a worker"


def test_a_training_that_is_left_in_the_middle_is_saved_and_goes_on(make_run):
    run, reference = (make_run(name, updates=5, save_every=100) for name in ("run", "reference"))
    kinds = [type(event) for event in training(reference)]
    assert kinds == [Began, *[Updated] * 5, Ended]
    for event in training(run):
        if isinstance(event, Updated) and event.progress.update == 2:
            break
    del event
    assert run.checkpoints.updates() == [0, 2]
    train(run)
    assert result_of(run) == result_of(reference)


@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt()])
def test_a_display_that_fails_costs_no_update(make_run, error):
    def rude(event):
        if isinstance(event, Updated) and event.progress.update == 3:
            raise error  # as when the terminal goes away

    run, reference = (make_run(name, updates=5, save_every=100) for name in ("run", "reference"))
    with pytest.raises(type(error)):
        train(run, rude)
    assert run.checkpoints.updates() == [0, 3]
    train(reference)
    train(run)
    assert result_of(run) == result_of(reference)


@pytest.mark.parametrize(
    ("owner", "name", "number"),
    [(kernels, "rmsprop", 6), (Progress, "_end_episode", 8), (Session, "record", 3)],
    ids=["between two arrays", "between two episodes' counts", "before its lines are written"],
)
def test_an_exception_in_the_middle_of_an_update_is_never_saved(
    make_run, monkeypatch, owner, name, number
):
    """As Ctrl-C in a notebook, where it can come anywhere: here in the third update."""
    run, reference = (make_run(name, updates=4, save_every=100) for name in ("run", "reference"))
    calls, real = [], getattr(owner, name)

    def broken(*args):
        calls.append(1)
        if len(calls) == number:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(owner, name, broken)
    with pytest.raises(KeyboardInterrupt):
        train(run)
    assert run.checkpoints.updates() == [0]
    monkeypatch.undo()
    train(reference)
    train(run)
    assert result_of(run) == result_of(reference)


def test_a_stop_in_an_evaluation_loses_nothing(make_run):
    changes = {"updates": 4, "evaluate_every": 2, "evaluate_episodes": 5, "save_every": 100}
    reference, run = make_run("reference", **changes), make_run("run", **changes)
    train(reference)
    asked = iter([False] * 8 + [True] * 10)  # 2 × 3 episodes, then in the evaluation's third
    assert train(run, should_stop=lambda: next(asked)).reason == "interrupted"
    assert [line["update"] for line in run.metrics.read()] == [1, 2]
    assert list(run.evaluations.read()) == []
    train(run)
    assert result_of(run) == result_of(reference)
    assert run.checkpoints.find_best() == reference.checkpoints.find_best()
    card, line = run.checkpoints.load(2).card, next(iter(run.evaluations.read()))
    assert (card["score_of"], card["score"]) == ("evaluation", line["ci95"][0])


def test_a_training_whose_run_is_deleted_does_not_claim_to_be_saved(make_run):
    run = make_run(updates=4)
    with pytest.raises(RunError, match=r"got No such file .* if the run was deleted, train again"):
        for event in training(run):
            if isinstance(event, Updated) and event.progress.update == 2:
                shutil.rmtree(run.path)
    assert not run.path.exists()


def test_a_configuration_that_does_not_fit_is_never_written(make_run):
    run = make_run(updates=2)
    train(run)
    before = (run.path / "config.json").read_bytes()
    with pytest.raises(CheckpointError, match="--hidden"):
        train(run.with_config(run.config.updated({"hidden": 21}, "test")))
    assert (run.path / "config.json").read_bytes() == before
    changed = run.with_config(run.config.updated({"learning_rate": 0.1, "updates": 3}, "test"))
    train(changed)
    content = json.loads((run.path / "config.json").read_text())
    assert content["changes"] == [{"update": 2, "learning_rate": [3e-3, 0.1]}]
    assert RunDirectory(run.path).config == changed.config


def test_where_a_seed_draws_other_parameters_a_resume_is_refused(make_run, monkeypatch):
    """As with a NumPy whose generators differ: a checkpoint has only the rows that were touched."""
    run = make_run(updates=1)
    train(run)
    real = learners.draw_params
    monkeypatch.setattr(learners, "draw_params", lambda *a: real(*a[:3], a[3] + 1, a[4]))
    with pytest.raises(CheckpointError, match="by their SHA-256, got others; use the library ver"):
        train(run)


def test_the_best_checkpoint_is_the_one_that_evaluated_best(make_run):
    run = make_run(updates=8, evaluate_every=1, evaluate_episodes=5)
    train(run)
    sure = [line["ci95"][0] for line in run.evaluations.read()]
    best = max(range(8), key=lambda index: (sure[index], index)) + 1
    assert run.checkpoints.find_best() == best
    assert best in run.checkpoints.updates()


def test_without_evaluations_nothing_is_best_before_a_hundred_episodes(make_run):
    run = make_run(updates=2, batch_size=60, save_every=1)
    train(run)
    assert run.checkpoints.load(1).card["score"] is None
    assert run.checkpoints.load(2).card["score"] == list(run.metrics.read())[1]["mean_return_100"]
