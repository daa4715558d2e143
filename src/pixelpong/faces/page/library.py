"""The runs that are shown: looked up by id, read and never written to.

An id is made of a run's resolved path, and the table of ids of a listing of the runs folder, so
nothing that a request says is ever part of a path. A run that is half-written, of another version
or being deleted is listed with its problem, or not at all.

Covered: ids, lists, what a run is in numbers and words, loading agents.
Not covered: sending news (`live`), what takes long (`reels`).
"""

from __future__ import annotations

import functools
import hashlib
import os
import threading
from collections import OrderedDict, deque
from pathlib import Path
from typing import Any

from pixelpong.agent.choice import list_updates, load_agent
from pixelpong.agent.file import SHIPPED, Agent, load_shipped
from pixelpong.agent.health import DeadUnits, Record, assess
from pixelpong.errors import CheckpointError, PixelpongError, RunError, expected
from pixelpong.faces.page.guard import Refusal
from pixelpong.faces.page.picked import pick_evaluation, pick_replay
from pixelpong.run.alive import is_live
from pixelpong.run.directory import RunDirectory
from pixelpong.run.tail import Columns, Table, Tail, number_of, read_end

PACKAGE = "package"
"""Id of the agent that ships with the package."""

MAX_RUNS = 1000
"""That are listed, the newest of them."""

MAX_LINES = 500
"""Replays, and evaluations, that are told of: the newest."""

RATE_WINDOW = 20
"""Updates that speed and time left are taken from."""

HEALTH_WINDOW = 200
"""Updates that `health` sees one by one."""

_KEPT_VIEWS = 16
_KEPT_CHANGES = 100

_NUMBERS = ("update", "steps", "episodes", "estimated_return", "mean_return_100")


def id_of(path: Path) -> str:
    """The id of a run."""
    return hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]


