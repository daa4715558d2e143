"""Many trainings at once: the grid, what is done and what is left, and the statistics over all."""

from __future__ import annotations

import csv
import itertools
import json
import os
import shutil
import signal
import sys

import pytest
from fakes import pid_at_work
from promises import promise
from toys import result_of, toy_config, toy_evaluation

from pixelpong import loop, resume
from pixelpong.errors import RunError
from pixelpong.faces.comparing import describe_sweep
from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory
from pixelpong.run.locks import lock_folder
from pixelpong.run.record import Record
from pixelpong.sweeps import jobs
from pixelpong.sweeps.grid import MAX_NAME, SAVE_EVERY, label_of, make_grid, name_runs, varied
from pixelpong.sweeps.jobs import JobEvent, open_trainer, run_jobs
from pixelpong.sweeps.settings import make_settings, summarize
from pixelpong.sweeps.sweep import create_sweep, find_left, read_sweep, sum_up

WORDS = [
    "--preset", "classic", "--max-frames", "300", "--hidden", "20", "--batch-size", "3",
    "--learning-rate", "3e-3", "--updates", "3",
]  # fmt: skip
"""The same as `toy_config("classic")`."""


@pytest.fixture
def in_process(monkeypatch):
    """Runs of a sweep are trained in this process, for tests that are not about processes."""

    class InProcess(jobs.LocalTrainer):
        def start(self, run):
            try:
                resume(run, quiet=True, engine="serial")
            except RunError as error:
                return str(error)
            return ""

        def find_error(self, job):
            return job

    monkeypatch.setattr(jobs, "LocalTrainer", InProcess)


def configs_of(*seeds, **changes):
    return [toy_config("classic", seed=seed, **changes) for seed in seeds]


def carry_out(sweep, stop_after=None):
    """Train, until so many trainings have ended; the names of those that began."""
    events = []

    def should_stop():
        ended = sum(event.result is not None for event in events)
        return stop_after is not None and ended >= stop_after

    with open_trainer(resume, "serial") as trainer:
        for event in run_jobs(find_left(sweep), trainer, should_stop):
            events.append(event)
    return [event.run.name for event in events if event.result is None]


# --- the grid ---------------------------------------------------------------------------------


def test_a_grid_is_the_product_of_its_lists_the_seeds_of_a_setting_side_by_side():
    content = {"seeds": "0-2", "hidden": [8, 16], "preset": ["classic", "fast"], "updates": 1000}
    configs = make_grid(content, {}, "grid.toml")
    found = [(each.preset, each.hidden, each.seed) for each in configs]
    assert sorted(found) == sorted(itertools.product(["classic", "fast"], [8, 16], range(3)))
    assert [each.seed for each in configs] == [0, 1, 2] * 4
    assert {(each.updates, each.save_every) for each in configs} == {(1000, SAVE_EVERY)}
    assert configs[0].algorithm != configs[-1].algorithm

    # The command line takes the place of what the grid says.
    content = {"hidden": [8, 16, 32], "rows": [{"updates": 5}, {"updates": 6}], "save_every": 7}
    (config,) = make_grid(content, {"hidden": 4, "updates": 9}, "grid.toml")
    assert (config.hidden, config.updates, config.save_every) == (4, 9, 7)


def test_names_are_those_of_folders_and_no_two_are_the_same():
    configs = make_grid({"learning_rate": [1e-3, 2e-3], "seeds": "0,7"}, {}, "grid.toml")
    names = name_runs(configs)
    assert names[::3] == ["learning-rate-0.001-seed-0", "learning-rate-0.002-seed-7"]
    assert name_runs(configs[:2]) == ["seed-0", "seed-7"]
    assert label_of(configs[0], varied(configs)) == "learning_rate 0.001"
    many = {"environment": ["ALE/Pong-v5", "Pong-v0"], "seeds": "0-99"}
    wide = {"gamma": [0.9, 0.99], "gae_lambda": [0.9, 0.95], "restart_after": [10**12, 10**11]}
    wide |= {"ent_coef": [0.0125, 0.0124], "vf_coef": [0.12345, 0.1234]}
    for content in (many, wide):
        names = name_runs(make_grid(content, {}, "grid.toml"))
        assert len({name.lower() for name in names}) == len(names)
        assert all(0 < len(name) <= MAX_NAME and "/" not in name for name in names)


