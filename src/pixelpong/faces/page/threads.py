"""Runs blocking work in threads that neither the event loop nor the exit waits for.

A read can hang for ever, on a disk that does not answer or in a file that is a pipe. asyncio and
anyio wait for their threads at exit, so one such read would keep the process alive.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from pixelpong.errors import PixelpongError

T = TypeVar("T")

MAX_THREADS = 32  # most threads for the page's requests
_free_threads = threading.BoundedSemaphore(MAX_THREADS)


class BusyError(PixelpongError):
    """All threads are busy."""


def start(work: Callable[[], T]) -> Future[T]:
    """Start `work` in a new daemon thread."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # so that a waiter who gives up cannot cancel it

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


async def in_thread(work: Callable[[], T]) -> T:
    """Do `work` in a thread, without holding up the event loop.

    Raises:
        BusyError: `MAX_THREADS` are busy, so some of them probably hang.
    """
    if not _free_threads.acquire(blocking=False):
        raise BusyError("The server is still busy with earlier requests. Try again later.")
    future = start(work)
    future.add_done_callback(lambda _: _free_threads.release())
    return await asyncio.wrap_future(future)
