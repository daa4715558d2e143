"""The content of the page, all read-only: runs, the agents in the package, and an agent's file.

The id of a run is its path in the folder, such as ``fast-001`` or ``sweep-001/seed-0``. It is
looked up in a table, so no part of a request ever becomes part of a path. A run that is
half-written, comes from another version or is being deleted is listed with its problem or not at
all.

`pixelpong.faces.page.reels` plays the games.
"""

from __future__ import annotations

import asyncio
import bisect
import contextlib
import functools
import hashlib
import itertools
import math
import os
import re
import threading
import weakref
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pixelpong import notices
from pixelpong.agent.choice import PACKAGE, Agents, find_agents
from pixelpong.agent.file import SHIPPED, About, Agent, read_about, read_game
from pixelpong.config import in_use
from pixelpong.config.protocols import PONG
from pixelpong.errors import CheckpointError, RunError
from pixelpong.faces.display import is_comparable, steps_left
from pixelpong.faces.page.health import assess
from pixelpong.faces.page.reels import BEGINNING, FilmKey, ReelKey, Reels
from pixelpong.faces.page.threads import in_thread
from pixelpong.machine import require
from pixelpong.run.names import is_run, list_runs
from pixelpong.run.record import Record, identify, list_sweeps
from pixelpong.scores import find_scores
from pixelpong.sweeps.grid import varied
from pixelpong.sweeps.settings import make_settings
from pixelpong.sweeps.suites import make_suites

MAX_ROWS = 1000  # most rows of a single run, more than the pixels of a chart's width
ROWS_PER_RUN, MIN_ROWS_PER_RUN = 100, 20  # most and fewest rows of each of several runs
TOTAL_ROWS = 10_000  # most rows of many runs together, unless the minimum exceeds them
MAX_FINDING = 4  # most threads that look for the agents of requested games
SPEED_ROWS = 20  # number of newest rows from which a run's speed is computed

LIMITS = (-19.0, -5.0, 8.0, 18.0)  # the returns that separate the ranks of a run's agents


