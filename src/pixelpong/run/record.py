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

A record shows the files at one moment. A file is read again, as a whole, only if it has changed.
Damaged lines are left out. Checkpoints are counted but not read, so hundreds of runs take a second.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.config import OPTIONS, Config
from pixelpong.errors import MAX_GOT, PixelpongError, on_one_line
from pixelpong.run.directory import FAILURE_FILE, RunDirectory, is_live
from pixelpong.run.lines import Evaluation, Line
from pixelpong.run.names import last_change, list_runs
from pixelpong.run.words import describe_times, signed
from pixelpong.schema import Figure, decode, encode

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

_MetricsLine = dict[str, Figure | dict[str, Figure | None] | None]


class Record:
    """One run, read at one moment; `read` caches the records of unchanged runs."""

    run: RunDirectory | None = None  # None if it is damaged
    problem = ""  # the error that ended its last training, or the reason why it cannot be read
    rows: tuple[dict[str, Any], ...] = ()  # of the metrics, with those of ``timing``
    evaluations: tuple[Evaluation, ...] = ()

    def __init__(self, path: Path) -> None:
        """Read the run; if it is damaged, nothing is raised, and `problem` says why."""
        self.path, self.is_live = path, is_live(path)  # whether a process trains it
        self.modified = last_change(path)  # in seconds since 1970
        try:
            run = RunDirectory(path)
            self.evaluations, self.rows = tuple(run.evaluations.read(Evaluation)), _read_rows(run)
            self.run = run
            with contextlib.suppress(OSError, ValueError, KeyError):
                self.problem = decode((path / FAILURE_FILE).read_bytes(), dict[str, str])["error"]
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
        files = "config.json", "metrics.jsonl", "evaluations.jsonl", FAILURE_FILE
        stamp = is_live(path), *(identify(path / name) for name in files)
        if path not in _KNOWN or _KNOWN[path][0] != stamp:
            _KNOWN[path] = stamp, Record(path)
        return _KNOWN[path][1]

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
        names = dict.fromkeys(name for row in self.rows for name in row)
        return {name: _make_column([row.get(name) for row in self.rows]) for name in names}

    def curve(self, name: str = "estimated_return") -> tuple[NDArray[Any], NDArray[Any]]:
        """The steps and a metric of the updates that have both: [N] and [N]."""
        steps, values = (_make_column([row.get(it) for row in self.rows]) for it in ("steps", name))
        has = np.isfinite(steps) & np.isfinite(values)
        return steps[has], values[has]

    def steps_at(self, updates: Iterable[int]) -> NDArray[np.float64]:
        """The steps at the end of each of these updates; NaN for an unknown update."""
        known = {row["update"]: row.get("steps") for row in self.rows}
        return _make_column([known.get(update) for update in updates]).astype(np.float64)

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


_KNOWN: dict[Path, tuple[Any, Record]] = {}
"""The newest record of each run, with the identity of its files."""


def identify(path: Path) -> tuple[int, ...]:
    """The identity of a file's content: inode, size and time; empty if there is no file."""
    try:
        file = path.stat()
    except OSError:
        return ()
    return file.st_ino, file.st_size, file.st_mtime_ns


def _read_rows(run: RunDirectory) -> tuple[dict[str, Any], ...]:
    """The lines of the metrics, without lines whose update does not ascend."""
    rows: list[dict[str, Any]] = []
    for line in run.metrics.read(_MetricsLine):
        timing = line.pop("timing", None)
        if not rows or line["update"] > rows[-1]["update"]:
            rows.append(line | (timing if isinstance(timing, dict) else {}))
    return tuple(rows)


def _make_column(values: list[Any]) -> NDArray[Any]:
    if all(type(value) is int for value in values):
        return np.array(values, np.int64)
    return np.array([math.nan if value is None else value for value in values], np.float64)
