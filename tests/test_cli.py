"""The command line as people use it: what it prints, where, and how it exits."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import wait_until
from toys import result_of

import pixelpong
from pixelpong.config import OPTIONS
from pixelpong.config.presets import load_preset
from pixelpong.env.native import load_game
from pixelpong.faces.cli import COMMANDS, fold, parse
from pixelpong.faces.display import is_comparable
from pixelpong.faces.report import describe_ending
from pixelpong.learners.progress import Progress
from pixelpong.loop import Ended, train
from pixelpong.play.worker import Worker
from pixelpong.run.arrays import fingerprint
from pixelpong.run.directory import RunDirectory
from pixelpong.run.lines import Evaluation

TOY = [
    "--max-frames", "300", "--hidden", "10", "--batch-size", "2", "--engine", "serial",
    "--preset", "classic",
]  # fmt: skip
PIXELPONG = [sys.executable, "-m", "pixelpong"]


@pytest.fixture
def trained(call, tmp_path) -> Path:
    """A run of three updates in the folder ``run``, and again as ``runs/fast-001``."""
    assert call("train", *TOY, "--updates", "3", "--run", "run")[0] == 0
    shutil.copytree(tmp_path / "run", tmp_path / "runs" / "fast-001")
    return tmp_path / "run"


# --- help -------------------------------------------------------------------------------------


def test_every_command_has_a_help_that_fits_the_terminal_and_examples_that_parse(
    call, tmp_path, monkeypatch
):
    (tmp_path / "mine.toml").touch()
    for columns in (40, 80):
        monkeypatch.setenv("COLUMNS", str(columns))
        for name in ("", *COMMANDS):
            code, out, err = call(*name.split(), "--help")
            assert (code, err) == (0, "")
            assert out.startswith(f"usage: pixelpong {name}")
            about, _, examples = out.partition("examples:\n")
            assert max(map(len, about.splitlines()[1:])) <= columns
            lines = [line.strip() for line in examples.splitlines()]
            assert bool(lines) == bool(name)
            for line in lines:
                assert line.startswith(f"pixelpong {name}")
                parse(line.split()[1:])


def test_a_beginner_sees_fifteen_options_of_a_training_and_help_all_shows_the_others(call):
    plain, everything = (call("train", word)[1] for word in ("--help", "--help-all"))
    assert 10 <= len(re.findall(r"^  -", plain, flags=re.M)) <= 15
    for flag in ("--run", "--config", "--debug", *(each.flag for each in OPTIONS.values())):
        assert re.search(rf"^  .*{flag}[ ,\n]", everything, flags=re.M), flag
    assert "Source" not in everything, "it would be that of another default than the preset's"
    assert call("help", "train")[1] == plain


def test_help_is_quick():
    """In seconds of a processor, for another test may run beside this one."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*PIXELPONG, "--help"], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.6  # 0.15 s


def test_without_a_command_it_says_what_to_begin_with(call):
    code, out, err = call()
    assert (code, err) == (0, "")
    begin = re.findall(r"^  pixelpong (\w+)  ", out, flags=re.M)
    assert begin == ["train", "watch", "play", "dashboard"]


def test_it_tells_its_version_those_of_its_libraries_and_the_machine(call):
    for word in ("--version", "-V", "version"):
        code, out, err = call(word)
        assert (code, err) == (0, "")
        assert out.startswith(f"pixelpong {pixelpong.__version__}\n")
    told = json.loads(call("version", "--json")[1])
    assert told["versions"]["numpy"] in out
    assert told["cores"] >= 1
    assert set(told["machine"]) == {"processor", "system", "arch"}


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


