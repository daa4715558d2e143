"""The loop: its order, its budget, and the promise of the same bits."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from promises import promise

from pixelpong import learners
from pixelpong.config import Config
from pixelpong.errors import CheckpointError, RunError
from pixelpong.learners.progress import Progress
from pixelpong.loop import Began, Evaluated, Updated, train, training
from pixelpong.run.directory import RunDirectory

# --- the loop ---------------------------------------------------------------------------------


@promise("lines first")
def test_the_disk_has_the_lines_then_the_checkpoint_and_then_its_name(make_run, monkeypatch):
    """Else a loss of power could leave a checkpoint of updates whose lines are gone, or half of it.

    At the end its folder is flushed.
    """
    run = make_run(updates=1, evaluate_every=1, evaluate_episodes=1, save_agent_every=0)
    tape, sync, replace = [], os.fsync, Path.replace

    def noted_sync(descriptor):
        tape.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        sync(descriptor)

    def noted_replace(path, target):
        tape.append("rename")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(Path, "replace", noted_replace)
    train(run)
    first, last = (f".00000{update}.safetensors-{os.getpid()}" for update in (0, 1))
    lines = {"metrics.jsonl", "episodes.jsonl", "evaluations.jsonl"}
    assert lines <= {*tape[tape.index(first) : tape.index(last)]}
    assert tape[tape.index(last) :] == [last, "rename", "checkpoints"]


def test_a_run_directory_holds_what_the_design_says(make_run):
    run = make_run(evaluate_every=2, evaluate_episodes=4)
    *events, outcome = training(run)
    assert [type(event) for event in events] == [Began, Updated, Updated, Evaluated, Updated]
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


# --- what cannot be ---------------------------------------------------------------------------


def test_a_training_whose_run_is_deleted_does_not_claim_to_be_saved(make_run):
    run = make_run(updates=4)
    with pytest.raises(RunError, match=r": No such file .* if the run was deleted, train again"):
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
    with pytest.raises(CheckpointError, match="different SHA-256 here: .* Use the versions in"):
        train(run)


def test_the_best_checkpoint_is_the_one_that_evaluated_best(make_run):
    run = make_run(updates=8, evaluate_every=1, evaluate_episodes=5)
    train(run)
    sure = [line["ci95"][0] for line in run.evaluations.read()]
    assert run.checkpoints.find_best() == max(range(8), key=lambda index: (sure[index], index)) + 1
    assert run.checkpoints.find_best() in run.checkpoints.updates()


def test_without_evaluations_nothing_is_best_before_a_hundred_episodes(make_run):
    run = make_run(updates=2, batch_size=60, save_every=1)
    train(run)
    scores = [run.checkpoints.load(update).card["score"] for update in (1, 2)]
    assert scores == [None, list(run.metrics.read())[1]["mean_return_100"]]
