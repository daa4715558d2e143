"""What the page shows: runs, the agents in the package and an agent's file, all read-only.

The id of a run is its path in the folder, such as ``fast-001`` or ``sweep-001/seed-0``, and is
looked up in a table, so no part of a request ever becomes part of a path. A run that is
half-written, of another version or being deleted is listed with its problem, or not at all.

Games are played and explained in a process of low priority, so the server and trainings don't wait.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import hashlib
import math
import os
import re
import threading
from collections.abc import Mapping
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from pixelpong.agent.choice import PACKAGE, Agents, find_agents, open_agent
from pixelpong.agent.file import SHIPPED, About, Agent, read_about
from pixelpong.config import ALGORITHMS, OPTIONS, Config
from pixelpong.errors import CheckpointError, RunError
from pixelpong.faces.display import is_comparable, steps_left
from pixelpong.faces.look.reel import make_reel
from pixelpong.faces.page.health import assess
from pixelpong.processes import Processes
from pixelpong.run.names import is_run, list_runs
from pixelpong.run.record import Record, identify, list_sweeps
from pixelpong.sweeps.grid import varied
from pixelpong.sweeps.sweep import make_settings

REELS_KEPT = 20  # the newest, in memory; one takes about a megabyte
MAX_ROWS = 1000  # of columns: more than a chart is wide in pixels
ROWS_EACH, LEAST_ROWS = 100, 20  # of each of several runs, and of each of very many
ROWS_IN_ALL = 10_000  # of very many
SPEED_ROWS = 20  # the newest, from which the speed of a training is known

STRENGTHS = ("untrained", *SHIPPED)  # words for how well an agent plays, and
LIMITS = (-19.0, -5.0, 8.0, 18.0)  # the returns between them: below the first, the first word


class Library:
    """All runs of `runs_dir`, which need not exist yet; `own` is a run or file from elsewhere."""

    def __init__(self, runs_dir: Path, own: Path | None = None) -> None:
        self._runs_dir, self._own = runs_dir, own
        self._pool, self._lock, self._is_closed = Processes(1), threading.Lock(), False
        self._reels = functools.lru_cache(REELS_KEPT)(self._make_reel)

    def list(self) -> dict[str, Any]:
        """All runs in short, the newest first."""
        found = [{"id": id, **Record.read(path).to_dict()} for id, path in self._runs().items()]
        return {"runs": sorted(found, key=lambda each: each["modified"], reverse=True)}

    def tell(self, run_id: str) -> dict[str, Any]:
        """All about a run; for the package or a file, its agents."""
        path = self._find(run_id)
        if path is not None and is_run(path):
            return {"id": run_id, **_tell_run(Record.read(path))}
        name = path.name if path else "the agents in the package"
        about = {"id": run_id, "name": name, "is_live": False}
        return about | _tell_agents(find_agents(path)[0], {})

    def compare(self, ids: str) -> dict[str, Any]:
        """Runs with their curves, the options in which they differ, and each setting's results.

        The ids are separated by commas. A sweep stands for its runs; missing runs are left out.
        """
        asked, paths = ids.split(","), self._runs()
        chosen = [id for id in paths if id in asked or id.split("/")[0] in asked]
        if not chosen:
            raise RunError("None of these runs is in the list; reload the page.")
        found = {Record.read(paths[id]): id for id in sorted(chosen, key=lambda id: (len(id), id))}
        count = len(found)
        rows = max(MAX_ROWS // count, min(ROWS_EACH, ROWS_IN_ALL // count), LEAST_ROWS)
        return {
            "runs": [{"id": id, **_tell_curves(record, rows)} for record, id in found.items()],
            "options": ["seed", *varied(record.config for record in found if record.config)],
            "settings": _summarize(tuple(found.items())),
            "is_live": any(record.is_live for record in found),
        }

    def reel(self, run_id: str, which: str, seed: int = 0, episode: int = 0) -> dict[str, Any]:
        """A game of a saved agent (`pixelpong.faces.look.reel`), played now or recently."""
        if max(seed, episode) >= 2**53:
            raise RunError("The number of the seed or of the game is too large.")
        path = self._find(run_id)
        found, _ = find_agents(path)
        if which not in found.files:
            listed = ", ".join(found.files) or "none yet"
            raise RunError(f"There is no agent with this name. Saved: {listed}.")
        with self._lock:
            stamp = tuple(map(identify, found.files[which]))
            return self._reels(path, which, seed, episode, stamp)

    def _make_reel(
        self, path: Path | None, which: str, seed: int, episode: int, stamp: Any
    ) -> dict[str, Any]:
        """A new reel; `stamp` changes with the agent."""
        try:
            made: dict[str, Any] = self._pool.submit(
                play_and_explain, path, which, seed, episode
            ).result()
            return made
        except (BrokenProcessPool, CancelledError):  # killed while it played, or before
            if not self._is_closed:
                self._pool = Processes(1)
            raise RunError("The process that plays games crashed. Try again.") from None

    def close(self) -> None:
        """End the process that makes reels."""
        self._is_closed = True
        self._pool.kill()

    def load_agent(self, run_id: str, which: str = "best") -> Agent:
        """Load an agent of a run, a file or the package; ``"best"`` and ``"latest"`` are names."""
        return find_agents(self._find(run_id))[0].load(which)

    def id_of(self, path: Path | None) -> str:
        """The id of a run or file, which is unique and safe in a URL."""
        if path is None:
            return PACKAGE
        name = Path(os.path.relpath(path, self._runs_dir)).as_posix()
        if re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)?", name) and name != PACKAGE:
            return name
        mark = hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:8]
        return re.sub(r"[^\w.-]+", "-", path.name) + f"~{mark}"

    def _find(self, run_id: str) -> Path | None:
        """The path of the run or file with this id; None for the package."""
        known = {PACKAGE: None, self.id_of(self._own): self._own, **self._runs()}
        if run_id not in known:
            raise RunError("This run is not in the list; reload the page.")
        return known[run_id]

    def _runs(self) -> dict[str, Path]:
        folders = (self._runs_dir, *list_sweeps(self._runs_dir))
        paths = [path for folder in folders for path in list_runs(folder)]
        own = [path for path in (self._runs_dir, self._own) if path is not None and is_run(path)]
        return {self.id_of(path): path for path in [*paths, *own]}


def play_and_explain(path: Path | None, which: str, seed: int, episode: int) -> dict[str, Any]:
    """The reel of a greedy game; `path` is a run or an agent's file, None the package."""
    _, agent = open_agent(path, which)
    return make_reel(agent, seed, episode)


