"""Ctrl-C and SIGTERM as a question that is asked at safe places, not an exception anywhere."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def stop_on_signals() -> Iterator[Callable[[], bool]]:
    """While inside, SIGINT and SIGTERM only set a mark; yields the function that reads it.

    A second signal changes nothing, however late: the stop is under way, and every wait in it has a
    deadline. Outside the main thread, where Python does not let signals be handled, nothing is set
    up.
    """
    is_asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield is_asked.is_set
        return
    before = {
        number: signal.signal(number, lambda *_: is_asked.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield is_asked.is_set
    finally:
        if not is_asked.is_set():
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def interrupt_on_sigterm() -> Iterator[None]:
    """While inside, SIGTERM is a KeyboardInterrupt: for work that has nothing to save."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
