"""The thread engine: the workers of one machine, as threads of this process.

A worker plays in compiled code, which holds no lock, so threads use all cores. They read the params
in place; nothing is copied or sent. The engine only hands out the items and collects their results
or errors.

A thread cannot be ended from outside. So a stop takes effect between two items, which take
milliseconds each, and if an item exceeds its deadline, the run ends with an error.
"""

from __future__ import annotations

import contextlib
import ctypes
import queue
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Any

from pixelpong.engines import MakeWorker, Results, RunStats, describe_error, never
from pixelpong.errors import Interrupted, PixelpongError, WorkerError, expected

START_TIMEOUT = 180.0
"""Seconds a worker may take to become ready; the first one on a machine compiles."""

POLL_SECONDS = 0.1
"""Seconds between two checks for a requested stop and for deadlines."""

TRIM_SECONDS = 10.0
"""Seconds between two times that freed memory goes back to the system."""

_END_SECONDS = 5.0
"""Seconds that closing an engine waits for the items being played."""

_START = "the start of the worker"


class _Run:
    """The items of one run, and their outcomes."""

    def __init__(self, items: Sequence[Any], params: Any) -> None:
        self.items, self.params = items, params
        self.waiting = deque(range(len(items)))
        self.answers: queue.SimpleQueue[tuple[int, Any, PixelpongError | None]] = (
            queue.SimpleQueue()
        )
        self.is_given_up = False
        self.idle_since: float | None = None  # when the first worker had nothing left to do


class _Crew:
    """Shared by threads and engine. The threads do not hold the engine, so it can be freed."""

    def __init__(self, make_worker: MakeWorker, num_workers: int, item_timeout: float) -> None:
        self.make_worker, self.item_timeout = make_worker, item_timeout
        self.runs: queue.SimpleQueue[_Run | None] = queue.SimpleQueue()
        self.run: _Run | None = None  # the newest
        self.making = threading.Lock()  # one at a time: the first compiles for all
        self.busy: dict[threading.Thread, tuple[Any, float]] = {}  # its item, and the deadline
        # Daemons, so that a thread that hangs does not keep the process from ending.
        self.threads = [
            threading.Thread(target=_serve, args=(self,), name=f"worker-{number}", daemon=True)
            for number in range(num_workers)
        ]

    def end(self) -> None:
        """End the threads, each after its current item."""
        if self.run is not None:
            self.run.is_given_up = True
        for _ in self.threads:
            self.runs.put(None)
        deadline = time.monotonic() + _END_SECONDS
        for thread in self.threads:
            thread.join(max(deadline - time.monotonic(), 0.0))


class ThreadEngine:
    """Carries out items in threads, one per worker at a time."""

    def __init__(
        self,
        make_worker: MakeWorker,
        num_workers: int,
        item_timeout: float,
        should_stop: Callable[[], bool] = never,
    ) -> None:
        """Start the threads; they make their workers while the caller continues.

        Args:
            make_worker: makes one worker; called once in each thread.
            num_workers: threads.
            item_timeout: deadline of one item, in seconds.
            should_stop: asked several times a second while waiting.

        Raises:
            WorkerError: the system cannot start this many threads.
        """
        self._should_stop = should_stop
        self._next_trim = time.monotonic() + TRIM_SECONDS
        self._crew = _Crew(make_worker, num_workers, item_timeout)
        # Also at the exit of a process that did not close it: while Python shuts down, no thread
        # may be in compiled code.
        self._end = weakref.finalize(self, self._crew.end)
        for number, thread in enumerate(self._crew.threads):
            try:
                thread.start()
            except RuntimeError as error:
                del self._crew.threads[number:]
                self.close()
                got = f"{number} and then: {error}"
                raise WorkerError(
                    expected(f"to start {num_workers} workers", got, "give fewer --workers")
                ) from error

    def run(self, items: Sequence[Any], params: Any, group_size: int = 1) -> Results:
        """See `pixelpong.engines.Engine.run`."""
        stats = RunStats(workers=len(self._crew.threads))
        return Results(self._play(items, params, stats), stats)

    def close(self) -> None:
        """See `pixelpong.engines.Engine.close`."""
        self._end()

    def _play(
        self, items: Sequence[Any], params: Any, stats: RunStats
    ) -> Generator[Any, None, None]:
        self._crew.run = run = _Run(items, params)
        results: dict[int, Any] = {}
        for _ in self._crew.threads:
            self._crew.runs.put(run)
        try:
            for position in range(len(items)):
                while position not in results:
                    if self._should_stop():
                        raise Interrupted
                    self._hear(run, results)
                if len(items) - position == 1 and run.idle_since is not None:
                    stats.wait_seconds = time.perf_counter() - run.idle_since
                yield results.pop(position)
        finally:
            run.is_given_up = True
            self._trim()

    def _hear(self, run: _Run, results: dict[int, Any]) -> None:
        try:
            position, result, failure = run.answers.get(timeout=POLL_SECONDS)
        except queue.Empty:
            self._refuse_to_wait()
            return
        if failure is not None:
            raise failure
        results[position] = result

    def _trim(self) -> None:
        """Now and then, give back what is free in the heap.

        Episodes differ in length, and so do the holes that their freed arrays leave: without this,
        glibc's heap grows by some pages a minute for hours. Arrays with memory pages of their own
        would leave no holes, but threads wait for each other when pages come and go. Other C
        libraries have no such call.
        """
        if time.monotonic() >= self._next_trim:
            self._next_trim = time.monotonic() + TRIM_SECONDS
            with contextlib.suppress(AttributeError, OSError, TypeError):  # the last: Windows
                ctypes.CDLL(None).malloc_trim(0)

    def _refuse_to_wait(self) -> None:
        for item, deadline in self._crew.busy.copy().values():
            if time.monotonic() > deadline:
                what = f"{_START} in" if item is _START else f"a result for {item} in"
                what += f" {START_TIMEOUT if item is _START else self._crew.item_timeout:.0f} s"
                advice = "give a longer --worker-timeout, or use --engine serial to see why"
                raise WorkerError(expected(what, "none", advice))


def _serve(crew: _Crew) -> None:
    """The thread: make a worker, then play item after item, run after run."""
    thread, worker, failure = threading.current_thread(), None, None
    crew.busy[thread] = _START, time.monotonic() + START_TIMEOUT
    try:
        with crew.making:
            worker = crew.make_worker()
    except Exception as error:
        failure = describe_error(_START, error)
    del crew.busy[thread]
    while (run := crew.runs.get()) is not None:
        while not run.is_given_up:
            try:
                position = run.waiting.popleft()
            except IndexError:
                run.idle_since = run.idle_since or time.perf_counter()
                break
            item, result = run.items[position], None
            if worker is not None:
                crew.busy[thread] = item, time.monotonic() + crew.item_timeout
                try:
                    result, failure = worker.play(item, run.params), None
                except Exception as error:
                    failure = describe_error(item, error)
                del crew.busy[thread]
            run.answers.put((position, result, failure))