BAD = [
    ("frobnicate", 2, "expected a command, got 'frobnicate'; use one of train"),
    ("trian", 2, "expected a command, got 'trian'; did you mean train?"),
    ("train fast", 2, "expected an option of train, got 'fast'; did you mean --preset fast?"),
    ("train --bath-size 3", 2, "got '--bath-size'; did you mean --batch-size?"),
    ("train --engine therads", 2, "got 'therads'; did you mean threads?"),
    ("train --name ../x", 2, "expected the name of a run, got '../x'; give one that means"),
    ("train --run runs/club", 2, "expected the name of a run, got 'club'; give one that means"),
    ("train --clip-coef 0", 2, "--clip-coef to be a number from 0.001 to 10, got 0.0"),
    ("train --config grid.toml", 2, "got [1, 2]; give one value, or the list to `pixelpong sweep`"),
    ("train --name x --run y", 2, "expected run or name, got both; leave one of them out"),
    ("train --batch-size 20", 2, "batch_size is an option of REINFORCE, which is not in use"),
    ("resume run --num-envs 8", 2, "num_envs is an option of PPO, which is not in use."),
    ("train --batch-size", 2, "--batch-size: expected one argument; see `pixelpong train --help`"),
    ("train --batch-size abc", 2, "expected --batch-size to be a whole number from 1 to 100000, "
     "got 'abc'"),
    ("train --preset slow", 2, "expected --preset to be one of classic, fast, half"),
    ("train --config none.toml", 2, "expected a TOML file at none.toml, got No such file"),
    ("train --config mine.toml", 2, "mine.toml: expected the name of an option, got 'bach_size'; "
     "did you mean batch_size?"),
    ("train --config zero.toml --run new", 2, "zero.toml: expected updates to be a whole"),
    ("train --opponent slef --run new", 1, "got slef, which is not one; did you mean self?"),
    ("train --opponent run --run new", 2, "expected"),
    ("train --run run", 1, "run exists; choose another name"),
    ("train --run /proc/none/run", 1, "/proc/none"),
    ("train --run run/config.json/x", 1, "expected to make the folder run/config.json/x, got "),
    ("resume none", 1, "expected a run directory, got none"),
    ("resume", 2, "the following arguments are required: RUN; see `pixelpong resume --help`"),
    ("resume run --seed 4", 2, "got seed 0 → 4; leave them out, or give allow_changes"),
    ("runs ru", 1, "expected a run directory, got ru, which is not one; check its name"),
    ("resume runs/", 1, "got runs, which is not one; check its name; the runs in runs are fast"),
    ("runs fast-01", 1, "got fast-01, which is not one; did you mean fast-001?"),
    ("runs --sort luck", 2, "expected --sort to be one of age, name"),
    ("play beginer --no-open", 1, "got beginer, which is not one; did you mean beginner?"),
    ("plot run mine", 1, "got mine, which is not one; check its name; the runs in runs are fast"),
    ("evaluate run --checkpoint ²", 1, "Saved: 0, 3, best, latest"),
    ("evaluate mine.toml", 1, "a usable agent in mine.toml"),
    ("verify --engines processes", 2, "expected engine to be one of serial, threads"),
    ("export run --out agent.onnx", 2, "must end in .safetensors, not 'agent.onnx'"),
    ("play --port 65536", 2, "expected --port to be a whole number from 0 to 65535, got 65536"),
    ("record run --scale 0", 2, "expected --scale to be a whole number from 1 to 10, got 0"),
]  # fmt: skip


def test_what_goes_wrong_is_said_in_one_line_and_leaves_nothing(call, trained, tmp_path):
    (tmp_path / "mine.toml").write_text("bach_size = 3\n")
    (tmp_path / "zero.toml").write_text("updates = 0\n")
    (tmp_path / "grid.toml").write_text("num_envs = [1, 2]\n")
    before = sorted(tmp_path.rglob("*"))
    for line, code, words in BAD:
        got, out, err = call(*line.split())
        assert (got, words in err, len(err.splitlines())) == (code, True, 1), (line, err)
        assert err.startswith("pixelpong: error: "), line
        assert "Traceback" not in out + err, line
        assert sorted(tmp_path.rglob("*")) == before, line


