"""One run as it is shown: what it is in numbers and words, read and never written to.

Covered: following its files, what is told of it. Not covered: which runs there are (`library`),
sending news (`live`), what takes long (`background`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pixelpong.agent.choice import list_updates
from pixelpong.agent.health import DeadUnits, Record, assess
from pixelpong.errors import PixelpongError, RunError, expected
from pixelpong.play.replay import Replay
from pixelpong.run.alive import is_live
from pixelpong.run.directory import RunDirectory
from pixelpong.run.lines import EvaluationLine
from pixelpong.run.tail import Columns, Table, Tail, read_end
from pixelpong.schema import Return, convert

MAX_LINES = 500
"""Replays, and evaluations, that are told of: the newest."""

RATE_WINDOW = 20
"""Updates that speed and time left are taken from."""

HEALTH_WINDOW = 200
"""Updates that `health` sees one by one."""

_NUMBERS = ("update", "steps", "episodes", "estimated_return", "mean_return_100")

Position = tuple[int, int]
"""How often a view's table began anew, and the last update in it."""


Line = dict[str, Any]
Lines = list[Line]


@dataclass(frozen=True)
class _Evaluation(EvaluationLine):
    std: Return | None = None
    returns: tuple[Return, ...] = ()


def id_of(path: Path) -> str:
    """The id of a run."""
    return hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]


class View:
    """One run as it is shown; every method but the constructor may read files.

    Attributes:
        path: the run's directory.
        id: of the run.
        lock: held while it is read or asked: several threads may.
        dead: units that were found dead, if they were counted.
        table: the numbers of its metrics.
        position: changes with the table.
        state: which `config.json` was read last: that of another run in its place is another.
    """

    def __init__(self, path: Path) -> None:
        """Look at nothing yet."""
        self.path, self.id = path, id_of(path)
        self.lock = threading.RLock()
        self.dead: DeadUnits | None = None
        self.table = Table()
        self.position: Position = (0, 0)
        self.state: tuple[int, ...] = ()
        self._run: RunDirectory | None = None
        self._problem: str | None = None
        self._tails = {
            name: Tail(path / f"{name}.jsonl") for name in ("metrics", "replays", "evaluations")
        }
        self._replays: list[dict[str, Any]] = []
        self._evaluations: list[dict[str, Any]] = []

    def refresh(self) -> None:
        """Read what is new."""
        with self.lock:
            self._read_config()
            self._replays = self._read_on("replays", self._replays, _pick_replay)
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
        """The run, opened.

        Raises:
            RunError: it cannot be.
        """
        if self._run is None:
            raise RunError(self._problem or expected("a run", "none", "reload the page"))
        return self._run

    @property
    def is_there(self) -> bool:
        """Whether the directory still is."""
        return (self.path / "config.json").is_file()

    def glance(self) -> dict[str, Any]:
        """What the list of runs says of it, from the end of its metrics alone."""
        with self.lock:
            self._read_config()
            end = Table()
            for line in read_end(self.path / "metrics.jsonl"):
                end.add(line)
            return self._summarize(end)

    def _summarize(self, table: Table) -> dict[str, Any]:
        with self.lock:
            flat = self._run.config.to_flat() if self._run else {}
            row = table.row(table.last_update)
            return {
                "id": self.id,
                "name": self.path.name,
                "preset": flat.get("preset"),
                "environment": flat.get("environment"),
                **{name: row.get(name) for name in _NUMBERS},
                "update": table.last_update,
                "is_live": is_live(self.path),
                "modified": last_change(self.path),
                "problem": self._problem,
            }

    def tell_light(self) -> dict[str, Any]:
        """What changes of it from update to update, but for the metrics."""
        with self.lock:
            is_at_work = is_live(self.path)
            speed, left = self._tell_pace()
            return {
                "problem": self._problem,
                "is_live": is_at_work,
                "seconds_left": left if is_at_work else None,
                "steps_per_second": speed,
                "health": self._assess(),
                "replays": [_light_replay(line) for line in self._replays],
                "agents": self.agents(),
            }

    def tell_all(self) -> dict[str, Any]:
        """All there is to say of it but the metrics."""
        with self.lock:
            run = self._run
            return {
                **self._summarize(self.table),
                "config": run.config.to_flat() if run else {},
                "versions": run.versions if run else {},
                "machine": run.machine if run else {},
                "evaluations": self._evaluations,
                **self.tell_light(),
            }

    def columns(self, after: int) -> Columns:
        """The metrics of later updates than this one."""
        with self.lock:
            return self.table.columns(self.table.find(after))

    def agents(self) -> list[dict[str, Any]]:
        """The agents that are kept, with the figures of their updates."""
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
                "is_rounded": update not in whole,
            }
            for update in updates
            for row in (self.table.row(update),)
        ]

    def find_replay(self, episode: int) -> dict[str, Any]:
        """The line of an episode's replay.

        Raises:
            RunError: there is none.
        """
        with self.lock:
            for line in reversed(self._replays):
                if line["episode"] == episode:
                    return line
        raise RunError(expected("an episode with a replay", episode, "choose one of the list"))

    def find_agent(self, update: int) -> dict[str, Any]:
        """The agent of an update, as `agents` tells of it.

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
        """Recent steps a second, and the seconds until the budget is spent, if there is one."""
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


def _pick_replay(line: Line) -> Line | None:
    """What a replay's line has to say, whatever else stands in it; None if it is damaged."""
    try:
        return Replay.from_line(line).to_line()
    except PixelpongError:
        return None


def _pick_evaluation(line: Line) -> Line | None:
    """The same of an evaluation's."""
    try:
        return dataclasses.asdict(convert(line, _Evaluation))
    except ValueError:
        return None


def _ignore(message: str) -> None:
    """The page tells of a run's warnings in its own way."""


def _light_replay(line: Line) -> Line:
    return {name: line[name] for name in ("episode", "update", "episode_return", "steps")}


def last_change(path: Path) -> float | None:
    """When the run last changed, in seconds since 1970."""
    times = []
    for name in ("metrics.jsonl", "config.json"):
        try:
            times.append((path / name).stat().st_mtime)
        except OSError:
            continue
    return max(times, default=None)