# --- carrying it out --------------------------------------------------------------------------


@promise("sweeps")
def test_a_sweep_that_was_stopped_continues_with_what_is_left(in_process, tmp_path):
    sweep = create_sweep(tmp_path / "s", configs_of(0, 2, 1, until_return=20.0))
    assert carry_out(sweep, stop_after=1) == ["seed-0"]
    updates = []
    train(read_sweep(sweep)[1].run, updates.append, lambda: len(updates) > 2)  # half done
    assert carry_out(sweep) == ["seed-1", "seed-2"]
    evaluations = sweep / "seed-0" / "evaluations.jsonl"
    evaluation = json.loads(evaluations.read_bytes())
    evaluations.write_bytes(b"")  # as if it had been killed during its evaluation
    assert carry_out(sweep) == ["seed-0"]
    assert json.loads(evaluations.read_bytes())["returns"] == evaluation["returns"]
    assert carry_out(sweep) == []
    assert [it["update"] for it in read_sweep(sweep)[1].run.metrics.read()] == [1, 2, 3]
    sum_up(sweep)
    rows = list(csv.DictReader((sweep / "sweep.csv").read_text().splitlines()))
    for row, config in zip(rows, configs_of(0, 1, 2), strict=True):
        alone = train(RunDirectory.create(tmp_path / row["name"], config))
        assert (row["seed"], row["params_sha256"]) == (str(config.seed), alone.params_sha256)


@pytest.mark.slow
def test_one_that_fails_is_told_and_the_others_continue(in_process, tmp_path, call):
    real = loop.train

    def fail(run, *more):
        if run.path.name == "seed-1":
            raise RunError("cannot write it: No space left on device; make room")
        return real(run, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "train", fail)
        code, out, _ = call("sweep", "--seeds", "0-2", *WORDS, "--engine", "serial", "--out", "s")
    assert (code, "seed-1: failed: cannot write it: No space left on device" in out) == (1, True)
    code, out, _ = call("sweep", "s", "--engine", "serial")
    assert (code, "seed-1: budget spent" in out) == (0, True)


def test_a_folder_that_holds_something_is_left_alone_and_one_process_carries_it_out(call, tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "mine").write_text("precious")
    words = ["sweep", "--seeds", "0", "--engine", "serial", "--out"]
    assert "s already exists; choose another name" in call(*words, "s")[2]
    assert os.listdir(tmp_path / "s") == ["mine"]
    with lock_folder(create_sweep(tmp_path / "old", configs_of(0))):
        _, _, err = call("sweep", "old", "--engine", "serial")
    assert f"Process {os.getpid()} is training in" in err
    code, _, err = call(*words, "old")
    assert (code, "continue it with `pixelpong sweep old`" in err) == (1, True)


