"""The command line as people use it: what it prints, where, and how it exits."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from toys import toy_config

import pixelpong
from pixelpong.config import OPTIONS
from pixelpong.faces.cli import COMMANDS, fold, main, parse
from pixelpong.loop import train
from pixelpong.machine import count_cores
from pixelpong.play.worker import Worker
from pixelpong.run.arrays import fingerprint
from pixelpong.run.directory import RunDirectory
from pixelpong.sweep.sweep import create_sweep, read_sweep

TOY = [
    "--max-frames", "300", "--hidden", "10", "--batch-size", "2", "--engine", "serial",
    "--preset", "classic",
]  # fmt: skip
PIXELPONG = [sys.executable, "-m", "pixelpong"]
GOLDEN = Path(__file__).with_name("help.txt")


@pytest.fixture
def trained(call, toy_runs, tmp_path) -> Path:
    """A run of twelve updates in the folder ``run``, and again as ``runs/fast-001``."""
    for name in ("run", "runs/fast-001"):
        shutil.copytree(toy_runs["classic"], tmp_path / name)
    return tmp_path / "run"


# --- help -------------------------------------------------------------------------------------


def test_every_help_is_the_recorded_one(call, monkeypatch):
    """With ``PIXELPONG_UPDATE_GOLDEN=1`` it is recorded again; Pythons differ in white space."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = ["", "--help", *(f"{name} --help" for name in COMMANDS), "train --help-all"]
    helps = [call(*line.split()) for line in lines]
    assert {(code, err) for code, _, err in helps} == {(0, "")}
    told = [f"$ pixelpong {line}".strip() + f"\n{out}" for line, (_, out, _) in zip(
        lines, helps, strict=True)]  # fmt: skip
    if os.environ.get("PIXELPONG_UPDATE_GOLDEN"):
        GOLDEN.write_text("\n".join(told), "utf-8")

    def words(text: str) -> str:  # from Python 3.13 on, a short flag has no metavar
        return "".join(re.sub(r"(-\w) [A-Z]+, --", r"\1, --", text).split())

    assert words("\n".join(told)) == words(GOLDEN.read_text("utf-8"))
    assert all(re.search(rf"{each.flag}\b", told[-1]) for each in OPTIONS.values())
    assert call("help", "train") == helps[lines.index("train --help")]


def test_every_help_fits_the_terminal_and_its_examples_parse(call, tmp_path, monkeypatch):
    (tmp_path / "mine.toml").touch()
    monkeypatch.setenv("COLUMNS", "40")
    for name in ("", *COMMANDS):
        about, _, examples = call(*name.split(), "--help")[1].partition("examples:\n")
        assert max(map(len, about.splitlines()[1:])) <= 40
        lines = [line.strip() for line in examples.splitlines()]
        assert bool(lines) == bool(name)
        for line in lines:
            assert line.startswith(f"pixelpong {name}")
            parse(line.split()[1:])


def test_it_tells_its_version_those_of_its_libraries_and_the_machine(call, report):
    told = report("version")
    assert (told["cores"] >= 1, {*told["machine"]}) == (True, {"processor", "system", "arch"})
    for word in ("--version", "-V", "version"):
        code, out, err = call(word)
        assert (code, err) == (0, "")
        assert out.startswith(f"pixelpong {pixelpong.__version__}\n")
        assert told["versions"]["numpy"] in out


@pytest.mark.parametrize(
    ("limit", "cores"),
    [("150000 100000", 1), ("400000 100000", 4), ("max 100000", 64), ("", 64), (None, 64)],
)
def test_the_limit_of_the_container_holds_if_there_is_one(tmp_path, monkeypatch, limit, cores):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(64))
    if limit is not None:
        (tmp_path / "cpu.max").write_text(limit)
    assert count_cores(tmp_path / "cpu.max") == cores


# --- words ------------------------------------------------------------------------------------


def test_words_are_read():
    for line, given in {
        "train --batch_size=3 --until-return=-0.5": {"batch_size": 3, "until_return": -0.5},
        "train --sticky 0 --preset ray": {"sticky": 0.0, "preset": "ray"},
        "train --verbose --no-verbose --seed 1 --seed 2": {"verbose": False, "seed": 2},
        "resume --workers 2 -- -run": {"workers": 2},
        "evaluate --seed 3 run --sticky .5": {"seed": 3, "sticky": 0.5},
        "plot --kind health -- -a b": {"kind": "health"},
        "train -s 5 -q": {"seed": 5, "quiet": True},
        "plot a --debug --json": {},
    }.items():
        assert parse(line.split())[2] == given
    assert parse(["plot", "--out", "x", "--", "-a", "b"])[1] == ["-a", "b"]


