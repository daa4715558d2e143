"""The runs on this disk: their states, the list, removing, pruning, notes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from toys import result_of, toy_config, with_updates

from pixelpong.config.presets import load_preset
from pixelpong.errors import ConfigError, RunError, WorkerError
from pixelpong.faces import runs
from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory
from pixelpong.run.summary import summarize


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """A folder of one's own, in which ``runs`` is."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make(name: str, preset: str = "classic", **changes) -> RunDirectory:
    return RunDirectory.create(Path("runs") / name, toy_config(preset, **changes), [].append)


def evaluation(update: int, mean: float, games: int, **more) -> dict:
    ends = [mean - 0.5, mean + 0.5]
    return {"update": update, "mean_return": mean, "ci95": ends, "returns": [mean] * games} | more


@pytest.fixture
def trained(here) -> RunDirectory:
    run = make("toy", updates=3)
    train(run)
    return run


# --- states -----------------------------------------------------------------------------------


def test_a_run_whose_budget_is_spent_is_stopped(trained):
    found = summarize(trained.path)
    assert (found.state, found.update, found.steps > 0) == ("stopped", 3, True)
    assert found.verdict.startswith("budget spent at update 3")
    assert found.bytes == sum(p.stat().st_size for p in trained.path.rglob("*") if p.is_file())


def test_a_run_that_can_go_on_is_interrupted(trained):
    with_updates(trained, 9).write_config(3)
    assert summarize(trained.path).state == "interrupted"
    new = make("new")
    assert (summarize(new.path).state, summarize(new.path).update) == ("interrupted", 0)


def test_a_run_at_work_is_training(trained):
    with trained.lock():
        found = summarize(trained.path)
        assert (found.state, found.verdict[:18]) == ("training", "training, update 3")
    assert summarize(trained.path).state == "stopped"


VERDICTS = {
    "confirmed": (evaluation(3, 18.6, 200, target=18.0, is_won=True), "won"),
    "not confirmed": (evaluation(3, 18.2, 200, target=18.0, is_won=False), "stopped"),
    "of an older version": (evaluation(3, 18.6, 200), "won"),
    "of an older version, a look": (evaluation(3, 19.6, 40), "stopped"),
    "of an older version, too low": (evaluation(3, 18.4, 200), "stopped"),
}


@pytest.mark.parametrize(("line", "state"), VERDICTS.values(), ids=VERDICTS)
def test_a_run_with_a_verdict_above_its_target_has_won(trained, line, state):
    config = trained.config.updated({"until_return": 18.0, "updates": 3}, "test")
    trained.with_config(config).write_config(3)
    trained.evaluations.append(line)
    found = summarize(trained.path)
    assert found.state == state
    assert found.greedy.mean == found.best_known == line["mean_return"]
    assert found.greedy.is_won == (state == "won")
    said = f"greedy return +{line['mean_return']:.1f} over {len(line['returns'])} games"
    assert found.verdict.startswith("won: " + said if state == "won" else "not won: ")
    assert said in found.verdict
    # A win stays one, whatever a longer training finds later.
    trained.evaluations.append(evaluation(4, 3.0, 10))
    assert summarize(trained.path).state == state


def test_a_training_that_an_error_ended_has_failed_until_it_goes_on(here, monkeypatch):
    run = make("toy", updates=3)
    with monkeypatch.context() as patch:

        def fail(self, results):
            raise WorkerError("expected a worker\n, got\x1b[2J none; this is a test")

        patch.setattr("pixelpong.learners.reinforce.ReinforceLearner.apply", fail)
        with pytest.raises(WorkerError):
            train(run)
    found = summarize(run.path)
    assert found.state == "failed"
    assert found.problem == "expected a worker , got?[2J none; this is a test"
    train(run)
    assert summarize(run.path).state == "stopped"


