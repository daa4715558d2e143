"""Games of agents, played and explained on request: in one process of low priority, and kept.

The process is not the server's and has a lower priority than a training, so neither waits.
"""

from __future__ import annotations

import functools
import os
import threading
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from pixelpong.agent.choice import open_agent
from pixelpong.errors import RunError
from pixelpong.faces.look.reel import make_reel
from pixelpong.processes import Processes

NICENESS = 10
REELS_KEPT = 20  # the newest, in memory; one has about a megabyte


class Reels:
    """Makes the reels of agents (`pixelpong.faces.look.reel`), one at a time."""

    def __init__(self) -> None:
        self._pool, self._lock = Processes(1, _begin), threading.Lock()
        self._is_closed = False
        self._get = functools.lru_cache(REELS_KEPT)(self._make)

    def get(self, path: Path | None, which: str, stamp: Any) -> dict[str, Any]:
        """The result of `play_and_explain`; `stamp` changes with the agent."""
        with self._lock:
            return self._get(path, which, stamp)

    def close(self) -> None:
        """End the process and its job."""
        self._is_closed = True
        self._pool.kill()

    def _make(self, path: Path | None, which: str, stamp: Any) -> dict[str, Any]:
        try:
            made: dict[str, Any] = self._pool.submit(play_and_explain, path, which).result()
            return made
        except BrokenProcessPool:
            if not self._is_closed:
                self._pool = Processes(1, _begin)
            raise RunError("The process that plays the games has ended; try again.") from None


def _begin() -> None:
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    threadpool_limits(1)


def play_and_explain(path: Path | None, which: str) -> dict[str, Any]:
    """The reel of a greedy game; `path` is a run or an agent's file, None the package."""
    run, agent = open_agent(path, which)
    return make_reel(agent, run.config.seed if run else 0)
