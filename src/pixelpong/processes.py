"""A pool of processes, for work that holds Python's lock for seconds."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

from threadpoolctl import threadpool_limits

NICENESS = 10


class Processes(ProcessPoolExecutor):
    """Processes that never receive Ctrl-C, and that end with this one, even if it is killed.

    Each has one thread for arithmetic, and a lower priority than a training.
    """

    def __init__(self, workers: int) -> None:
        """Make a pool whose processes start when they are needed."""
        context = multiprocessing.get_context("spawn")
        theirs, self._ours = context.Pipe(duplex=False)
        super().__init__(workers, context, _begin, (theirs,))

    def submit(self, *call: Any, **named: Any) -> Future[Any]:
        """Call a function in one of the processes; a new one starts if all are busy."""
        if not hasattr(signal, "pthread_sigmask"):
            return super().submit(*call, **named)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # for new processes too
        try:
            return super().submit(*call, **named)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def kill(self) -> None:
        """Kill the processes; their pending calls fail with `BrokenProcessPool`."""
        self._ours.close()
        self.shutdown(cancel_futures=True)


def _begin(line: Connection) -> None:
    """In a process of the pool: end when the parent closes its end of `line`, or dies."""

    def wait() -> None:
        with contextlib.suppress(EOFError, OSError):
            line.recv()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
    threadpool_limits(1)
    if hasattr(os, "nice"):
        os.nice(NICENESS)