# --- what the commands do ---------------------------------------------------------------------


def test_every_command_finds_a_run_by_the_same_words(report, trained, tmp_path):
    (tmp_path / "package").mkdir()  # an agent in the package has this name
    assert report("resume", "fast-001", "--updates", "13")["run"] == "runs/fast-001"
    for word in ("runs/fast-001", "fast-001", "latest", "./runs/fast-001/"):
        assert report("runs", word)["run"] == "runs/fast-001"
        assert report("evaluate", word, "--episodes", "1")["agent"] == "runs/fast-001"
        assert pixelpong.Run(word).path == Path("runs/fast-001")


def test_a_named_count_replaces_all_counts_and_the_target_stays(call, tmp_path):
    target = ["--until-return", "20", "--updates", "3"]
    assert call("train", *TOY, *target, "--run", "run", "-q")[0] == 0
    for words, updates, episodes in (("--updates 4", 4, None), ("--episodes 9", None, 9)):
        assert call("resume", "run", *words.split(), "-q")[0] == 0
        budget = RunDirectory(tmp_path / "run").config
        assert (budget.updates, budget.episodes, budget.until_return) == (updates, episodes, 20)


@pytest.mark.slow
def test_an_exported_agent_is_taken_wherever_a_run_is(report, trained):
    assert report("export", "run", "--out", "b.safetensors")["update"] == 12
    assert report("export", "champion", "--out", "a.safetensors")["bytes"] > 1e6
    words = ["a.safetensors", "--episodes", "1", "--sticky", "0", "--engine", "serial"]
    assert report("evaluate", *words)["returns"] == [21.0]
    assert pixelpong.Policy.load("a.safetensors").algorithm == "ppo"


def test_a_run_is_shown_with_its_hashes_and_a_damaged_checkpoint_is_found(call, report, trained):
    told = report("runs", "run")
    store = RunDirectory(trained).checkpoints
    newest = store.load(12)
    assert told["params_sha256"] == newest.card["about"]["params_sha256"]
    assert told["state_sha256"] == fingerprint(newest.arrays)
    assert (told["update"], told["episodes"], told["config"]["hidden"]) == (12, 36, 8)
    assert 0 < told["training_seconds"] <= told["total_seconds"]
    lines = call("runs", "run")[1].splitlines()
    assert lines[0].split()[1:6] == ["budget", "spent", "at", "update", "12;"]
    assert f"params       {told['params_sha256']}" in lines
    listed = ", ".join(map(str, store.updates()))
    assert f"checkpoints  {listed} (SHA-256 verified)" in lines
    store.path(12).write_bytes(store.path(12).read_bytes()[:-1] + b"x")
    code, out, _ = call("runs", "run")
    assert code == 1
    assert re.search(r"^damaged +.*000012", out, flags=re.M)


def test_evaluate_reports_as_python_does(call, report, trained):
    words = ["evaluate", "run", "--episodes", "5", "--seed", "3"]
    for sampled in (False, True):
        more = ["--sampled"] * sampled
        told = report(*words, *more, "--workers", "2")
        found = pixelpong.evaluate("run", 5, seed=3, sampled=sampled)
        assert list(found.returns) == told["returns"]
        out = call(*words, *more, "--engine", "serial")[1]
        assert out == f"{found}\n"
    assert re.search(r"mean return −?\d+\.\d\d \(too few games for an interval\) over 5 games", out)
    assert "update 12: sampled play on ALE/Pong-v5, seed 3" in out


def test_a_quiet_training_says_how_it_ended_on_one_line(call):
    words = ["train", *TOY, "--updates", "1", "--run"]
    _, out, err = call(*words, "my runs/a 1", "-q")
    assert (out.count("\n"), err) == (1, "")
    assert out.startswith("budget spent (updates): update 1, 2 episodes, ")
    assert out.endswith("saved in 'my runs/a 1'\n")
    line = call(*words, "my runs/a 2")[1].split("continue with:\n")[1]
    assert shlex.split(line) == ["pixelpong", "resume", "my runs/a 2", "--updates", "2"]
    assert "`pixelpong resume 'my runs/a 1'`" in call("train", *TOY, "--run", "my runs/a 1")[2]


