"""What a training shows: plain lines, the originals' lines, a live display."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
from dataclasses import replace
from importlib.resources import files

import pytest
from promises import promise
from rich.console import Console
from toys import toy_config, toy_evaluation
from waiting import exit_code, wait_until

import pixelpong
from pixelpong.config.presets import load_preset
from pixelpong.faces.display import FOOTER, LOOKING, Clock, TrainingDisplay, steps_left
from pixelpong.faces.report import describe_ending, show_count
from pixelpong.learners import UpdateStats
from pixelpong.learners.progress import Progress
from pixelpong.loop import Began, Ended, Evaluated, Updated, train
from pixelpong.run.directory import RunDirectory
from pixelpong.run.lines import Evaluation
from pixelpong.run.words import duration
from pixelpong.schema import convert


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def lines_of(run) -> list[str]:
    stream = io.StringIO()
    train(run, TrainingDisplay(stream))
    return stream.getvalue().splitlines()


def test_plain_lines_name_what_people_expect(make_run):
    lines = lines_of(make_run())
    rules = "ALE/Pong-v5 with at most 300 frames"
    assert lines[0].endswith(f"run: training, preset classic, {rules}, seed 0, engine serial")
    assert len(lines) == 4
    for number, line in enumerate(lines[1:], start=1):
        assert re.fullmatch(
            rf"time \d+:\d\d in total  update {number}  steps [\d,]+  episodes {3 * number}  "
            r"points won \d+\.\d %  estimated return –  steps per second [\d,]+  "
            r"mean of the last 100 −?\d+\.\d  at most (\d+:\d\d|–)",
            line,
        ), line
        assert line.endswith("–") == (number == 1), "the first update compiles"


def test_a_new_run_of_another_game_says_at_once_what_takes_so_long(tmp_path, breakout_run):
    """One that is resumed does not, not even from its start: its checkpoint has what was seen."""
    new = RunDirectory.create(tmp_path / "new", RunDirectory(breakout_run).config)
    for run, said in ((new, [LOOKING]), (RunDirectory(breakout_run), [])):
        stream = io.StringIO()
        TrainingDisplay(stream)(Began(run, Progress(), 0.0))
        assert stream.getvalue().splitlines()[1:] == said


def test_verbose_adds_a_line_a_point_an_episode_and_a_batch(make_run):
    run = make_run(verbose=True, updates=2)
    lines = lines_of(run)
    points = [line for line in lines if re.search(r"point (won |lost) at step \d+, \d:\d$", line)]
    episodes = [li for li in lines if re.match(r"episode \d: return −?\d in \d+ steps, run", li)]
    batches = [line for line in lines if line.startswith("Batch")]
    ends = [len(line["point_ends"]) for line in run.episodes.read()]
    assert (len(points), len(episodes), len(batches)) == (sum(ends), 2 * 3, 2)
    assert sum(ends) > 3


def plain(text: str) -> str:
    """What was ever written to a terminal, without its control codes."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).replace("\r", "\n")


@pytest.mark.parametrize("columns", [30, 40, 80])
def test_a_terminal_gets_a_live_display_that_fits_and_no_name_commands_it(
    make_run, monkeypatch, columns
):
    for name, value in (("TERM", "xterm"), ("COLUMNS", str(columns)), ("LINES", "24")):
        monkeypatch.setenv(name, value)
    terminal = Terminal()
    train(make_run("\x1b[2Jx"), TrainingDisplay(terminal))
    assert "\x1b[" in terminal.getvalue()
    assert "\x1b[2Jx" not in terminal.getvalue()
    shown = plain(terminal.getvalue())
    assert max(map(len, shown.splitlines())) <= columns
    for label in ("estimated ret", "points won", "steps per", "in total"):
        assert label in shown
    assert "at most" not in shown[shown.rindex("in total") :], "it has ended"


@pytest.mark.parametrize("width", [39, 79])
def test_nothing_of_the_live_display_is_cut_off_from_40_columns_on(make_run, width):
    display, screens = TrainingDisplay(io.StringIO()), []

    def show(event) -> None:
        display(event)
        if isinstance(event, Updated):
            console = Console(file=io.StringIO(), width=width + 1)
            console.print(display.draw(width))
            screens.append(console.file.getvalue())

    train(make_run(), show)
    for screen in screens:
        _, *lines = screen.splitlines()
        assert not any("…" in line for line in lines), screen
        for words in (*FOOTER, "mean of the last 100", "estimated return", "steps per second"):
            assert words in screen


