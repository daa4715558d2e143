"""One run as it is shown, in numbers and words; it is only read.

Covered: following its files, describing it. Not covered: the list of runs (`library`),
sending updates (`live`), long jobs (`background`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pixelpong.agent.choice import list_updates, name_strength
from pixelpong.agent.health import DeadUnits, Record, assess
from pixelpong.config import Config
from pixelpong.errors import PixelpongError, RunError, expected
from pixelpong.run.alive import is_live
from pixelpong.run.directory import FAILURE_FILE, RunDirectory
from pixelpong.run.lines import EvaluationLine
from pixelpong.run.summary import Summary, summarize
from pixelpong.run.tail import Columns, Table, Tail, read_spread
from pixelpong.schema import Return, convert

MAX_LINES = 500
"""The most evaluations that are listed: the newest."""

RATE_WINDOW = 20
"""Updates used for speed and time left."""

HEALTH_WINDOW = 200
"""Updates that `health` gets one by one."""

CURVE_POINTS = 40
"""Points of the small curve in the list of runs."""

SWEEP_FILE = "sweep.csv"
"""Marks a folder with the runs of a sweep, see `pixelpong.sweep.sweep`."""

_SUMMED_UP = ("config.json", "metrics.jsonl", "evaluations.jsonl", FAILURE_FILE)
"""The files whose change makes another summary."""

_FIGURES = ("update", "steps", "episodes", "estimated_return", "mean_return_100", "modified")

Position = tuple[int, int]
"""How often a view's table was restarted, and the last update in it."""


Line = dict[str, Any]
Lines = list[Line]


@dataclass(frozen=True)
class _Evaluation(EvaluationLine):
    std: Return | None = None
    returns: tuple[Return, ...] = ()


def id_of(path: Path) -> str:
    """The id of a run."""
    return hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]


def is_sweep(path: Path) -> bool:
    """Whether a folder holds the runs of a sweep."""
    return (path / SWEEP_FILE).is_file()


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}" if is_sweep(path.parent) else path.name


