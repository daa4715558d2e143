"""The runs that are shown: looked up by id, and only read.

An id is made from a run's resolved path, and the table of ids from a listing of the runs folder, so
no part of a request ever becomes part of a path. A run that is half-written, of another version or
being deleted is listed with its problem, or not at all.

Covered: ids, lists, summaries of runs, loading agents.
Not covered: sending updates (`live`), long jobs (`background`).
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

from pixelpong.agent.choice import load_agent
from pixelpong.agent.file import SHIPPED, Agent, load_shipped
from pixelpong.errors import CheckpointError, RunError, expected
from pixelpong.faces.page.view import View, id_of, is_sweep
from pixelpong.run.names import last_change

PACKAGE = "package"
"""Id of the agent in the package."""

MAX_RUNS = 1000
"""The most runs listed, the newest ones."""

_KEPT_VIEWS = 16


class Library:
    """All runs of a folder, and one from elsewhere; `None` for a run is the package's agent.

    Attributes:
    """

    def __init__(self, runs_dir: Path, run: Path | None = None) -> None:
        """Use `runs_dir`, which need not exist yet."""
        self._runs_dir, self._own = runs_dir, run
        self._views = functools.lru_cache(_KEPT_VIEWS)(View)
        self._glances = functools.lru_cache(MAX_RUNS)(View)  # their tables stay empty

    def list(self) -> list[dict[str, Any]]:
        """The summaries of all runs, the newest first."""
        found = []
        for path in self._paths().values():
            glance = self._glances(path)
            summary = glance.glance()
            if glance.is_there:
                found.append(summary)
        return sorted(found, key=lambda each: each["modified"] or 0, reverse=True)

    def view(self, run_id: str) -> View:
        """The current state of the run with this id.

        Raises:
            RunError: there is none.
        """
        path = self._paths().get(run_id)
        if path is None:
            raise RunError(expected("a run of the list", "another id", "reload the page"))
        view = self._views(path)
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
        except OSError as error:  # being deleted
            got = error.strerror or str(error)
            raise CheckpointError(expected("an agent", got, "reload the page")) from error

    def _paths(self) -> dict[str, Path]:
        """The table of ids."""
        paths = []
        try:
            folder = self._runs_dir
            candidates = [folder, *_list_folders(folder)]
            sweeps = [path for path in candidates if is_sweep(path)]
            candidates += (inside for sweep in sweeps for inside in _list_folders(sweep))
            paths = [path for path in candidates if (path / "config.json").is_file()]
        except OSError:
            pass  # it does not exist yet, or we may not read it
        if len(paths) > MAX_RUNS:
            paths = sorted(paths, key=lambda path: last_change(path) or 0)[-MAX_RUNS:]
        if self._own is not None and (self._own / "config.json").is_file():
            paths.append(self._own)
        return {id_of(path): path.resolve() for path in paths}


def _list_folders(folder: Path) -> list[Path]:
    return [Path(entry.path) for entry in os.scandir(folder)]


@functools.cache
def load_package(name: str = SHIPPED[-1]) -> Agent:
    """An agent in the package, shared by all requests; it is never changed.

    Raises:
        CheckpointError: it is missing or damaged.
    """
    try:
        return load_shipped(name)
    except OSError as error:
        advice = "train one: pixelpong train --preset fast"
        raise CheckpointError(expected("an agent in the package", "none", advice)) from error


def describe_package() -> dict[str, Any]:
    """Describe the agents in the package.

    Raises:
        CheckpointError: they are missing or damaged.
    """
    about = load_package().about
    figures = {name: about.get(name) for name in ("steps", "estimated_return")}
    greedy = {name: load_package(name).about["evaluation"]["greedy"] for name in SHIPPED}
    return {
        "id": PACKAGE,
        "name": "the agent in the package",
        "agents": [{"update": 0, **figures, "is_rounded": True}],
        "opponents": [
            {"name": name, "greedy_return": float(each["mean_return"])}
            for name, each in greedy.items()
        ],
        "about": about,
    }
