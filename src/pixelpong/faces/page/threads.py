"""Blocking work next to the event loop, in threads that the end of the process does not wait for.

A read can hang for ever, on a disk that does not answer or in a file that is a pipe. asyncio and
anyio wait for their threads at the end, so one such read would keep the process alive.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from pixelpong.errors import PixelpongError

Found = TypeVar("Found")

MAX_THREADS = 32  # at work for the page's visitors
_room = threading.BoundedSemaphore(MAX_THREADS)


class BusyError(PixelpongError):
    """All threads are at work."""


def start(work: Callable[[], Found]) -> Future[Found]:
    """Begin `work` in a daemon thread of its own."""
    found: Future[Found] = Future()
    found.set_running_or_notify_cancel()  # whoever stops waiting does not cancel it

    def go() -> None:
        try:
            found.set_result(work())
        except BaseException as error:
            found.set_exception(error)

    threading.Thread(target=go, daemon=True).start()
    return found


async def in_thread(work: Callable[[], Found]) -> Found:
    """Wait for `work`, in a thread, without holding up the event loop.

    Raises:
        BusyError: there are already `MAX_THREADS`, so some of them probably hang.
    """
    if not _room.acquire(blocking=False):
        raise BusyError("The server is still reading for earlier requests; try again later.")
    found = start(work)
    found.add_done_callback(lambda _: _room.release())
    return await asyncio.wrap_future(found)
