"""The command line as people use it: what it prints, where, and how it exits."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from accidents import planted
from toys import toy_config

import pixelpong
from pixelpong import verification
from pixelpong.atari.lockstep import Comparison, load_ale
from pixelpong.config import OPTIONS
from pixelpong.errors import ConfigError
from pixelpong.faces.cli import COMMANDS, main, parse
from pixelpong.faces.report import Result
from pixelpong.loop import train
from pixelpong.run.arrays import fingerprint
from pixelpong.run.directory import RunDirectory
from pixelpong.sweeps.sweep import create_sweep, read_sweep
from pixelpong.verification import compare_with_ale

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

    def entries(text: str) -> list[str]:
        """Each option, example or sentence on one line."""
        text = re.sub(r"(-\w) [A-Z]+, --", r"\1, --", text)  # as from Python 3.13 on
        return [" ".join(entry.split()) for entry in re.split(r"\n(?! {8})", text)]

    assert entries("\n".join(told)) == entries(GOLDEN.read_text("utf-8"))
    assert all(re.search(rf"{each.flag}\b", told[-1]) for each in OPTIONS.values())
    assert call("help", "train") == helps[lines.index("train --help")]


def test_every_help_fits_a_small_terminal_and_its_examples_are_of_its_command(call, monkeypatch):
    """`test_commands` runs the examples."""
    monkeypatch.setenv("COLUMNS", "40")
    for name in ("", *COMMANDS):
        about, _, examples = call(*name.split(), "--help")[1].partition("examples:\n")
        assert max(map(len, about.splitlines()[1:])) <= 40
        lines = [line.strip() for line in examples.splitlines()]
        assert bool(lines) == bool(name)
        for line in lines:
            assert line.startswith(f"pixelpong {name}")


def test_it_tells_its_version_those_of_its_libraries_and_the_machine(call, report):
    told = report("version")
    code, out, err = call("version")
    assert (code, err) == (0, "")
    assert out.startswith(f"pixelpong {pixelpong.__version__}\n")
    assert told["versions"]["numpy"] in out
    assert call("--version") == call("-V") == (code, out, err)
    assert set(told["machine"]) == {"processor", "system", "arch"}


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


def test_every_command_finds_a_run_by_the_same_words(report, trained, tmp_path):
    (tmp_path / "package").mkdir()  # an agent in the package has this name
    assert report("resume", "fast-001", "--updates", "13")["run"] == "runs/fast-001"
    for word in ("runs/fast-001", "fast-001", "latest", "./runs/fast-001/"):
        assert report("runs", word)["run"] == "runs/fast-001"
        assert report("evaluate", word, "--episodes", "1")["agent"] == "runs/fast-001"
        assert pixelpong.Run(word).path == Path("runs/fast-001")


@pytest.mark.slow
def test_an_exported_agent_is_taken_wherever_a_run_is(report):
    assert report("export", "champion", "--out", "a.safetensors")["file"] == "a.safetensors"
    words = ["a.safetensors", "--episodes", "1", "--sticky", "0", "--engine", "serial"]
    assert report("evaluate", *words)["returns"] == [21.0]
    assert pixelpong.Policy.load("a.safetensors").algorithm == "ppo"


def test_a_run_is_shown_with_its_hashes_and_a_damaged_checkpoint_is_found(call, report, trained):
    told = report("runs", "run")
    store = RunDirectory(trained).checkpoints
    newest = store.load(12)
    assert told["params_sha256"] == newest.card["about"]["params_sha256"]
    assert told["state_sha256"] == fingerprint(newest.arrays)
    assert (told["update"], told["config"]["hidden"]) == (12, 8)
    lines = call("runs", "run")[1].splitlines()
    assert lines[0].split()[1:6] == ["budget", "spent", "at", "update", "12;"]
    assert f"params       {told['params_sha256']}" in lines
    listed = ", ".join(map(str, store.updates()))
    assert f"checkpoints  {listed} (SHA-256 verified)" in lines
    store.path(12).write_bytes(store.path(12).read_bytes()[:-1] + b"x")
    code, out, _ = call("runs", "run")
    assert code == 1
    assert re.search(r"^damaged +.*000012", out, flags=re.M)


def test_evaluate_reports_as_python_does_for_a_run_a_path_and_a_policy(call, report, trained):
    words = ["evaluate", "run", "--episodes", "5", "--seed", "3"]
    ways = "run", pixelpong.Run("run"), pixelpong.Policy.load("run")
    for sampled in (False, True):
        more = ["--sampled"] * sampled
        told = report(*words, *more, "--workers", "2")
        out = call(*words, *more, "--engine", "serial")[1]
        for way in ways:
            found = pixelpong.evaluate(way, 5, seed=3, sampled=sampled)
            assert (list(found.returns), f"{found}\n") == (told["returns"], out)
    assert re.search(r"mean return −?\d+\.\d\d \(too few games for an interval\) over 5 games", out)
    assert "update 12: sampled play on ALE/Pong-v5 with at most 300 frames, seed 3" in out


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
def test_verify_says_what_of_a_game_was_compared(call, monkeypatch):
    monkeypatch.setattr("pixelpong.verification.STYLES", ("held",))
    code, out, _ = call("verify", "--game", "breakout", "--engines", "serial", "--updates", "1")
    assert (code, ": memory, rewards, lives, ends and 2," in out) == (0, True)
    assert out.splitlines()[0].endswith(" pictures as on ALE")
    assert out.endswith("\nbreakout: all 2 ways gave the same bits\n")


LIES = {
    "getScreen": (
        lambda screen: screen ^ (np.indices(screen.shape).sum(axis=0) == 0),
        "1 pixel of",
    ),
    "getRAM": (lambda memory: memory ^ (np.arange(memory.size) == memory.size - 1), "memory at "),
    "act": (lambda reward: reward + 1, "reward is "),
    "lives": (lambda lives: lives + 1, "lives"),
    "game_over": (lambda is_over: not is_over, "is_over is "),
    "getEpisodeFrameNumber": (lambda frames: frames + 1, " are counted, not "),
}
"""What ALE may answer wrongly, and the words with which it is told."""


@pytest.mark.parametrize("name", LIES)
def test_verify_finds_the_one_answer_in_which_any_game_differs_from_ale(call, monkeypatch, name):
    """The last one that is asked for, in the last style, and the first one, of the start."""
    told = Counter()

    def play(last):
        def load(game, flavour):
            ale = load_ale(game, flavour)
            asked = Mock(wraps=ale)

            def answer(*given):
                told[name] += 1
                result = getattr(ale, name)(*given)
                return LIES[name][0](result) if told[name] == last else result

            setattr(asked, name, answer)
            return asked

        monkeypatch.setattr("pixelpong.atari.lockstep.load_ale", load)
        told.clear()
        return call("verify", "--game", "breakout")

    few = functools.partial(compare_with_ale, frames=40)
    monkeypatch.setattr(verification, "compare_with_ale", few)
    code, out, _ = play(None)
    assert (code, "120 frames of breakout from " in out) == (0, True)
    assert told[name] >= (120 if name == "getScreen" else 1), "every picture"
    code, out, _ = play(told[name] - (name == "game_over"))
    assert (code, LIES[name][1] in out) == (1, True)
    assert ": DIFFERENT from ALE: " in out
    if name not in ("act", "game_over"):
        assert "the first start" in play(1)[1]


@pytest.mark.parametrize(
    ("differs_at", "odd", "words"),
    [
        (None, None, ["as on ALE", "same", "same", "all 3 ways gave the same bits"]),
        (7, None, ["DIFFERENT from ALE: frame 7", "same", "same", "all 3 ways"]),
        (None, 1, ["as on ALE", "DIFFERENT", "same", "the bits differ"]),
    ],
)
def test_verify_fails_if_one_way_or_one_frame_differs(call, monkeypatch, differs_at, odd, words):
    ways = [{"name": "", "is_same": k != odd, "params_sha256": "ab"} for k in range(3)]
    comparison = Comparison(differs_at=differs_at, difference="frame 7" if differs_at else "")
    monkeypatch.setattr(verification, "compare_with_ale", lambda game, seed: comparison)
    monkeypatch.setattr(verification, "compare_ways", lambda *given: iter(ways))
    failed = int(differs_at is not None or odd is not None)
    code, out, _ = call("verify", "--presets", "fast")
    game, _, *lines = out.splitlines()
    assert code == failed
    assert all(word in line for word, line in zip(words, [game, *lines], strict=True))
    code, out, _ = call("verify", "--presets", "fast", "--json")
    assert (code, json.loads(out)["is_equal"]) == (failed, not failed)
    assert json.loads(out)["differs_from_ale_at"] == differs_at
    assert [way["is_same"] for way in json.loads(out)["ways"]] == [k != odd for k in range(3)]


@pytest.mark.slow
def test_verify_prints_a_table_of_hashes(call, report):
    words = ["verify", *TOY[:2], "--updates", "2", "--batch-size", "2", "--presets", "classic"]
    assert report(*words)["is_equal"] is True
    code, out, _ = call(*words, "--engines", "serial")
    first, *_, verdict = out.splitlines()
    assert (code, first.endswith("pictures as on ALE")) == (0, True)
    assert verdict.endswith("gave the same bits")


def test_debug_shows_the_traceback_and_the_workers_and_a_bug_is_one_line_too(
    call, trained, monkeypatch
):
    assert "Traceback" in call("resume", "none", "--debug")[2]
    place, error = "pixelpong.play.worker:Worker.play", RuntimeError("planted")
    with planted(place, "update=13", Mock(side_effect=error)):
        code, _, err = call("resume", "run", "--updates", "14")
        debugged = call("resume", "run", "--updates", "14", "--debug")[2]
    assert (code, len(err.splitlines())) == (1, 1)
    assert "Item(purpose='train', seed=0, update=13, index=0" in err
    assert "In the worker:" in debugged
    assert "raise effect" in debugged
    monkeypatch.setattr(RunDirectory, "__init__", lambda *_: 1 / 0)
    code, _, err = call("plot", "run")
    assert (code, len(err.splitlines())) == (1, 1)
    assert "ZeroDivisionError: division by zero" in err
    assert "--debug" in err


TRAIN = f"train {' '.join(TOY)} --run run --updates"
FULL = "No space left on device"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "where", "error"),
    [
        (f"{TRAIN} 100000", "| head -1", ""),
        (f"{TRAIN} 20 --every 0", "> /dev/full", FULL),
        *((words, "> /dev/full", FULL) for words in ("", "--help", "-V")),
    ],
)
def test_when_stdout_fails_no_training_is_lost_and_one_line_says_so(tmp_path, words, where, error):
    """A reader who goes ends a training; a full disk under its log does not."""
    line = f"env -u PYTHONUNBUFFERED {shlex.join(PIXELPONG)} {words} {where}"
    done = subprocess.run(
        ["bash", "-c", f"{line}; exit ${{PIPESTATUS[0]}}"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    goes_on = words.startswith(TRAIN) and bool(error)
    assert done.returncode == (0 if goes_on else 1)
    start = "warning: the result cannot be printed" if goes_on else "pixelpong: error: "
    assert re.fullmatch(f"{start}.*{error}.*\n" if error else "", done.stderr)
    if words.startswith(TRAIN):
        run = RunDirectory(tmp_path / "run")
        updates = [line["update"] for line in run.metrics.read()]
        assert run.checkpoints.updates()[-1] == updates[-1]
        assert not goes_on or updates[-1] == 20


def test_an_error_spells_options_as_flags_here_and_as_names_in_python(call, trained):
    told = call("train", "--batch-size", "20")[2]
    assert "train: --batch-size is an option of REINFORCE" in told
    with pytest.raises(ConfigError, match="train: batch_size is an option of REINFORCE"):
        pixelpong.train(batch_size=20)
    shutil.copytree(trained, "updates/seed")
    told = call("resume", "updates/seed")[2]
    assert "in updates/seed (" in told, "a path stays as it is"
    assert "give a larger count of --updates, --episodes or --total-timesteps." in told
    told = call("resume", "updates/seed", "--seed", "4")[2]
    assert "updates/seed was started with --seed 0, not 4; leave the option out, or train" in told


@pytest.mark.slow
@pytest.mark.parametrize(("words", "code"), [("train --sed 1", 2), ("resume none", 1)])
def test_when_stderr_fails_the_exit_code_still_tells(tmp_path, words, code):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*PIXELPONG, *words.split()], cwd=tmp_path, stderr=full)
    assert done.returncode == code


PRINTING = [
    "runs", "runs run", "runs run --json", "evaluate run --episodes 1", "plot run", "export run",
    "record run --scale 1 --seconds 0.1", "resume run --updates 13 -q", "sweep s --engine serial",
    f"train {' '.join(TOY)} --updates 1 -q", "help train",
    "tournament perfect person --games 2 --points 1 --workers 1",
    "verify --max-frames 300 --updates 1 --presets classic --engines serial",
]  # fmt: skip
SERVING = {"dashboard", "watch", "play"}


@pytest.mark.slow
def test_a_reader_that_has_gone_ends_any_command_in_silence(trained, tmp_path, monkeypatch, capsys):
    assert {line.split()[0] for line in PRINTING} == {*COMMANDS, "help"} - SERVING
    sweep = create_sweep(tmp_path / "s", [toy_config("classic", updates=1)])
    train(read_sweep(sweep)[0].run)
    for line in PRINTING:
        ended, (read_end, write_end) = None, os.pipe()
        os.close(read_end)
        with contextlib.suppress(BrokenPipeError), os.fdopen(write_end, "w") as gone:
            monkeypatch.setattr(sys, "stdout", gone)
            ended = main(line.split()), sys.stdout
        assert (ended, capsys.readouterr().err) == ((1, None), ""), line


@pytest.mark.slow
@pytest.mark.parametrize("name", ["\x1b[2Jx", "a\nb", "\u202eabc", "\udcff", "[red]x"])
def test_no_name_of_a_run_reaches_the_terminal_as_control_codes(name, call, toy_runs):
    run = f"some/{name}"
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


def test_no_result_reaches_the_terminal_as_control_codes(monkeypatch, call):
    """Whatever it says, and wherever that comes from."""
    monkeypatch.setattr(Result, "__str__", lambda _: "one\x1b[2J\u202e\ntwo\x9b")
    assert call("runs")[:2] == (0, "one?[2J?\ntwo?\n")
