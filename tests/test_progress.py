"""What a training shows: plain lines, the originals' lines, a live display."""

from __future__ import annotations

import functools
import io
import re
import shlex
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest
from conftest import wait_until
from rich.console import Console

from pixelpong.faces import display
from pixelpong.faces.display import TrainingDisplay
from pixelpong.learners.progress import Progress
from pixelpong.loop import train
from pixelpong.run.words import duration


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def lines_of(run, stream=None) -> list[str]:
    stream = stream or io.StringIO()
    train(run, TrainingDisplay(stream))
    return stream.getvalue().splitlines()


def test_plain_lines_name_what_people_expect(make_run):
    lines = lines_of(make_run())
    assert lines[0].endswith("run: training, preset classic, ALE/Pong-v5, seed 0, engine serial")
    assert len(lines) == 4
    for number, line in enumerate(lines[1:], start=1):
        assert re.fullmatch(
            rf"time \d+:\d\d in total  update {number}  steps [\d,]+  games {3 * number}  "
            r"points won \d+\.\d %  estimated return –  steps a second [\d,]+  "
            r"mean of 100 games −?\d+\.\d  at most (\d+:\d\d|–)",
            line,
        ), line
        assert line.endswith("–") == (number == 1), "the first update compiles"


def test_verbose_adds_a_line_a_point_an_episode_and_a_batch(make_run):
    run = make_run(verbose=True, updates=2)
    lines = lines_of(run)
    points = [line for line in lines if re.search(r"point (won |lost) at step \d+, \d:\d$", line)]
    episodes = [li for li in lines if re.match(r"episode \d: return −?\d in \d+ steps, run", li)]
    batches = [line for line in lines if line.startswith("Batch")]
    ends = [len(line["point_ends"]) for line in run.episodes.read()]
    assert (len(points), len(episodes), len(batches)) == (sum(ends), 2 * 3, 2)
    assert sum(ends) > 3
    assert re.fullmatch(
        r"Batch 2 computed 3 rollouts in \d+\.\d seconds, running mean is −?\d\.\d", batches[1]
    )


@pytest.fixture
def terminal(monkeypatch):
    """A terminal of 80 × 24; `plain` is what was ever written to it, without its control codes."""
    for name, value in (("TERM", "xterm"), ("COLUMNS", "80"), ("LINES", "24")):
        monkeypatch.setenv(name, value)
    return Terminal()


def plain(terminal) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue()).replace("\r", "\n")


