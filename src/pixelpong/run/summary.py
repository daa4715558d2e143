"""A run in a few words: its state, its result, its metrics; everything that shows runs uses it.

A run has three returns, and each has one name:

    greedy return      the mean of some games of greedy play, with its interval; it decides
    estimated return   of sampled play, from the share of the last 1,000 points that was won
    mean of the last 100   returns of the last episodes of the training; it lags behind

Only the ends of a run's files are read, and no checkpoint, so hundreds of runs take a second.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pixelpong.config import Config
from pixelpong.errors import MAX_GOT, PixelpongError, on_one_line
from pixelpong.run.alive import is_live
from pixelpong.run.directory import FAILURE_FILE, RunDirectory
from pixelpong.run.lines import EvaluationLine
from pixelpong.run.names import last_change
from pixelpong.run.states import DAMAGED, FAILED, INTERRUPTED, STOPPED, TRAINING, WON
from pixelpong.run.tail import read_end
from pixelpong.schema import Count, Meta, Return, Seconds, convert, decode


@dataclass(frozen=True)
class _Timing:
    wall_seconds: Seconds | None = None


@dataclass(frozen=True)
class _Evaluation(EvaluationLine):
    """A line of ``evaluations.jsonl``: only what a summary needs."""

    returns: tuple[Return, ...] = ()
    is_won: bool = False
    timing: _Timing = _Timing()


@dataclass(frozen=True)
class _Failure:
    error: Annotated[str, Meta(max_length=4 * MAX_GOT)]


@dataclass(frozen=True)
class _Figures:
    """The last line of ``metrics.jsonl``: only what a summary needs."""

    update: Count = 0
    steps: Count = 0
    episodes: Count = 0
    estimated_return: Return | None = None
    mean_return_100: Return | None = None
    timing: _Timing = _Timing()


@dataclass(frozen=True)
class GreedyReturn:
    """What an evaluation of greedy play has found."""

    mean: float  # −21 … 21
    ci95: tuple[float, float]  # of the mean
    games: int
    update: int  # whose agent played
    seconds: float | None = None  # wall time of the run until then
    is_won: bool = False  # whether it confirms the target return


@dataclass(frozen=True)
class Summary:
    """A run in a few words, as of its last update."""

    path: Path
    state: str  # one of `pixelpong.run.states.STATES`
    problem: str = ""  # why it failed or cannot be read
    config: Config | None = None  # None if it cannot be read
    update: int = 0
    steps: int = 0
    episodes: int = 0
    greedy: GreedyReturn | None = None  # the evaluation that won, or else the newest
    estimated_return: float | None = None  # of sampled play; None before the first 1,000 points
    mean_return_100: float | None = None  # of the last 100 episodes
    seconds: float | None = None  # wall time, evaluations included, breaks not
    bytes: int = 0
    modified: float = 0.0  # in seconds since 1970

    @property
    def best_known(self) -> float | None:
        """The greedy return if there is one, otherwise the estimated return."""
        return self.greedy.mean if self.greedy else self.estimated_return

    @property
    def verdict(self) -> str:
        """State and result as one sentence, such as "won: greedy return +18.3 …"."""
        words = {
            TRAINING: f"training, update {self.update}",
            STOPPED: f"not won: budget spent at update {self.update}",
            INTERRUPTED: f"interrupted at update {self.update}",
            FAILED: f"failed at update {self.update}: {self.problem}",
            DAMAGED: f"damaged: {self.problem}",
        }
        greedy = self.greedy
        if self.state == STOPPED and (self.config is None or not self.config.budget.until_return):
            words[STOPPED] = f"budget spent at update {self.update}"
        parts = [words.get(self.state, "won")]
        if greedy is not None:
            low, high = (signed(end) for end in greedy.ci95)
            games = f"{greedy.games} games" if greedy.games else "greedy play"
            parts.append(f"greedy return {signed(greedy.mean)} over {games} ({low} to {high})")
            if greedy.is_won and greedy.seconds is not None:
                parts[-1] += f", after {describe_times(total=greedy.seconds)}"
        elif self.estimated_return is not None:
            parts.append(f"estimated return {signed(self.estimated_return)}")
        return ": ".join(parts) if self.state == WON else "; ".join(parts)


def summarize(path: Path) -> Summary:
    """The summary of a run now; a damaged run raises nothing, and the summary names the problem."""
    common: dict[str, Any] = {
        "path": path,
        "bytes": measure(path),
        "modified": last_change(path) or 0.0,
    }
    try:
        run = RunDirectory.open(path, lambda _: None)  # a summary has no room for warnings
        greedy = _read_greedy(run)
    except (PixelpongError, OSError, ValueError, RecursionError) as error:
        problem = on_one_line(str(error))[:MAX_GOT]
        return Summary(state=DAMAGED, problem=problem, **common)
    figures, failure = _read_figures(path), _read_failure(path)
    if is_live(path):
        state = TRAINING
    elif greedy is not None and greedy.is_won:
        state = WON
    elif failure:
        state = FAILED
    else:
        state = STOPPED if _is_spent(run.config, figures) else INTERRUPTED
    problem = failure if state == FAILED else ""
    known = {name: value for name, value in vars(figures).items() if name != "timing"}
    seconds = figures.timing.wall_seconds
    return Summary(
        state=state,
        problem=problem,
        config=run.config,
        greedy=greedy,
        seconds=seconds,
        **known,
        **common,
    )


def _read_figures(path: Path) -> _Figures:
    for line in reversed(read_end(path / "metrics.jsonl")):
        try:
            return convert(line, _Figures)
        except ValueError:
            continue
    return _Figures()


def _read_greedy(run: RunDirectory) -> GreedyReturn | None:
    known = [
        GreedyReturn(
            it.mean_return, it.ci95, len(it.returns), it.update, it.timing.wall_seconds, it.is_won
        )
        for it in run.evaluations.read_as(_Evaluation)
    ]
    won = [greedy for greedy in known if greedy.is_won]
    return next(reversed(won or known), None)


def _read_failure(path: Path) -> str:
    if not (path / FAILURE_FILE).is_file():
        return ""
    try:
        return on_one_line(decode((path / FAILURE_FILE).read_bytes(), _Failure).error)[:MAX_GOT]
    except (OSError, ValueError):
        return ""


def measure(path: Path) -> int:
    """Bytes of all files in a folder; links are not followed."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(OSError):  # being removed
                total += os.lstat(os.path.join(folder, name)).st_size
    return total


def _is_spent(config: Config, figures: _Figures) -> bool:
    budget = config.budget
    pairs = [
        (budget.updates, figures.update),
        (budget.episodes, figures.episodes),
        (budget.total_timesteps, figures.steps),
    ]
    return any(limit is not None and figure >= limit for limit, figure in pairs)


def signed(value: float | None, digits: int = 1) -> str:
    """A return, with its sign; a dash if there is none.

    >>> signed(18.32), signed(-3.0, 2), signed(-0.04), signed(None)
    ('+18.3', '−3.00', '+0.0', '–')
    """
    return "–" if value is None else f"{value:+z.{digits}f}".replace("-", "−")


def duration(seconds: float) -> str:
    """Hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def describe_times(training: float | None = None, total: float | None = None) -> str:
    """The times of a run, with their names: training leaves out evaluations.

    >>> describe_times(119.0, 7322.0), describe_times(total=51.0)
    ('1:59 of training, 2:02:02 in total', '0:51 in total')
    """
    named = (training, "of training"), (total, "in total")
    return ", ".join(f"{duration(each)} {name}" for each, name in named if each is not None)
