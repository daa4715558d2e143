"""A run as the terminal, the page, plots, sweeps and ``--json`` read it.

    record = Record.read(Path("runs/fast-001"))
    record.state, record.summary            "won", "won after 4:00 in total: greedy return …"
    record.columns()["estimated_return"]    an array: a value for each update
    record.to_dict()                        the run as JSON

A run has three returns with different names:

    greedy return         the mean over games of greedy play, with its interval; it decides
    estimated return      for sampled play, from the share of the last 1,000 points won
    mean of the last 100  the mean return of the last 100 training episodes; it lags behind

In games other than Pong it has a score, the mean over games of sampled play with its interval, and
the mean of the last 100.

It has two times: *training* excludes evaluations, *total* includes them; neither counts breaks.

A record is a snapshot of the files. If a file has grown, only the new part is read. Damaged lines
are left out. Checkpoints are not read, so hundreds of runs take a second.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math
import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.config import OPTIONS, Config
from pixelpong.config.protocols import PONG
from pixelpong.errors import MAX_GOT, PixelpongError, on_one_line
from pixelpong.run.directory import FAILURE_FILE, RunDirectory, is_live
from pixelpong.run.folders import PLAN_FILE, is_making
from pixelpong.run.folders import SWEEP_FILE as SWEEP_FILE
from pixelpong.run.lines import Evaluation, FileIdentity, Line, identity_of
from pixelpong.run.names import last_change, list_runs
from pixelpong.run.table import RunReader, Table
from pixelpong.run.words import compare, describe_times, in_game, signed
from pixelpong.schema import encode
from pixelpong.scores import human_normalised

# The states of a run.
TRAINING = "training"  # a process is training it
WON = "won"  # an evaluation has confirmed the target return that it has now
STOPPED = "stopped"  # its budget is spent
INTERRUPTED = "interrupted"  # it was stopped or killed, and can continue
FAILED = "failed"  # it ended with an error
DAMAGED = "damaged"  # it cannot be read

_COUNTS = ("update", "steps", "episodes")
_METRICS = ("estimated_return", "mean_return_100", "training_seconds")
_LISTED = (
    "name", "state", "is_live", "problem", "group", *_COUNTS, *_METRICS, "total_seconds", "bytes",
    "modified",
)  # fmt: skip


class Record:
    """One run, read at one moment; `read` caches the records of unchanged runs."""

    def __init__(self, path: Path, reader: RunReader | None = None) -> None:
        """Read the run; if it is damaged, raise nothing, and explain it in `problem`.

        A `reader` that has read the run before reads only new data.
        """
        self.path = path
        self.is_live = is_live(path)  # whether a process trains it
        self.modified = last_change(path)  # seconds since 1970
        self.run: RunDirectory | None = None  # None if it is damaged
        self.rows = Table().rows()  # the rows of the metrics, including ``timing``
        self.evaluations: tuple[Evaluation, ...] = ()
        reader = reader or RunReader(path)
        try:
            run = RunDirectory(path)
            self.rows, self.evaluations = reader.read_on()
            self.run, problem = run, run.read_failure()
        except PixelpongError as error:
            problem = str(error)
        # The error that ended the last training, or the reason why the run cannot be read.
        self.problem = on_one_line(problem)[:MAX_GOT]

        last = self.rows[-1] if self.rows else {}
        self.update: int = last.get("update") or 0
        self.steps: int = last.get("steps") or 0
        self.episodes: int = last.get("episodes") or 0
        self.estimated_return: float | None = last.get("estimated_return")  # from 1,000 points on
        self.mean_return_100: float | None = last.get("mean_return_100")  # from one episode on
        self.training_seconds: float | None = last.get("training_seconds")  # without evaluations
        times = [last.get("wall_seconds"), *(it.total_seconds for it in self.evaluations)]
        self.total_seconds = max((time for time in times if time is not None), default=None)
        target = self.run.config.until_return if self.run else None
        reached = [it for it in self.evaluations if it.has_confirmed(target)]
        # The newest evaluation that confirmed the target, or else the newest.
        self.evaluation = next(reversed(reached or self.evaluations), None)

    @staticmethod
    def read(path: Path) -> Record:
        """Return the current record of a run, from the cache of this process."""
        return _cache.read(path)

    @property
    def name(self) -> str:
        """The name of its folder, preceded by the sweep's name if it belongs to a sweep."""
        path = self.path
        with contextlib.suppress(OSError):  # the current folder was removed
            path = Path(os.path.abspath(path))
        return f"{path.parent.name}/{path.name}" if is_sweep(path.parent) else path.name

    @property
    def config(self) -> Config | None:
        """The configuration; None if it cannot be read."""
        return self.run.config if self.run else None

    @property
    def game(self) -> str:
        """The game that it learns; Pong if its configuration cannot be read."""
        return self.config.game if self.config else PONG

    @functools.cached_property
    def group(self) -> str | None:
        """A hash that all runs of one configuration share, whatever their seeds and engines."""
        if self.config is None:
            return None
        shared = {
            name: getattr(self.config, name)
            for name, option in OPTIONS.items()
            if option.section != "engine" and name != "seed"
        }
        return hashlib.sha256(encode(shared)).hexdigest()[:16]

    # ---- metrics

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return all metrics of all updates, as arrays [N] by name.

        A column is int64 if every row has a whole number; otherwise it is float64, with NaN for
        missing values.
        """
        return {name: self.rows.column(name) for name in self.rows.names()}

    @property
    def return_metric(self) -> str:
        """The metric that says best how well it plays in training."""
        return "estimated_return" if self.game == PONG else "mean_return_100"

    def curve(self, name: str | None = None) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the steps and the metric's values, [N] each, for the updates that have both.

        The default is `return_metric`.
        """
        steps, values = self.rows.column("steps"), self.rows.column(name or self.return_metric)
        has_both = np.isfinite(steps) & np.isfinite(values)
        return steps[has_both], values[has_both]

    def steps_at(self, updates: Iterable[int]) -> NDArray[np.float64]:
        """Return the steps at the end of each of these updates; NaN for an unknown update."""
        steps = map(float, self.rows.column("steps"))
        known = dict(zip(map(int, self.rows.column("update")), steps, strict=True))
        return np.array([known.get(update, math.nan) for update in updates], np.float64)

    def returns(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the steps at the end of each episode's update, and the returns, [N] each.

        Episodes that explore are left out, as they are of means.
        """
        lines = [] if self.run is None else self.run.episodes.read(Line)
        lines = [line for line in lines if not line.explores]
        steps = self.steps_at(line.update for line in lines)
        values = np.array([line.episode_return for line in lines], np.float64)
        return steps[np.isfinite(steps)], values[np.isfinite(steps)]

    # ---- results

    @property
    def best_known(self) -> float | None:
        """The evaluation's mean if there is one, otherwise the newest value of `return_metric`."""
        in_training: float | None = getattr(self, self.return_metric)
        return self.evaluation.mean_return if self.evaluation else in_training

    @property
    def state(self) -> str:
        """TRAINING, WON, STOPPED, INTERRUPTED, FAILED or DAMAGED."""
        if self.run is None:
            return DAMAGED
        if self.is_live:
            return TRAINING
        if self.is_won:
            return WON
        if self.problem:
            return FAILED
        return STOPPED if self.run.config.reached(self) else INTERRUPTED

    @property
    def is_won(self) -> bool:
        """Whether an evaluation has confirmed the target return that the run has now."""
        return self.win is not None

    @property
    def win(self) -> Evaluation | None:
        """The first evaluation that confirmed the target return that the run has now."""
        return self._find_win(self.run.config.until_return) if self.run else None

    def has_reached(self, target: float | None) -> bool:
        """Whether an evaluation has confirmed a target return as high as this one."""
        return self._find_win(target) is not None

    def _find_win(self, target: float | None) -> Evaluation | None:
        return next((it for it in self.evaluations if it.has_confirmed(target)), None)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to train, nor to evaluate, as after a kill in an evaluation."""
        is_evaluated = self.evaluation is not None and self.evaluation.update == self.update
        config = self.config
        ends_in_games = config is not None and bool(
            config.until_return is not None or config.final_episodes
        )
        return self.state == WON or (self.state == STOPPED and (is_evaluated or not ends_in_games))

    @property
    def summary(self) -> str:
        """State and result in one sentence, such as "won after 4:00 in total: …"."""
        state, result = self._describe_state(), self.result
        if not result:
            return state
        return f"{state}: {result}" if self.state == WON else f"{state}; {result}"

    def _describe_state(self) -> str:
        spent = f"budget spent at update {self.update}"
        has_target = self.config is not None and self.config.until_return is not None
        return {
            TRAINING: f"training, update {self.update}",
            WON: self._describe_win(),
            STOPPED: f"not won: {spent}" if has_target else spent,
            INTERRUPTED: f"interrupted at update {self.update}",
            FAILED: f"failed at update {self.update}: {self.problem}",
            DAMAGED: f"damaged: {self.problem}",
        }[self.state]

    def _describe_win(self) -> str:
        evaluation = self.evaluation
        if evaluation is None or not evaluation.is_won or evaluation.total_seconds is None:
            return "won"
        return f"won after {describe_times(total=evaluation.total_seconds)}"

    @property
    def result(self) -> str:
        """The best known return in words, such as "greedy return +18.47 …"; "" without one."""
        if self.game != PONG:
            return self._describe_score()
        greedy = self.evaluation
        if greedy is None:
            if self.estimated_return is None:
                return ""
            return f"estimated return {signed(self.estimated_return)}"
        result = f"greedy return {greedy.mean_in_words}{greedy.test_in_words}"
        if greedy.target is not None:
            result += f", target {signed(greedy.target)}"
        won = [it.target for it in self.evaluations if it.is_won and it.target is not None]
        if won and not self.is_won and not greedy.is_won:
            result += f"; it has won the target {signed(max(won))} before"
        return result

    def _describe_score(self) -> str:
        """Describe the result in a game other than Pong."""
        if self.best_known is None:
            return ""
        if self.evaluation is None:
            result = f"mean score of the last 100 games {in_game(self.best_known, self.game)}"
        else:
            result = f"mean score {self.evaluation.mean_in_words}"
        return ", ".join(filter(None, [result, compare(self.best_known, self.game)]))

    # ---- files

    @functools.cached_property
    def bytes(self) -> int:
        """The size of all its files; links are not followed."""
        total = 0
        for folder, _, names in os.walk(self.path):
            for name in names:
                with contextlib.suppress(OSError):  # it is being removed
                    total += os.lstat(os.path.join(folder, name)).st_size
        return total

    def to_dict(self) -> dict[str, Any]:
        """Return the run as JSON, as in a list of runs."""
        config = self.config
        evaluation = self.evaluation.in_short() if self.evaluation else None
        is_pong = self.game == PONG
        return {
            "run": str(self.path),
            **{name: getattr(self, name) for name in _LISTED},
            "verdict": self.summary,
            "result": self.result,
            "game": self.game if config else None,
            "preset": config.preset if config else None,
            "protocol": str(config.protocol) if config else None,
            "rules": config.protocol.list_rules() if config else None,
            "seed": config.seed if config else None,
            "target": config.until_return if config else None,
            # The evaluation, by how it was played: greedy in Pong, sampled in other games.
            "greedy": evaluation if is_pong else None,
            "sampled": None if is_pong else evaluation,
            "human_normalised": human_normalised(self.game, self.best_known),
        }


def records(folder: Path) -> list[Record]:
    """Read the runs in a folder, most recently changed first; none if the folder is missing."""
    return [Record.read(path) for path in list_runs(folder)]


def list_sweeps(folder: Path) -> list[Path]:
    """List the sweeps in a folder; none if the folder is missing."""
    with contextlib.suppress(OSError):
        return sorted(filter(is_sweep, folder.iterdir()))
    return []


def is_sweep(path: Path) -> bool:
    """Whether a folder holds the runs of a sweep; one that is still being made does not count."""
    # `isfile` raises no error for a name that is too long.
    has_file = (os.path.isfile(path / name) for name in (SWEEP_FILE, PLAN_FILE))
    return not is_making(path) and any(has_file)


def identify(path: Path) -> FileIdentity | None:
    """Return the identity of a file, or None if there is no file."""
    try:
        return identity_of(path.stat())
    except OSError:
        return None


# --- the cache --------------------------------------------------------------------------------

# Limits on what the cache keeps in memory; a row takes about 300 bytes.
MAX_RUNS = 5_000
MAX_ROWS = 3_000_000


@dataclass
class _Entry:
    """A run in the cache."""

    reader: RunReader
    lock: threading.Lock = field(default_factory=threading.Lock)
    identity: tuple[object, ...] = ()  # the identity of the files that `record` was read from
    record: Record | None = None


class RecordCache:
    """The records of recently read runs, so that only new data is read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[Path, _Entry] = {}  # least recently read first

    def __len__(self) -> int:
        return len(self._entries)

    def read(self, path: Path) -> Record:
        """Return the current record of a run."""
        with self._lock:
            entry = self._entries.pop(path, None) or _Entry(RunReader(path))
            self._entries[path] = entry
        with entry.lock:
            names = "config.json", "metrics.jsonl", "evaluations.jsonl", FAILURE_FILE
            identity = is_live(path), *(identify(path / name) for name in names)
            if entry.record is None or entry.identity != identity:
                entry.record, entry.identity = Record(path, entry.reader), identity
                self._shrink()
            return entry.record

    def _shrink(self) -> None:
        """Drop the least recently read runs while there are too many runs or rows."""
        with self._lock:
            sizes = {path: len(entry.reader.table) for path, entry in self._entries.items()}
            num_rows = sum(sizes.values())
            for path in [*sizes][:-1]:
                if len(self._entries) <= MAX_RUNS and num_rows <= MAX_ROWS:
                    break
                num_rows -= sizes[path]
                del self._entries[path]


_cache = RecordCache()