def test_the_verdict_is_announced_and_nothing_follows_it(make_run, monkeypatch):
    monkeypatch.setattr("pixelpong.evaluation.STAGES", ((3, -1.0),))
    monkeypatch.setattr("pixelpong.evaluation.FEWEST", 3)
    monkeypatch.setattr("pixelpong.session.NEW_GAMES", 3)
    run, stream = make_run(updates=2), io.StringIO()
    winner = run.with_config(run.config.updated({"until_return": -21, "updates": 2}, "test"))
    train(winner, TrainingDisplay(stream, seconds_between_lines=1e9))
    _, first, last, announced, judged = stream.getvalue().splitlines()
    assert (first.count("update 1 "), last.count("update 2 ")) == (1, 1)
    words = "playing greedy games to see whether the mean return is above −21.0"
    assert announced == f"update 2: {words}"
    assert judged.startswith("update 2: won")


@pytest.mark.parametrize(
    ("mean", "more", "words"),
    [
        (17.0, {"target": 18.0}, "update 4: not yet, greedy mean return +17.00 "),
        (18.2, {"target": 18.0}, "update 4: not proven yet, greedy mean return +18.20 "),
        (18.9, {"target": 18.0, "is_won": True}, "update 4: won, greedy mean return +18.90 "),
        (18.9, {}, "update 4: greedy mean return +18.90 "),
    ],
)
def test_an_evaluation_above_its_target_may_still_be_chance(mean, more, words):
    stream, evaluation = io.StringIO(), convert(toy_evaluation(4, mean, **more), Evaluation)
    TrainingDisplay(stream)(Evaluated(Progress(), evaluation))
    (line,) = stream.getvalue().splitlines()
    assert line.startswith(words)
    assert line.endswith(", target +18.0") == ("target" in more)