def test_a_setting_counts_what_won_and_takes_medians(tmp_path):
    def make(name, seed, final=None, seconds=50.0, **changes):
        """The record of a run of three updates, evaluated after the second if it won there."""
        changes = {"updates": 3, "until_return": 18.0} | changes
        run = RunDirectory.create(tmp_path / name, toy_config("classic", seed=seed, **changes))
        is_won = final is not None and final >= 18
        for update in (1, 2, 3):  # what follows a win does not count
            late = 1000 if update == 3 else 0
            times = {"timing": {"wall_seconds": seconds + late}}
            points = {"steps": 1000 * update, "estimated_return": update - 21.0}
            run.metrics.append({"update": update} | points | times)
        if final is not None:
            more = {"is_won": is_won, "timing": {"wall_seconds": seconds}}
            update = 2 if is_won else 3
            run.evaluations.append(toy_evaluation(update, final, target=18.0, **more))
        return Record.read(run.path)

    results = ((0, 30, 18.5), (1, 50, 19.0), (2, 40, 19.5), (3, 99, -20.0))
    records = [make(f"seed-{seed}", seed, final, seconds) for seed, seconds, final in results]
    records += [make("copy", 1, 19.0, 51), make("half", 4), make("other", 0, hidden=8)]
    setting, other = summarize(records)["settings"]
    assert (setting["label"], other["label"]) == ("hidden 20", "hidden 8")
    assert (setting["trainings"], setting["done"], setting["won"]) == (5, 4, 3)
    assert setting["seconds"] == {"median": 40.0, "ci95": None}
    assert setting["steps"]["median"] == 2000
    assert setting["final_return"]["median"] == (18.5 + 19) / 2
    low, high = setting["final_return"]["ci95"]
    assert -20 <= low < high <= 19.5
    assert summarize([]) == {"trainings": 0, "done": 0, "won": 0, "settings": []}


# --- processes --------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_training_whose_process_dies_has_failed_and_a_stop_saves_the_next(tmp_path):
    first, second = tmp_path / "s/seed-0", tmp_path / "s/seed-1"
    killed = []

    def should_stop():
        if not killed and (pid := pid_at_work(first)):
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
        return pid_at_work(second) > 0

    configs = configs_of(0, 1, 2, updates=100_000, save_every=100_000)
    sweep = create_sweep(tmp_path / "s", configs)
    with open_trainer(resume, "serial", None, 1) as trainer:
        started, ended, *rest = run_jobs(find_left(sweep), trainer, should_stop)
    assert (started, ended.run, rest) == ((first, None), first, [(second, None)])
    assert "exit code -9" in ended.result
    assert read_sweep(sweep)[1].run.checkpoints.load_latest().update > 0


def test_a_training_that_warns_at_length_is_not_held_up(tmp_path, monkeypatch):
    """A pipe that nobody reads takes 64 kB."""
    loud = tmp_path / "python"
    loud.write_text(
        "#!/bin/sh\nyes | head -c 200000 >&2\necho pixelpong: error: loud >&2\nexit 1\n"
    )
    loud.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(loud))
    events = list(run_jobs([tmp_path], jobs.LocalTrainer(1), lambda: False))
    assert events == [JobEvent(tmp_path, None), JobEvent(tmp_path, "failed: loud")]


# --- Ray --------------------------------------------------------------------------------------


@promise("sweeps")
@pytest.mark.ray
def test_on_ray_a_training_that_is_killed_and_then_stopped_has_the_bits_of_one_alone(
    ray_cluster, tmp_path
):
    """Ray's retry finds the checkpoint; a stop saves all that are under way."""
    sweep = create_sweep(tmp_path / "s", configs_of(0, 1, 2, updates=100_000, save_every=5))
    killed = []  # the process, and what it had saved

    def should_stop():
        pids = [pid_at_work(sweep / name) for name in ("seed-0", "seed-1")]
        saved = max(RunDirectory(sweep / "seed-0").checkpoints.updates(), default=0)
        if saved and pids[0] and not killed:
            os.kill(pids[0], signal.SIGKILL)
            killed.extend((pids[0], saved))
        return bool(killed) and all(pids) and pids[0] != killed[0] and saved > killed[1]

    with open_trainer(resume, "ray") as trainer:
        events = list(run_jobs(find_left(sweep), trainer, should_stop))
    assert {event.result for event in events} == {None}
    run, other, third = (record.run for record in read_sweep(sweep))
    assert (other.checkpoints.load_latest().update > 0, third.has_begun) == (True, False)
    update = run.checkpoints.load_latest().update
    assert [line["update"] for line in run.metrics.read()] == list(range(1, update + 1))
    (config,) = configs_of(0, updates=update)
    train(RunDirectory.create(tmp_path / "alone", config))
    assert result_of(run) == result_of(RunDirectory(tmp_path / "alone"))


