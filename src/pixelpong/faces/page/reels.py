"""What takes long, on request: one process, one job at a time, results kept.

Covered: queueing, the cache, jobs that take too long or kill their process.
Not covered: the jobs themselves (`jobs`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

from pixelpong.errors import expected
from pixelpong.faces.page.guard import Refusal

CACHE_BYTES = 64 << 20
MAX_WAITING = 16
"""Different jobs that may wait for their turn."""

JOB_SECONDS = 300.0
"""A job that takes longer is given up; a reel takes ten, of an idle core."""

Key = tuple[Any, ...]


class JobProcess:
    """The process of `jobs`, started when first needed and again where it has died."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    def ask(self, path: Path | None, job: str, number: int) -> tuple[bool, bytes]:
        """Have a job done. See `jobs.carry_out`.

        Raises:
            Refusal: the process has ended meanwhile.
        """
        request = {"path": None if path is None else str(path), "job": job, "number": number}
        with self._lock:
            process = self._start()
            watch = threading.Timer(JOB_SECONDS, process.kill)
            watch.start()
            try:
                return _exchange(process, json.dumps(request).encode() + b"\n")
            except (OSError, ValueError) as error:
                self._end()
                text = expected("a result", "a process that ended", "try again")
                raise Refusal(503, text) from error
            finally:
                watch.cancel()

    def close(self) -> None:
        """End it, whatever it does."""
        self._is_closed = True
        if self._process is not None:
            self._process.kill()
        with self._lock:
            self._end()

    def _start(self) -> subprocess.Popen[bytes]:
        if self._is_closed:
            raise Refusal(503, expected("a result", "a server that stops", "start it again"))
        if self._process is None or self._process.poll() is not None:
            self._end()
            single = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "pixelpong.faces.page.jobs"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **single},
                start_new_session=True,  # Ctrl-C is for us
            )
        return self._process

    def _end(self) -> None:
        if self._process is None:
            return
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError, ValueError):
                if pipe is not None:
                    pipe.close()
        self._process.wait()
        self._process = None


def _exchange(process: subprocess.Popen[bytes], request: bytes) -> tuple[bool, bytes]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(request)
    process.stdin.flush()
    head = process.stdout.read(9)
    size = int.from_bytes(head[1:], "little")
    content = process.stdout.read(size)
    if len(head) < 9 or len(content) < size:
        raise OSError("it ended")
    return bool(head[0]), content


class ReelMaker:
    """Results of jobs by key: those that are there, and those that are being made."""

    def __init__(self) -> None:
        """Begin with none."""
        self._process = JobProcess()
        self._turn = asyncio.Lock()
        self._making: dict[Key, asyncio.Task[bytes]] = {}
        self._made: OrderedDict[Key, bytes] = OrderedDict()

    async def get(self, key: Key, path: Path | None, job: str, number: int) -> bytes:
        """The result of a job as gzipped JSON.

        Args:
            key: of equal jobs; it must name all that the result depends on.
            path: the run's, None for the package.
            job: see `jobs.JOBS`.
            number: which episode or update.

        Raises:
            Refusal: it cannot be done, or too many others wait.
        """
        if key in self._made:
            self._made.move_to_end(key)
            return self._made[key]
        if key not in self._making:
            if len(self._making) >= MAX_WAITING:
                raise Refusal(503, expected("a free moment", "many who wait", "try again later"))
            task = asyncio.create_task(self._make(key, path, job, number))
            self._making[key] = task
            task.add_done_callback(lambda task: self._finish(key, task))
        return await asyncio.shield(self._making[key])

    async def close(self) -> None:
        """End the process and whatever it makes."""
        for task in self._making.values():
            task.cancel()
        await asyncio.to_thread(self._process.close)

    async def _make(self, key: Key, path: Path | None, job: str, number: int) -> bytes:
        async with self._turn:
            is_good, content = await asyncio.to_thread(self._process.ask, path, job, number)
        if not is_good:
            raise Refusal(422, content.decode(errors="replace"))
        self._made[key] = content
        while sum(map(len, self._made.values())) > CACHE_BYTES and len(self._made) > 1:
            self._made.popitem(last=False)
        return content

    def _finish(self, key: Key, task: asyncio.Task[bytes]) -> None:
        del self._making[key]
        if not task.cancelled():
            task.exception()  # seen, also where nobody waits any more
