"""A run as terminal, page, plots, sweeps and ``--json`` read it.

    record = Record.read(Path("runs/fast-001"))
    record.state, record.verdict            "won", "won: greedy return +18.47 (…) over 200 games, …"
    record.columns()["estimated_return"]    an array: a value for each update
    record.to_dict()                        the run as JSON

A run has three returns, each with its own name:

    greedy return         the mean over games of greedy play, with its interval; it decides
    estimated return      of sampled play, from the share of the last 1,000 points won
    mean of the last 100  returns of the last 100 training episodes; it lags behind

It has two times: *training*, without evaluations, and *total*, with them; neither counts breaks.

A record shows the files at one moment. A file that has grown is read on from where the last reading
ended. Damaged lines are left out. Checkpoints are not read, so hundreds of runs take a second.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.config import OPTIONS, Config
from pixelpong.errors import MAX_GOT, PixelpongError, on_one_line
from pixelpong.run.directory import FAILURE_FILE, RunDirectory, is_live
from pixelpong.run.lines import Evaluation, Line, stamp_of
from pixelpong.run.names import last_change, list_runs
from pixelpong.run.table import Rows, Seen, Table
from pixelpong.run.words import describe_times, signed
from pixelpong.schema import encode

STATES = (
    TRAINING := "training",  # a process is training it
    WON := "won",  # an evaluation has confirmed its target return
    STOPPED := "stopped",  # its budget is spent
    INTERRUPTED := "interrupted",  # it was stopped or killed, and can continue
    FAILED := "failed",  # it ended with an error
    DAMAGED := "damaged",  # it cannot be read
)

SWEEP_FILE = "sweep.csv"  # marks a folder with the runs of a sweep

_COUNTS = ("update", "steps", "episodes")
_FIGURES = ("estimated_return", "mean_return_100", "training_seconds")
_LISTED = (
    "name", "state", "is_live", "problem", "verdict", "group", *_COUNTS, *_FIGURES,
    "total_seconds", "bytes", "modified",
)  # fmt: skip

# Of the runs that are kept in memory, a row being some 300 bytes.
MAX_RUNS = 5_000
MAX_ROWS = 3_000_000


class Record:
    """One run, read at one moment; `read` caches the records of unchanged runs."""

    run: RunDirectory | None = None  # None if it is damaged
    problem = ""  # the error that ended its last training, or the reason why it cannot be read
    evaluations: tuple[Evaluation, ...] = ()

    def __init__(self, path: Path, seen: Seen | None = None) -> None:
        """Read the run; if it is damaged, nothing is raised, and `problem` says why.

        `seen` has what was read of it before, and then also what is read now.
        """
        self.path, self.is_live = path, is_live(path)  # whether a process trains it
        self.modified = last_change(path)  # in seconds since 1970
        self.rows = Rows(Table())  # of the metrics, with those of ``timing``
        seen = seen or Seen(path)
        try:
            run = RunDirectory(path)
            self.rows, self.evaluations = seen.read_on()
            self.run, self.problem = run, run.read_failure()
        except PixelpongError as error:
            self.problem = str(error)
        self.problem = on_one_line(self.problem)[:MAX_GOT]
        last = self.rows[-1] if self.rows else {}
        self.update, self.steps, self.episodes = (last.get(name) or 0 for name in _COUNTS)
        # The estimated return is None before the first 1,000 points, the mean return before the
        # first episode; the time is without evaluations.
        self.estimated_return, self.mean_return_100, self.training_seconds = map(last.get, _FIGURES)
        times = [last.get("wall_seconds"), *(it.total_seconds for it in self.evaluations)]
        self.total_seconds = max((each for each in times if each is not None), default=None)
        won = [it for it in self.evaluations if it.is_won]
        # The newest evaluation that won, or else the newest.
        self.greedy = next(reversed(won or self.evaluations), None)

    @staticmethod
    def read(path: Path) -> Record:
        """The current record of a run."""
        return _known.read(path)

    @property
    def name(self) -> str:
        """The name of its folder, after that of the sweep if it belongs to one."""
        parent = self.path.parent
        return f"{parent.name}/{self.path.name}" if is_sweep(parent) else self.path.name

    @property
    def config(self) -> Config | None:
        """The configuration; None if it cannot be read."""
        return self.run.config if self.run else None

    @functools.cached_property
    def group(self) -> str | None:
        """A hash shared by all runs of one configuration, whatever their seeds and engines."""
        if self.config is None:
            return None
        own = [name for name, it in OPTIONS.items() if it.section != "engine" and name != "seed"]
        alike = {name: getattr(self.config, name) for name in own}
        return hashlib.sha256(encode(alike)).hexdigest()[:16]

    # ---- metrics

    def columns(self) -> dict[str, NDArray[Any]]:
        """All metrics of all updates, as arrays [N] by name.

        A column is int64 if every row has a whole number; otherwise it is float64, with NaN where a
        row has no value.
        """
        return {name: self.rows.column(name) for name in self.rows.names()}

    def curve(self, name: str = "estimated_return") -> tuple[NDArray[Any], NDArray[Any]]:
        """The steps and a metric of the updates that have both: [N] and [N]."""
        steps, values = self.rows.column("steps"), self.rows.column(name)
        has = np.isfinite(steps) & np.isfinite(values)
        return steps[has], values[has]

    def steps_at(self, updates: Iterable[int]) -> NDArray[np.float64]:
        """The steps at the end of each of these updates; NaN for an unknown update."""
        steps = map(float, self.rows.column("steps"))
        known = dict(zip(map(int, self.rows.column("update")), steps, strict=True))
        return np.array([known.get(update, math.nan) for update in updates], np.float64)

    def returns(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """For each episode the steps at the end of its update, and its return: [N] and [N]."""
        lines = [] if self.run is None else list(self.run.episodes.read(Line))
        steps = self.steps_at(line.update for line in lines)
        values = np.array([line.episode_return for line in lines], np.float64)
        return steps[np.isfinite(steps)], values[np.isfinite(steps)]

    # ---- what it has reached

    @property
    def best_known(self) -> float | None:
        """The greedy return if there is one, otherwise the estimated return."""
        return self.greedy.mean_return if self.greedy else self.estimated_return

    @property
    def state(self) -> str:
        """One of `STATES`."""
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
        """Whether an evaluation has confirmed the target return."""
        return self.greedy is not None and self.greedy.is_won

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to train.

        A training that was killed in its last evaluation must play that again.
        """
        is_evaluated = self.greedy is not None and self.greedy.update == self.update
        has_target = self.config is not None and self.config.until_return is not None
        return self.state == WON or (self.state == STOPPED and (is_evaluated or not has_target))

    @property
    def verdict(self) -> str:
        """State and result in one sentence, such as "won: greedy return +18.47 …"."""
        target = self.config.until_return if self.config else None
        words = {
            TRAINING: f"training, update {self.update}",
            WON: "won",
            STOPPED: "not won: " * (target is not None) + f"budget spent at update {self.update}",
            INTERRUPTED: f"interrupted at update {self.update}",
            FAILED: f"failed at update {self.update}: {self.problem}",
            DAMAGED: f"damaged: {self.problem}",
        }[self.state]
        if (greedy := self.greedy) is not None:
            found = f"greedy return {greedy.found}{greedy.tested}"
            if greedy.target is not None:
                found += f", target {signed(greedy.target)}"
            if greedy.is_won and greedy.total_seconds is not None:
                found += f", after {describe_times(total=greedy.total_seconds)}"
        elif self.estimated_return is not None:
            found = f"estimated return {signed(self.estimated_return)}"
        else:
            return words
        return f"{words}{': ' if self.state == WON else '; '}{found}"

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
        """The run in a list of runs, as JSON."""
        config, greedy = self.config, self.greedy
        return {
            "run": str(self.path),
            **{name: getattr(self, name) for name in _LISTED},
            "preset": config and config.preset,
            "protocol": config and str(config.protocol),
            "seed": config and config.seed,
            "target": config and config.until_return,
            "greedy": greedy and greedy.in_short(),
        }


