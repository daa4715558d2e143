"""A run's record: what it says is what the files say; and the list of the runs on this disk."""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from accidents import planted
from toys import toy_config, toy_evaluation, with_updates

from pixelpong.errors import WorkerError
from pixelpong.faces.report import describe_runs
from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory
from pixelpong.run.record import Record
from pixelpong.sweeps.sweep import create_sweep, make_rows


def test_a_record_is_the_lines_of_the_files(toy_runs, mode):
    run = RunDirectory(toy_runs[mode])
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
    last, told = lines[-1], found.to_dict()
    for name in ("update", "steps", "episodes", "estimated_return", "mean_return_100"):
        assert told[name] == last[name]
    assert told["training_seconds"] == last["timing"]["training_seconds"] <= told["total_seconds"]
    key, other = ("sampled", "greedy") if mode == "atari" else ("greedy", "sampled")
    assert (told[key], told[other]) == (found.evaluation.in_short(), None)
    assert found.evaluation.mean_in_words in found.summary
    json.dumps(told, allow_nan=False)


# --- states -----------------------------------------------------------------------------------


@pytest.fixture
def trained(make_run) -> RunDirectory:
    run = make_run()
    train(run)
    return run


def test_a_run_is_training_stopped_or_interrupted(trained, make_run):
    found = Record.read(trained.path)
    assert (found.state, found.update, found.steps > 0) == ("stopped", 3, True)
    assert found.summary.startswith("budget spent at update 3")
    assert found.bytes == sum(p.stat().st_size for p in trained.path.rglob("*") if p.is_file())
    with trained.lock():
        found = Record.read(trained.path)
        assert (found.state, found.summary[:18]) == ("training", "training, update 3")
    with_updates(trained, 9).write_config(3)
    for run, update in ((trained, 3), (make_run("new"), 0)):
        found = Record.read(run.path)
        assert (found.state, found.update) == ("interrupted", update)


def test_a_run_that_passed_the_test_of_its_target_has_won_and_has_won_for_good(trained):
    config = trained.config.updated({"until_return": 18.0, "updates": 3}, "test")
    trained.with_config(config).write_config(3)
    for mean, is_won, words in ((18.2, False, "not won: "), (18.6, True, "won: ")):
        trained.evaluations.append(toy_evaluation(3, mean, target=18.0, is_won=is_won))
        found = Record.read(trained.path)
        assert found.state == ("won" if is_won else "stopped")
        assert found.evaluation.mean_return == found.best_known == mean
        said = f"greedy return +{mean:.2f} (+{mean - 0.5:.2f} to +{mean + 0.5:.2f}) over 200 games"
        assert found.summary.startswith(words)
        assert said + ", target +18.0" in found.summary
        reached = [found.has_reached(target) for target in (17.0, 18.0, 18.1, None)]
        assert reached == [is_won, is_won, False, False]
    trained.evaluations.append(toy_evaluation(4, 3.0))  # a longer training finds it
    assert Record.read(trained.path).state == "won"


@pytest.mark.parametrize("end", ["stopped", "failed", "interrupted"])
@pytest.mark.parametrize("target", [19.0, None])
@pytest.mark.parametrize("is_tested", [False, True])
def test_a_run_that_won_and_went_on_is_what_became_of_it(trained, report, end, target, is_tested):
    """Everywhere: in the list, as JSON, and for a sweep, which trains what is left."""
    won = trained.config.updated({"until_return": 18.0, "updates": 3}, "test")
    trained.with_config(won).write_config(3)
    times = {"timing": {"wall_seconds": 5.0}}
    trained.evaluations.append(toy_evaluation(2, 18.6, target=18.0, is_won=True) | times)
    assert (Record.read(trained.path).state, Record.read(trained.path).is_done) == ("won", True)
    updates = 9 if end == "interrupted" else 3
    raised = won.updated({"until_return": target, "updates": updates}, "test")
    trained.with_config(raised).write_config(3)
    if is_tested:
        trained.evaluations.append(toy_evaluation(3, 17.0, target=target))
    if end == "failed":
        (trained.path / "failure.json").write_text('{"error": "it failed"}')
    found = Record.read(trained.path)
    assert (found.state, found.is_won) == (end, False)
    assert found.is_done == (end == "stopped" and (is_tested or target is None))
    shown = report("runs", trained.path)
    assert (shown["state"], shown["target"]) == (end, target)
    assert not shown["verdict"].startswith("won")
    assert ("it has won the target +18.0 before" in shown["verdict"]) == is_tested
    assert shown["greedy"]["mean_return"] == found.best_known == (17.0 if is_tested else 18.6)
    (row,) = make_rows([found])
    assert (row["is_won"], row["is_done"], row["seconds"]) == (
        False, found.is_done, found.total_seconds,
    )  # fmt: skip