# --- what the commands do ---------------------------------------------------------------------


def test_every_command_finds_a_run_by_the_same_words(report, trained, tmp_path):
    (tmp_path / "package").mkdir()  # an agent in the package has this name
    assert report("resume", "fast-001", "--updates", "4")["run"] == "runs/fast-001"
    for word in ("runs/fast-001", "fast-001", "latest", "./runs/fast-001/"):
        assert report("runs", word)["run"] == "runs/fast-001"
        assert report("evaluate", word, "--episodes", "1")["agent"] == "runs/fast-001"
        assert pixelpong.Run(word).path == Path("runs/fast-001")


def test_a_budget_that_is_spent_is_refused_and_what_is_not_named_stays(call, tmp_path):
    target = ["--until-return", "20", "--updates", "3"]
    assert call("train", *TOY, *target, "--run", "run", "-q")[0] == 0
    before = (tmp_path / "run/config.json").read_bytes()
    for words in ([], ["--updates", "2"], ["--updates", "3"], ["--total-timesteps", "1"]):
        code, _, err = call("resume", "run", *words)
        assert (code, len(err.splitlines())) == (2, 1)
        assert "Nothing is left to train in run (not won: budget spent at update 3; " in err
        assert (tmp_path / "run/config.json").read_bytes() == before
    for words, updates, episodes in (("--updates 4", 4, None), ("--episodes 9", None, 9)):
        assert call("resume", "run", *words.split(), "-q")[0] == 0
        budget = RunDirectory(tmp_path / "run").config
        assert (budget.updates, budget.episodes, budget.until_return) == (updates, episodes, 20)


def test_an_exported_agent_is_taken_wherever_a_run_is(call, report, trained):
    assert report("export", "run", "--out", "b.safetensors")["update"] == 3
    assert report("export", "champion", "--out", "a.safetensors")["bytes"] > 1e6
    words = ["a.safetensors", "--episodes", "1", "--sticky", "0", "--engine", "serial"]
    assert report("evaluate", *words)["returns"] == [21.0]
    assert pixelpong.Policy.load("a.safetensors").algorithm == "ppo"
    words = "--preset fast --updates 1 --num-envs 2 --num-steps 9 --hidden 64 -q"
    assert call("train", *words.split(), "--opponent", "a.safetensors")[0] == 0


def test_a_run_is_shown_with_its_hashes_and_a_damaged_checkpoint_is_found(call, report, trained):
    told = report("runs", "run")
    store = RunDirectory(trained).checkpoints
    assert told["params_sha256"] == store.load(3).card["about"]["params_sha256"]
    assert told["state_sha256"] == fingerprint(store.load(3).arrays)
    assert (told["update"], told["episodes"], told["config"]["hidden"]) == (3, 6, 10)
    assert 0 < told["training_seconds"] <= told["total_seconds"]
    lines = call("runs", "run")[1].splitlines()
    assert lines[0].startswith("verdict      budget spent at update 3")
    assert "params       " + told["params_sha256"] in lines
    assert "checkpoints  0, 3: each has its SHA-256" in lines
    assert "num_envs" not in "\n".join(lines), "an option of the other algorithm"
    store.path(3).write_bytes(store.path(3).read_bytes()[:-1] + b"x")
    code, out, _ = call("runs", "run")
    assert code == 1
    assert re.search(r"^damaged +expected a sound checkpoint", out, flags=re.M)


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
    assert "update 3: sampled play on ALE/Pong-v5, seed 3" in out


