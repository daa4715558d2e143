"""The thread engine: the workers of one machine, as threads of this process.

A worker plays in compiled code, which holds no lock, so threads use all cores. They read the
params where they lie, and nothing is copied or sent. What is left to do here is to hand out the
items, and to bring home what came of them: a result, or what was raised.

A thread cannot be ended from outside. So a stop takes effect between two items, which take
milliseconds each; and if an item takes longer than its deadline, the run ends with an error.
"""

from __future__ import annotations

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
"""Seconds a worker may take until it is ready; the first one on a machine compiles."""

POLL_SECONDS = 0.1
"""How often it is looked whether a stop was asked for, and whether a deadline is over."""

_END_SECONDS = 5.0
"""How long an engine that is closed waits for the items that are being played."""

_START = "the start of the worker"


class _Run:
    """The items of one run, and what came of them."""

    def __init__(self, items: Sequence[Any], params: Any) -> None:
        self.items, self.params = items, params
        self.waiting = deque(range(len(items)))
        self.answers: queue.SimpleQueue[tuple[int, Any, PixelpongError | None]] = (
            queue.SimpleQueue()
        )
        self.is_given_up = False
        self.idle_since: float | None = None  # when a worker was done and nothing waited


class _Crew:
    """What the threads share with their engine, and not the engine itself: so it can be dropped."""

    def __init__(self, make_worker: MakeWorker, num_workers: int, item_timeout: float) -> None:
        self.make_worker, self.item_timeout = make_worker, item_timeout
        self.runs: queue.SimpleQueue[_Run | None] = queue.SimpleQueue()
        self.run: _Run | None = None  # the newest
        self.making = threading.Lock()  # one at a time: the first compiles for all
        self.busy: dict[threading.Thread, tuple[Any, float]] = {}  # with what, and until when
        # Daemons, so that one that hangs does not keep the process from ending.
        self.threads = [
            threading.Thread(target=_serve, args=(self,), name=f"worker-{number}", daemon=True)
            for number in range(num_workers)
        ]

    def end(self) -> None:
        """End the threads, each after the item that it plays."""
        if self.run is not None:
            self.run.is_given_up = True
        for _ in self.threads:
            self.runs.put(None)
        deadline = time.monotonic() + _END_SECONDS
        for thread in self.threads:
            thread.join(max(deadline - time.monotonic(), 0.0))


class ThreadEngine:
    """Carries out items in threads, as many at a time as there are workers."""

    def __init__(
        self,
        make_worker: MakeWorker,
        num_workers: int,
        item_timeout: float,
        should_stop: Callable[[], bool] = never,
    ) -> None:
        """Start the threads; they make their workers while the caller goes on.

        Args:
            make_worker: makes one worker; called once in each thread.
            num_workers: threads.
            item_timeout: deadline of one item, in seconds.
            should_stop: asked several times a second while waiting.

        Raises:
            WorkerError: the system does not give so many threads.
        """
        self._should_stop = should_stop
        self._crew = _Crew(make_worker, num_workers, item_timeout)
        # At the end of a process that forgot to close it, too: when Python takes itself apart, no
        # thread may be in compiled code.
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

    def run(self, items: Sequence[Any], params: Any) -> Results:
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

    def _hear(self, run: _Run, results: dict[int, Any]) -> None:
        try:
            position, result, failure = run.answers.get(timeout=POLL_SECONDS)
        except queue.Empty:
            self._refuse_to_wait()
            return
        if failure is not None:
            raise failure
        results[position] = result

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