def test_a_sweep_is_found_by_its_name_and_summed_up_without_a_checkpoint(in_process, call, report):
    words = ["--seeds", "0-1", *WORDS, "--engine", "serial"]
    code, out, _ = call("sweep", *words)
    lines = out.splitlines()
    assert (code, lines[0]) == (0, "runs/sweep-001: 2 runs, 2 to train")
    assert [line for line in lines if "training" in line] == [
        "seed-0 (1 of 2): training", "seed-1 (2 of 2): training",
    ]  # fmt: skip
    shutil.rmtree("runs/sweep-001/seed-0/checkpoints")
    found = report("sweep", "sweep-001", "--engine", "serial")
    hashes = [row["params_sha256"] for row in found["runs"]]
    assert [len(each) for each in hashes] == [0, 64]


# --- the numbers of a setting, by hand ------------------------------------------------------------


def test_the_steps_to_the_win_are_those_of_winners_and_the_interval_is_the_medians(tmp_path):
    """Of seven values the median of a resample is one of the values.

    It is the smallest with probability 1.0 %, and at most the second with 11.8 %: the interval goes
    from the second to the sixth. That of a mean would be nowhere near.
    """
    won = {"steps": [100, 210, 330, 460, 600, 750, 90_000], "seconds": [1, 2, 4, 7, 11, 16, 9000]}
    lost = {"steps": [1, 500_000, 500_001], "seconds": [0.1, 50_000, 50_001]}
    steps, seconds = ([*won[name], *lost[name]] for name in ("steps", "seconds"))
    records = []
    for seed in range(10):
        config = toy_config("classic", seed=seed, updates=1, until_return=18.0)
        run = RunDirectory.create(tmp_path / f"seed-{seed}", config)
        times = {"timing": {"wall_seconds": float(seconds[seed])}}
        run.metrics.append({"update": 1, "steps": steps[seed]} | times)
        final = {"is_won": seed < 7, "target": 18.0} | times
        run.evaluations.append(toy_evaluation(1, 19.0 if seed < 7 else -15.0, **final))
        records.append(Record.read(run.path))
    (setting,) = summarize(records)["settings"]
    assert (setting["done"], setting["won"]) == (10, 7)
    assert setting["steps"] == {"median": 460.0, "ci95": (210.0, 750.0)}
    assert setting["seconds"] == {"median": 7.0, "ci95": (2.0, 16.0)}
    assert setting["final_return"]["median"] == 19.0


def test_of_two_copies_of_a_seed_the_one_that_has_come_further_counts(tmp_path):
    for names in (("short", "long"), ("long", "short")):
        records = []
        for name in names:
            run = RunDirectory.create(tmp_path / names[0] / name, toy_config("classic"))
            for update in range(1, 2 + (name == "long")):
                run.metrics.append({"update": update, "steps": 100 * update})
            records.append(Record.read(run.path))
        (setting,) = make_settings(records)
        assert [record.name for record in setting.records] == ["long"]


def test_a_sweeps_text_says_how_many_won_of_those_that_are_done_in_one_column():
    summary = {"median": 90.0, "ci95": (60.0, 120.0)}
    won = {"label": "gamma=0.9", "won": 3, "done": 4, "trainings": 9, "seconds": summary}
    won |= {"steps": summary, "final_return": {"median": 18.0, "ci95": None}}
    lost = {"label": "", "won": 0, "done": 1, "trainings": 1, "steps": None}
    runs = [{"is_done": True}, {"is_done": False}]
    lost |= {"seconds": None, "final_return": None}
    facts = {"settings": [won, lost], "suites": [], "runs": runs, "sweep": "s", "resume": "go on"}
    assert describe_sweep(facts).splitlines() == [
        "gamma=0.9",
        "won                  3 of 4",
        "median time          1:30 (1:00 to 2:00)",
        "median steps         90 (60 to 120)",
        "median final return  +18.00",
        "won                  0 of 1",
        "1 run left to train; continue with:",
        "  go on",
        "saved in s",
    ]
