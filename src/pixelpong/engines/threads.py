"""The thread engine: the workers of one machine, as threads of this process.

A worker plays in compiled code, which releases the GIL, so threads use all cores. They
read the parameters in place; nothing is copied or sent. A thread cannot be stopped from outside, so
a stop takes effect between items, which take milliseconds each.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from pixelpong.engines import Engine, EngineStats, MakeWorker, naming, never
from pixelpong.errors import Interrupted

POLL_SECONDS = 0.1  # time between checks for a requested stop
TRIM_SECONDS = 10.0  # time between returns of free memory to the system


class ThreadEngine(Engine):
    """Plays one item per thread at a time; each thread makes its worker for its first item."""

    def __init__(
        self, make_worker: MakeWorker, num_workers: int, should_stop: Callable[[], bool] = never
    ) -> None:
        self.stats, self._should_stop = EngineStats(num_workers), should_stop
        self._next_trim = time.monotonic() + TRIM_SECONDS
        self._workers = _Workers(make_worker)
        self._pool = ThreadPoolExecutor(num_workers, "worker")

    def run(self, items: Sequence[Any], params: Any) -> Generator[Any, None, None]:
        """Play the items and yield their results, in order."""
        with naming("Starting a thread"):
            futures = deque(
                self._pool.submit(self._workers.play_here, item, params) for item in items
            )
        try:
            for item in items:
                is_done = False
                while not is_done:
                    if self._should_stop():
                        raise Interrupted
                    is_done = bool(wait([futures[0]], POLL_SECONDS).done)
                with naming(item):
                    result = futures.popleft().result()
                yield result
        finally:
            for future in futures:
                future.cancel()
            self._trim()

    def close(self) -> None:
        """End the threads once their current items are done."""
        self._pool.shutdown(cancel_futures=True)

    def _trim(self) -> None:
        """Return free memory of the heap to the system, every few seconds.

        Episodes differ in length, and so do the gaps that their freed arrays leave. Without this,
        glibc's heap grows by a few pages a minute for hours. Arrays in separate memory pages would
        leave no gaps, but threads wait for each other when pages are mapped and unmapped. Other C
        libraries have no such call.
        """
        if time.monotonic() >= self._next_trim:
            self._next_trim = time.monotonic() + TRIM_SECONDS
            with contextlib.suppress(AttributeError, OSError, TypeError):  # TypeError on Windows
                ctypes.CDLL(None).malloc_trim(0)


class _Workers:
    """The workers, one per thread; threads refer to these so that the engine can be freed."""

    def __init__(self, make_worker: MakeWorker) -> None:
        self._make_worker, self._of_thread = make_worker, threading.local()
        self._lock = threading.Lock()  # held to make a worker; the first one compiles for all

    def play_here(self, item: Any, params: Any) -> Any:
        """Play an item with this thread's worker."""
        if not hasattr(self._of_thread, "worker"):
            with self._lock, naming("Starting the worker"):
                self._of_thread.worker = self._make_worker()
        return self._of_thread.worker.play(item, params)
