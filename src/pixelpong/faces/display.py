"""What a training shows: a live display on a terminal, plain lines elsewhere.

Both show update, episodes, steps, steps a second, the mean of the last 100 returns, the originals'
running mean, the share of the last 1,000 points that was won and the return that it leads to, and
the time left; the live display also where the time of the last update went. `--verbose` adds the
originals' lines: one a point, one an episode, one a batch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from pixelpong.config import BudgetConfig
from pixelpong.engines import RunStats
from pixelpong.evaluation import Evaluation, Verdict
from pixelpong.learners import UpdateStats
from pixelpong.learners.progress import Progress
from pixelpong.loop import Began, Ended, Evaluated, Event, Judged, Updated
from pixelpong.run.directory import RunDirectory


class TrainingDisplay:
    """Shows the events of a training on `stream`, live if that is a terminal."""

    def __init__(self, stream: TextIO, seconds_between_lines: float = 0.0) -> None:
        """Show nothing yet.

        Args:
            stream: what to write to.
            seconds_between_lines: if it is not a terminal, at least so many, but for the last line.
        """
        # A terminal's lines are folded between words; a file's stay whole, for other programs. A
        # notebook is no terminal, though it says so, and rich would make HTML of each line there.
        is_terminal = stream.isatty()
        self._console = Console(
            file=stream, highlight=False, soft_wrap=not is_terminal,
            force_terminal=is_terminal, force_jupyter=False,
        )  # fmt: skip
        self._pause, self._next_line = seconds_between_lines, 0.0
        self._held_back: str | None = None
        self._live: Live | None = None
        self._is_verbose = False
        self._clock = _TimeLeft(BudgetConfig(), Progress())

    def __call__(self, event: Event) -> None:
        """Show an event."""
        match event:
            case Began(run, progress):
                self._begin(run, progress)
            case Updated(progress, stats, round_):
                self._show(progress, stats, round_)
            case Evaluated(progress, evaluation):
                self._console.print(_evaluation_line(progress.update, evaluation))
            case Judged(verdict):
                line = _evaluation_line(verdict.update, verdict.greedy, verdict)
                self._console.print(line)
            case Ended():
                self.close()

    def _begin(self, run: RunDirectory, progress: Progress) -> None:
        self._is_verbose = run.config.display.verbose
        self._clock = _TimeLeft(run.config.budget, progress)
        self._console.print(_headline(run, progress))
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()

    def _show(self, progress: Progress, stats: UpdateStats, run: RunStats) -> None:
        if self._is_verbose:
            for line in verbose_lines(progress, stats):
                self._console.print(line)
        facts = _facts(progress, stats.steps_per_second, self._clock.describe(progress))
        if self._live is None:
            self._print_now_and_then("  ".join(facts))
            return
        rows = Table.grid(expand=True)
        rows.add_row(ProgressBar(total=1.0, completed=self._clock.share(progress)))
        rows.add_row("   ".join(facts))
        rows.add_row("   ".join(_timing(stats, run)), style="dim")
        self._live.update(rows, refresh=True)

    def close(self) -> None:
        """Nothing more comes: leave the terminal as it was."""
        if self._live is not None:
            self._live.stop()
            self._live = None
        if self._held_back is not None:
            self._console.print(self._held_back)
            self._held_back = None

    def _print_now_and_then(self, line: str) -> None:
        self._held_back = line
        if time.monotonic() >= self._next_line:
            self._console.print(line)
            self._next_line, self._held_back = time.monotonic() + self._pause, None


def verbose_lines(progress: Progress, stats: UpdateStats) -> Iterator[str]:
    """The originals' lines for one update: a line a point, a line an episode, a line a batch."""
    first = progress.episodes - len(stats.episodes) + 1
    numbers = range(first, progress.episodes + 1)
    for number, episode, mean in zip(numbers, stats.episodes, stats.running_means, strict=True):
        won = lost = 0
        for end, reward in zip(episode.point_ends, episode.point_rewards, strict=True):
            won, lost = won + (reward > 0), lost + (reward < 0)
            word = "won " if reward > 0 else "lost"
            yield f"episode {number}: point {word} at step {end + 1}, {won}:{lost}"
        yield (
            f"episode {number}: return {signed(episode.episode_return, 0)} "
            f"in {episode.steps:,} steps, running mean {signed(mean)}"
        )
    seconds = stats.rollout_seconds + stats.reduce_seconds + stats.learn_seconds
    yield (
        f"Batch {progress.update} computed {len(stats.episodes)} rollouts "
        f"in {seconds:.1f} seconds, running mean is {signed(progress.running_mean, 1)}"
    )


