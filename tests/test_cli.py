"""The command line as people use it: what it prints, where, and how it exits."""

from __future__ import annotations

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

import pixelpong
from pixelpong.config import OPTIONS
from pixelpong.config.presets import load_preset, preset_names
from pixelpong.faces.cli.parser import list_commands, parse
from pixelpong.faces.recorded import is_comparable
from pixelpong.faces.text import describe_outcome
from pixelpong.play.worker import EpisodeWorker
from pixelpong.run.arrays import fingerprint
from pixelpong.run.directory import RunDirectory

TOY = [
    "--max-frames", "300", "--hidden", "10", "--batch-size", "2", "--engine", "serial",
    "--preset", "classic",
]  # fmt: skip
PIXELPONG = [sys.executable, "-m", "pixelpong"]


@pytest.fixture
def trained(call, tmp_path) -> Path:
    """A run of three updates in the folder ``run``."""
    assert call("train", *TOY, "--updates", "3", "--run", "run")[0] == 0
    return tmp_path / "run"


# --- help -------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize("command", ["", *list_commands()])
def test_every_command_has_a_help_that_fits_the_terminal(call, monkeypatch, command, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    code, out, err = call(*command.split(), "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"usage: pixelpong {command}")
    assert max(map(len, out.splitlines()[1:])) <= columns


def test_help_names_every_option_of_a_training_with_its_default(call):
    _, out, _ = call("train", "--help")
    for flag in ("--run", "--config", "--json", *(each.flag for each in OPTIONS.values())):
        assert re.search(rf"{flag}[ ,]", out), flag
    for name in preset_names():
        assert re.search(rf"from which the others start:[^.]*\b{name}\b", out), name
    rate = load_preset("fast").learning.learning_rate
    assert re.search(rf"Source: Karpathy.\s+\(default:\W+{rate}\)", out)


@pytest.mark.parametrize(
    "words", ["--preset ray --help", "--help --preset=ray", "--config mine.toml -h"]
)
def test_help_shows_the_defaults_of_the_preset_and_the_file_on_the_line(call, tmp_path, words):
    (tmp_path / "mine.toml").write_text('preset = "classic"\nbatch_size = 4\n')
    assert re.search(r"--batch-size INT.*\(default: 4\)", call("train", *words.split())[1])
    assert call("train", "--config", "none.toml", "--help")[0] == 0


def test_help_is_quick():
    """In seconds of a processor, for another test may run beside this one."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*PIXELPONG, "--help"], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.6  # 0.15 s


@pytest.mark.parametrize("name", list_commands())
def test_every_command_has_examples_that_are_command_lines(call, tmp_path, name):
    (tmp_path / "mine.toml").touch()
    _, out, _ = call(*name.split(), "--help")
    shown = out.split("examples:\n")[1].replace("\\\n", "")
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert lines
    for line in lines:
        assert line.startswith(f"pixelpong {name}")
        parse(line.split()[1:])


@pytest.mark.parametrize(
    ("command", "usage"),
    [
        ("train", "train [options]"), ("watch", "watch [options] [RUN]"),
        ("play", "play [options] [RUN]"), ("record", "record [options] [RUN]"),
        ("export", "export [options] [RUN]"),
        ("dashboard", "dashboard [options] [RUNS_DIR]"), ("plot", "plot [options] RUN..."),
        ("inspect", "inspect [options] RUN"),
    ],
)  # fmt: skip
def test_the_line_of_usage_shows_what_may_be_left_out(call, command, usage):
    _, out, _ = call(command, "--help")
    assert out.splitlines()[0] == f"usage: pixelpong {usage}"
    assert "(default: )" not in out
    assert "default: False" not in out


def test_help_begins_with_what_the_command_does(call):
    assert "\n\nTrain an agent" in call("help", "train")[1]
    assert call("help")[1].startswith("usage: pixelpong COMMAND")


def test_without_a_command_it_says_what_it_is_and_what_to_begin_with(call):
    code, out, err = call()
    assert (code, err) == (0, "")
    assert out.startswith("pixelpong teaches a program to play Atari Pong")
    begin = re.findall(r"^  pixelpong (\w+)  ", out, flags=re.M)
    assert begin == ["train", "watch", "play", "dashboard"]
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("word", ["--version", "-V", "version"])
def test_it_tells_its_version_those_of_its_libraries_and_the_machine(call, word):
    code, out, err = call(word)
    assert (code, err) == (0, "")
    assert out.startswith(f"pixelpong {pixelpong.__version__}\n")
    told = json.loads(call(word, "--json")[1])
    assert told["versions"]["numpy"] in out
    assert told["cores"] >= 1
    assert set(told["machine"]) == {"processor", "system", "arch"}


# --- words ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "given"),
    [
        ("train --batch-size 3 --until-return -5", {"batch_size": 3, "until_return": -5.0}),
        ("train --batch_size=3 --until-return=-0.5", {"batch_size": 3, "until_return": -0.5}),
        ("train --sticky 0 --preset ray", {"sticky": 0.0, "preset": "ray"}),
        ("train --verbose", {"verbose": True}),
        ("train --verbose --no-verbose --seed 1 --seed 2", {"verbose": False, "seed": 2}),
        ("resume --workers 2 -- -run", {"workers": 2}),
        ("evaluate --seed 3 run --episodes 5 --sticky .5", {"sticky": 0.5}),
        ("plot --out x -- -a b", {}),
        ("train -s 5 -q", {"seed": 5}),
    ],
)
def test_words_are_read(line, given):
    assert parse(line.split())[1].given == given


def test_a_command_gets_its_own_options_with_their_defaults():
    _, options = parse(["plot", "a", "b", "--kind", "health"])
    assert options.runs == ("a", "b")
    assert (options.kind, options.json) == ("health", False)
    assert options.out is None
    _, options = parse(["evaluate", "run", "--seed", "3", "--json"])
    assert (options.run, options.seed, options.episodes) == ("run", 3, 100)
    assert (options.checkpoint, options.json, options.debug) == ("latest", True, False)


BAD = [
    ("frobnicate", 2, "expected a command, got 'frobnicate'; use one of train"),
    ("trian", 2, "expected a command, got 'trian'; did you mean train?"),
    ("compare", 2, "expected a command, got 'compare'; did you mean plot?"),
    ("train fast", 2, "expected an option, got 'fast'; did you mean --preset fast?"),
    ("train --lr 0.1", 2, "got --lr; did you mean --learning-rate?"),
    ("train --gamma .9", 2, "got --gamma; did you mean --discount?"),
    ("train --envs 8", 2, "got --envs; did you mean --streams?"),
    ("train --name ../x", 2, "expected the name of a run, got '../x'; give a plain name"),
    ("train --name x --run y", 2, "expected --run or --name, got both; leave one of them out"),
    ("train --batch-size 20", 2, "got --batch-size, which belongs to REINFORCE; leave it out, or"),
    ("train --preset classic --streams 8", 2, "got --streams, which belongs to PPO; leave it out"),
    ("resume run --streams 8", 2, "got --streams, which belongs to PPO; leave it out"),
    ("train --bath-size 3", 2, "got --bath-size; did you mean --batch-size?"),
    ("train --upd 3", 2, "did you mean --updates?"),
    ("train --zz 3", 2, "expected an option of this command, got --zz; see `pixelpong train"),
    ("inspect run -x", 2, "expected an option of this command, got -x; see"),
    ("train extra", 2, "expected an option, got 'extra'"),
    ("train --batch-size", 2, "--batch-size: expected one argument; see `pixelpong train --help`"),
    ("train --batch-size abc", 2, "expected --batch-size to be a whole number from 1 to 100000, "
     "got 'abc'"),
    ("train --batch-size 1e3", 2, "to be a whole number"),
    ("train --batch-size 0", 2, "expected --batch-size to be a whole number from 1"),
    ("train --learning-rate fast", 2, "expected --learning-rate to be a number from 0 to 10, got"),
    ("train --environment Breakout", 2, "expected --environment to be one of ALE/Pong-v5"),
    ("train --preset slow", 2, "expected the name of a preset, got 'slow'; use one of"),
    ("train --config none.toml", 2, "expected a TOML file at none.toml, got No such file"),
    ("train --config mine.toml", 2, "mine.toml: expected the name of an option, got 'bach_size'; "
     "did you mean 'batch_size'?"),
    ("train --run run", 1, "expected a new run directory, got run, which exists"),
    ("train --run /proc/none/run", 1, "expected to make the run directory"),
    ("train --run run/config.json/x", 1, "config.json, which is not a directory"),
    ("resume none", 1, "expected a run directory, got none"),
    ("inspect ru", 1, "expected a run directory, got ru, which is not one; check its name"),
    ("inspect .", 1, "expected a run directory, got ., which is a folder of runs; name one: run"),
    ("inspect runs/", 1, "got runs, which is a folder of runs; name one: runs/fast-001"),
    ("inspect fast-01", 1, "got fast-01, which is not one; did you mean fast-001?"),
    ("play beginer --no-open", 1, "got beginer, which is not one; did you mean beginner?"),
    ("inspect beginer", 1, "got beginer, which is not one; check its name"),
    ("--versio", 2, "expected a command, got '--versio'; did you mean --version?"),
    ("export club --html x", 2, "expected a run for --html, got club, an agent in the package"),
    ("plot run mine", 1, "got mine, which is not one; check its name; in runs there are runs/fas"),
    ("resume", 2, "expected RUN, got none; try `pixelpong resume latest`, or see `pixelpong re"),
    ("resume run --seed 4", 2, "got seed 0 → 4; leave them out, or give --allow-changes"),
    ("inspect run --checkpoint 99", 1, "use latest, best or one of: 0, 3"),
    ("inspect run --checkpoint ²", 1, "use latest, best or one of: 0, 3"),
    ("evaluate run --checkpoint 99", 1, "use best, latest or one of: 0, 3"),
    ("evaluate run --episodes 0", 2, "expected --episodes to be a whole number from 1 to 100000"),
    ("evaluate run --episodes 1000000000", 2, "expected --episodes to be a whole number from 1"),
    ("verify --emulators x", 2, "--emulators: expected emulator to be one of native, ale"),
    ("verify --opponent self --emulators native,ale", 2, "for the opponent self, got ale"),
    ("verify --engines processes", 2, "expected engine to be one of serial, threads"),
    ("plot", 2, "expected RUN, got none; try `pixelpong plot latest`"),
    ("export run", 2, "expected --html FILE or --agent FILE, got none of them"),
    ("export run --agent a --html b", 2, "got --html and --agent; give one"),
    ("export --agent a", 2, "expected a run for --agent, got none"),
    ("record run --scale 0", 2, "expected --scale to be a whole number of at least 1, got 0"),
]  # fmt: skip


def test_what_goes_wrong_is_said_in_one_line(call, trained, tmp_path):
    (tmp_path / "mine.toml").write_text("bach_size = 3\n")
    shutil.copytree(trained, tmp_path / "runs" / "fast-001")
    for line, code, words in BAD:
        got, out, err = call(*line.split())
        assert got == code, line
        assert words in err, line
        assert err.startswith("pixelpong: error: "), line
        assert len(err.splitlines()) == 1, line
        assert "Traceback" not in out + err, line


# --- what the commands do ---------------------------------------------------------------------


@pytest.mark.parametrize("word", ["runs/fast-001", "fast-001", "latest", "./runs/fast-001/"])
def test_every_command_finds_a_run_by_the_same_words(report, trained, tmp_path, word):
    shutil.copytree(trained, tmp_path / "runs" / "fast-001")
    (tmp_path / "package").mkdir()  # an agent in the package has this name
    assert report("inspect", word)["run"] == "runs/fast-001"
    assert report("resume", word, "--updates", "3")["run"] == "runs/fast-001"
    assert report("evaluate", word, "--episodes", "2")["run"] == "runs/fast-001"
    assert pixelpong.Run(word).path == Path("runs/fast-001")


def test_the_latest_run_is_the_one_that_was_written_to_last(call, report, trained, tmp_path):
    assert "expected a run in runs, got none" in call("inspect", "latest")[2]
    for name in ("b", "a"):
        shutil.copytree(trained, tmp_path / "runs" / name)
    assert call("resume", "runs/b", "--updates", "4")[0] == 0
    assert report("inspect", "latest")["run"] == "runs/b"


@pytest.mark.slow
def test_evaluate_plays_the_agents_in_the_package(report):
    words = ["--sticky", "0", "--episodes", "1", "--engine", "serial"]
    greedy = {name: report("evaluate", name, *words)["greedy"] for name in ("package", "beginner")}
    assert greedy["package"]["mean_return"] == 21
    assert greedy["beginner"]["mean_return"] < 21
    ours = pixelpong.evaluate("beginner", 1, sticky=0.0, engine="serial")
    assert list(ours.returns) == greedy["beginner"]["returns"]


def test_a_quiet_training_says_only_how_it_ended(call):
    code, out, err = call("train", *TOY, "--updates", "2", "-q")
    assert (code, err) == (0, "")
    assert out.startswith("budget of updates spent: update 2")


def test_a_training_that_has_won_says_so_and_what_comes_next():
    greedy = {"mean_return": 18.675, "ci95": (18.385, 18.945), "returns": [18.0] * 200}
    verdict = {"is_won": True, "target": 18.0, "steps": 999_424, "seconds": 51.0, "sampled": None}
    report = {
        "run": "my runs/a", "reason": "until_return", "update": 122, "episodes": 300,
        "steps": 999_424, "mean_return_100": 3.0, "params_sha256": "90", "rank": (6, 21),
        "training_seconds": 40.0, "wall_seconds": 55.0, "machine": "2 cores of an abacus",
        "environment": "ALE/Pong-v5", "verdict": verdict | {"greedy": greedy},
    }  # fmt: skip
    lines = describe_outcome(report).splitlines()
    assert lines[0].startswith(
        "Won: mean return 18.68 over 200 games of greedy play, 95 % interval"
    )
    assert lines[1:3] == [
        "after 999,424 steps and 0:51 in all, on 2 cores of an abacus",
        "rank 6 of 21 by steps, among the recorded trainings",
    ]
    assert [line.partition(" pixelpong ")[2] for line in lines[4:7]] == [
        "watch 'my runs/a'", "play 'my runs/a'",
        "record 'my runs/a' --overlay --out best.mp4",
    ]  # fmt: skip
    lost = describe_outcome(
        report | {"rank": None, "verdict": report["verdict"] | {"is_won": False}}
    )
    assert lost.startswith("Not won yet: mean return 18.68")
    assert "pixelpong play" not in lost


def test_only_a_training_like_the_recorded_ones_has_a_rank():
    fast = load_preset("fast")
    assert is_comparable(fast.updated({"seed": 77, "workers": 3}, "test"))
    for changes in ({"hidden": 63}, {"until_return": 10.0}, {"sticky": 0.0}, {"streams": 64}):
        assert not is_comparable(fast.updated(changes, "test"))


def test_train_says_what_came_out(call):
    code, out, err = call("train", *TOY, "--updates", "2")
    assert (code, err) == (0, "")
    assert "budget of updates spent: update 2, 4 episodes" in out
    assert "continue with: pixelpong resume runs/classic-001 --updates 4" in out
    code, out, err = call("train", *TOY, "--updates", "2", "--json")
    told = json.loads(out)
    assert (code, told["reason"], told["update"], told["episodes"]) == (0, "updates", 2, 4)
    assert "update 2" in err


def test_the_command_to_go_on_with_can_be_pasted(call, tmp_path):
    _, out, _ = call("train", *TOY, "--updates", "1", "--run", "my runs/a 1")
    line = out.split("continue with: ")[1]
    assert shlex.split(line) == ["pixelpong", "resume", "my runs/a 1", "--updates", "2"]
    _, _, err = call("train", *TOY, "--run", "my runs/a 1")
    assert "`pixelpong resume 'my runs/a 1'`" in err


def test_a_time_has_one_word_everywhere(call, report, trained):
    told = report("inspect", "run")
    assert 0 < told["training_seconds"] <= told["wall_seconds"]
    words = r" \d:\d\d of training, \d:\d\d in all"
    assert re.search("^time +" + words, call("inspect", "run")[1], flags=re.M)
    assert re.search(r"\d steps in" + words, call("resume", "run", "--updates", "4")[1])
    assert re.search(r"\d:\d\d of training", repr(pixelpong.Run("run")))


def test_a_thing_is_one_and_not_ones(call):
    _, out, _ = call("train", *TOY, "--batch-size", "1", "--updates", "1")
    assert "update 1, 1 episode, " in out


def test_inspect_shows_first_what_differs_from_the_preset_in_80_columns(call, trained):
    lines = call("inspect", "run")[1].splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("verdict      budget spent at update 3")
    assert lines[2:5] == [
        "preset       classic, seed 0",
        "changed      max_frames 300, hidden 10, batch_size 2, updates 3, engine serial",
    ]
    text = "\n".join(lines)
    assert "learning_rate 0.0001" in text
    assert text.count("hidden") == 1
    assert "streams" not in text, "an option of the other algorithm"


def test_inspect_prints_what_the_checkpoint_holds(call, report, trained):
    told = report("inspect", "run")
    assert {
        "update", "steps", "episodes", "mean_return_100", "params_sha256", "optimizer_sha256",
        "config", "versions", "wall_seconds",
    } <= set(told)  # fmt: skip
    checkpoint = RunDirectory.open(trained).checkpoints.load(3)
    assert told["params_sha256"] == fingerprint(checkpoint.params)
    assert told["optimizer_sha256"] == fingerprint(checkpoint.optimizer)
    assert (told["update"], told["episodes"], told["config"]["hidden"]) == (3, 6, 10)
    _, text, _ = call("inspect", "run")
    assert told["params_sha256"] in text
    assert max(map(len, text.splitlines()[:9])) <= 100


def test_evaluate_reports_greedy_and_sampled_play(call, report, trained):
    words = ["evaluate", "run", "--episodes", "5", "--seed", "3"]
    told = report(*words, "--workers", "2")
    for name in ("greedy", "sampled"):
        assert {"mean_return", "std", "ci95", "returns"} <= set(told[name])
        assert len(told[name]["returns"]) == 5
    assert report(*words, "--engine", "serial") == told
    _, text, _ = call(*words, "--engine", "serial")
    assert re.search(r"greedy +mean return −?\d\.\d\d +95 % interval", text)


@pytest.mark.slow
def test_evaluate_on_another_protocol_by_name(report, trained):
    protocol = ["--environment", "PongDeterministic-v4", "--engine", "serial"]
    told = report("evaluate", "run", "--episodes", "1", *protocol)
    assert (told["environment"], told["sticky"]) == ("PongDeterministic-v4", 0.0)
    assert -21 <= told["greedy"]["mean_return"] <= 21


def test_numpy_preset_prints_its_lines_unless_told_otherwise(call):
    words = ["train", "--preset", "numpy", *TOY[:4]]
    code, out, _ = call(*words)
    assert (code, 1 <= out.count("point ") <= 3) == (0, True)
    assert "Batch 1 computed 3 rollouts" in out
    assert "Batch" not in call(*words, "--no-verbose")[1]


@pytest.mark.slow
def test_verify_prints_a_table_of_hashes(call, report):
    words = ["verify", *TOY[:2], "--updates", "2", "--batch-size", "2", "--presets", "classic"]
    code, out, _ = call(*words)
    *rows, verdict = out.splitlines()
    assert (code, verdict) == (0, "classic: all 6 ways gave the same bits")
    assert len({row.split()[0] for row in rows}) == 1
    told = report(*words)
    assert told["is_equal"] is True
    names = [way["name"] for way in told["ways"]]
    assert names[:4] == ["serial", "threads, 1 worker", "threads, 2 workers", "threads, 3 workers"]


@pytest.mark.slow
def test_verify_fails_when_the_bits_differ(call, monkeypatch):
    """A worker that is not a pure function of its item must be found out."""
    real, count = EpisodeWorker.play, iter(range(1000))

    def play(self, item, params):
        result = real(self, item, params)
        result.grads.W2[0] += 1e-3 * next(count)
        return result

    monkeypatch.setattr(EpisodeWorker, "play", play)
    words = ["verify", *TOY[:2], "--presets", "classic", "--engines", "serial", "--updates", "2"]
    code, out, _ = call(*words)
    assert code == 1
    assert "DIFFERENT" in out
    assert out.splitlines()[-1] == "classic: the bits differ"


# --- what goes wrong --------------------------------------------------------------------------


def test_debug_shows_the_traceback_and_the_workers(call, trained, monkeypatch):
    assert "Traceback" in call("resume", "none", "--debug")[2]

    def play(self, item, params):
        raise RuntimeError("planted")

    monkeypatch.setattr(EpisodeWorker, "play", play)
    code, _, err = call("resume", "run", "--updates", "5")
    assert (code, len(err.splitlines())) == (1, 1)
    assert "EpisodeItem(purpose='train', seed=0, update=4, index=0" in err
    code, _, err = call("resume", "run", "--updates", "5", "--debug")
    assert "In the worker:" in err
    assert 'raise RuntimeError("planted")' in err


def test_a_bug_is_one_line_too(call, trained, monkeypatch):
    monkeypatch.setattr(RunDirectory, "open", lambda path: 1 / 0)
    code, _, err = call("inspect", "run")
    assert code == 1
    assert err.splitlines() == [
        "pixelpong: error: expected no such error, got ZeroDivisionError: division by zero; "
        "this is a bug: run again with --debug"
    ]


def test_a_damaged_newest_checkpoint_warns_and_goes_on(call, tmp_path):
    call("train", *TOY, "--updates", "3", "--save-every", "1", "--run", "run")
    (tmp_path / "run/checkpoints/000003.safetensors").write_bytes(b"x")
    code, out, err = call("resume", "run", "--updates", "4")
    assert code == 0
    assert err.startswith("warning: expected a sound checkpoint in run/checkpoints/000003")
    assert "going on after update 2" in out


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["serial", "threads"])
def test_without_the_game_it_is_one_line(call, monkeypatch, tmp_path, engine):
    monkeypatch.setenv("ALE_ROMS_DIR", str(tmp_path / "none"))
    code, _, err = call("train", "--updates", "1", "--engine", engine)
    assert (code, len(err.splitlines())) == (1, 1)
    assert "expected Pong's ROM in the folder in ALE_ROMS_DIR" in err


def test_a_change_that_cannot_work_leaves_the_run_as_it_was(call, trained):
    before = (trained / "config.json").read_bytes()
    code, _, err = call("resume", "run", "--hidden", "20", "--allow-changes", "--updates", "4")
    assert (code, "--hidden" in err) == (1, True)
    assert (trained / "config.json").read_bytes() == before
    assert call("resume", "run", "--updates", "4")[0] == 0


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
    told = re.search(
        r"^interrupted: update (\d+), .*continue with: pixelpong resume run\n", out, re.S | re.M
    )
    updates = int(told[1]) + 2
    resumed = report("resume", "run", "--updates", updates)
    undisturbed = report("train", "--run", "undisturbed", *words, updates)
    assert [resumed["update"], undisturbed["update"]] == [updates, updates]
    assert resumed["params_sha256"] == undisturbed["params_sha256"]


@pytest.mark.slow
def test_a_reader_that_goes_away_ends_the_training_with_everything_saved(tmp_path):
    train = f"{sys.executable} -m pixelpong train {' '.join(TOY)} --updates 100000 --run run"
    done = subprocess.run(
        ["bash", "-c", train + " | head -1; exit ${PIPESTATUS[0]}"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    run = RunDirectory.open(tmp_path / "run")
    assert run.checkpoints.updates()[-1] == [line["update"] for line in run.metrics.read()][-1] > 0


@pytest.mark.slow
def test_a_full_disk_behind_stdout_is_one_line_and_saved(tmp_path):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*PIXELPONG, "train", *TOY, "--updates", "9", "--run", "run"],
            cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    assert done.returncode == 1
    assert "got No space left on device" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert RunDirectory.open(tmp_path / "run").checkpoints.updates()


def test_a_file_of_options_can_come_through_a_pipe(report):
    """As a shell's ``<(…)`` gives it."""
    ours, theirs = os.pipe()
    os.write(theirs, b"batch_size = 5\npreset = 'classic'\n")
    os.close(theirs)
    words = [*TOY[:4], "--engine", "serial", "--updates", "1", "--config", f"/dev/fd/{ours}"]
    assert report("train", *words)["episodes"] == 5
    os.close(ours)


@pytest.mark.parametrize(("encoding", "sign"), [("ascii", " -"), ("utf-8", " −")])
def test_a_minus_sign_survives_any_terminal(call, monkeypatch, encoding, sign):
    stream = io.TextIOWrapper(io.BytesIO(), encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    code, _, err = call("train", *TOY, "--updates", "1", "--seed", "1", "--run", "ä run")
    stream.flush()
    assert (code, err) == (0, "")
    assert sign in stream.buffer.getvalue().decode(encoding)


def test_a_narrow_terminal_breaks_a_report_between_words(call, monkeypatch):
    assert call("train", *TOY, "--run", "run", "--quiet")[0] == 0
    whole = call("inspect", "run")[1]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    narrow = call("inspect", "run")[1]
    assert max(map(len, whole.splitlines())) > 60
    assert narrow.split() == whole.split()
    for line in narrow.splitlines():
        assert len(line) <= 40 or "pixelpong " in line or len(line.split()) == 1
