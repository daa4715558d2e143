"""The runs that are shown: looked up by id, and only read.

An id is made from a run's resolved path, and the table of ids from a listing of the runs folder, so
no part of a request ever becomes part of a path. A run that is half-written, of another version or
being deleted is listed with its problem, or not at all.

Covered: ids, the list, agents. Not covered: one run (`view`).
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

from pixelpong.agent.choice import list_updates, load_agent
from pixelpong.agent.file import SHIPPED, Agent, load_shipped
from pixelpong.errors import CheckpointError, RunError, expected
from pixelpong.faces.page.view import View, id_of, is_sweep
from pixelpong.run.names import last_change

PACKAGE = "package"
"""Id of the agents in the package."""

MAX_RUNS = 1000
"""The most runs listed, the newest ones."""


class Library:
    """All runs of a folder, and one from elsewhere."""

    def __init__(self, runs_dir: Path, run: Path | None = None) -> None:
        """Use `runs_dir`, which need not exist yet."""
        self._runs_dir, self._own = runs_dir, run
        self._views = functools.lru_cache(MAX_RUNS)(View)

    def list(self) -> list[dict[str, Any]]:
        """The summaries of all runs, the newest first."""
        views = map(self._views, self._paths().values())
        found = [view.summarize() for view in views if view.is_there]
        return sorted(found, key=lambda each: each["modified"] or 0, reverse=True)

    def view(self, run_id: str) -> View:
        """The run with this id.

        Raises:
            RunError: there is none.
        """
        path = self._paths().get(run_id)
        if path is None:
            raise RunError(expected("a run of the list", "another id", "reload the page"))
        return self._views(path)

    def find_agent(self, run_id: str, which: str) -> tuple[Path | None, str, Any]:
        """Where a saved agent is: the run's path, None for the package; its name; a stamp of it.

        Raises:
            PixelpongError: there is no such run or agent.
        """
        if run_id == PACKAGE:
            known, path, stamp = list(SHIPPED), None, None
        else:
            view = self.view(run_id)
            known = [str(update) for update in list_updates(view.run)]
            path, stamp = view.path, view.stamp
        if which not in known:
            listed = ", ".join(known) or "none yet"
            raise RunError(f"There is no agent of this name. Saved: {listed}.")
        return path, which, stamp

    def load_agent(self, run_id: str, which: str = "best") -> Agent:
        """An agent by name, see `pixelpong.agent.choice.load_agent`.

        Raises:
            PixelpongError: there is no such run or agent, or it is damaged.
        """
        if run_id == PACKAGE:
            return load_package(SHIPPED[-1] if which in ("best", "latest") else which)
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
    """Describe the agents in the package, as `View.tell` does those of a run.

    Raises:
        CheckpointError: they are missing or damaged.
    """
    agents = [
        {
            "which": name,
            "steps": (about := load_package(name).about).get("steps"),
            "estimated_return": about.get("estimated_return"),
            "strength": name,
        }
        for name in SHIPPED
    ]
    return {
        "id": PACKAGE,
        "name": "the agents in the package",
        "agents": agents,
        "best": SHIPPED[-1],
        "is_live": False,
        "problem": None,
    }