class View:
    """One run as it is shown; every method but the constructor may read files.

    Attributes:
        path: the run's directory.
        lock: held while it is read or asked: several threads may.
        dead: units that were found dead, where somebody has looked.
        table: the numbers of its metrics.
        version: counts the changes of the table.
        state: which `config.json` was read last: of another run in its place it is another.
    """

    def __init__(self, path: Path) -> None:
        """Look at nothing yet."""
        self.path, self.id = path, id_of(path)
        self.lock = threading.RLock()
        self.dead: DeadUnits | None = None
        self.table = Table()
        self._run: RunDirectory | None = None
        self._problem: str | None = None
        self.state: tuple[int, ...] = ()
        self._tails = {
            name: Tail(path / f"{name}.jsonl") for name in ("metrics", "replays", "evaluations")
        }
        self._lines: dict[str, list[dict[str, Any]]] = {"replays": [], "evaluations": []}
        self.version = 0
        self._changes: deque[int] = deque(maxlen=_KEPT_CHANGES)

    def refresh(self) -> None:
        """Read what is new."""
        with self.lock:
            self._read_config()
            for name in ("replays", "evaluations"):
                is_anew, lines = self._tails[name].read()
                before = [] if is_anew else self._lines[name]
                pick = pick_replay if name == "replays" else pick_evaluation
                known = filter(None, map(pick, lines))
                self._lines[name] = [*before, *known][-MAX_LINES:]
            kept = self._read_metrics()
            if kept is not None:
                self.version += 1
                self._changes.append(kept)

    def kept_since(self, version: int) -> int | None:
        """The update up to which the table is what it was at a version; None where it wholly is."""
        with self.lock:
            num_changes = self.version - version
            if num_changes > len(self._changes):
                return 0
            return min(list(self._changes)[-num_changes:]) if num_changes else None

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
                "modified": _modified(self.path),
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
                "replays": [_light_replay(line) for line in self._lines["replays"]],
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
                "evaluations": self._lines["evaluations"],
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
            Refusal: there is none.
        """
        with self.lock:
            for line in reversed(self._lines["replays"]):
                if line["episode"] == episode:
                    return line
        raise Refusal(404, expected("an episode with a replay", episode, "choose one of the list"))

    def _read_metrics(self) -> int | None:
        """Read on; the update up to which the table is what it was, None where it wholly is."""
        is_anew, lines = self._tails["metrics"].read()
        old, before = self.table, len(self.table)
        if is_anew:
            self.table = Table()
        for line in lines:
            self.table.add(line)
        if not is_anew:
            return old.find_last(before) if len(old) > before else None
        kept = self.table.agreement(old)
        return None if kept == old.last_update == self.table.last_update else kept

    def _read_config(self) -> None:
        file = self.path / "config.json"
        key: tuple[int, ...] = ()
        try:
            state = file.stat()
            key = (state.st_ino, state.st_mtime_ns, state.st_size)
            if key == self.state:
                return
            if not file.is_file():
                raise OSError("no file")
            self._run, self._problem = RunDirectory.open(self.path, _ignore), None
        except OSError:
            key, self._run = (), None
            self._problem = "expected a run, got a directory without one; was it deleted?"
        except (PixelpongError, ValueError, RecursionError) as error:
            self._run, self._problem = None, " ".join(str(error).split())[:300]
        self.state = key

    def _assess(self) -> list[dict[str, str]]:
        first = max(0, len(self.table) - HEALTH_WINDOW)
        algorithm = self._run.config.learning.algorithm if self._run else "reinforce"
        recent = self.table.columns(first, every=True)
        whole = self.table.columns(max_rows=HEALTH_WINDOW)
        return assess(Record(recent, whole, algorithm, self.dead))

    def _tell_pace(self) -> tuple[float | None, float | None]:
        """Steps a second of late, and the seconds until the budget is spent, where it says."""
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
        budget = self._run.config.budget if self._run else None
        for option, column in (("updates", "update"), ("episodes", "episodes"), ("steps", "steps")):
            goal = getattr(budget, option, None)
            if goal is not None and rate(column) > 0:
                left.append(max(0.0, (goal - recent[column][-1]) / rate(column)))
        return rate("steps") or None, min(left, default=None)


class Library:
    """All runs of a folder, and one from elsewhere; `None` for a run is the package's agent."""

    def __init__(self, runs_dir: Path, run: Path | None = None) -> None:
        """List `runs_dir` when asked; it need not be there yet."""
        self._runs_dir, self._own = runs_dir, run
        self._views: OrderedDict[Path, View] = OrderedDict()
        self._glances: OrderedDict[Path, View] = OrderedDict()
        self._lock = threading.Lock()

    def list(self) -> list[dict[str, Any]]:
        """The summaries of all runs, the newest first."""
        found = []
        for path in self._paths().values():
            summary = self._glance(path).glance()
            if (path / "config.json").is_file():
                found.append(summary)
        return sorted(found, key=lambda each: each["modified"] or 0, reverse=True)

    def view(self, run_id: str) -> View:
        """The run of this id, as of now.

        Raises:
            Refusal: there is none.
        """
        path = self._paths().get(run_id)
        if path is None:
            raise Refusal(404, expected("a run of the list", "another id", "reload the page"))
        view = self._view(path)
        view.refresh()
        return view

    def load_agent(self, run_id: str, which: str = "best") -> Agent:
        """An agent by name, see `pixelpong.agent.choice.load_agent`.

        Raises:
            PixelpongError: there is no such run or agent, or it is damaged.
        """
        if run_id == PACKAGE:
            return load_package(SHIPPED[-1] if which in ("0", "best", "latest") else which)
        try:
            return load_agent(self.view(run_id).run, which)
        except Refusal as refusal:
            raise RunError(refusal.text) from refusal
        except OSError as error:  # being deleted
            got = error.strerror or str(error)
            raise CheckpointError(expected("an agent", got, "reload the page")) from error

    def _paths(self) -> dict[str, Path]:
        """The table of ids."""
        paths = []
        try:
            folder = self._runs_dir
            candidates = [folder, *(Path(entry.path) for entry in os.scandir(folder))]
            paths = [path for path in candidates if (path / "config.json").is_file()]
        except OSError:
            pass  # not there yet, or not ours to read
        if len(paths) > MAX_RUNS:
            paths = sorted(paths, key=lambda path: _modified(path) or 0)[-MAX_RUNS:]
        if self._own is not None and (self._own / "config.json").is_file():
            paths.append(self._own)
        return {id_of(path): path.resolve() for path in paths}

    def _view(self, path: Path) -> View:
        return self._keep(self._views, path, _KEPT_VIEWS)

    def _glance(self, path: Path) -> View:
        """The view of a run whose table stays empty: there may be many."""
        return self._keep(self._glances, path, MAX_RUNS)

    def _keep(self, views: OrderedDict[Path, View], path: Path, size: int) -> View:
        with self._lock:
            view = views.pop(path, None) or View(path)
            views[path] = view
            while len(views) > size:
                views.popitem(last=False)
            return view


@functools.cache
def load_package(name: str = SHIPPED[-1]) -> Agent:
    """An agent that ships with the package, the same for all who ask: it is never written to.

    Raises:
        CheckpointError: it is not there, or damaged.
    """
    try:
        return load_shipped(name)
    except OSError as error:
        advice = "train one: pixelpong train --preset fast"
        raise CheckpointError(expected("an agent in the package", "none", advice)) from error


def _light_replay(line: dict[str, Any]) -> dict[str, Any]:
    names = ("episode", "update", "episode_return", "steps")
    return {name: number_of(line[name]) for name in names}


def _modified(path: Path) -> float | None:
    """When the run last changed, in seconds since 1970."""
    times = []
    for name in ("metrics.jsonl", "config.json"):
        try:
            times.append((path / name).stat().st_mtime)
        except OSError:
            continue
    return max(times, default=None)


def _ignore(message: str) -> None:
    """What warnings of a run are for here: the page says it in its own way."""
