"""One run as it is shown, in numbers and words; it is only read."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pixelpong.agent.choice import list_updates, name_strength
from pixelpong.agent.health import Record, assess
from pixelpong.config import Config
from pixelpong.errors import PixelpongError, RunError, expected
from pixelpong.run.alive import is_live
from pixelpong.run.directory import FAILURE_FILE, RunDirectory
from pixelpong.run.lines import EvaluationLine
from pixelpong.run.summary import Summary, summarize
from pixelpong.run.tail import Table, Tail
from pixelpong.schema import Return, convert

MAX_LINES = 500  # the newest evaluations are listed
HEALTH_WINDOW = 200  # updates that `assess` gets one by one
SWEEP_FILE = "sweep.csv"  # marks a folder with the runs of a sweep
# A change of one of these files changes the summary.
_SUMMED_UP = ("config.json", "metrics.jsonl", "evaluations.jsonl", FAILURE_FILE)
_FIGURES = ("update", "steps", "episodes", "estimated_return", "mean_return_100", "modified")

Line = dict[str, Any]


@dataclass(frozen=True)
class _Evaluation(EvaluationLine):
    std: Return | None = None
    returns: tuple[Return, ...] = ()


def is_sweep(path: Path) -> bool:
    """Whether a folder holds the runs of a sweep."""
    return (path / SWEEP_FILE).is_file()


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}" if is_sweep(path.parent) else path.name


class View:
    """One run as it is shown; every method but the constructor may read files."""

    def __init__(self, path: Path, run_id: str = "") -> None:
        self.path, self.id = path, run_id
        self._lock = threading.RLock()  # several requests may read it
        self._run: RunDirectory | None = None
        self._problem: str | None = None
        self._config_stamp: tuple[int, ...] = ()
        self._stamp: tuple[Any, ...] = ()
        self._summary: Summary | None = None
        self._metrics = Tail(path / "metrics.jsonl")
        self._lines = Tail(path / "evaluations.jsonl")
        self._table, self._table_id = Table(), ""
        self._evaluations: list[Line] = []

    @property
    def run(self) -> RunDirectory:
        """The opened run."""
        with self._lock:
            self._read_config()
            if self._run is None:
                raise RunError(self._problem or expected("a run", "none", "reload the page"))
            return self._run

    @property
    def stamp(self) -> tuple[int, ...]:
        """Changes if another run takes this one's place."""
        return self._config_stamp

    @property
    def is_there(self) -> bool:
        """Whether the directory still exists."""
        return (self.path / "config.json").is_file()

    def summarize(self) -> dict[str, Any]:
        """The run in the list of runs; little of the files is read."""
        with self._lock:
            self._read_config()
            summary = self._read_summary()
            config = self._run.config if self._run else None
            greedy = summary.greedy
            return {
                "id": self.id,
                "name": _name(self.path),
                "preset": config and config.preset,
                "seed": config and config.seed,
                "target": config and config.budget.until_return,
                "group": _group_of(config),
                **{name: getattr(summary, name) for name in _FIGURES},
                "state": summary.state,
                "verdict": summary.verdict,
                "greedy": greedy and dataclasses.asdict(greedy),
                "is_live": is_live(self.path),
                "problem": self._problem,
            }

    def tell(self, after: int = 0, table: str | None = None) -> dict[str, Any]:
        """All about the run, with its metrics after update `after`.

        If `table` is no longer current (the run was cut back or replaced), all metrics are new.
        """
        with self._lock:
            self._refresh()
            run = self._run
            first = self._table.find(after) if table == self._table_id else 0
            return {
                **self.summarize(),
                "config": run.config.to_flat() if run else {},
                "versions": run.versions if run else {},
                "machine": run.machine if run else {},
                "evaluations": self._evaluations,
                "health": self._assess(),
                "agents": self._list_agents(),
                "best": self._find_best(),
                "table": self._table_id,
                "after": after if first else 0,
                "columns": self._table.columns(first),
            }

    def _list_agents(self) -> list[Line]:
        if self._run is None:
            return []
        try:
            updates = list_updates(self._run)
        except (OSError, RunError):  # being deleted
            return []
        returns = {line["update"]: line["mean_return"] for line in self._evaluations}
        agents = []
        for update in updates:
            row = self._table.row(update)
            greedy = {"greedy": {"mean_return": returns[update]}} if update in returns else {}
            agents.append(
                {
                    "which": str(update),
                    "steps": row.get("steps", 0 if update == 0 else None),
                    "estimated_return": row.get("estimated_return"),
                    "strength": name_strength(row | {"evaluation": greedy}),
                }
            )
        return agents

    def _find_best(self) -> str | None:
        try:
            best = self._run and self._run.checkpoints.find_best()
        except RunError:
            return None
        return None if best is None else str(best)

    def _refresh(self) -> None:
        self._read_config()
        is_anew, lines = self._lines.read()
        known = [] if is_anew else self._evaluations
        self._evaluations = [*known, *filter(None, map(_read_evaluation, lines))][-MAX_LINES:]
        is_anew, lines = self._metrics.read()
        if is_anew or not self._table_id:
            self._table, self._table_id = Table(), os.urandom(4).hex()
        for line in lines:
            self._table.add(line)

    def _read_config(self) -> None:
        try:
            stamp = read_stamp(self.path / "config.json")
            if stamp == self._config_stamp and stamp:
                return
            self._config_stamp, self._run, self._problem = stamp, None, None
            self._run = RunDirectory.open(self.path, _ignore)
        except OSError:
            self._problem = "This directory holds no run any more; was it deleted?"
        except (PixelpongError, ValueError, RecursionError) as error:
            self._problem = " ".join(str(error).split())[:300]

    def _read_summary(self) -> Summary:
        files = (self.path / name for name in _SUMMED_UP)
        stamp = is_live(self.path), self._problem, *map(read_stamp, files)
        if self._summary is None or stamp != self._stamp:
            self._stamp, self._summary = stamp, summarize(self.path)
        return self._summary

    def _assess(self) -> list[dict[str, str]]:
        first = max(0, len(self._table) - HEALTH_WINDOW)
        algorithm = self._run.config.learning.algorithm if self._run else "reinforce"
        recent = self._table.columns(first)
        whole = self._table.columns(max_rows=HEALTH_WINDOW)
        return assess(Record(recent, whole, algorithm))


def read_stamp(path: Path) -> tuple[int, ...]:
    """Identifies what a file holds; empty if there is none."""
    try:
        file = path.stat()
    except OSError:
        return ()
    return file.st_ino, file.st_mtime_ns, file.st_size


def _group_of(config: Config | None) -> str | None:
    """An id shared by all runs whose options differ at most in the seed."""
    if config is None:
        return None
    options = config.to_flat() | {"seed": None}
    return hashlib.sha256(json.dumps(options, default=str).encode()).hexdigest()[:16]


def _read_evaluation(line: Line) -> Line | None:
    """The data of an evaluation's line; None if it is damaged."""
    try:
        return dataclasses.asdict(convert(line, _Evaluation))
    except ValueError:
        return None


def _ignore(message: str) -> None:
    """Drop a run's warnings, which the page shows in its own way."""