class Library:
    """All runs of `runs_dir`, which need not exist yet, and one run or file from elsewhere."""

    def __init__(self, runs_dir: Path, extra: Path | None = None) -> None:
        self._runs_dir, self._extra = runs_dir, extra
        self._reels, self._finding = Reels(), asyncio.Semaphore(MAX_FINDING)
        # Agents in play, which their games share: an agent may take 30 MB. One thread at a time
        # loads those of a run; the others wait, so that they find them here.
        self._agents: weakref.WeakValueDictionary[Any, Agent] = weakref.WeakValueDictionary()
        self._loading: defaultdict[Path | None, threading.Lock] = defaultdict(threading.Lock)

    def list_runs(self) -> dict[str, Any]:
        """Summarise all runs, newest first, and name the agent's file if there is one."""
        runs = [
            {"id": run_id, **Record.read(path).to_dict()} for run_id, path in self._runs().items()
        ]
        runs.sort(key=lambda run: run["modified"], reverse=True)
        if self._extra is None or is_run(self._extra):
            return {"runs": runs}
        file = {"id": self.id_of(self._extra), "name": self._extra.name}
        return {"runs": runs, "file": file}

    def describe(self, run_id: str) -> dict[str, Any]:
        """Describe a run in full; for the package or a file, list its agents."""
        path = self._find(run_id)
        if path is not None and is_run(path):
            return {"id": run_id, **_describe_run(Record.read(path))}
        name = path.name if path else "the agents in the package"
        agents, _ = find_agents(path)
        game = PONG if path is None else read_game(path)
        facts = {"id": run_id, "name": name, "is_live": False, "game": game}
        return facts | _describe_agents(agents, {}, game)

    def compare(self, ids: str) -> dict[str, Any]:
        """Compare runs: their curves, the options that differ, and each setting's results.

        The ids are separated by commas. A sweep stands for its runs; missing runs are left out.
        """
        requested, paths = ids.split(","), self._runs()
        chosen = [it for it in paths if it in requested or it.split("/")[0] in requested]
        if not chosen:
            raise RunError("None of these runs is in the list.")
        chosen.sort(key=lambda run_id: (len(run_id), run_id))  # puts seed-2 before seed-10
        records = {Record.read(paths[run_id]): run_id for run_id in chosen}
        shared = min(ROWS_PER_RUN, TOTAL_ROWS // len(records))
        num_rows = max(MAX_ROWS // len(records), shared, MIN_ROWS_PER_RUN)
        return {
            "runs": [
                {"id": run_id, **_describe_curves(record, num_rows)}
                for record, run_id in records.items()
            ],
            "options": ["seed", *varied(record.config for record in records if record.config)],
            **_summarize(tuple(records.items())),
            "is_live": any(record.is_live for record in records),
        }

    async def reel(
        self,
        run_id: str,
        which: str,
        seed: int = 0,
        episode: int = 0,
        *,
        viewer: str = "",
        is_brief: bool = False,
    ) -> bytes:
        """Return the reel of a saved agent's game, or of its beginning, played now or recently."""
        async with self._finding:
            key = await in_thread(lambda: self.find_reel(run_id, which, seed, episode))
        moments = BEGINNING if is_brief else None
        return await self._reels.get(replace(key, moments=moments), viewer)

    async def film(
        self, run_id: str, which: str, seed: int, episode: int, middle: int, *, viewer: str = ""
    ) -> bytes:
        """Return a film of twenty seconds around a step of a saved agent's game, as MP4."""
        require("Films need", "av", "PIL", extra="video")
        async with self._finding:
            key = await in_thread(lambda: self.find_reel(run_id, which, seed, episode))
        return await self._reels.get(FilmKey(key, middle), viewer)

    def find_notice(self, viewer: str = "") -> dict[str, str]:
        """Return what games of this server wait for: slow work, this viewer's turn, or nothing."""
        ahead = self._reels.count_ahead(viewer)
        games = "1 other game is" if ahead == 1 else f"{ahead} other games are"
        turn = f"{games} prepared first, then yours …" if ahead else ""
        slow = notices.current() or self._reels.read_notice()
        return {"notice": " ".join(filter(None, (slow, turn)))}

    def find_reel(self, run_id: str, which: str, seed: int = 0, episode: int = 0) -> ReelKey:
        """Make the key of a saved agent's game."""
        if max(seed, episode) >= 2**53:
            raise RunError("The seed or the index of the game is too large.")
        path = self._find(run_id)
        agents, _ = find_agents(path)
        if which not in agents.files:
            listed = ", ".join(agents.files) or "none yet"
            raise RunError(f"There is no agent with this name. Saved: {listed}.")
        return ReelKey(path, which, seed, episode, tuple(map(identify, agents.files[which])))

    def prepare(self) -> None:
        """Start the process that makes reels, so that the first one comes sooner."""
        self._reels.prepare()

    def close(self) -> None:
        """End the process that makes reels."""
        self._reels.close()

    def load_agent(self, run_id: str, which: str = "best") -> Agent:
        """Load an agent of a run, a file or the package, by a name, ``"best"`` or ``"latest"``.

        Several calls may return the same object.
        """
        path = self._find(run_id)
        with self._loading[path]:
            agents, _ = find_agents(path)
            which = agents.choose(which)
            files = [agents.files[which]] if which in agents.files else agents.files.values()
            key = path, which, *map(identify, itertools.chain.from_iterable(files))
            agent = self._agents.get(key)
            if agent is None:
                agent = self._agents[key] = agents.load(which)
            return agent

    def id_of(self, path: Path | None) -> str:
        """Return the id of a run or file, which is unique and safe in a URL."""
        if path is None:
            return PACKAGE
        name = Path(os.path.relpath(path, self._runs_dir)).as_posix()
        if re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)?", name) and name != PACKAGE:
            return name
        digest = hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:8]
        return re.sub(r"[^\w.-]+", "-", path.name) + f"~{digest}"

    def _find(self, run_id: str) -> Path | None:
        """Find the path of the run or file with this id; None for the package."""
        known = {PACKAGE: None, self.id_of(self._extra): self._extra, **self._runs()}
        if run_id not in known:
            raise RunError("This run is not in the list.")
        return known[run_id]

    def _runs(self) -> dict[str, Path]:
        """Return the paths of all runs by their ids."""
        folders = (self._runs_dir, *list_sweeps(self._runs_dir))
        paths = [path for folder in folders for path in list_runs(folder)]
        others = [self._runs_dir] if self._extra is None else [self._runs_dir, self._extra]
        paths += filter(is_run, others)
        return {self.id_of(path): path for path in paths}