DAMAGES = {
    "config.json": [b"", b"{", b"[]", b'{"format": 9}', b"\xff" * 99],
    "metrics.jsonl": [b"", b"{", b'{"update": -1}\n', b'{"update": 1, "steps": "many"}\n'],
    "evaluations.jsonl": [b"{}\n", b'{"update": 3, "mean_return": 1e9, "ci95": [0, 0]}\n'],
    "failure.json": [b"", b"{}", b'{"error": 3}', b'{"error": "' + b"x" * 9999 + b'"}'],
    "note.txt": [b"\xff\x00\x1b[2J", b"a\nb"],
    "run.lock": [b"", b"many\n", b"-1", b"0"],
}


@pytest.mark.parametrize(
    ("name", "content"), [(name, each) for name, many in DAMAGES.items() for each in many]
)
def test_damage_anywhere_is_a_row_of_the_list_and_never_an_error(trained, name, content):
    (trained.path / name).write_bytes(content)
    (found,) = runs.list_summaries([Path("runs")])
    assert (found.state == "damaged") == (name == "config.json")
    text = runs.describe_list([found])
    assert text.isprintable() or all(line.isprintable() for line in text.split("\n"))
    assert max(map(len, text.split("\n"))) <= 80
    json.dumps(runs.report_list([found]), allow_nan=False)


def test_files_that_cannot_be_read_are_no_error(trained):
    for name in ("metrics.jsonl", "note.txt", "failure.json"):
        (trained.path / name).unlink(missing_ok=True)
        (trained.path / name).mkdir()
    shutil.rmtree(trained.path / "checkpoints")
    assert summarize(trained.path).state in ("interrupted", "damaged")


# --- the list ---------------------------------------------------------------------------------


def test_the_list_sorts_and_filters(here, report, call):
    for name, seed, changes in (("a", 2, {"updates": 1}), ("b", 1, {"updates": 2})):
        train(make(name, seed=seed, **changes))
    runs.write_note(Path("runs/a"), "Twice the rate")

    def listed(*words):
        return [Path(each["run"]).name for each in report("runs", *words)["runs"]]

    assert listed() == ["b", "a"], "the newest first"
    assert listed("--sort", "seed") == listed("--sort", "steps") == ["b", "a"]
    assert listed("--sort", "name") == ["a", "b"]
    assert listed("--filter", "twice") == ["a"]
    assert listed("--state", "stopped,won") == ["b", "a"]
    assert listed("--state", "training") == []
    assert listed("list", "runs", "runs/a") == ["b", "a"]
    code, out, _ = call("runs")
    assert code == 0
    assert "Twice the rate" in out
    assert "2 runs, " in out
    assert max(map(len, out.splitlines())) <= 80
    for words, said in {
        ("runs", "--state", "one"): "expected states of runs, got one; use some of training",
        ("runs", "--sort", "luck"): "--sort to be one of age, name",
        ("runs", "list", "nowhere"): "a folder of runs, got nowhere, which is not there",
        ("runs", "lst"): "did you mean list?",
    }.items():
        code, _, err = call(*words)
        assert code in (1, 2)
        assert said in err


def test_without_runs_the_list_says_how_to_begin(here, call):
    assert call("runs")[:2] == (0, "no runs here; train one: pixelpong train\n")


def test_a_list_of_chosen_runs_that_is_empty_says_that_there_may_be_others(here, call):
    chosen = call("runs", "--state", "won")[:2]
    assert chosen == (0, "no such runs here; see all: pixelpong runs\n")