def records(folder: Path) -> list[Record]:
    """The runs in a folder, the most recently changed first; none if the folder is missing."""
    return [Record.read(path) for path in list_runs(folder)]


def list_sweeps(folder: Path) -> list[Path]:
    """The sweeps in a folder; none if the folder is missing."""
    with contextlib.suppress(OSError):
        return sorted(filter(is_sweep, folder.iterdir()))
    return []


def is_sweep(path: Path) -> bool:
    """Whether a folder holds the runs of a sweep."""
    return os.path.isfile(path / SWEEP_FILE)  # raises no error for a name that is too long


class _Known:
    """The records of the runs that were read last, so that only what is new is read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: dict[Path, tuple[threading.Lock, Seen, list[Any]]] = {}

    def __len__(self) -> int:
        return len(self._records)

    def read(self, path: Path) -> Record:
        """The current record of a run."""
        with self._lock:
            entry = self._records.pop(path, None) or (threading.Lock(), Seen(path), [None, None])
            self._records[path] = entry  # the last one is the one that was asked for last
        lock, seen, newest = entry
        with lock:
            files = "config.json", "metrics.jsonl", "evaluations.jsonl", FAILURE_FILE
            stamp = is_live(path), *(identify(path / name) for name in files)
            if newest[0] != stamp:
                newest[:] = stamp, Record(path, seen)
                self._forget()
            record: Record = newest[1]
            return record

    def _forget(self) -> None:
        """Forget what was not asked for in a long time, if there is much."""
        with self._lock:
            sizes = {path: len(seen.table) for path, (_, seen, _) in self._records.items()}
            rows = sum(sizes.values())
            for path in [*sizes][:-1]:
                if len(self._records) <= MAX_RUNS and rows <= MAX_ROWS:
                    break
                rows -= sizes[path]
                del self._records[path]


def identify(path: Path) -> tuple[int, ...]:
    """The identity of a file's content: inode, size and time; empty if there is no file."""
    try:
        return stamp_of(path.stat())
    except OSError:
        return ()


_known = _Known()