@functools.lru_cache(8)
def _summarize(found: tuple[tuple[Record, str], ...]) -> list[dict[str, Any]]:
    ids = dict(found)
    return [
        {**setting.summarize(), "runs": [ids[record] for record in setting.records]}
        for setting in make_settings(ids)
    ]


def _tell_curves(record: Record, rows: int) -> dict[str, Any]:
    config = used(record.config) if record.config else {}
    return {**record.to_dict(), "config": config, "columns": _list_columns(record, rows)}


def used(config: Config) -> dict[str, Any]:
    """The options of a configuration, without those of the algorithm that it does not use."""
    others = ALGORITHMS.keys() - {config.algorithm}
    return {name: it for name, it in vars(config).items() if OPTIONS[name].section not in others}


def _tell_run(record: Record) -> dict[str, Any]:
    run = record.run
    found = Agents.of_run(run) if run else Agents({}, None)
    return {
        **_tell_curves(record, MAX_ROWS),
        "seconds_to_win": find_seconds_to_win(record),
        "versions": run.versions if run else {},
        "machine": run.machine if run else {},
        "evaluations": [it.in_short() for it in record.evaluations],
        "health": list(map(vars, assess(record))),
        **_tell_agents(found, {str(it.update): it.mean_return for it in record.evaluations}),
    }


def find_seconds_to_win(record: Record) -> float | None:
    """What is left of a live training until it wins, at its newest speed; as on the terminal.

    None if it is not like the recorded ones, or too young.
    """
    if not record.is_live or record.config is None or not is_comparable(record.config):
        return None
    rows = record.rows[-SPEED_ROWS:]
    if len(rows) < 2:
        return None
    first, last = rows[0], rows[-1]
    steps, seconds = (
        (last.get(it) or 0) - (first.get(it) or 0) for it in ("steps", "training_seconds")
    )
    return steps_left(record.estimated_return) * seconds / steps if steps > 0 else None


def _tell_agents(found: Agents, evaluated: Mapping[str, float]) -> dict[str, Any]:
    """Agents as JSON, each with a word for its strength, the word's rank, and the return and its
    kind from which the word follows; `evaluated` has the returns of those that have been evaluated.
    """
    told = []
    for which, paths in found.files.items():
        about = About(0)
        for path in reversed(paths):
            with contextlib.suppress(CheckpointError):
                about = read_about(path)
        value = evaluated.get(which, about.estimated_return)
        rank = bisect.bisect(LIMITS, -math.inf if value is None else value)
        if which in SHIPPED:  # the name is the word, and does not follow from a return
            rank, value = STRENGTHS.index(which), None
        kind = "greedy" if which in evaluated else "estimated"
        words = {"strength": STRENGTHS[rank], "rank": rank, "return": value, "kind": kind}
        told.append({"which": which} | words | vars(about))
    return {"agents": told, "best": found.best}


def _list_columns(record: Record, most: int) -> dict[str, list[float | None]]:
    """The metrics, thinned out evenly to at most `most` rows including the last one."""
    step = max(1, -(-len(record.rows) // most))
    return record.rows[::-1][::step][::-1].to_lists()