class Tee:
    """The logger of many a training script: it has no `isatty`, and here it fails, too."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.written = error, ""

    def write(self, text: str) -> None:
        if self.error:
            raise self.error
        self.written += text

    def flush(self) -> None:
        if self.error:
            raise self.error


FAULTS = {
    "whole": None,
    "terminal gone": OSError(errno.EIO, "Input/output error"),
    "disk full": OSError(errno.ENOSPC, "No space left on device"),
    "closed": ValueError("I/O operation on closed file"),
}


@promise("any surroundings")
@pytest.mark.parametrize("quiet", [False, True])
@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_stdout_is_a_training_goes_on(make_run, tmp_path, monkeypatch, fault, quiet):
    options = {"max_frames": 300, "hidden": 8, "batch_size": 2, "engine": "serial", "updates": 2}
    tee = Tee(FAULTS[fault])
    monkeypatch.setattr(sys, "stdout", tee)
    monkeypatch.setattr(sys, "stderr", tee)
    run = pixelpong.train("classic", run=tmp_path / "run", quiet=quiet, every=0, **options)
    show_count(1, 2, "games")
    assert run.update == 2
    assert ("update 2" in tee.written) == (fault == "whole" and not quiet)


def test_without_any_stdout_a_training_goes_on(make_run, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert pixelpong.resume(make_run().path, updates=2).update == 2


def test_letters_that_a_stream_does_not_know_are_spelled_out(make_run):
    stream = io.TextIOWrapper(io.BytesIO(), "ascii")
    train(make_run(), TrainingDisplay(stream))
    stream.seek(0)
    assert r"estimated return \u2013" in stream.read()


def test_only_a_reader_who_goes_ends_a_training(make_run):
    run = make_run()
    with pytest.raises(BrokenPipeError):
        train(run, TrainingDisplay(Tee(BrokenPipeError())))


def test_a_display_that_cannot_be_made_leaves_no_run(tmp_path, monkeypatch):
    monkeypatch.setattr(TrainingDisplay, "__init__", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        pixelpong.train("classic", run=tmp_path / "run", updates=1)
    assert not (tmp_path / "run").exists()


@promise("any surroundings")
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["xterm", "dumb"])
def test_a_terminal_that_goes_away_does_not_end_the_training(tmp_path, monkeypatch, kind):
    """As a window that is closed under `disown` or `setsid`: no signal, and no output any more."""
    monkeypatch.setenv("TERM", kind)
    words = [*WORDS, "--evaluate-every", "20"]
    words[words.index("--updates") + 1] = "60"
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "pixelpong", *words],
        cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    metrics = tmp_path / "run/metrics.jsonl"
    wait_until(lambda: metrics.exists() and metrics.stat().st_size, meanwhile=lambda: read(ours))
    os.close(ours)
    assert exit_code(process) == 0
    assert RunDirectory(tmp_path / "run").checkpoints.updates()[-1] == 60


def read(terminal: int) -> str:
    """Read what a program has written, or writes soon; nothing if it has closed its end."""
    with contextlib.suppress(OSError):
        if select.select([terminal], [], [], 0.05)[0]:
            return os.read(terminal, 65536).decode(errors="replace")
    return ""


ENDS = "are played", " steps"  # of lines that fill the width
WORDS = [
    "train", "--preset", "classic", "--max-frames", "300", "--hidden", "8", "--batch-size", "2",
    "--engine", "serial", "--updates", "1000000", "--save-every", "1000000", "--run", "run",
]  # fmt: skip


@pytest.mark.slow
def test_a_training_draws_itself_anew_in_a_resized_terminal_and_ctrl_c_saves(tmp_path, monkeypatch):
    for name in ("COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "pixelpong", *WORDS],
        cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    metrics = tmp_path / "run/metrics.jsonl"
    for columns in (80, 100, 60):
        termios.tcsetwinsize(ours, (24, columns))
        process.send_signal(signal.SIGWINCH)
        told: list[str] = []

        def is_drawn(told=told, width=columns - 1) -> bool:
            lines = plain("".join(told).rpartition("\x1b[2J")[2]).splitlines()
            return width in {len(line) for line in lines if line.endswith(ENDS)}

        def read_on(told=told) -> None:
            told.append(read(ours))

        wait_until(is_drawn, meanwhile=read_on)
        wait_until(lambda: metrics.exists() and metrics.stat().st_size, meanwhile=read_on)
        assert columns == 80 or "\x1b[2J" in "".join(told), "the old picture stays"
    process.send_signal(signal.SIGINT)
    wait_until(lambda: process.poll() is not None, meanwhile=read_on)
    while text := read(ours):
        told.append(text)
    assert exit_code(process) == 130
    told_all = "".join(told)
    assert re.search(r"interrupted: update \d+.*with:\s+pixelpong resume run", told_all, re.S)
    assert RunDirectory(tmp_path / "run").checkpoints.updates()[-1] > 0
    os.close(ours)


def stats_of(seconds):
    """Of an update that took so long, a third of it to learn."""
    times = {"play_seconds": 9.0, "rollout_seconds": 2 * seconds / 3, "learn_seconds": seconds / 3}
    return UpdateStats(episodes=(), running_means=(), steps=1000, metrics={}, **times)


def test_the_time_left_at_most_is_that_of_the_budget_which_runs_out_first():
    """The first update, which compiles, is not in it; then 6 seconds are a tenth of the budget."""
    clock = Clock(toy_config("classic", updates=10, total_timesteps=1_000_000), 0.0)
    found = [
        clock.count(Progress(update=update, steps=1000 * update), stats_of(seconds))
        for update, seconds in ((1, 60.0), (2, 6.0), (3, 6.0), (10, 42.0))
    ]
    assert found == [{"at most": left} for left in ("–", "0:48", "0:42", "0:00")]


def test_the_time_to_the_win_is_that_of_the_recorded_steps_at_this_training_s_pace():
    clock = Clock(load_preset("fast"), 0.0)
    clock.count(Progress(update=1, steps=4096), stats_of(60.0))
    found = clock.count(Progress(update=2, steps=8192), stats_of(4.096))
    seconds = steps_left(None) / 1000
    assert found["time to the win"] == f"about {duration(seconds)}"


@pytest.mark.parametrize(
    "preset",
    sorted(
        it.stem for it in files("pixelpong.config.presets").iterdir() if it.name.endswith(".toml")
    ),
)
def test_a_win_names_the_preset_that_trains_an_agent_harder_to_play_against(preset):
    """All others have met the built-in opponent alone, and a person may beat them."""
    won = convert(toy_evaluation(4, 19.0, target=18.0, is_won=True), Evaluation)
    facts = {"run": "runs/a", "preset": preset, "machine": "m", "resume": "", "training_seconds": 1}
    facts |= {"total_seconds": 1, "game": "pong", "sampled": None}
    ended = Ended("until_return", Progress(update=4, steps=9), "0" * 64, won)
    said = describe_ending(facts, ended, is_brief=False)
    found = re.findall("for a harder opponent: pixelpong train --preset (.*)", said)
    assert found == ([] if preset == "half" else ["half"])
    assert load_preset("half").opponent == "half"
    lost = Ended("episodes", Progress(update=4), "0" * 64, replace(won, is_won=False))
    assert "harder" not in describe_ending(facts, lost, is_brief=False)
