"""Long jobs, on request: one process, one job at a time, with cached results.

Covered: the process, queueing, the cache, jobs that take too long or kill their process.
Not covered: the jobs themselves (`jobs`).
"""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
from collections import OrderedDict
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException

from pixelpong.errors import expected
from pixelpong.faces.page.jobs import work
from pixelpong.interrupts import interrupts_held

CACHE_BYTES = 64 << 20

MAX_WAITING = 64
"""Requests that may wait for their turn."""

JOB_SECONDS = 300.0
"""Seconds after which a job is given up; a reel takes ten on an idle core."""

Key = tuple[Any, ...]


class JobProcess:
    """The process of `jobs.work`, started when first needed and again if it has died."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._process: SpawnProcess | None = None
        self._pipe: Connection | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    def ask(self, path: Path | None, job: str, number: int) -> bytes:
        """Do a job; see `jobs.carry_out`.

        Raises:
            HTTPException: it cannot be done, took too long, or its process has ended.
        """
        with self._lock:
            pipe = self._start()
            try:
                pipe.send((path, job, number))
                if not pipe.poll(JOB_SECONDS):
                    raise TimeoutError
                is_good, content = pipe.recv()
            except (OSError, EOFError) as error:
                self._end()
                text = expected("a result", "a process that ended", "try again")
                raise HTTPException(503, text) from error
        if not is_good:
            raise HTTPException(422, content)
        return bytes(content)

    def close(self) -> None:
        """End it, whatever it is doing."""
        self._is_closed = True
        process = self._process
        if process is not None:
            process.kill()  # the thread that waits for it continues
        with self._lock:
            self._end()

    def _start(self) -> Connection:
        if self._is_closed:
            raise HTTPException(503, expected("a result", "a server that stops", "start it again"))
        if self._pipe is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=work, args=(theirs,), daemon=True)
            with interrupts_held():
                self._process.start()
            theirs.close()
            if self._is_closed:  # meanwhile
                self._process.kill()
        return self._pipe

    def _end(self) -> None:
        if self._process is not None and self._pipe is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
        self._process = self._pipe = None


class Results:
    """Results of jobs by key; the newest are kept."""

    def __init__(self) -> None:
        """Begin with none."""
        self._process = JobProcess()
        self._turn = asyncio.Lock()
        self._num_waiting = 0
        self._made: OrderedDict[Key, bytes] = OrderedDict()

    async def get(self, key: Key, path: Path | None, job: str, number: int) -> bytes:
        """The result of a job as JSON.

        Args:
            key: the same for equal jobs; it must contain everything the result depends on.
            path: the run's or the tournament's, None for the package.
            job: see `jobs.carry_out`.
            number: of the episode, update or pair.

        Raises:
            HTTPException: it cannot be done, or too many others wait.
        """
        if key not in self._made and self._num_waiting >= MAX_WAITING:
            raise HTTPException(
                503, expected("a free moment", f"{MAX_WAITING} requests that wait", "try later")
            )
        self._num_waiting += 1
        try:
            async with self._turn:
                if key not in self._made:
                    ask = self._process.ask
                    self._made[key] = await asyncio.to_thread(ask, path, job, number)
        finally:
            self._num_waiting -= 1
        self._made.move_to_end(key)
        while sum(map(len, self._made.values())) > CACHE_BYTES and len(self._made) > 1:
            self._made.popitem(last=False)
        return self._made[key]

    async def close(self) -> None:
        """End the process and its job."""
        await asyncio.to_thread(self._process.close)
