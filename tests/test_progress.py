"""What a training shows: plain lines, the originals' lines, a live display."""

from __future__ import annotations

import io
import re

import pytest

from pixelpong.faces.display import TrainingDisplay, duration, signed
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
    assert lines[0].endswith("run: training, preset classic, Catch-v0, seed 0, engine serial")
    assert len(lines) == 4
    for number, line in enumerate(lines[1:], start=1):
        assert re.fullmatch(
            rf"update {number}  episodes {3 * number}  steps [\d,]+  [\d,]+ steps/s  "
            r"mean of 100 −?\d+\.\d\d  running mean −?\d+\.\d\d  "
            r"points won \d+\.\d % \(–\)  left \d+:\d\d",
            line,
        ), line


def test_verbose_adds_a_line_a_point_an_episode_and_a_batch(make_run):
    lines = lines_of(make_run(verbose=True, updates=2))
    points = [line for line in lines if re.search(r"point (won |lost) at step \d+, \d:\d$", line)]
    episodes = [
        line for line in lines if re.match(r"episode \d: return −?\d in \d+ steps, run", line)
    ]
    batches = [line for line in lines if line.startswith("Batch")]
    assert (len(points), len(episodes), len(batches)) == (2 * 3 * 5, 2 * 3, 2)
    assert re.fullmatch(
        r"Batch 2 computed 3 rollouts in \d+\.\d seconds, running mean is −?\d\.\d", batches[1]
    )


def test_points_count_up_to_the_episodes_result(make_run):
    run = make_run(verbose=True, updates=1)
    lines = lines_of(run)
    for episode in run.episodes.read():
        number = episode["episode"]
        last = [line for line in lines if line.startswith(f"episode {number}: point")][-1]
        assert last.endswith(f"{episode['points_won']}:{episode['points_lost']}")


def test_a_terminal_gets_a_live_display_that_fits(make_run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setenv("TERM", "xterm")
    text = "\n".join(lines_of(make_run(), Terminal()))
    assert "\x1b[" in text
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
    assert max(map(len, plain.replace("\r", "\n").splitlines())) <= 50
    assert "mean of 100" in plain
    assert "running mean" in plain


def test_an_evaluation_is_shown(make_run):
    lines = lines_of(make_run(evaluate_every=3, evaluate_episodes=4))
    assert any(
        re.match(r"update 3: 4 greedy episodes, mean return −?\d\.\d\d \(", li) for li in lines
    )


def test_a_resumed_training_says_so(make_run):
    run = make_run(updates=2)
    train(run)
    run = run.with_config(run.config.updated({"updates": 3}, "test"))
    assert "going on after update 2" in lines_of(run)[0]


def test_time_left_is_of_the_budget_that_is_reached_first():
    from pixelpong.config import BudgetConfig
    from pixelpong.faces.display import _TimeLeft

    clock = _TimeLeft(BudgetConfig(updates=100, steps=1000), Progress(update=0))
    assert clock.share(Progress(update=10, steps=500)) == 0.5
    assert clock.describe(Progress()) == "–"
    clock._begin -= 60
    assert clock.describe(Progress(update=10, steps=500)) == "1:00"
    assert _TimeLeft(BudgetConfig(until_return=18), Progress()).describe(Progress(update=5)) == "–"


def test_numbers_are_written_as_people_write_them():
    assert (signed(-20.456), signed(3, 0), signed(None)) == ("−20.46", "3", "–")
    assert (duration(59.6), duration(61), duration(7322)) == ("1:00", "1:01", "2:02:02")


@pytest.mark.slow
def test_the_live_display_says_where_the_time_of_an_update_went(make_run, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    stream = Terminal()
    train(make_run(engine="threads", workers=2), TrainingDisplay(stream))
    said = stream.getvalue()
    for what in ("rollouts ", "waiting for the slowest ", "learning ", "workers ", "MB moved"):
        assert what in said
    assert re.search(r"2 workers \d+% busy", said)