@functools.lru_cache(8)
def _summarize(records: tuple[tuple[Record, str], ...]) -> dict[str, list[Any]]:
    """Summarise the settings and suites of records, which come with their ids."""
    ids = dict(records)
    settings = make_settings(ids)
    members = [[ids[record] for record in setting.records] for setting in settings]
    return {
        "settings": [
            {**setting.summarize(), "runs": runs}
            for setting, runs in zip(settings, members, strict=True)
        ],
        "suites": [suite.summarize() for suite in make_suites(settings)],
    }


def _describe_curves(record: Record, num_rows: int) -> dict[str, Any]:
    config = in_use(record.config) if record.config else {}
    scores = find_scores(record.game)
    return {
        **record.to_dict(),
        "scores": scores and {"random": scores.random, "human": scores.human},
        "config": config,
        "columns": _list_columns(record, num_rows),
    }


def _describe_run(record: Record) -> dict[str, Any]:
    run = record.run
    agents = Agents.of_run(run) if run else Agents({}, None)
    return {
        **_describe_curves(record, MAX_ROWS),
        "seconds_to_win": find_seconds_to_win(record),
        "versions": run.versions if run else {},
        "machine": run.machine if run else {},
        "evaluations": [it.in_short() for it in record.evaluations],
        "health": list(map(vars, assess(record))),
        **_describe_agents(
            agents, {str(it.update): it.mean_return for it in record.evaluations}, record.game
        ),
    }


def find_seconds_to_win(record: Record) -> float | None:
    """Estimate the time until a live run wins, at its current speed, as on the terminal.

    None if the run is not like the recorded ones or has only just started.
    """
    if not record.is_live or record.config is None or not is_comparable(record.config):
        return None
    rows = record.rows[-SPEED_ROWS:]
    if len(rows) < 2:
        return None
    steps, seconds = _increase(rows, "steps"), _increase(rows, "training_seconds")
    return steps_left(record.estimated_return) * seconds / steps if steps > 0 else None


def _increase(rows: Sequence[Mapping[str, Any]], name: str) -> float:
    """Return the increase of a metric from the first row to the last."""
    return (rows[-1].get(name) or 0) - (rows[0].get(name) or 0)


def _describe_agents(
    agents: Agents, evaluated: Mapping[str, float], game: str = PONG
) -> dict[str, Any]:
    """Describe agents as JSON: each one's name, its return, and its rank by strength.

    `evaluated` has the returns of agents that have been evaluated. The agents of the package have
    names of their own and no return: they are ranked by their order.
    """
    described = []
    for order, (which, paths) in enumerate(agents.files.items()):
        about = About(0)
        for path in reversed(paths):
            with contextlib.suppress(CheckpointError):
                about = read_about(path)
        is_known, kind = which in evaluated, "greedy" if game == PONG else "sampled"
        value = evaluated.get(which, about.estimated_return)
        if not is_known:
            kind = "estimated"
        if not is_known and game != PONG:
            value, kind = about.mean_return_100, "mean of the last 100"
        rank = bisect.bisect(LIMITS, -math.inf if value is None else value)
        name = f"update {which}"
        if which in SHIPPED:
            name, value, rank = which, None, order
        elif agents.run is None and agents.path is not None:  # a file
            name = agents.path.stem
        words = {"name": name, "rank": rank, "return": value, "kind": kind}
        described.append({"which": which} | words | vars(about))
    return {"agents": described, "best": agents.best}


def _list_columns(record: Record, max_rows: int) -> dict[str, list[float | None]]:
    """Thin out the metrics evenly to at most `max_rows` rows, including the last one."""
    step = max(1, math.ceil(len(record.rows) / max_rows))
    return record.rows[::-1][::step][::-1].to_lists()
