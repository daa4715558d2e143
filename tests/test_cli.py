"""The command line as people use it: what it prints, where, and how it exits."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import patience, wait_until
from test_engines import is_alive

from pixelpong.config.presets import load_preset, preset_names
from pixelpong.faces.cli import main
from pixelpong.faces.cli.parser import list_commands, parse
from pixelpong.play.worker import EpisodeWorker
from pixelpong.run.checkpoints import fingerprint
from pixelpong.run.directory import RunDirectory

TOY = [
    "--environment", "Catch-v0", "--hidden", "10", "--batch-size", "2", "--engine", "serial",
    "--preset", "classic",
]  # fmt: skip
PIXELPONG = [sys.executable, "-m", "pixelpong"]


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Run one command line in a folder of its own; returns exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def go(*words: str):
        capsys.readouterr()
        try:
            code = main([str(word) for word in words])
        except SystemExit as exit:
            code = exit.code
        out, err = capsys.readouterr()
        return code, out, err

    return go


@pytest.fixture
def trained(call, tmp_path) -> Path:
    assert call("train", *TOY, "--updates", "3", "--run", "run")[0] == 0
    return tmp_path / "run"


# --- help -------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize("command", ["", "bench", *list_commands()])
def test_every_command_has_a_help_that_fits_the_terminal(call, monkeypatch, command, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    code, out, err = call(*command.split(), "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"usage: pixelpong {command}")
    assert max(map(len, out.splitlines()[1:])) <= columns


def test_help_names_every_option_of_the_issue_with_its_default(call):
    _, out, _ = call("train", "--help")
    for flag in (
        "--run", "--seed", "--engine", "--workers", "--batch-size", "--updates", "--episodes",
        "--steps", "--until-return", "--environment", "--frame-skip", "--sticky", "--hidden",
        "--learning-rate", "--decay-rate", "--discount", "--save-every", "--evaluate-every",
        "--config", "--preset", "--json", "--verbose", "--dtype", "--algorithm", "--streams",
        "--horizon", "--epochs", "--minibatches", "--clip-ratio", "--gae-lambda",
        "--gae-lambda-end", "--entropy-bonus", "--value-weight", "--anneal-from",
        "--restart-after",
    ):  # fmt: skip
        assert re.search(rf"{flag}[ ,]", out), flag
    assert re.search(r"classic,\s+fast, karpathy, numpy or ray", out)
    assert preset_names() == ["classic", "fast", "karpathy", "numpy", "ray"]
    rate = load_preset("fast").learning.learning_rate
    assert re.search(rf"Source: Karpathy.\s+\(default:\W+{rate}\)", out)


@pytest.mark.parametrize(
    "words", ["--preset ray --help", "--help --preset=ray", "--config mine.toml -h"]
)
def test_help_shows_the_defaults_of_the_preset_and_the_file_on_the_line(call, tmp_path, words):
    (tmp_path / "mine.toml").write_text("batch_size = 4\n")
    assert re.search(r"--batch-size INT.*\(default: 4\)", call("train", *words.split())[1])
    assert call("train", "--config", "none.toml", "--help")[0] == 0


def test_help_is_quick():
    """In seconds of a processor, for another test may run beside this one."""
    before = os.times()
    subprocess.run([*PIXELPONG, "--help"], check=True, capture_output=True)
    after = os.times()
    spent = (after.children_user + after.children_system) - (
        before.children_user + before.children_system
    )
    assert spent < 0.6  # 0.15 s measured


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
    ],
)
def test_words_are_read(line, given):
    assert parse(line.split())[1].given == given


def test_a_command_gets_its_own_options_with_their_defaults():
    _, options = parse(["plot", "a", "b", "--formats", "svg"])
    assert options.runs == (Path("a"), Path("b"))
    assert (options.kinds, options.formats, options.out, options.json) == (
        "all",
        "svg",
        None,
        False,
    )
    _, options = parse(["evaluate", "run", "--seed", "3", "--json"])
    assert (options.run, options.seed, options.episodes) == (Path("run"), 3, 100)
    assert (options.checkpoint, options.json, options.debug) == ("latest", True, False)


BAD = [
    ("", 2, "expected a command, got none; use one of train, resume, evaluate, inspect"),
    ("frobnicate", 2, "expected a command, got 'frobnicate'; use one of train"),
    ("trian", 2, "expected a command, got 'trian'; did you mean train?"),
    ("bench thruput", 2, "did you mean throughput?"),
    ("bench quickly", 2, "use one of throughput, solve, predict"),
    ("train --bath-size 3", 2, "got --bath-size; did you mean --batch-size?"),
    ("train --upd 3", 2, "did you mean --updates?"),
    ("train --lr 3", 2, "expected an option of this command, got --lr; see `pixelpong train"),
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
    ("train --run run/config.json/x", 1, "config.json, which is no directory"),
    ("resume none", 1, "expected a run directory, got none"),
    ("resume", 2, "expected RUN, got none; see `pixelpong resume --help`"),
    ("resume run --seed 4", 2, "got seed 0 → 4; leave them out, or give --allow-changes"),
    ("inspect run --checkpoint 99", 1, "use latest, best or one of: 0, 3"),
    ("inspect run --checkpoint ²", 1, "use latest, best or one of: 0, 3"),
    ("evaluate run --checkpoint 99", 1, "use best, latest or one of: 0, 3"),
    ("evaluate run --episodes 0", 2, "expected --episodes to be a whole number from 1 to 100000"),
    ("evaluate run --episodes 1000000000", 2, "expected --episodes to be a whole number from 1"),
    ("verify --emulators x", 2, "--emulators: expected emulator to be one of native, ale"),
    ("verify --engines processes", 2, "expected engine to be one of serial, threads"),
    ("plot", 2, "expected RUN..., got none"),
    ("dashboard --open maybe", 2, "expected --open to be one of yes, no, got 'maybe'"),
    ("track run --to paper", 2, "expected --to to be one of tensorboard, wandb, got 'paper'"),
    ("export run", 2, "expected --html FILE, --onnx FILE or --agent FILE, got none of them"),
    ("export run --agent a --onnx b", 2, "got --onnx and --agent; give one"),
    ("export --agent a", 2, "expected a run for --agent, got none"),
    ("record run --scale 0", 2, "expected --scale to be a whole number of at least 1, got 0"),
    ("bench throughput --seconds nan", 2, "expected --seconds to be a number from 0.1 to 3600"),
    ("bench throughput --rounds 0", 2, "expected --rounds to be a whole number of at least 1"),
    ("bench predict --seconds 0", 2, "expected --seconds to be a number from 1 to 3600, got 0.0"),
    ("bench solve --seeds x", 2, "expected --seeds as 0-4 or 0,3,7, got 'x'"),
    ("bench solve --seeds 4-2", 2, "expected --seeds as 0-4 or 0,3,7, got '4-2'"),
    ("bench solve --target 22", 2, "expected --target to be a number from -21 to 21, got 22.0"),
    ("bench solve --steps 0", 2, "expected --steps to be a whole number of at least 1, got 0"),
    ("bench throughput --workers 0", 2, "expected --workers to be a whole number from 1"),
]  # fmt: skip


def test_what_goes_wrong_is_said_in_one_line(call, trained, tmp_path):
    (tmp_path / "mine.toml").write_text("bach_size = 3\n")
    for line, code, words in BAD:
        got, out, err = call(*line.split())
        assert got == code, line
        assert words in err, line
        assert err.startswith("pixelpong: error: "), line
        assert len(err.splitlines()) == 1, line
        assert "Traceback" not in out + err, line


# --- what the commands do ---------------------------------------------------------------------


def test_train_says_what_came_out(call):
    code, out, err = call("train", *TOY, "--updates", "2")
    assert (code, err) == (0, "")
    assert "budget of updates spent: update 2, 4 episodes" in out
    assert "go on with: pixelpong resume runs/classic-001 --updates 4" in out


def test_train_json_is_one_object_on_stdout(call):
    code, out, err = call("train", *TOY, "--updates", "2", "--json")
    report = json.loads(out)
    assert code == 0
    assert (report["reason"], report["update"], report["episodes"]) == ("updates", 2, 4)
    assert "update 2" in err


def test_inspect_prints_what_the_checkpoint_holds(call, trained):
    code, out, _ = call("inspect", "run", "--json")
    report = json.loads(out)
    assert code == 0
    assert {
        "update", "steps", "episodes", "mean_return_100", "params_sha256", "optimizer_sha256",
        "config", "versions", "wall_seconds",
    } <= set(report)  # fmt: skip
    checkpoint = RunDirectory.open(trained).checkpoints.load(3)
    assert report["params_sha256"] == fingerprint(checkpoint.params)
    assert report["optimizer_sha256"] == fingerprint(checkpoint.optimizer)
    assert (report["update"], report["episodes"], report["config"]["hidden"]) == (3, 6, 10)
    _, text, _ = call("inspect", "run")
    assert report["params_sha256"] in text
    assert max(map(len, text.splitlines()[:9])) <= 100


def test_evaluate_reports_greedy_and_sampled_play(call, trained):
    words = ["evaluate", "run", "--episodes", "5", "--seed", "3", "--workers", "2", "--json"]
    code, out, _ = call(*words)
    report = json.loads(out)
    assert code == 0
    for name in ("greedy", "sampled"):
        assert {"mean_return", "std", "ci95", "returns"} <= set(report[name])
        assert len(report[name]["returns"]) == 5
    _, again, _ = call(*words[:-1], "--engine", "serial", "--json")
    assert json.loads(again) == report
    _, text, _ = call("evaluate", "run", "--episodes", "2", "--engine", "serial")
    assert re.search(r"greedy +mean return −?\d\.\d\d +95 % interval", text)


@pytest.mark.slow
def test_evaluate_on_another_protocol_by_name(call, trained):
    code, out, _ = call("evaluate", "run", "--episodes", "1", "--environment",
                        "PongDeterministic-v4", "--engine", "serial", "--json")  # fmt: skip
    report = json.loads(out)
    assert (code, report["environment"], report["sticky"]) == (0, "PongDeterministic-v4", 0.0)
    assert -21 <= report["greedy"]["mean_return"] <= 21


@pytest.mark.slow
def test_a_presets_flag_can_be_taken_back(call):
    words = ["train", *TOY, "--preset", "ray", "--updates", "1"]
    assert "Batch 1 computed 2 rollouts in" in call(*words)[1]
    assert "Batch" not in call(*words, "--no-verbose")[1]


def test_numpy_preset_prints_its_lines(call):
    code, out, _ = call("train", "--preset", "numpy", *TOY[:4])
    assert code == 0
    assert out.count("point ") == 15
    assert "Batch 1 computed 3 rollouts" in out


@pytest.mark.slow
def test_verify_prints_a_table_of_hashes(call):
    words = ["verify", *TOY[:2], "--updates", "2", "--batch-size", "2", "--presets"]
    code, out, _ = call(*words, "classic")
    rows = out.splitlines()
    assert code == 0
    assert rows[-1] == "classic: all 6 ways gave the same bits"
    assert len({row.split()[0] for row in rows[:-1]}) == 1
    code, out, _ = call(*words, "classic", "--json")
    report = json.loads(out)
    assert report["is_equal"] is True
    names = [way["name"] for way in report["ways"] if way["preset"] == "classic"]
    assert names[:4] == ["serial", *(f"threads, {n} workers" for n in (1, 2, 3))]


@pytest.mark.slow
def test_verify_fails_when_the_bits_differ(call, monkeypatch):
    """A worker that is not a pure function of its item must be found out."""
    real, count = EpisodeWorker.play, iter(range(1000))

    def play(self, item, params):
        result = real(self, item, params)
        result.grads.W2[0] += 1e-3 * next(count)
        return result

    monkeypatch.setattr(EpisodeWorker, "play", play)
    code, out, _ = call("verify", *TOY[:2], "--presets", "classic", "--engines", "serial",
                        "--updates", "2")  # fmt: skip
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
    assert code == 1
    assert len(err.splitlines()) == 1
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


@pytest.mark.slow
def test_changed_options_are_accepted_when_told_to(call, trained):
    assert call("resume", "run", "--updates", "4", "--learning-rate", "0.01")[0] == 2
    code, _, _ = call(
        "resume", "run", "--updates", "4", "--learning-rate", "0.01", "--allow-changes"
    )
    assert code == 0
    assert RunDirectory.open(trained).config.learning.learning_rate == 0.01


@pytest.mark.slow
def test_free_options_change_without_a_word(call, trained):
    words = ["--updates", "4", "--engine", "threads", "--workers", "1", "--save-every", "1"]
    assert call("resume", "run", *words)[0] == 0


def test_a_damaged_newest_checkpoint_warns_and_goes_on(call, tmp_path):
    call("train", *TOY, "--updates", "3", "--save-every", "1", "--run", "run")
    (tmp_path / "run/checkpoints/000003/params.safetensors").write_bytes(b"x")
    code, out, err = call("resume", "run", "--updates", "4")
    assert code == 0
    assert err.startswith("warning: expected a sound checkpoint in run/checkpoints/000003")
    assert "going on after update 2" in out


@pytest.mark.slow
def test_without_the_game_it_is_one_line(call, monkeypatch, tmp_path):
    monkeypatch.setenv("ALE_ROMS_DIR", str(tmp_path / "none"))
    for engine in ("serial", "threads"):
        code, _, err = call("train", "--updates", "1", "--engine", engine)
        assert code == 1
        assert "expected Pong's ROM in the folder in ALE_ROMS_DIR" in err
        assert len(err.splitlines()) == 1


# --- signals ----------------------------------------------------------------------------------


def start_training(folder: Path, *words: str) -> subprocess.Popen:
    """A training in a process group of its own, as a terminal starts it."""
    process = subprocess.Popen(
        [*PIXELPONG, "train", "--run", "run", *words],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0,
    )  # fmt: skip
    metrics = folder / "run" / "metrics.jsonl"
    assert wait_until(lambda: metrics.exists() and metrics.stat().st_size > 0, seconds=60)
    return process


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("engine", ["serial", "threads"])
def test_an_interrupted_training_is_saved_and_leaves_nothing(tmp_path, engine, number):
    """Ctrl-C reaches the whole group, as from a terminal; SIGTERM the driver alone; both twice."""
    shared = set(Path("/dev/shm").iterdir())
    process = start_training(tmp_path, "--updates", "1000", "--batch-size", "2", "--engine", engine)
    children = children_of(process.pid)
    begin = time.monotonic()
    for _ in range(2):
        if number == signal.SIGINT:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        time.sleep(0.05)
    out, err = process.communicate(timeout=30)
    assert time.monotonic() - begin < 5 * patience()
    assert (process.returncode, err) == (130, "")
    update = int(re.search(r"interrupted: update (\d+)", out)[1])
    assert RunDirectory.open(tmp_path / "run").checkpoints.load_latest().update == update
    assert "go on with: pixelpong resume run\n" in out
    assert wait_until(lambda: not any(map(is_alive, children)), seconds=2)
    assert set(Path("/dev/shm").iterdir()) <= shared


@pytest.mark.slow
def test_interrupted_and_resumed_pong_ends_with_the_hash_of_the_undisturbed(tmp_path):
    """The promise, on the real game, by the real command line."""
    words = ["--preset", "classic", "--updates", "3", "--batch-size", "2"]
    process = start_training(tmp_path, *words)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    reports = []
    for command in (["resume", "run"], ["train", "--run", "undisturbed", *words]):
        done = subprocess.run(
            [*PIXELPONG, *command, "--json"],
            cwd=tmp_path, capture_output=True, text=True, check=True,
        )  # fmt: skip
        reports.append(json.loads(done.stdout))
    assert [report["update"] for report in reports] == [3, 3]
    assert reports[0]["params_sha256"] == reports[1]["params_sha256"]


@pytest.mark.slow
def test_a_reader_that_goes_away_ends_the_training_with_everything_saved(tmp_path):
    words = " ".join(TOY)
    command = (
        f"{sys.executable} -m pixelpong train {words} --updates 100000 --run run | head -1; "
        "exit ${PIPESTATUS[0]}"
    )
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
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


@pytest.mark.slow
def test_a_file_of_options_can_come_through_a_pipe(tmp_path):
    words = " ".join(TOY[:4])
    command = (
        f"{sys.executable} -m pixelpong train {words} --engine serial --updates 1 --json "
        "--config <(echo 'batch_size = 5; preset = \"classic\"' | tr ';' '\\n') 2>/dev/null"
    )
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["episodes"] == 5


def test_a_change_that_cannot_work_leaves_the_run_as_it_was(call, trained):
    before = (trained / "config.json").read_bytes()
    code, _, err = call("resume", "run", "--hidden", "20", "--allow-changes", "--updates", "4")
    assert (code, "--hidden" in err) == (1, True)
    assert (trained / "config.json").read_bytes() == before
    assert call("resume", "run", "--updates", "4")[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_a_minus_sign_survives_any_terminal(tmp_path, encoding):
    environment = {**os.environ, "PYTHONUTF8": "0", "PYTHONIOENCODING": encoding}
    done = subprocess.run(
        [*PIXELPONG, "train", *TOY, "--updates", "1", "--run", "ä run"],
        cwd=tmp_path, capture_output=True, env=environment,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert ("−" if encoding == "utf-8" else " -") in done.stdout.decode(encoding)
