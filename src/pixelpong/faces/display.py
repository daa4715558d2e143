"""The display of a training run: a live screen on a terminal, plain lines elsewhere.

Both display the current activity, the share of the last 1,000 points won, the return estimated from
it, the steps, the speed, and the time to the win. In games other than Pong they display the mean
score of the last 100 games, also between random play and a person, and the best game. `--verbose`
adds the lines that the original programs print, one per point, episode and batch.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO, cast

from rich.console import Console, RenderableType
from rich.live import Live

from pixelpong.config import Config, differences
from pixelpong.config.presets import load_preset
from pixelpong.config.protocols import PONG
from pixelpong.errors import on_one_line
from pixelpong.faces.gauges import make_gauge
from pixelpong.faces.live import draw_screen, start_live
from pixelpong.faces.report import Outlet
from pixelpong.learners import UpdateStats
from pixelpong.learners.progress import Progress
from pixelpong.loop import Began, Ended, Evaluated, Event, TestStarted, Updated
from pixelpong.run.lines import Evaluation
from pixelpong.run.record import Record
from pixelpong.run.words import describe_times, duration, in_game, signed
from pixelpong.schema import decode

STARTING = "starting; the first run on a machine compiles for about 20 seconds"
LOOKING = (
    "playing at random to see what the game looks like; the first time, it compiles for half a "
    "minute"
)
TO_WIN, AT_MOST = "time to the win", "at most"  # the names of the estimates
FOOTER = ("Ctrl-C saves everything and stops", "watch it: pixelpong dashboard")


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Raise the error, because rich would close the standard output and end the process."""
        raise  # rich calls this while it handles the error


class TrainingDisplay:
    """Displays the events of a training run on `stream`, live if that is a terminal."""

    def __init__(self, stream: Any, seconds_between_lines: float = 0.0) -> None:
        """Prepare a display; `seconds_between_lines` is a minimum if there is no terminal."""
        # Lines are folded on a terminal but stay whole in a file, for other programs. In a
        # notebook, which claims to be a terminal, rich would turn each line into HTML.
        outlet = Outlet(stream)
        is_terminal = outlet.isatty()
        self._console = _Console(
            file=cast(TextIO, outlet), highlight=False, soft_wrap=not is_terminal,
            force_terminal=is_terminal, force_jupyter=False,
        )  # fmt: skip
        self._pause, self._next_line = seconds_between_lines, 0.0
        self._held_back: list[str] = []
        self._live: Live | None = None
        self._footer: tuple[str, ...] = FOOTER
        self._shown: dict[str, str] = {}

    def __call__(self, event: Event) -> None:  # noqa: D102
        match event:
            case Began():
                self._begin(event)
            case Updated(progress, stats):
                self._show(progress, stats)
            case Evaluated(_, evaluation):
                self._say(_evaluation_line(evaluation))
            case TestStarted(progress):
                purpose = f"to see whether the mean return is above {signed(self._target)}"
                self._now = f"playing greedy games {purpose}"
                if self._live is None:
                    self._say(f"update {progress.update}: {self._now}")
            case Ended():
                self.close()

    def _begin(self, event: Began) -> None:
        run, progress, config = event.run, event.progress, event.run.config
        self._clock = Clock(config, event.seconds)
        self._is_verbose, self._target = config.verbose, config.until_return
        self._game = config.game
        self._now = STARTING if run.has_begun or config.game == PONG else LOOKING
        activity = f"resuming after update {progress.update}" if progress.update else "training"
        self._title = on_one_line(
            f"{run.path}: {activity}, preset {config.preset}, {config.protocol}, "
            f"seed {config.seed}, engine {config.engine}"
        )
        record = Record.read(run.path)
        self._points = [*zip(*record.curve(), strict=True)]
        self._metric, self._gauge = record.return_metric, make_gauge(config, record)
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            self._live = start_live(self._console, self.draw)
        else:
            self._say(self._title)
            if self._now == LOOKING:
                self._say(self._now)

    def _show(self, progress: Progress, stats: UpdateStats) -> None:
        if self._is_verbose:
            for line in verbose_lines(progress, stats, self._game):
                self._console.print(line)
        self._now = "playing and learning"
        if (value := getattr(progress, self._metric)) is not None:
            self._points.append((progress.steps, value))
        counts = {name: f"{getattr(progress, name):,}" for name in ("update", "steps", "episodes")}
        self._shown = counts | self._gauge.list_metrics(progress, stats)
        self._shown |= self._clock.count(progress, stats)
        if self._live is None:
            shown = {"time": self._clock.read()} | self._shown
            self._held_back = ["  ".join(f"{name} {value}" for name, value in shown.items())]
            if time.monotonic() >= self._next_line:
                self._say()
                self._next_line = time.monotonic() + self._pause

    def draw(self, width: int) -> RenderableType:
        """Draw the live screen."""
        shown = {"time": self._clock.read()} | self._shown
        line = "     ".join(self._footer)
        footer = [line] if len(line) <= width else self._footer
        rest = [f"now: {self._now}", *footer] if self._footer else []
        bar, axis = self._gauge.draw_bar(self._points), self._gauge.axis(self._points)
        rest = [bar, *rest] if bar and len(bar) <= width else rest
        return draw_screen(self._title, self._points, axis, shown, rest, width)

    def close(self) -> None:
        """Print the lines that were held back, and restore the terminal."""
        if self._live is not None:
            self._footer = ()
            for name in (TO_WIN, AT_MOST):
                self._shown.pop(name, None)
            self._live.stop()
            self._live = None
        self._say()

    def _say(self, *lines: str) -> None:
        """Print the lines that were held back, then these lines."""
        for line in (*self._held_back, *lines):
            self._console.print(line, markup=False)
        self._held_back = []


