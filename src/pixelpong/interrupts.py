"""Ctrl-C and SIGTERM as a question that is asked at safe places, not an exception anywhere.

A command in a process of its own hears them from its first line on. While it starts they are
noted; a training is asked whether one came, and anything else is broken off by an exception. The
first one counts: the stop is under way then, and those after it change nothing.

Not covered: the time before that line, in which Python itself starts.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _Mark:
    """Whether a signal came. It has no lock, as an Event has: a second signal may come into the
    handler of the first one, in the same thread, and would wait for that lock for ever.
    """

    is_set = False

    def set(self, *_: object) -> None:
        """Handle a signal."""
        self.is_set = True


_noted = _Mark()  # set by the handlers of `note_signals` and `heed_signals` alone


class Interrupt(KeyboardInterrupt):
    """Ctrl-C by another name: where KeyboardInterrupt itself has come out of an `exec`, Python
    remembers it though it was caught, and in the end kills itself by SIGINT, whatever was returned.
    """


def note_signals() -> None:
    """From now on, only note them: raised in an import, an exception may be lost on its way."""
    _handle_signals(_noted.set)


def heed_signals() -> None:
    """From now on, the first one raises an exception; at once where one was noted.

    Raises:
        Interrupt: here, or anywhere later.
    """

    def interrupt(*_: object) -> None:
        _noted.set()
        _handle_signals(_ignore)
        raise Interrupt

    _handle_signals(interrupt)
    if _noted.is_set:
        interrupt()


def ignore_signals() -> None:
    """From now on, nothing disturbs the end of this process."""
    _handle_signals(signal.SIG_IGN)


@contextmanager
def stop_on_signals(*, ends_process: bool = True) -> Iterator[Callable[[], bool]]:
    """While inside, SIGINT and SIGTERM only set a mark; yields the function that reads it.

    Once it is set, later signals change nothing, inside or after: every wait on the way out has a
    deadline. Outside the main thread, where Python does not let signals be handled, nothing is set
    up.

    Args:
        ends_process: this process ends after a signal; where it goes on, as a notebook does, the
            handlers from before come back.
    """
    asked = _Mark()
    if threading.current_thread() is not threading.main_thread():
        yield lambda: asked.is_set
        return
    before = [signal.getsignal(number) for number in _SIGNALS]
    _handle_signals(asked.set)
    if _noted.is_set:
        asked.set()
    try:
        yield lambda: asked.is_set
    finally:
        if not (asked.is_set and ends_process):
            for number, handler in zip(_SIGNALS, before, strict=True):
                if handler is not None:  # it is not Python's
                    signal.signal(number, handler)


def _handle_signals(handler: Any) -> None:
    for number in _SIGNALS:
        signal.signal(number, handler)


def _ignore(*_: object) -> None:
    """Not SIG_IGN, of which Python says a word where a signal is on its way already."""
