"""What a training shows: plain lines, the originals' lines, a live display."""

from __future__ import annotations

import io
import re

import pytest

from pixelpong.faces.display import TrainingDisplay
from pixelpong.learners.progress import Progress
from pixelpong.loop import train


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
            rf"time \d+:\d\d  update {number}  steps [\d,]+  games {3 * number}  "
            r"points won \d+\.\d %  estimated return –  steps a second [\d,]+  "
            r"mean of 100 games −?\d+\.\d  time to the win –  at most \d+:\d\d",
            line,
        ), line


def test_verbose_adds_a_line_a_point_an_episode_and_a_batch(make_run):
    run = make_run(verbose=True, updates=2)
    lines = lines_of(run)
    points = [line for line in lines if re.search(r"point (won |lost) at step \d+, \d:\d$", line)]
    episodes = [
        line for line in lines if re.match(r"episode \d: return −?\d in \d+ steps, run", line)
    ]
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
    for label in ("estimated return", "points won", "steps a second", "time to the win", "at most"):
        assert label in plain(terminal)


def test_the_curve_rises_from_the_bottom_left_to_the_top_right():
    from pixelpong.faces.live import draw_curve

    lines = [line.plain for line in draw_curve([(0, -21.0), (500, 0.0), (1000, 21.0)], 18.0, 45)]
    columns = [min(k for k, c in enumerate(line) if c >= "\u2801") for line in lines[:-1]]
    assert columns == sorted(columns, reverse=True)
    assert (columns[0], columns[-1]) == (pytest.approx(44, abs=4), 5)
    assert any(line.startswith(" +18 ") and "┄" in line for line in lines)
    assert lines[-1].split() == ["0", "1,000", "steps"]


def test_an_evaluation_is_shown(make_run):
    lines = lines_of(make_run(evaluate_every=3, evaluate_episodes=4))
    assert any(
        re.match(r"update 3: 4 greedy episodes, mean return −?\d\.\d\d \(too few", li)
        for li in lines
    )


def test_games_for_the_verdict_are_announced(make_run, monkeypatch):
    monkeypatch.setattr("pixelpong.evaluation.VERDICT_EPISODES", 2)
    monkeypatch.setattr("pixelpong.session.SAMPLED_EPISODES", 2)
    run = make_run(updates=1)
    run = run.with_config(run.config.updated({"until_return": -21, "updates": 1}, "test"))
    *_, announced, judged = lines_of(run)
    words = "playing greedy games to see whether the mean return is above −21.0"
    assert announced == f"update 1: {words}"
    assert judged.startswith("update 1: won")


def test_a_resumed_training_says_so(make_run):
    run = make_run(updates=2)
    train(run)
    run = run.with_config(run.config.updated({"updates": 3}, "test"))
    assert "going on after update 2" in lines_of(run)[0]


def test_the_time_to_the_win_is_that_of_the_recorded_trainings(monkeypatch):
    from pixelpong.config.presets import load_preset
    from pixelpong.faces import display
    from pixelpong.faces.recorded import steps_left

    now = 100.0
    monkeypatch.setattr(display.time, "monotonic", lambda: now)
    fast = load_preset("fast").updated({"seed": 7, "workers": 3}, "test")
    clock, other = (
        display.Clock(config, Progress()) for config in (fast, fast.updated({"hidden": 8}, "test"))
    )
    now += 20
    played = Progress(steps=200_000, recent_points=[1] * 500 + [-1] * 500)
    assert clock.to_win(played) == pytest.approx(steps_left(0.0) * 20 / 200_000)
    assert clock.at_most(played) > clock.to_win(played)
    assert other.to_win(played) is None, "nothing is recorded of such trainings"


@pytest.mark.slow
def test_verbose_says_where_the_time_of_an_update_went(make_run, terminal):
    run = make_run(engine="threads", workers=2, verbose=True, updates=40)
    train(run, TrainingDisplay(terminal))
    said = plain(terminal)
    for what in ("rollouts ", "learning "):
        assert what in said
    assert re.search(r"2 workers +\d+% busy", said)
