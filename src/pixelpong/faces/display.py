"""What a training shows: a live screen on a terminal, plain lines elsewhere.

Both show what it is doing, the share of the last 1,000 points won, the return estimated from it,
steps, speed, and the time to the win. `--verbose` adds the originals' lines (one per point, episode
and batch), and on the screen the times of each update.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from rich.console import Console

from pixelpong.config import Config
from pixelpong.engines import EngineStats
from pixelpong.engines.jobs import Begun, Failed
from pixelpong.engines.jobs import Ended as JobEnded
from pixelpong.errors import number_of
from pixelpong.evaluation import Evaluation, Verdict
from pixelpong.faces.live import LiveScreen, Screen
from pixelpong.faces.recorded import is_comparable, steps_left
from pixelpong.learners import UpdateStats
from pixelpong.learners.progress import Progress
from pixelpong.loop import Began, Ended, Evaluated, Event, Judged, Judging, Updated
from pixelpong.run.directory import RunDirectory
from pixelpong.run.record import Record
from pixelpong.run.words import describe_mean, describe_times, duration, signed
from pixelpong.sweep.results import Result, read_result

if TYPE_CHECKING:
    from pixelpong.sweep.sweep import Sweep

STARTING = "now: starting; the first training on a machine compiles for some 20 seconds"
_ESTIMATES = "time to the win", "at most"


class TrainingDisplay:
    """Shows the events of a training on `stream`, live if that is a terminal."""

    def __init__(self, stream: TextIO, seconds_between_lines: float = 0.0) -> None:
        """Show nothing yet; `seconds_between_lines` is a minimum, used without a terminal."""
        self._console = _make_console(stream)
        self._pause, self._next_line = seconds_between_lines, 0.0
        self._held_back: list[str] = []
        self._live: LiveScreen | None = None
        self._screen = Screen()
        self._is_verbose = False

    def __call__(self, event: Event) -> None:
        match event:
            case Began(run, progress, seconds):
                self._clock = Clock(run.config, seconds)
                self._begin(run, progress)
            case Updated(progress, stats, engine):
                self._show(progress, stats, engine)
            case Evaluated(progress, evaluation):
                self._say(_evaluation_line(progress.update, evaluation))
            case Judging(progress, games):
                self._announce(progress, games)
            case Judged(verdict):
                self._say(_evaluation_line(verdict.update, verdict.greedy, verdict))
            case Ended():
                self.close()

    def _begin(self, run: RunDirectory, progress: Progress) -> None:
        self._is_verbose = run.config.display.verbose
        self._screen = Screen(
            _headline(run, progress), run.config.budget.until_return,
            clock=self._clock.read, now=lambda: STARTING,
            points=[*zip(*Record.read(run.path).curve(), strict=True)] if progress.update else [],
            footer=["watch it: pixelpong dashboard     Ctrl-C saves everything and ends it"],
        )  # fmt: skip
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            self._live = LiveScreen(self._console, self._screen)
        else:
            self._say(self._screen.title)

    def _show(self, progress: Progress, stats: UpdateStats, engine: EngineStats) -> None:
        if self._is_verbose:
            for line in verbose_lines(progress, stats):
                self._console.print(line)
        self._clock.count(progress, stats)
        figures = _figures(progress, stats, self._clock)
        if self._live is None:
            self._held_back = ["  ".join(f"{name} {value}" for name, value in figures.items())]
            if time.monotonic() >= self._next_line:
                self._say()
                self._next_line = time.monotonic() + self._pause
            return
        if progress.estimated_return is not None:
            self._screen.points.append((progress.steps, progress.estimated_return))
        self._screen.figures = figures | (_timing(stats, engine) if self._is_verbose else {})
        self._screen.now = lambda: "now: playing and learning"

    def _announce(self, progress: Progress, games: Sequence[int]) -> None:
        goal = f"to see whether the mean return is above {signed(self._screen.target, 1)}"
        self._screen.now = lambda: "now: {} of {} games {}".format(*games, goal)
        if self._live is None:
            self._say(f"update {progress.update}: playing greedy games {goal}")

    def close(self) -> None:
        """Print what was held back, and leave the terminal as it was."""
        if self._live is not None:
            self._screen.now, self._screen.footer = str, []
            for name in _ESTIMATES:
                self._screen.figures.pop(name, None)
            self._live.close()
            self._live = None
        self._say()

    def _say(self, *lines: str) -> None:
        """Print what was held back, then these lines."""
        for line in (*self._held_back, *lines):
            self._console.print(line, markup=False)
        self._held_back = []


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


def _result_line(result: Result) -> str:
    word = "won" if result.is_won else "not won" if result.is_done else "interrupted"
    took = "" if result.seconds is None else f", {describe_times(total=result.seconds)}"
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
    """How long a training has taken, and how long it will still take.

    The estimates leave out evaluations, and the first update, which compiles.
    """

    def __init__(self, config: Config, seconds: float) -> None:
        self._budget, self._is_recorded = config.budget, is_comparable(config)
        self._begin = time.monotonic() - seconds
        # Steps and the spent share after the first update, and the seconds of those that follow.
        self._steps, self._share, self._seconds = 0, -1.0, 0.0

    def read(self) -> str:
        """The time of the run until now."""
        return describe_times(total=time.monotonic() - self._begin)

    def count(self, progress: Progress, stats: UpdateStats) -> None:
        """Count an update."""
        if self._share < 0:
            self._steps, self._share = progress.steps, self.share(progress)
        else:
            self._seconds += stats.rollout_seconds + stats.learn_seconds

    def to_win(self, progress: Progress) -> float | None:
        """Seconds to the win, by the recorded trainings; None if there are none like this one."""
        played = progress.steps - self._steps
        if not self._is_recorded or played <= 0:
            return None
        return steps_left(progress.estimated_return) * self._seconds / played

    def at_most(self, progress: Progress) -> float | None:
        """Seconds until the budget is spent; None if unknown."""
        share, before = self.share(progress), self._share
        return None if share <= before else self._seconds * (1 - share) / (share - before)

    def share(self, progress: Progress) -> float:
        """The spent share of the budget option that will be reached first, 0 … 1."""
        pairs = (
            (progress.update, self._budget.updates),
            (progress.episodes, self._budget.episodes),
            (progress.steps, self._budget.total_timesteps),
        )
        return min(1.0, max((done / goal for done, goal in pairs if goal), default=0.0))


def _figures(progress: Progress, stats: UpdateStats, clock: Clock) -> dict[str, str]:
    to_win, at_most = clock.to_win(progress), clock.at_most(progress)
    won = progress.points_won_1000
    return {
        "time": clock.read(),
        "update": f"{progress.update:,}",
        "steps": f"{progress.steps:,}",
        "games": f"{progress.episodes:,}",
        "points won": "–" if won is None else f"{100 * won:.1f} %",
        "estimated return": signed(progress.estimated_return),
        "steps a second": f"{stats.steps_per_second:,.0f}",
        "mean of 100 games": signed(progress.mean_return_100),
        _ESTIMATES[0]: "–" if to_win is None else f"about {duration(to_win)}",
        _ESTIMATES[1]: "–" if at_most is None else duration(at_most),
    }


def _timing(stats: UpdateStats, engine: EngineStats) -> dict[str, str]:
    busy = stats.play_seconds / (engine.workers * stats.rollout_seconds)
    return {
        "rollouts": f"{stats.rollout_seconds:.2f} s",
        "learning": f"{stats.learn_seconds:.3f} s",
        number_of(engine.workers, "worker"): f"{busy:.0%} busy",
    }


def _headline(run: RunDirectory, progress: Progress) -> str:
    config = run.config
    verb = f"going on after update {progress.update}" if progress.update else "training"
    return (
        f"{run.path}: {verb}, preset {config.preset}, {config.environment.environment}, "
        f"seed {config.seed}, engine {config.engine.engine}"
    )


def _evaluation_line(update: int, evaluation: Evaluation, verdict: Verdict | None = None) -> str:
    word = target = ""
    if verdict is not None:
        word = "won, " if verdict.is_won else "not yet, "
        target = f", target {signed(verdict.target)}"
    found = describe_mean(evaluation.mean_return, evaluation.ci95, len(evaluation.returns))
    return f"update {update}: {word}greedy return {found}{target}"