def verbose_lines(progress: Progress, stats: UpdateStats, game: str = PONG) -> Iterator[str]:
    """Yield the originals' lines for one update: one per point, episode and batch."""
    first = progress.episodes - len(stats.episodes) + 1
    numbers = range(first, progress.episodes + 1)
    for number, episode, mean in zip(numbers, stats.episodes, stats.running_means, strict=True):
        won = lost = 0
        for end, reward in zip(episode.ends, episode.rewards, strict=True):
            if reward > 0:
                won, word = won + 1, "won "
            else:
                lost, word = lost + 1, "lost"
            yield f"episode {number}: point {word} at step {end + 1}, {won}:{lost}"
        yield (
            f"episode {number}: return {in_game(episode.episode_return, game, 0)} "
            f"in {episode.steps:,} steps, running mean {in_game(mean, game, 2)}"
        )
    seconds = stats.rollout_seconds + stats.learn_seconds
    yield (
        f"Batch {progress.update} computed {len(stats.episodes)} rollouts "
        f"in {seconds:.1f} seconds, running mean is {in_game(progress.running_mean, game, 1)}"
    )


class Clock:
    """The time that a run has taken, and estimates of the remaining time.

    The estimates leave out evaluations and the first update, which compiles.
    """

    def __init__(self, config: Config, seconds: float) -> None:
        self._config, self._is_recorded = config, is_comparable(config)
        self._begin = time.monotonic() - seconds
        # The steps and the spent share after the first update, and the time of later updates.
        self._steps, self._seconds = 0, 0.0
        self._share: float | None = None

    def read(self) -> str:
        """Return the total time of the run so far."""
        return describe_times(total=time.monotonic() - self._begin)

    def count(self, progress: Progress, stats: UpdateStats) -> dict[str, str]:
        """Count an update and estimate the time to the win and the time to the end of the budget.

        The time to the win comes from recorded runs like this one. A dash means that a time is
        unknown.
        """
        # The spent share of the budget that will run out first.
        share = min(1.0, max(self._config.spent(progress).values(), default=0.0))
        if self._share is None:
            self._steps, self._share = progress.steps, share
        else:
            self._seconds += stats.rollout_seconds + stats.learn_seconds
        played, spent = progress.steps - self._steps, share - self._share
        to_win = at_most = "–"
        if played > 0:
            seconds = steps_left(progress.estimated_return) * self._seconds / played
            to_win = f"about {duration(seconds)}"
        if spent > 0:
            at_most = duration(self._seconds * (1 - share) / spent)
        if not self._is_recorded:
            return {AT_MOST: at_most}
        return {TO_WIN: to_win, AT_MOST: at_most}


def is_comparable(config: Config) -> bool:
    """Whether a run learns like the recorded ones; seed and engine may differ."""
    fast = load_preset("fast")
    is_same = not differences(fast, config).keys() - {"seed"}
    return is_same and config.until_return == fast.until_return


def steps_left(estimated_return: float | None) -> int:
    """Estimate the steps left until the win at this return: the median of the recorded runs.

    >>> steps_left(None) > steps_left(-10.0) > steps_left(17.0) > 0
    True
    """
    content = Path(__file__).with_name("recorded.json").read_bytes()  # from benchmarks/solve.json
    now = -math.inf if estimated_return is None else estimated_return
    # Rows of an estimated return and the steps left at it, ascending; the first is for the start.
    rows = decode(content, list[tuple[float | None, int]])
    return [steps for reached, steps in rows if reached is None or reached <= now][-1]


def _evaluation_line(evaluation: Evaluation) -> str:
    update, target = evaluation.update, evaluation.target
    if evaluation.game != PONG:
        return f"update {update}: sampled, {evaluation}"
    if target is None:
        return f"update {update}: greedy {evaluation}"
    if evaluation.is_won:
        word = "won"
    elif evaluation.mean_return > target:
        word = "not proven yet"  # this could be chance alone
    else:
        word = "not yet"
    return f"update {update}: {word}, greedy {evaluation}, target {signed(target)}"
