"""A pool of processes for work that holds the GIL for seconds."""

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

from pixelpong.notices import listen

NICENESS = 10


class Processes(ProcessPoolExecutor):
    """Processes that never receive Ctrl-C and end with this process, even if it is killed.

    Each has one thread for arithmetic and a lower priority than a process that trains.
    """

    def __init__(self, workers: int, *, hears: bool = False) -> None:
        """Make a pool whose processes start when they are needed.

        If it `hears`, the processes send the lines of `pixelpong.notices`. Then call `read_notice`
        often enough: they wait if some hundreds of lines are unread.
        """
        context = multiprocessing.get_context("spawn")
        child_end, self._parent_end = context.Pipe(duplex=False)
        self._heard: Connection | None = None
        speaker: Connection | None = None
        if hears:
            self._heard, speaker = context.Pipe(duplex=False)
        self._notice = ""
        super().__init__(workers, context, _child_main, (child_end, speaker))

    def read_notice(self) -> str:
        """Return the newest line about slow work in a process, or ``""`` if all of it has ended."""
        while self._heard and not self._heard.closed and self._heard.poll():
            self._notice = self._heard.recv()
        return self._notice

    def submit(self, *call: Any, **named: Any) -> Future[Any]:
        """Call a function in one of the processes; a new one starts if all are busy."""
        if not hasattr(signal, "pthread_sigmask"):
            return super().submit(*call, **named)
        # Block SIGINT, because a new process inherits the mask.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return super().submit(*call, **named)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def kill(self) -> None:
        """Kill the processes; their pending calls fail with `BrokenProcessPool`."""
        self._parent_end.close()
        if self._heard:
            self._heard.close()
        self.shutdown(cancel_futures=True)


def _child_main(parent: Connection, speaker: Connection | None) -> None:
    """Prepare a process of the pool, which ends when the parent closes the connection or dies."""

    def end_with_parent() -> None:
        with contextlib.suppress(EOFError, OSError):
            parent.recv()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    if speaker:
        listen(speaker.send)
    threadpool_limits(1)
    if hasattr(os, "nice"):
        os.nice(NICENESS)
