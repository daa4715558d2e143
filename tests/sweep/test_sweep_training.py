"""A sweep from the user's words to its results, with a trainer in this process."""

from __future__ import annotations

import shutil

import pytest
from toys import toy_config

from pixelpong.errors import ConfigError, RunError
from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory
from pixelpong.run.record import Record
from pixelpong.sweeps.sweep import create_sweep
from pixelpong.sweeps.training import find_started, plan_sweep, train_sweep


def configs_of(*seeds):
    return [toy_config("classic", seed=seed) for seed in seeds]


class Trainer:
    """Trains at once, in this process and one run at a time."""

    def __init__(self, failing=()):
        self.failing, self.trained = failing, []

    def capacity(self):
        return 1

    def start(self, run):
        if run.name in self.failing:
            return "it is broken"
        train(RunDirectory(run))
        self.trained.append(run.name)
        return ""

    def find_error(self, job):
        return job


def test_what_is_left_of_a_sweep_is_trained_and_told_line_by_line(tmp_path, capsys):
    path = create_sweep(tmp_path / "s", configs_of(0, 1, 2))
    train(RunDirectory(path / "seed-0"))
    shutil.rmtree(path / "seed-2")
    told, drawn, trainer = [], [], Trainer(failing=["seed-1"])
    facts = train_sweep(path, trainer, lambda: False, told.append, drawn.append)
    assert "seed-2 was lost" in capsys.readouterr().err
    assert trainer.trained == ["seed-2"]
    assert told == [
        f"{path}: 3 runs, 2 to train",
        "seed-1 (2 of 3): training",
        "seed-1: failed: it is broken",
        "seed-2 (3 of 3): training",
        f"seed-2: {Record.read(path / 'seed-2').summary}",
    ]
    assert [run["is_done"] for run in facts["runs"]] == [True, False, True]
    assert drawn == [path]


def test_a_sweep_is_locked_until_its_results_are_drawn(tmp_path):
    path, refused = create_sweep(tmp_path / "s", configs_of(0)), []

    def try_to_continue(_):
        with pytest.raises(RunError, match="is training in"):
            train_sweep(path, Trainer(), lambda: False, print, print)
        refused.append(True)

    train_sweep(path, Trainer(), lambda: False, try_to_continue, try_to_continue)
    assert len(refused) == 4, "with each of the three lines, and with the picture"


def test_after_a_stop_no_run_is_started_and_the_results_so_far_are_summed_up(tmp_path):
    path, trainer = create_sweep(tmp_path / "s", configs_of(0)), Trainer()
    facts = train_sweep(path, trainer, lambda: True, lambda line: None, lambda path: None)
    assert (trainer.trained, facts["done"], facts["trainings"]) == ([], 0, 1)


def test_words_name_a_new_sweep_or_one_to_continue(tmp_path):
    grid = tmp_path / "grid.toml"
    grid.write_text("hidden = [8, 16]\nseed = 3\n")
    sweep = create_sweep(tmp_path / "s", configs_of(0))
    assert (find_started(None, has_options=True), find_started(grid, has_options=True)) == (
        None, None,
    )  # fmt: skip
    assert find_started(sweep, has_options=False) == sweep
    with pytest.raises(ConfigError, match="is a sweep, whose options cannot change"):
        find_started(sweep, has_options=True)
    planned = plan_sweep(grid, "4-5", None, {"preset": "classic"})
    assert [(it.hidden, it.seed) for it in planned] == [(8, 4), (8, 5), (16, 4), (16, 5)]
    assert [it.seed for it in plan_sweep(grid, None, None, {})] == [3, 3]
    with pytest.raises(ConfigError, match="A sweep needs seeds"):
        plan_sweep(None, None, None, {})