@pytest.mark.parametrize("columns", [30, 50, 80])
def test_a_terminal_gets_a_live_display_that_fits(make_run, monkeypatch, terminal, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    train(make_run(), TrainingDisplay(terminal))
    assert "\x1b[" in terminal.getvalue()
    assert max(map(len, plain(terminal).splitlines())) <= columns
    for label in ("estimated ret", "points won", "steps a second", "in total"):
        assert label in plain(terminal)
    assert "time to the win" not in plain(terminal).split("run: training")[-1], "at the end"


def test_the_curve_rises_from_the_bottom_left_to_the_top_right():
    from pixelpong.faces.live import draw_curve

    lines = [line.plain for line in draw_curve([(0, -21.0), (500, 0.0), (1000, 21.0)], 18.0, 45)]
    columns = [min(k for k, c in enumerate(line) if c >= "\u2801") for line in lines[:-1]]
    assert columns == sorted(columns, reverse=True)
    assert (columns[0], columns[-1]) == (pytest.approx(44, abs=4), 5)
    assert any(line.startswith(" +18 ") and "┄" in line for line in lines)
    assert lines[-1].split() == ["0", "1,000", "steps"]


def test_an_evaluation_is_shown(make_run):
    said = "\n".join(lines_of(make_run(evaluate_every=3, evaluate_episodes=4)))
    found = r"^update 3: greedy mean return −\d+\.\d\d \(too few .*\) over 4 games"
    assert re.search(found, said, re.M)


@pytest.fixture
def winner(make_run, monkeypatch):
    """A run that wins after two updates, with few games."""
    monkeypatch.setattr("pixelpong.evaluation.VERDICT_EPISODES", 3)
    run = make_run(updates=2)
    return run.with_config(run.config.updated({"until_return": -21, "updates": 2}, "test"))


def test_the_verdict_is_announced_and_nothing_follows_it(winner):
    stream = io.StringIO()
    train(winner, TrainingDisplay(stream, seconds_between_lines=1e9))
    _, first, last, announced, judged = stream.getvalue().splitlines()
    assert (first.count("update 1 "), last.count("update 2 ")) == (1, 1)
    words = "playing greedy games to see whether the mean return is above −21.0"
    assert announced == f"update 2: {words}"
    assert judged.startswith("update 2: won")


def test_the_clock_goes_on_while_games_are_judged(winner, monkeypatch, terminal):
    from pixelpong import session

    said, now = [], 100.0
    monkeypatch.setattr(display.time, "monotonic", lambda: now)
    monkeypatch.setattr(display, "start_live", lambda *_: SimpleNamespace(stop=lambda: None))
    shown, paper = TrainingDisplay(terminal), Console(file=io.StringIO(), width=80)

    def evaluate(*args, **options):
        nonlocal now
        now += 5
        with paper.capture() as screen:
            paper.print(shown.draw(79))
        said.append(re.findall(r"\d:\d\d in total|now: playing greedy games", screen.get()))
        return original(*args, **options)

    original = session.evaluate
    monkeypatch.setattr(session, "evaluate", evaluate)
    train(winner, shown)
    assert said == [["0:05 in total", "now: playing greedy games"]]


def test_a_resumed_training_says_so(make_run):
    run = make_run(updates=2)
    train(run)
    run = run.with_config(run.config.updated({"updates": 3}, "test"))
    assert "resuming after update 2" in lines_of(run)[0]


def test_the_time_to_the_win_is_that_of_the_recorded_trainings():
    from pixelpong.config.presets import load_preset
    from pixelpong.faces.display import steps_left

    fast = load_preset("fast").updated({"seed": 7, "workers": 3}, "test")
    clock, other = (
        display.Clock(config, 0.0) for config in (fast, fast.updated({"hidden": 8}, "test"))
    )
    for steps, seconds in ((4_000, 20.0), (204_000, 10.0)):
        played = Progress(steps=steps, recent_points=[1] * 500 + [-1] * 500)
        stats = SimpleNamespace(rollout_seconds=seconds, learn_seconds=1.0)
        found, of_other = (each.count(played, stats) for each in (clock, other))
        if steps == 4_000:
            assert {*found.values()} == {"–"}, "it has only compiled"
    to_win, at_most = steps_left(0.0) * 11 / 200_000, 11 * (5_000_000 - 204_000) / 200_000
    known = {"time to the win": f"about {duration(to_win)}", "at most": duration(at_most)}
    assert found == known
    assert of_other == {"at most": known["at most"]}, "nothing like it is recorded"


DRAWING = """
import sys
from rich.console import Console
from pixelpong.faces import live
live.REFRESH_PER_SECOND = 20
shown = "the header", [(0, -21.0), (1000, 21.0)], 18.0, {}, ["now", "footer"]
drawing = live.start_live(Console(), lambda width: live.draw_screen(*shown, width))
sys.stdin.readline()
drawing.stop()
"""


@pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux for a terminal that is resized")
def test_a_resize_leaves_no_copies(tmp_path, monkeypatch):
    def tmux(*words: str) -> str:
        command = ["tmux", "-f", "/dev/null", "-S", "terminal", *words]
        return subprocess.run(
            command, cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    def is_drawn(columns: int) -> bool:
        shown = tmux("capture-pane", "-p")
        ends = [len(line) for line in shown.splitlines() if line.endswith("1,000 steps")]
        return ends == [columns - 1] and shown.count("the header") == 1

    for name in ("COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    program = shlex.join([sys.executable, "-c", DRAWING])
    tmux("new-session", "-d", "-x", "80", "-y", "24", program)
    try:
        assert wait_until(functools.partial(is_drawn, 80))
        for columns in (100, 60, 90):
            tmux("resize-window", "-x", str(columns), "-y", "24")
            assert wait_until(functools.partial(is_drawn, columns)), tmux("capture-pane", "-p")
    finally:
        tmux("kill-server")