def signed(value: float | None, digits: int = 2) -> str:
    """A return as people write it; a dash where there is none yet.

    >>> signed(-20.5), signed(None)
    ('−20.50', '–')
    """
    if value is None:
        return "–"
    return f"{value:.{digits}f}".replace("-", "−")


def duration(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> duration(3725)
    '1:02:05'
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class _TimeLeft:
    """How much of the budget is spent, and how long the rest will take."""

    def __init__(self, budget: BudgetConfig, start: Progress) -> None:
        self._budget = budget
        self._share_at_start = self.share(start)
        self._begin = time.monotonic()

    def share(self, progress: Progress) -> float:
        """The spent share of the budget option that will be reached first, 0 … 1."""
        pairs = (
            (progress.update, self._budget.updates),
            (progress.episodes, self._budget.episodes),
            (progress.steps, self._budget.steps),
        )
        return min(1.0, max((done / goal for done, goal in pairs if goal), default=0.0))

    def describe(self, progress: Progress) -> str:
        """The time that the rest will take at the pace so far; a dash where nobody can know."""
        share = self.share(progress)
        gained = share - self._share_at_start
        if gained <= 0:
            return "–"
        return duration((time.monotonic() - self._begin) * (1 - share) / gained)


def _facts(progress: Progress, steps_per_second: float, left: str) -> list[str]:
    return [
        f"update {progress.update}",
        f"episodes {progress.episodes:,}",
        f"steps {progress.steps:,}",
        f"{steps_per_second:,.0f} steps/s",
        f"mean of 100 {signed(progress.mean_return_100)}",
        f"running mean {signed(progress.running_mean)}",
        f"points won {_percent(progress.points_won_1000)} ({signed(progress.estimated_return, 1)})",
        f"left {left}",
    ]


def _timing(stats: UpdateStats, run: RunStats) -> list[str]:
    """Where the update's time went."""
    busy = stats.play_seconds / (run.workers * stats.rollout_seconds)
    moved = (run.params_bytes + run.bytes_sent + run.bytes_received) / 1e6
    return [
        f"rollouts {stats.rollout_seconds:.2f} s",
        f"of it waiting for the slowest {run.wait_seconds:.2f}",
        f"adding up {stats.reduce_seconds:.3f}",
        f"learning {stats.learn_seconds:.3f}",
        f"{run.workers} workers {busy:.0%} busy",
        f"{moved:.1f} MB moved",
    ]


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _headline(run: RunDirectory, progress: Progress) -> str:
    config = run.config
    verb = f"going on after update {progress.update}" if progress.update else "training"
    emulator = "" if config.environment.is_toy else f", emulator {config.engine.emulator}"
    return (
        f"{run.path}: {verb}, preset {config.preset}, {config.environment.environment}, "
        f"seed {config.seed}, engine {config.engine.engine}{emulator}"
    )


def _evaluation_line(update: int, evaluation: Evaluation, verdict: Verdict | None = None) -> str:
    low, high = evaluation.ci95
    word = target = ""
    if verdict is not None:
        word = "won, " if verdict.is_won else "not yet, "
        target = f", target {signed(verdict.target, 1)}"
    return (
        f"update {update}: {word}{len(evaluation.returns)} greedy episodes, mean return "
        f"{signed(evaluation.mean_return)} ({signed(low)} to {signed(high)}){target}"
    )
