"""What a training shows: a live screen on a terminal, plain lines elsewhere.

Both show what it is doing, the share of the last 1,000 points won, the return estimated from it,
steps, speed, and the time to the win. `--verbose` adds the originals' lines (one per point, episode
and batch), and on the screen the times of each update.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from rich.console import Console

from pixelpong.config import Config
from pixelpong.config.presets import load_preset
from pixelpong.engines import EngineStats
from pixelpong.engines.jobs import Begun, Failed
from pixelpong.engines.jobs import Ended as JobEnded
from pixelpong.errors import number_of
from pixelpong.evaluation import MIN_GAMES, TOO_FEW, Evaluation, Verdict
from pixelpong.faces.live import LiveScreen, Screen
from pixelpong.faces.recorded import is_comparable, steps_left
from pixelpong.learners import UpdateStats
from pixelpong.learners.progress import Progress
from pixelpong.loop import Began, Ended, Evaluated, Event, Judged, Judging, Updated
from pixelpong.run.directory import RunDirectory
from pixelpong.run.summary import duration, signed
from pixelpong.sweep.results import Result, read_result

if TYPE_CHECKING:
    from pixelpong.sweep.sweep import Sweep

STARTING = "now: starting; the first training on a machine compiles for some 20 seconds"


class TrainingDisplay:
    """Shows the events of a training on `stream`, live if that is a terminal."""

    def __init__(self, stream: TextIO, seconds_between_lines: float = 0.0) -> None:
        """Show nothing yet; `seconds_between_lines` is a minimum, used without a terminal."""
        self._console = _make_console(stream)
        self._pause, self._next_line = seconds_between_lines, 0.0
        self._held_back: str | None = None
        self._live: LiveScreen | None = None
        self._screen = Screen()
        self._is_verbose = False
        self._clock = Clock(load_preset("fast"), Progress())

    def __call__(self, event: Event) -> None:
        match event:
            case Began(run, progress):
                self._begin(run, progress)
            case Updated(progress, stats, engine):
                self._show(progress, stats, engine)
            case Evaluated(progress, evaluation):
                self._console.print(_evaluation_line(progress.update, evaluation))
            case Judging(progress):
                self._announce(progress)
            case Judged(verdict):
                line = _evaluation_line(verdict.update, verdict.greedy, verdict)
                self._console.print(line)
            case Ended():
                self.close()

    def _begin(self, run: RunDirectory, progress: Progress) -> None:
        self._is_verbose = run.config.display.verbose
        self._clock = Clock(run.config, progress)
        self._screen = Screen(
            _headline(run, progress), run.config.budget.until_return, now=STARTING,
            points=[*_recorded_curve(run)] if progress.update else [],
            footer=["watch it: pixelpong dashboard     Ctrl-C saves everything and ends it"],
        )  # fmt: skip
        if not _can_draw(self._console):
            self._console.print(self._screen.title)
            return
        self._live = LiveScreen(self._console, self._screen)

    def _show(self, progress: Progress, stats: UpdateStats, engine: EngineStats) -> None:
        if self._is_verbose:
            for line in verbose_lines(progress, stats):
                self._console.print(line)
        if self._live is None:
            figures = _figures(progress, stats, self._clock).items()
            self._print_now_and_then("  ".join(f"{name} {value}" for name, value in figures))
            return
        if progress.estimated_return is not None:
            self._screen.points.append((progress.steps, progress.estimated_return))
        self._screen.figures = _figures(progress, stats, self._clock)
        if self._is_verbose:
            self._screen.figures |= _timing(stats, engine)
        self._screen.now = "now: playing and learning"

    def _announce(self, progress: Progress) -> None:
        goal = f"to see whether the mean return is above {signed(self._screen.target, 1)}"
        self._screen.now = f"now: playing greedy games {goal}"
        if self._live is None:
            self._console.print(f"update {progress.update}: playing greedy games {goal}")

    def close(self) -> None:
        """Print what was held back, and leave the terminal as it was."""
        if self._live is not None:
            self._screen.now, self._screen.footer = "", []
            self._live.close()
            self._live = None
        if self._held_back is not None:
            self._console.print(self._held_back)
            self._held_back = None

    def _print_now_and_then(self, line: str) -> None:
        self._held_back = line
        if time.monotonic() >= self._next_line:
            self._console.print(line)
            self._next_line, self._held_back = time.monotonic() + self._pause, None


class SweepDisplay:
    """Prints a line on `stream` for each training of a sweep that begins or ends."""

    def __init__(self, stream: TextIO, sweep: Sweep) -> None:
        self._console, self._sweep = _make_console(stream), sweep
        self._done = sum(result.is_done for result in sweep.results().values())
        self._console.print(f"{sweep.path}: {self._done} of {len(sweep.runs)} trainings are done")

    def __call__(self, event: Begun | JobEnded | Failed | None) -> None:
        """Show an event; None is time that has passed."""
        match event:
            case Begun(name):
                self._console.print(f"{name}: begins")
            case JobEnded(name):
                result = read_result(self._sweep.path / name)
                self._done += result.is_done
                line = f"{_result_line(result)}; {self._done} of {len(self._sweep.runs)} are done"
                self._console.print(f"{name}: {line}")
            case Failed(name, error):
                self._console.print(f"{name}: failed: {error}", markup=False)


def _make_console(stream: TextIO) -> Console:
    # A terminal's lines are folded between words; a file's stay whole, for other programs. A
    # notebook is no terminal, though it says so, and rich would make HTML of each line there.
    is_terminal = stream.isatty()
    return Console(
        file=stream, highlight=False, soft_wrap=not is_terminal,
        force_terminal=is_terminal, force_jupyter=False,
    )  # fmt: skip


def _can_draw(console: Console) -> bool:
    """Whether a live display can be drawn; a dumb terminal gets lines."""
    return console.is_terminal and not console.is_dumb_terminal


def _result_line(result: Result) -> str:
    word = "won" if result.is_won else "not won" if result.is_done else "interrupted"
    took = "" if result.seconds is None else f" in {duration(result.seconds)}"
    line = f"{word}, {result.steps:,} steps{took}, return {signed(result.final_return, 2)}"
    return f"{line}, {result.params_sha256[:8]}" if result.is_done else line


def verbose_lines(progress: Progress, stats: UpdateStats) -> Iterator[str]:
    """The originals' lines for one update: one per point, episode and batch."""
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
            f"in {episode.steps:,} steps, running mean {signed(mean, 2)}"
        )
    seconds = stats.rollout_seconds + stats.learn_seconds
    yield (
        f"Batch {progress.update} computed {len(stats.episodes)} rollouts "
        f"in {seconds:.1f} seconds, running mean is {signed(progress.running_mean, 1)}"
    )