class View:
    """One run as it is shown; every method but the constructor may read files.

    Attributes:
        path: the run's directory.
        id: of the run.
        lock: held while it is read or used, since several threads may do so.
        dead: the dead units, if they were counted.
        table: the numbers of its metrics.
        position: changes with the table.
        state: identifies the `config.json` read last; differs if another run replaces this one.
    """

    def __init__(self, path: Path) -> None:
        """Read nothing yet."""
        self.path, self.id = path, id_of(path)
        self.lock = threading.RLock()
        self.dead: DeadUnits | None = None
        self.table = Table()
        self.position: Position = (0, 0)
        self.state: tuple[int, ...] = ()
        self._run: RunDirectory | None = None
        self._problem: str | None = None
        self._stamp: tuple[Any, ...] = ()
        self._summary: Summary | None = None
        self._curve: list[tuple[int, float]] = []
        self._tails = {name: Tail(path / f"{name}.jsonl") for name in ("metrics", "evaluations")}
        self._evaluations: list[dict[str, Any]] = []

    def refresh(self) -> None:
        """Read the new lines."""
        with self.lock:
            self._read_config()
            self._evaluations = self._read_on("evaluations", self._evaluations, _pick_evaluation)
            is_anew, lines = self._tails["metrics"].read()
            if is_anew:
                self.table = Table()
            for line in lines:
                self.table.add(line)
            self.position = (self.position[0] + is_anew, self.table.last_update)

    def _read_on(self, name: str, known: Lines, pick: Callable[[Line], Line | None]) -> Lines:
        is_anew, lines = self._tails[name].read()
        return [*([] if is_anew else known), *filter(None, map(pick, lines))][-MAX_LINES:]

    @property
    def run(self) -> RunDirectory:
        """The opened run.

        Raises:
            RunError: it cannot be opened.
        """
        if self._run is None:
            raise RunError(self._problem or expected("a run", "none", "reload the page"))
        return self._run

    @property
    def is_there(self) -> bool:
        """Whether the directory still exists."""
        return (self.path / "config.json").is_file()

    def glance(self) -> dict[str, Any]:
        """The summary for the list of runs, with a small curve; little of the files is read."""
        with self.lock:
            self._read_config()
            before = self._stamp
            told = self._tell_summary()
            if self._stamp != before:
                self._curve = _read_curve(self.path)
            return {**told, "curve": self._curve}

    def _tell_summary(self) -> dict[str, Any]:
        with self.lock:
            config = self._run.config if self._run else None
            summary = self._summarize()
            return {
                "id": self.id,
                "name": _name(self.path),
                "preset": config and config.preset,
                "environment": config and config.environment.environment,
                "seed": config and config.seed,
                "target": config and config.budget.until_return,
                "group": _group_of(config),
                "bytes": summary.bytes,
                **{name: getattr(summary, name) for name in _FIGURES},
                **self._tell_verdict(),
            }

    def _summarize(self) -> Summary:
        files = (self.path / name for name in _SUMMED_UP)
        stamp = is_live(self.path), self._problem, *map(_read_stamp, files)
        if self._summary is None or stamp != self._stamp:
            self._stamp, self._summary = stamp, summarize(self.path)
        return self._summary

    def _tell_verdict(self) -> dict[str, Any]:
        summary = self._summarize()
        greedy = summary.greedy
        return {
            "state": summary.state,
            "verdict": summary.verdict,
            "greedy": greedy and dataclasses.asdict(greedy),
            "is_live": is_live(self.path),
            "problem": self._problem,
        }

    def tell_light(self) -> dict[str, Any]:
        """The facts that change from update to update, without the metrics."""
        with self.lock:
            verdict, (speed, left) = self._tell_verdict(), self._tell_pace()
            return {
                **verdict,
                "seconds_left": left if verdict["is_live"] else None,
                "steps_per_second": speed,
                "health": self._assess(),
                "replays": [],
                "agents": self.agents(),
            }

    def tell_all(self) -> dict[str, Any]:
        """All facts about it, without the metrics."""
        with self.lock:
            run = self._run
            return {
                **self._tell_summary(),
                "config": run.config.to_flat() if run else {},
                "versions": run.versions if run else {},
                "machine": run.machine if run else {},
                "evaluations": self._evaluations,
                **self.tell_light(),
            }

    def columns(self, after: int) -> Columns:
        """The metrics of the updates after this one."""
        with self.lock:
            return self.table.columns(self.table.find(after))

    def agents(self) -> list[dict[str, Any]]:
        """The saved agents, with the figures of their updates."""
        if self._run is None:
            return []
        try:
            whole = set(self._run.checkpoints.updates())
            updates = list_updates(self._run)
        except OSError:  # being deleted
            return []
        return [
            {
                "update": update,
                "steps": row.get("steps", 0 if update == 0 else None),
                "estimated_return": row.get("estimated_return"),
                "strength": name_strength(row),
                "is_rounded": update not in whole,
            }
            for update in updates
            for row in (self.table.row(update),)
        ]

    def find_agent(self, update: int) -> dict[str, Any]:
        """The agent of an update, as in `agents`.

        Raises:
            RunError: there is none.
        """
        for agent in self.agents():
            if agent["update"] == update:
                return agent
        raise RunError(expected("an agent of the list", update, "choose one of it"))

    def _read_config(self) -> None:
        try:
            file = (self.path / "config.json").stat()
            state = (file.st_ino, file.st_mtime_ns, file.st_size)
            if state == self.state:
                return
            self.state, self._run, self._problem = state, None, None
            self._run = RunDirectory.open(self.path, _ignore)
        except OSError:
            self.state, self._run = (), None
            self._problem = "expected a run, got a directory without one; was it deleted?"
        except (PixelpongError, ValueError, RecursionError) as error:
            self._problem = " ".join(str(error).split())[:300]

    def _assess(self) -> list[dict[str, str]]:
        first = max(0, len(self.table) - HEALTH_WINDOW)
        algorithm = self._run.config.learning.algorithm if self._run else "reinforce"
        recent = self.table.columns(first, every=True)
        whole = self.table.columns(max_rows=HEALTH_WINDOW)
        return assess(Record(recent, whole, algorithm, self.dead))

    def _tell_pace(self) -> tuple[float | None, float | None]:
        """Recent steps per second, and the seconds until the budget is spent, if there is one."""
        recent = self.table.columns(max(0, len(self.table) - RATE_WINDOW), every=True)
        seconds = recent.get("timing.wall_seconds", [])
        if len(seconds) < 2 or None in (seconds[0], seconds[-1]) or seconds[-1] <= seconds[0]:
            known = [value for value in recent.get("timing.steps_per_second", []) if value]
            return (known[-1] if known else None), None
        passed = seconds[-1] - seconds[0]

        def rate(name: str) -> float:
            ends = recent.get(name, [None])
            return 0.0 if None in (ends[0], ends[-1]) else (ends[-1] - ends[0]) / passed

        left = []
        for option, column in (("updates", "update"), ("episodes", "episodes"), ("steps", "steps")):
            goal = getattr(self._run.config.budget, option) if self._run else None
            if goal is not None and rate(column) > 0:
                left.append(max(0.0, (goal - recent[column][-1]) / rate(column)))
        return rate("steps") or None, min(left, default=None)


def _read_curve(path: Path) -> list[tuple[int, float]]:
    """Some points of a run's curve: steps, and the estimated return or else the mean of 100."""
    curve = []
    for line in read_spread(path / "metrics.jsonl", CURVE_POINTS):
        known = (line.get(name) for name in ("estimated_return", "mean_return_100"))
        numbers = [float(each) for each in known if isinstance(each, (int, float))]
        steps = line.get("steps")
        if numbers and abs(numbers[0]) <= 21 and type(steps) is int and 0 <= steps < 1e12:
            curve.append((steps, round(numbers[0], 2)))
    return sorted(curve)


def _read_stamp(path: Path) -> tuple[int, ...]:
    try:
        file = path.stat()
    except OSError:
        return ()
    return file.st_ino, file.st_mtime_ns, file.st_size


def _group_of(config: Config | None) -> str | None:
    """The same for runs whose options are the same but for the seed."""
    if config is None:
        return None
    options = config.to_flat() | {"seed": None}
    return hashlib.sha256(json.dumps(options, default=str).encode()).hexdigest()[:16]


def _pick_evaluation(line: Line) -> Line | None:
    """The facts of an evaluation's line; None if it is damaged."""
    try:
        return dataclasses.asdict(convert(line, _Evaluation))
    except ValueError:
        return None


def _ignore(message: str) -> None:
    """Drop a run's warnings, which the page shows in its own way."""
