"""Games of agents, played and explained on request: in one process of low priority, and kept.

The process is not the server's and has a lower priority than a training, so neither waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import os
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from pixelpong.agent.choice import find_game, play_game
from pixelpong.agent.file import Agent
from pixelpong.errors import RunError
from pixelpong.faces.look.reel import make_reel
from pixelpong.interrupts import end_with_parent, interrupts_held
from pixelpong.run.directory import RunDirectory

NICENESS = 10
REELS_KEPT = 20  # the newest, in memory; one has about a megabyte


class Reels:
    """Makes the reels of agents (`pixelpong.faces.look.reel`) and keeps the newest."""

    def __init__(self) -> None:
        self._made: dict[Any, Future[bytes]] = {}
        self._pool: ProcessPoolExecutor | None = None
        self._processes: set[Any] = set()  # of the pool

    async def get(self, path: Path | None, which: str, stamp: Any) -> bytes:
        """The result of `play_and_explain`; `stamp` changes with the agent."""
        key = (path, which, stamp)
        if key not in self._made:
            while len(self._made) >= REELS_KEPT:
                del self._made[next(iter(self._made))]
            self._made[key] = self._submit(path, which)
        made = self._made[key]
        try:
            return await asyncio.wrap_future(made)
        except BrokenProcessPool:
            self._pool = None
            raise RunError("The process that plays the games has ended; try again.") from None
        finally:
            if made.cancelled() or (made.done() and made.exception() is not None):
                self._made.pop(key, None)

    def close(self) -> None:
        """End the process and its job."""
        for process in self._processes:
            process.kill()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def _submit(self, path: Path | None, which: str) -> Future[bytes]:
        if self._pool is not None:
            with contextlib.suppress(BrokenProcessPool):
                return self._pool.submit(play_and_explain, path, which)
        others = set(multiprocessing.active_children())
        with interrupts_held():
            self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _begin)
            made = self._pool.submit(play_and_explain, path, which)
        self._processes = set(multiprocessing.active_children()) - others
        return made


def _begin() -> None:
    end_with_parent()
    silence = os.open(os.devnull, os.O_WRONLY)  # for what libraries print
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    threadpool_limits(1)


def play_and_explain(path: Path | None, which: str) -> bytes:
    """The reel, as JSON, of a greedy game; `path` is a run or an agent's file, None the package."""
    if path is not None and path.is_file():
        game = play_game(Agent.read(path), path.name, 0, 0)
    else:
        run = None if path is None else RunDirectory.open(path, lambda message: None)
        game = find_game(run, which)
    return json.dumps(make_reel(game), allow_nan=False, separators=(",", ":")).encode()