def test_a_training_that_has_won_says_so_and_what_comes_next():
    found = 18.675, 1.9, (18.385, 18.945), (18.0,) * 200, 3500.0
    verdict = Evaluation(*found, 122, 18.0, True, {"wall_seconds": 51.0})
    facts = {"run": "my runs/a", "machine": "2 cores of an abacus"}
    facts |= {"training_seconds": 40.0, "total_seconds": 51.0}
    progress = Progress(update=122, episodes=300, steps=999_424)

    def describe(verdict, is_brief=False):
        outcome = Ended("until_return", progress, "90", verdict)
        return describe_ending(facts, outcome, is_brief=is_brief)

    text = describe(verdict)
    for words in (
        "Won: mean return +18.68 (+18.39 to +18.95) over 200 games of 3,500 steps; the target is +",
        "\nafter 999,424 steps and 0:51 in total, on 2 cores of an abacus\n",
        " pixelpong watch 'my runs/a'", " pixelpong play 'my runs/a'",
        " pixelpong record 'my runs/a'",
        "continue with:\n  pixelpong resume 'my runs/a' --until-return 19",
    ):  # fmt: skip
        assert words in text
    lost = describe(dataclasses.replace(verdict, is_won=False))
    assert lost.startswith("Not won yet: mean return +18.68")
    assert describe(verdict, is_brief=True).count("\n") == 0


@pytest.mark.parametrize("columns", [40, 80])
def test_a_terminals_lines_break_between_words_and_commands_can_be_pasted(columns):
    command = "pixelpong resume runs/a-run-with-a-name --total-timesteps 10000000"
    text = f"saved in runs/a-run-with-a-name; continue with:\n  {command}\n" + "word " * 40
    lines = fold(text, columns).split("\n")
    assert max(len(line) for line in lines if command not in line) <= columns
    assert f"  {command}" in lines
    assert not any(line.endswith(("-", "runs/")) for line in lines)


def test_only_a_training_like_the_recorded_ones_is_compared_with_them():
    fast = load_preset("fast")
    assert is_comparable(fast.updated({"seed": 77, "workers": 3}, "test"))
    for changes in ({"hidden": 63}, {"until_return": 10.0}, {"sticky": 0.0}, {"num_envs": 64}):
        assert not is_comparable(fast.updated(changes, "test"))


def test_a_quiet_training_says_how_it_ended_on_one_line(call):
    words = ["train", *TOY, "--updates", "1", "--run"]
    _, out, err = call(*words, "my runs/a 1", "-q")
    assert (out.count("\n"), err) == (1, "")
    assert out.startswith("budget of updates spent: update 1, 2 episodes, ")
    assert out.endswith("saved in 'my runs/a 1'\n")
    line = call(*words, "my runs/a 2")[1].split("continue with:\n")[1]
    assert shlex.split(line) == ["pixelpong", "resume", "my runs/a 2", "--updates", "2"]
    assert "`pixelpong resume 'my runs/a 1'`" in call("train", *TOY, "--run", "my runs/a 1")[2]


def test_numpy_preset_prints_its_lines_unless_told_otherwise(call):
    words = ["train", "--preset", "numpy", *TOY[:4]]
    code, out, _ = call(*words)
    assert (code, "point " in out, "Batch 1 computed 3 rollouts" in out) == (0, True, True)
    assert "Batch" not in call(*words, "--no-verbose")[1]


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
    code, _, err = call("resume", "run", "--updates", "5")
    assert (code, len(err.splitlines())) == (1, 1)
    assert "Item(purpose='train', seed=0, update=4, index=0" in err
    err = call("resume", "run", "--updates", "5", "--debug")[2]
    assert "In the worker:" in err
    assert 'raise RuntimeError("planted")' in err
    monkeypatch.setattr(RunDirectory, "__init__", lambda *_: 1 / 0)
    assert call("plot", "run")[::2] == (
        1,
        "pixelpong: error: internal error (ZeroDivisionError: division by zero); "
        "please report it with --debug\n",
    )


@pytest.mark.slow
def test_without_the_game_it_is_one_line(call, monkeypatch, tmp_path):
    monkeypatch.setenv("ALE_ROMS_DIR", str(tmp_path / "none"))
    load_game.cache_clear()
    for engine in ("serial", "threads"):
        code, _, err = call("train", "--updates", "1", "--engine", engine)
        assert (code, len(err.splitlines())) == (1, 1)
        assert "expected Pong's ROM in the folder in ALE_ROMS_DIR" in err