@pytest.mark.slow
def test_the_list_is_quick_and_loads_no_compiler(trained):
    script = (
        "import sys, time; from pixelpong.faces.cli import main; main(['runs'])\n"
        "print(time.process_time(), *({'numba', 'llvmlite', 'ale_py', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    seconds, *heavy = done.stdout.splitlines()[-1].split()
    assert heavy == []
    assert float(seconds) < 1.0


# --- names and notes --------------------------------------------------------------------------


def test_a_run_has_a_name_and_a_note(here, call, monkeypatch):
    toy = ["--preset", "classic", "--max-frames", "300", "--hidden", "8", "--updates", "1"]
    assert call("train", "--name", "wide", "--note", "first try", *toy, "--quiet")[0] == 0
    assert summarize(Path("runs/wide")).note == "first try"
    assert call("runs", "note", "wide", "second thought")[0] == 0
    assert summarize(Path("runs/wide")).note == "second thought"
    assert call("runs", "note", "wide", "")[0] == 0
    assert not (Path("runs/wide") / "note.txt").exists()
    for words, said in {
        ("train", "--name", "../x"): "the name of a run, got '../x'",
        ("train", "--name", "latest"): "the name of a run, got 'latest'",
        ("train", "--name", "a", "--run", "b"): "expected --run or --name, got both",
        ("train", "--note", "x" * 201): "a note of at most 200 characters, got 201",
        ("runs", "note", "wide", "x" * 201): "a note of at most 200 characters, got 201",
    }.items():
        code, _, err = call(*words)
        assert (code, said in err) == (2, True), err
    assert [path.name for path in Path("runs").iterdir()] == ["wide"]


def test_a_number_between_others_is_not_given_again(here):
    numbers = []
    for removed in (None, 1, None, 2):
        run = RunDirectory.create(None, toy_config("classic"))
        numbers.append(run.path.name)
        if removed:
            runs.remove(Path(f"runs/classic-{removed:03d}"))
    assert numbers == ["classic-001", "classic-002", "classic-003", "classic-004"]


# --- removing ---------------------------------------------------------------------------------


def test_rm_asks_and_removes(trained, call, monkeypatch):
    code, _, err = call("runs", "rm", "toy")
    assert (code, "give --yes" in err) == (2, True)
    assert trained.path.exists()
    code, out, _ = call("runs", "rm", "toy", "--yes")
    assert (code, out[:16]) == (0, "removed runs/toy")
    assert list(Path("runs").iterdir()) == []


def test_a_run_that_is_being_trained_is_neither_removed_nor_pruned(trained, call):
    with trained.lock():
        for words in (["rm", "toy", "--yes"], ["prune", "toy"]):
            code, _, err = call("runs", *words)
            assert (code, "expected runs/toy to be free, got a training" in err) == (1, True), err
    assert summarize(trained.path).state == "stopped"


def test_rm_follows_no_link(trained, here, call):
    outside = here / "outside"
    outside.mkdir()
    (outside / "mine").write_text("mine")
    (trained.path / "link").symlink_to(outside)
    Path("runs/linked").symlink_to(trained.path.resolve())
    code, _, err = call("runs", "rm", "linked", "--yes")
    assert (code, "which is a link" in err) == (1, True)
    assert call("runs", "rm", "toy", "--yes")[0] == 0
    assert (outside / "mine").read_text() == "mine"


def test_rm_refuses_what_holds_other_runs_or_is_no_run(trained, call):
    inner = trained.path / "inner"
    shutil.copytree(trained.path, inner)
    Path("runs/other").mkdir()
    for name, said in (
        ("toy", "which holds other runs (inner)"),
        ("other", "got other, which is not one"),
    ):
        code, _, err = call("runs", "rm", name, "--yes")
        assert (code, said in err) == (1, True), err
    assert inner.exists()


def test_a_removal_that_is_killed_leaves_no_half_of_a_run(trained, monkeypatch):
    def kill(path, **kwargs):
        if Path(path).exists():
            (Path(path) / "metrics.jsonl").unlink()
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", kill)
        with pytest.raises(Killed):
            runs.remove(trained.path)
    assert runs.list_summaries([Path("runs")]) == []
    again = make("toy", updates=1)
    runs.sweep(Path("runs"))
    assert [path.name for path in Path("runs").iterdir()] == [again.path.name]


# --- pruning ----------------------------------------------------------------------------------


@pytest.fixture
def long(here) -> RunDirectory:
    """Eight updates with milestones at each; the best is not among the last."""
    run = make("long", "fast", updates=8, milestone_every=1, evaluate_every=2, evaluate_episodes=2)
    train(run)
    return run


@pytest.mark.slow
def test_a_pruned_run_is_smaller_and_goes_on_to_the_same_bits(long):
    whole = Path("runs/whole")
    shutil.copytree(long.path, whole)
    report = runs.prune(long.path, keep=1)
    assert report["freed"] == report["before"] - report["after"] > 0
    best = RunDirectory.open(whole).checkpoints.load_best().update
    assert long.checkpoints.updates() == sorted({0, best, 8})
    assert long.milestones.updates() == [0, 1, 2, 4, 8]
    for path in (long.path, whole):
        train(with_updates(RunDirectory.open(path), 10))
    assert result_of(RunDirectory.open(long.path)) == result_of(RunDirectory.open(whole))


@pytest.mark.slow
def test_prune_removes_nothing_if_the_newest_is_damaged(long, call):
    long.checkpoints.path(8).write_text("damaged")
    before = long.checkpoints.updates()
    with pytest.raises(RunError, match="expected a sound newest checkpoint .* resume the run"):
        runs.prune(long.path, keep=1)
    assert long.checkpoints.updates() == before
    train(make("sound", updates=1))
    code, out, _ = call("runs", "prune")
    assert (code, "runs/long: left as it is: expected a sound newest" in out) == (1, True)
    assert "runs/sound: 0.0 MB" in out


class Killed(BaseException):
    """In place of SIGKILL: nothing of ours catches it."""


def kill_at(stop_at: int, count, real):
    """A function that is killed if it is the call of this number, of all that share `count`."""

    def call(*args, **kwargs):
        if next(count) == stop_at:
            raise Killed
        return real(*args, **kwargs)

    return call


@pytest.mark.slow
def test_a_prune_that_is_killed_at_any_rename_or_removal_loses_nothing(long, monkeypatch):
    wanted, source = result_of(long), long.path
    for stop_at in range(12):
        shutil.rmtree("runs/copy", ignore_errors=True)
        run = RunDirectory.open(Path(shutil.copytree(source, "runs/copy")))
        count = iter(range(1000))
        with monkeypatch.context() as patch:
            for owner, name in ((shutil, "rmtree"), (Path, "rename"), (Path, "unlink")):
                killed = kill_at(stop_at, count, getattr(owner, name))
                patch.setattr(owner, name, killed)
            try:
                runs.prune(run.path, keep=1)
            except Killed:
                pass
            else:
                break
        assert result_of(RunDirectory.open(run.path)) == wanted
        runs.prune(run.path, keep=1)
        assert result_of(RunDirectory.open(run.path)) == wanted
    assert stop_at > 2


def test_wrong_keep_is_refused(trained, call):
    code, _, err = call("runs", "prune", "toy", "--keep", "0")
    assert (code, "--keep to be" in err) == (2, True)


@pytest.mark.slow
def test_a_run_that_is_killed_is_interrupted(here):
    """By the system, so that it has no time to say anything."""
    words = ["train", "--name", "k", "--preset", "classic", "--max-frames", "300"]
    child = subprocess.Popen(
        [sys.executable, "-m", "pixelpong", *words, "--episodes", "100000000"],
        stdout=subprocess.DEVNULL,
        env=os.environ,
    )
    try:
        deadline = time.monotonic() + 120
        while summarize(Path("runs/k")).update < 1 and time.monotonic() < deadline:
            time.sleep(0.2)
        assert summarize(Path("runs/k")).state == "training"
    finally:
        child.kill()
        child.wait()
    assert summarize(Path("runs/k")).state == "interrupted"
    with pytest.raises(ConfigError):
        runs.create_run(load_preset("classic"), name="")