@pytest.mark.parametrize(("games", "has_interval"), [(1, False), (9, False), (10, True)])
def test_with_few_games_there_is_no_interval_in_text_nor_as_json(trained, games, has_interval):
    line = toy_evaluation(3, 1.0) | {"returns": [1.0] * games}
    trained.evaluations.append(line)
    found = Record.read(trained.path)
    ends = [found.evaluation.to_dict()["ci95"], found.to_dict()["greedy"]["ci95"]]
    (row,) = make_rows([found])
    ends += [row["final_low"], row["final_high"]]
    assert [end is not None for end in ends] == [has_interval] * 4
    assert ("too few games" in str(found.evaluation)) != has_interval
    assert found.evaluation.to_line()["ci95"] == (0.5, 1.5), "a run's own line always has it"


@pytest.mark.parametrize(("folder", "path", "name"), [
    (".", "s/seed-0", "s/seed-0"), ("s", "seed-0", "s/seed-0"), ("s/seed-0", ".", "s/seed-0"),
    ("s", "../s/seed-0", "s/seed-0"), ("s/seed-0", "../seed-0", "s/seed-0"),
    (".", "run", "run"), ("run", ".", "run"), ("s", "../run", "run"),
])  # fmt: skip
def test_a_run_has_its_name_from_wherever_it_is_read(
    make_run, tmp_path, monkeypatch, folder, path, name
):
    create_sweep(tmp_path / "s", [make_run().config])
    monkeypatch.chdir(tmp_path / folder)
    assert Record.read(Path(path)).name == name


def test_a_training_that_an_error_ended_has_failed_until_it_goes_on(make_run):
    """As it starts, and in an update."""
    run, error = make_run(), WorkerError("expected a worker\n, got\x1b[2J none; a test")
    for place in ("pixelpong.loop:make_engine", "pixelpong.play.worker:Worker.play"):
        with planted(place, 1, Mock(side_effect=error)), pytest.raises(WorkerError):
            train(run)
        found = Record.read(run.path)
        assert found.state == "failed"
        assert found.problem == "expected a worker , got?[2J none; a test"
    train(run)
    assert Record.read(run.path).state == "stopped"


DAMAGES = {
    "config.json": [b"", b"{", b"[]", b'{"format": 3, "config": {}}', b'{"format": 9}', b"\xff"],
    "metrics.jsonl": [b"", b"{", b'{"update": -1}\n', b'{"update": 1, "steps": "many"}\n'],
    "evaluations.jsonl": [b"{}\n", b'{"update": 3, "mean_return": 1e9, "ci95": [0, 0]}\n'],
    "failure.json": [b"", b"{}", b'{"error": 3}', b'{"error": "' + b"x" * 9999 + b'"}'],
    "run.lock": [b"", b"many\n", b"-1", b"0"],
}


def test_damage_anywhere_is_a_row_of_the_list_and_never_an_error(trained):
    for name, contents in DAMAGES.items():
        before = (trained.path / name).read_bytes() if (trained.path / name).exists() else b""
        for content in contents:
            (trained.path / name).write_bytes(content)
            found = Record.read(trained.path)
            assert (found.state == "damaged") == (name == "config.json")
            assert ("another version wrote it (format 9)" in found.problem) == (b": 9}" in content)
            lines = describe_runs({"runs": [found.to_dict()], "sweeps": []}).split("\n")
            assert all(line.isprintable() and len(line) <= 80 for line in lines)
            json.dumps(found.to_dict(), allow_nan=False)
        (trained.path / name).write_bytes(before)
    for name in ("metrics.jsonl", "failure.json"):  # neither can be read
        (trained.path / name).unlink(missing_ok=True)
        (trained.path / name).mkdir()
    assert Record.read(trained.path).state in ("interrupted", "damaged")


# --- the list ---------------------------------------------------------------------------------


def test_the_list_is_of_folders_or_of_runs_and_sorted(make_run, tmp_path, report, call):
    for words, where in (((), "runs"), ((tmp_path,), tmp_path)):
        said = f"There are no runs in {where}; train one: pixelpong train\n"
        assert call("runs", *words)[:2] == (0, said)
    for name, seed, updates in (("a", 2, 1), ("b", 1, 2)):
        train(make_run(f"runs/{name}", seed=seed, updates=updates))

    def listed(*words):
        return [Path(each["run"]).name for each in report("runs", *words)["runs"]]

    assert listed() == ["b", "a"], "the newest first"
    assert (listed("--sort", "return"), listed("--sort", "size")) == (["a", "b"], ["b", "a"])
    assert listed("--sort", "name") == listed("runs/", "--sort", "name") == ["a", "b"]
    assert listed("runs/a", "b") == ["b", "a"]
    code, out, _ = call("runs")
    assert (code, "2 runs, " in out) == (0, True)
    assert max(map(len, out.splitlines())) <= 80
    assert max(map(len, describe_runs(report("runs"), 40).splitlines())) <= 40


def test_a_sweep_is_one_line_of_the_list_and_its_runs_are_listed_by_its_name(report, call):
    create_sweep(Path("runs/sweep-001"), [toy_config("classic", seed=k) for k in (0, 1)])
    (told,) = report("runs")["sweeps"]
    assert (told["won"], told["trainings"], told["done"]) == (0, 2, 0)
    assert call("runs")[1].splitlines()[1].split()[:5] == ["sweep-001", "won", "0", "of", "2"]
    assert len(report("runs", "sweep-001")["runs"]) == 2