class Clock:
    """How long a training has run since `start`, and how long it will still take."""

    def __init__(self, config: Config, start: Progress) -> None:
        self._budget = config.budget
        # Copied now: the training keeps counting in the same object.
        self._steps_before, self._share_before = start.steps, self.share(start)
        self._is_recorded = is_comparable(config)
        self._begin = time.monotonic()

    @property
    def seconds(self) -> float:
        """Wall time since the start."""
        return time.monotonic() - self._begin

    def to_win(self, progress: Progress) -> float | None:
        """Seconds to the win, by the recorded trainings; None if there are none like this one."""
        played = progress.steps - self._steps_before
        if not self._is_recorded or played <= 0:
            return None
        return steps_left(progress.estimated_return) * self.seconds / played

    def at_most(self, progress: Progress) -> float | None:
        """Seconds until the budget is spent; None if unknown."""
        share, before = self.share(progress), self._share_before
        if share <= before:
            return None
        return self.seconds * (1 - share) / (share - before)

    def share(self, progress: Progress) -> float:
        """The spent share of the budget option that will be reached first, 0 … 1."""
        pairs = (
            (progress.update, self._budget.updates),
            (progress.episodes, self._budget.episodes),
            (progress.steps, self._budget.steps),
        )
        return min(1.0, max((done / goal for done, goal in pairs if goal), default=0.0))


def _figures(progress: Progress, stats: UpdateStats, clock: Clock) -> dict[str, str]:
    to_win, at_most = clock.to_win(progress), clock.at_most(progress)
    return {
        "time": duration(clock.seconds),
        "update": f"{progress.update:,}",
        "steps": f"{progress.steps:,}",
        "games": f"{progress.episodes:,}",
        "points won": _percent(progress.points_won_1000),
        "estimated return": signed(progress.estimated_return),
        "steps a second": f"{stats.steps_per_second:,.0f}",
        "mean of 100 games": signed(progress.mean_return_100),
        "time to the win": "–" if to_win is None else f"about {duration(to_win)}",
        "at most": "–" if at_most is None else duration(at_most),
    }


def _timing(stats: UpdateStats, engine: EngineStats) -> dict[str, str]:
    busy = stats.play_seconds / (engine.workers * stats.rollout_seconds)
    return {
        "rollouts": f"{stats.rollout_seconds:.2f} s",
        "learning": f"{stats.learn_seconds:.3f} s",
        number_of(engine.workers, "worker"): f"{busy:.0%} busy",
    }


def _recorded_curve(run: RunDirectory) -> Iterator[tuple[int, float]]:
    """The curve so far of a continued run."""
    for line in run.metrics.read():
        steps, value = line.get("steps"), line.get("estimated_return")
        if isinstance(steps, int) and isinstance(value, int | float):
            yield steps, float(value)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _headline(run: RunDirectory, progress: Progress) -> str:
    config = run.config
    verb = f"going on after update {progress.update}" if progress.update else "training"
    return (
        f"{run.path}: {verb}, preset {config.preset}, {config.environment.environment}, "
        f"seed {config.seed}, engine {config.engine.engine}"
    )


def _evaluation_line(update: int, evaluation: Evaluation, verdict: Verdict | None = None) -> str:
    low, high = (signed(end, 2) for end in evaluation.ci95)
    within = f"{low} to {high}" if len(evaluation.returns) >= MIN_GAMES else TOO_FEW
    word = target = ""
    if verdict is not None:
        word = "won, " if verdict.is_won else "not yet, "
        target = f", target {signed(verdict.target, 1)}"
    return (
        f"update {update}: {word}{len(evaluation.returns)} greedy episodes, mean return "
        f"{signed(evaluation.mean_return, 2)} ({within}){target}"
    )
