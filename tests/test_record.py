"""A run's record: what it says is what the files say, and it is read again if they change."""

from __future__ import annotations

import json

import numpy as np
import pytest
from toys import toy_config

from pixelpong.run import record
from pixelpong.run.directory import RunDirectory
from pixelpong.run.record import Record, list_sweeps, records


@pytest.fixture
def run(toy_runs, mode):
    return RunDirectory(toy_runs[mode])


def test_columns_are_the_lines_of_the_files(run):
    lines, own, found = list(run.metrics.read()), list(run.episodes.read()), Record.read(run.path)
    columns = found.columns()
    assert columns["steps"].dtype == np.int64
    assert columns["steps"].tolist() == [line["steps"] for line in lines]
    rates = [line["timing"]["steps_per_second"] for line in lines]
    assert columns["steps_per_second"].tolist() == rates
    at = {line["update"]: line["steps"] for line in lines}
    steps, returns = found.returns()
    assert returns.tolist() == [line["episode_return"] for line in own]
    assert steps.tolist() == [at[line["update"]] for line in own]
    assert np.isnan(found.steps_at([99]))
    evaluated = [(each.update, each.mean_return) for each in found.evaluations]
    assert evaluated == [(it["update"], it["mean_return"]) for it in run.evaluations.read()]
    assert (found.greedy.update, found.run.list_agents()[-1]) == (12, 12)


def test_the_same_numbers_and_times_everywhere(run):
    found, told = Record.read(run.path), Record.read(run.path).to_dict()
    last = list(run.metrics.read())[-1]
    for name in ("update", "steps", "episodes", "estimated_return", "mean_return_100"):
        assert told[name] == last[name]
    assert told["training_seconds"] == last["timing"]["training_seconds"] <= told["total_seconds"]
    assert told["total_seconds"] >= last["timing"]["wall_seconds"]
    assert told["greedy"] == found.greedy.in_short()
    assert found.greedy.found in found.verdict
    json.dumps(told, allow_nan=False)


def test_a_record_is_read_again_only_if_the_run_has_changed(tmp_path):
    run = RunDirectory.create(tmp_path / "run", toy_config("fast"))
    first = Record.read(run.path)
    assert Record.read(run.path) is first
    run.metrics.append({"update": 1, "steps": 10, "timing": {"wall_seconds": 2.5}})
    assert (Record.read(run.path).steps, Record.read(run.path).total_seconds) == (10, 2.5)
    run.metrics.cut_back(0)
    assert Record.read(run.path).rows == ()
    with run.lock():
        assert Record.read(run.path).state == "training"
    assert Record.read(run.path).state == "interrupted"


def test_a_sweeps_runs_have_its_name_and_seeds_of_one_configuration_a_group(tmp_path):
    for name, options in (("a", {}), ("b", {"seed": 2, "engine": "threads"}), ("c", {"hidden": 9})):
        RunDirectory.create(tmp_path / "s" / name, toy_config("fast", **options))
    (tmp_path / "s" / record.SWEEP_FILE).touch()
    assert list_sweeps(tmp_path) == [tmp_path / "s"]
    assert list_sweeps(tmp_path / "none") == []
    found = {it.name: it.group for it in records(tmp_path / "s")}
    assert found["s/a"] == found["s/b"] != found["s/c"]