# --- what is around it ------------------------------------------------------------------------


@pytest.mark.slow
def test_interrupted_and_resumed_pong_ends_with_the_hash_of_the_undisturbed(tmp_path, report):
    """The promise, on the real game, by the real command line."""
    words = ["--preset", "classic", "--batch-size", "2", "--updates"]
    process = subprocess.Popen(
        [*PIXELPONG, "train", "--run", "run", *words, "100000"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0,
    )  # fmt: skip
    metrics = tmp_path / "run" / "metrics.jsonl"
    assert wait_until(lambda: metrics.exists() and metrics.stat().st_size > 0, seconds=60)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "")
    line = r"^interrupted: update (\d+), .*continue with:\n  pixelpong resume run\n"
    updates = int(re.search(line, out, re.S | re.M)[1]) + 2
    resumed = report("resume", "run", "--updates", updates)
    undisturbed = report("train", "--run", "undisturbed", *words, updates)
    assert resumed["update"] == undisturbed["update"] == updates
    assert resumed["params_sha256"] == undisturbed["params_sha256"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "words"), [("| head -1", ""), ("> /dev/full", "No space left on device")]
)
def test_when_stdout_fails_the_training_ends_with_everything_saved(tmp_path, where, words):
    train = f"{sys.executable} -m pixelpong train {' '.join(TOY)} --updates 100000 --run run"
    done = subprocess.run(
        ["bash", "-c", f"{train} {where}; exit ${{PIPESTATUS[0]}}"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, words in done.stderr) == (1, True)
    assert len(done.stderr.splitlines()) <= 1
    run = RunDirectory(tmp_path / "run")
    updates = [line["update"] for line in run.metrics.read()]
    assert run.checkpoints.updates()[-1] == (updates[-1] if updates else 0)
    assert updates or words


def test_a_file_of_options_can_come_through_a_pipe(report):
    """As a shell's ``<(…)`` gives it."""
    ours, theirs = os.pipe()
    os.write(theirs, b"batch_size = 5\npreset = 'classic'\n")
    os.close(theirs)
    words = [*TOY[:4], "--engine", "serial", "--updates", "1", "--config", f"/dev/fd/{ours}"]
    assert report("train", *words)["episodes"] == 5
    os.close(ours)


def test_a_minus_sign_survives_any_terminal(call, monkeypatch):
    for encoding, sign in (("ascii", r" \u2212"), ("utf-8", " −")):
        stream = io.TextIOWrapper(io.BytesIO(), encoding)
        monkeypatch.setattr(sys, "stdout", stream)
        code, _, err = call("train", *TOY, "--updates", "1", "--run", f"ä {encoding}")
        stream.flush()
        assert (code, err, sign in stream.buffer.getvalue().decode(encoding)) == (0, "", True)


def test_a_run_that_has_won_is_trained_further_with_a_higher_target_only(call, make_run):
    run = make_run(until_return=-21.0, updates=3)
    assert train(run).reason == "until_return"
    before = [(run.path / name).read_bytes() for name in ("config.json", "evaluations.jsonl")]
    for words in ([], ["--until-return", "-21"], ["--updates", "9"]):
        code, _, err = call("resume", run.path, *words)
        assert code == 2
        assert "; name a larger budget, or a higher until_return." in err
    after = [(run.path / name).read_bytes() for name in ("config.json", "evaluations.jsonl")]
    assert after == before
    path, wanted = run.checkpoints.path(run.checkpoints.updates()[-1]), result_of(run)
    path.write_bytes(b"damaged")
    assert call("resume", run.path)[0] == 0
    assert result_of(run) == wanted, "trained again from the first"
    assert call("evaluate", "club", "--checkpoint", "3")[0] == 2  # one agent, without others