@pytest.mark.slow
def test_verify_prints_a_table_of_hashes_and_fails_when_the_bits_differ(call, report, monkeypatch):
    words = ["verify", *TOY[:2], "--updates", "2", "--batch-size", "2", "--presets", "classic"]
    told = report(*words)
    assert told["is_equal"] is True
    code, out, _ = call(*words, "--engines", "serial")
    first, *_, verdict = out.splitlines()
    assert (code, first.endswith("memory, reward and picture as on ALE")) == (0, True)
    assert verdict.endswith("gave the same bits")
    real, count = Worker.play, iter(range(1000))

    def play(self, item, params):  # not a pure function of its item
        result = real(self, item, params)
        result.grads.W2[0] += 1e-3 * next(count)
        return result

    monkeypatch.setattr(Worker, "play", play)
    code, out, _ = call(*words, "--engines", "serial")
    assert (code, "DIFFERENT" in out) == (1, True)


# --- what goes wrong --------------------------------------------------------------------------


def test_debug_shows_the_traceback_and_the_workers_and_a_bug_is_one_line_too(
    call, trained, monkeypatch
):
    assert "Traceback" in call("resume", "none", "--debug")[2]

    def play(self, item, params):
        if item.update:  # the first thing that is played compiles
            raise RuntimeError("planted")

    monkeypatch.setattr(Worker, "play", play)
    code, _, err = call("resume", "run", "--updates", "14")
    assert (code, len(err.splitlines())) == (1, 1)
    assert "Item(purpose='train', seed=0, update=13, index=0" in err
    err = call("resume", "run", "--updates", "14", "--debug")[2]
    assert "In the worker:" in err
    assert 'raise RuntimeError("planted")' in err
    monkeypatch.setattr(RunDirectory, "__init__", lambda *_: 1 / 0)
    code, _, err = call("plot", "run")
    assert (code, len(err.splitlines())) == (1, 1)
    assert "ZeroDivisionError: division by zero" in err
    assert "--debug" in err


# --- the terminal -----------------------------------------------------------------------------


PRINTING = [
    "runs", "runs run", "runs run --json", "evaluate run --episodes 1", "plot run", "export run",
    "record run --scale 1 --seconds 0.1", "resume run --updates 13 -q", "sweep s --engine serial",
    f"train {' '.join(TOY)} --updates 1 -q", "help train",
    "tournament perfect person --games 2 --points 1 --workers 1",
    "verify --max-frames 300 --updates 1 --presets classic --engines serial",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("line", PRINTING, ids=lambda line: line[:20])
def test_a_reader_that_has_gone_ends_any_command_in_silence(
    line, trained, tmp_path, monkeypatch, capsys
):
    read_end, write_end = os.pipe()
    os.close(read_end)
    sweep = create_sweep(tmp_path / "s", [toy_config("classic", updates=1)])
    train(read_sweep(sweep)[0].run)
    with contextlib.suppress(BrokenPipeError), os.fdopen(write_end, "w") as gone:
        monkeypatch.setattr(sys, "stdout", gone)
        assert (main(line.split()), sys.stdout) == (1, None)
    assert capsys.readouterr().err == ""
    serving = {"dashboard", "watch", "play"}
    assert {each.split()[0] for each in PRINTING} - {"help"} == {*COMMANDS} - serving


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [[], ["--help"], ["train", *TOY, "--updates", "2", "--run", "run", "-q"]]
)
def test_output_that_cannot_be_written_is_one_line_and_what_was_trained_is_saved(words, tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*PIXELPONG, *words], cwd=tmp_path, env=environment,
            stdout=full, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    assert done.returncode == 1
    assert re.fullmatch("pixelpong: error: .*No space left on device.*\n", done.stderr)
    if "train" in words:
        assert RunDirectory(tmp_path / "run").checkpoints.updates()[-1] == 2


@pytest.mark.slow
def test_no_name_of_a_run_reaches_the_terminal_as_control_codes(call, toy_runs):
    run = "some/\x1b[2Jx\ny\u202eabc\udcff[red]z"
    shutil.copytree(toy_runs["classic"], run)
    for line in (
        "runs", "plot", "evaluate --episodes 1", "resume", "resume --updates 13", "export",
        "resume --seed 9", "evaluate --checkpoint 99", "record --scale 1 --seconds 0.1",
    ):  # fmt: skip
        command, *more = line.split()
        _, out, err = call(command, run, *more)
        assert (out + err).replace("\n", "").isprintable(), line
        assert out + err
    assert call("runs", "some")[1].count("\n") == 3, "the head, the run, the sum"


def test_a_terminals_lines_break_between_words_and_commands_can_be_pasted():
    command = "pixelpong resume runs/a-run-with-a-name --total-timesteps 10000000"
    text = f"saved in runs/a-run-with-a-name; continue with:\n  {command}\n" + "word " * 40
    lines = fold(text, 40).split("\n")
    assert max(len(line) for line in lines if command not in line) <= 40
    assert f"  {command}" in lines
    assert not any(line.endswith(("-", "runs/")) for line in lines)
