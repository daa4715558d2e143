"""The runs that are shown: looked up by id, and only read.

An id is a run's place in the folder, such as ``fast-001`` or ``sweep-001/seed-0``, and is looked up
in a listing, so no part of a request ever becomes part of a path. A run that is half-written, of
another version or being deleted is listed with its problem, or not at all.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
from pathlib import Path
from typing import Any

from pixelpong.agent.choice import load_agent, name_strength
from pixelpong.agent.file import SHIPPED, Agent, load_shipped
from pixelpong.errors import CheckpointError, RunError, expected
from pixelpong.faces.page.health import assess
from pixelpong.run.names import list_runs
from pixelpong.run.record import Record, identify, list_sweeps
from pixelpong.sweep.grid import varied
from pixelpong.sweep.results import make_settings

PACKAGE = "package"  # id of the agents in the package
MAX_RUNS = 1000  # are listed
MAX_EVALUATIONS = 500  # the newest are listed
MAX_ROWS = 2000  # of columns: more than a chart is wide in pixels
MIN_ROWS = 100  # of the columns of each of many runs


class Library:
    """All runs of `runs_dir`, which need not exist yet; `own` is a run or file from elsewhere."""

    def __init__(self, runs_dir: Path, own: Path | None = None) -> None:
        self._runs_dir, self._own = runs_dir, own
        self._place = runs_dir.resolve()

    def list(self) -> list[dict[str, Any]]:
        """All runs in short, the newest first."""
        found = [_tell_in_short(Record.read(path), id) for id, path in self._paths().items()]
        return sorted(found, key=lambda each: each["modified"], reverse=True)

    def record(self, run_id: str) -> Record:
        """The run with this id."""
        path = self._paths().get(run_id)
        if path is None:
            raise RunError(expected("a run of the list", "another id", "reload the page"))
        return Record.read(path)

    def tell(self, run_id: str) -> dict[str, Any]:
        """All about a run; of the package, or of a file, its agents."""
        if run_id == PACKAGE:
            agents = {name: load_package(name) for name in SHIPPED}
            return _tell_of_agents("the agents in the package", PACKAGE, agents)
        if file := self._find_file(run_id):
            return _tell_of_agents(file.name, run_id, {"best": self.load_agent(run_id)})
        return _tell_run(self.record(run_id), run_id)

    def compare(self, ids: str) -> dict[str, Any]:
        """Runs with their curves, the options in which they differ, and what came of each setting.

        There are commas between the ids. A sweep stands for its runs; what is gone is left out.
        """
        asked, paths = ids.split(","), self._paths()
        chosen = [id for id in paths if id in asked or id.split("/")[0] in asked]
        if not chosen:
            raise RunError(expected("runs of the list", "other ids", "reload the page"))
        found = {Record.read(paths[id]): id for id in sorted(chosen, key=lambda id: (len(id), id))}
        rows = max(MIN_ROWS, MAX_ROWS // len(found))
        return {
            "runs": [_tell_curves(record, id, rows) for record, id in found.items()],
            "options": ["seed", *varied(record.config for record in found if record.config)],
            "settings": _summarize(tuple(found.items())),
            "is_live": any(record.is_live for record in found),
        }

    def find_agent(self, run_id: str, which: str) -> tuple[Path | None, str, Any]:
        """Where a saved agent is: path of the run or file, None for the package; name; stamp."""
        path = self._find_file(run_id)
        known, stamp = ["best"] if path else list(SHIPPED), identify(path) if path else None
        if path is None and run_id != PACKAGE:
            record = self.record(run_id)
            known, path = [str(update) for update in record.agents], record.path
            stamp = identify(path / "config.json")
        if which not in known:
            listed = ", ".join(known) or "none yet"
            raise RunError(f"There is no agent of this name. Saved: {listed}.")
        return path, which, stamp

    def load_agent(self, run_id: str, which: str = "best") -> Agent:
        """An agent of a run, of a file or of the package."""
        if run_id == PACKAGE:
            return load_package(SHIPPED[-1] if which in ("best", "latest") else which)
        try:
            if file := self._find_file(run_id):
                return Agent.read(file)
            record = self.record(run_id)
            if record.run is None:
                raise RunError(record.problem)
            return load_agent(record.run, which)
        except OSError as error:  # being deleted
            got = error.strerror or str(error)
            raise CheckpointError(expected("an agent", got, "reload the page")) from error

    def id_of(self, path: Path) -> str:
        """The id of a run or file: no two have the same, and each is a sound part of an address."""
        there = path.resolve()
        is_inside = there.is_relative_to(self._place)
        name = there.relative_to(self._place).as_posix() if is_inside else ""
        if re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)?", name) and name != PACKAGE:
            return name
        mark = hashlib.sha256(os.fsencode(there)).hexdigest()[:8]  # it has no name there
        return re.sub(r"[^\w.-]+", "-", there.name) + f"~{mark}"

    def _find_file(self, run_id: str) -> Path | None:
        own = self._own
        return own if own is not None and own.is_file() and run_id == self.id_of(own) else None

    def _paths(self) -> dict[str, Path]:
        folders = (self._runs_dir, *list_sweeps(self._runs_dir))
        paths = [path for folder in folders for path in list_runs(folder)][:MAX_RUNS]
        for path in (self._runs_dir, self._own):
            if path is not None and os.path.isfile(path / "config.json"):
                paths.append(path)
        return {self.id_of(path): path.resolve() for path in paths}


@functools.lru_cache(8)
def _summarize(found: tuple[tuple[Record, str], ...]) -> list[dict[str, Any]]:
    ids = dict(found)
    return [
        {**setting.summarize(), "runs": [ids[record] for record in setting.records]}
        for setting in make_settings(ids)
    ]


@functools.cache
def load_package(name: str = SHIPPED[-1]) -> Agent:
    """An agent in the package, shared by all requests; it is never changed."""
    try:
        return load_shipped(name)
    except OSError as error:
        advice = "train one: pixelpong train --preset fast"
        raise CheckpointError(expected("an agent in the package", "none", advice)) from error


def _tell_in_short(record: Record, run_id: str) -> dict[str, Any]:
    return {"id": run_id, **record.to_dict()}


def _tell_curves(record: Record, run_id: str, rows: int) -> dict[str, Any]:
    config = record.config.to_flat() if record.config else {}
    curves = {"config": config, "columns": _list_columns(record, rows)}
    return {**_tell_in_short(record, run_id), **curves}


def _tell_run(record: Record, run_id: str) -> dict[str, Any]:
    run, best = record.run, None
    if run is not None:
        with contextlib.suppress(RunError):  # it is being deleted
            best = run.checkpoints.find_best()
    return {
        **_tell_curves(record, run_id, MAX_ROWS),
        "versions": run.versions if run else {},
        "machine": run.machine if run else {},
        "evaluations": [it.in_short() for it in record.evaluations[-MAX_EVALUATIONS:]],
        "health": list(map(vars, assess(record))),
        "agents": _list_agents(record),
        "best": None if best is None else str(best),
    }


def _list_agents(record: Record) -> list[dict[str, Any]]:
    known: dict[int, dict[str, Any]] = {0: {"steps": 0}}
    known |= {row["update"]: row for row in record.rows}
    for line in record.evaluations:
        greedy = {"greedy": {"mean_return": line.mean_return}}
        known[line.update] = known.get(line.update, {}) | {"evaluation": greedy}
    return [_tell_agent(str(update), known.get(update, {})) for update in record.agents]


def _tell_agent(which: str, about: dict[str, Any]) -> dict[str, Any]:
    figures = {name: about.get(name) for name in ("steps", "estimated_return")}
    return {"which": which, "strength": name_strength(about), **figures}


def _list_columns(record: Record, most: int) -> dict[str, list[float | None]]:
    """The metrics, thinned out evenly to at most `most` rows, with the last one."""
    step = max(1, -(-len(record.rows) // most))
    rows = record.rows[::-1][::step][::-1]
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [_shorten(row.get(name)) for row in rows] for name in names}


def _shorten(value: float | None) -> float | None:
    """A figure with as many digits as anybody looks at."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _tell_of_agents(name: str, run_id: str, agents: dict[str, Agent]) -> dict[str, Any]:
    """Agents without a run, as `_tell_run` describes those of one."""
    return {
        "id": run_id,
        "name": name,
        "agents": [_tell_agent(which, agent.about) for which, agent in agents.items()],
        "best": list(agents)[-1],
        "is_live": False,
    }
