"""Ctrl-C and SIGTERM, which are checked at safe points instead of raised anywhere.

A command, which has its own process, handles them from its first line on. During its start they are
only recorded. Training checks whether a signal arrived; an exception ends any other command. Only
the first signal counts; later ones change nothing, because the stop has already started.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupt(KeyboardInterrupt):
    """Ctrl-C.

    A plain KeyboardInterrupt would not work: Python remembers one that left an `exec`, even if it
    was caught, and kills itself with SIGINT at exit, whatever the exit code.
    """


class _Handler:
    """The signal handler; unlike an Event, it has no lock.

    A second signal may interrupt the handler of the first one in the same thread; it would wait
    for the lock for ever.
    """

    is_command = False  # whether this process is a command, not a notebook or a script
    has_arrived = False  # whether a signal has arrived
    is_raising = False  # whether the first signal raises `Interrupt`

    def __call__(self, *_: object) -> None:
        is_first, self.has_arrived = not self.has_arrived, True
        if is_first and self.is_raising:
            raise Interrupt


_handler = _Handler()


def note_signals() -> None:
    """Start recording signals, because an exception during an import can get lost."""
    _handler.is_command = True
    for number in _SIGNALS:
        signal.signal(number, _handler)


def is_command() -> bool:
    """Whether this process is a command, not a notebook or a script."""
    return _handler.is_command


def in_notebook() -> bool:
    """Whether this is a notebook, whose cells are expected to end."""
    ipython = sys.modules.get("IPython")
    return getattr(ipython.get_ipython() if ipython else None, "kernel", None) is not None


def heed_signals() -> None:
    """Start raising `Interrupt` at the first signal, or immediately if one was recorded."""
    _handler.is_raising = True
    if _handler.has_arrived:
        raise Interrupt


def ignore_signals() -> None:
    """Start ignoring signals, so that the process can end undisturbed."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def stop_on_signals() -> Iterator[Callable[[], bool]]:
    """Context manager that only records SIGINT and SIGTERM; yields a check for one.

    In a command, signals after the first change nothing, inside or afterwards, because every wait
    during the exit has a deadline. Elsewhere, as in a notebook, the previous handlers are restored.
    Outside the main thread, where Python cannot handle signals, this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    was_raising, _handler.is_raising = _handler.is_raising, False
    _handler.has_arrived &= _handler.is_command  # elsewhere, forget an earlier signal
    before = {number: signal.signal(number, _handler) for number in _SIGNALS}
    try:
        yield lambda: _handler.has_arrived
    finally:
        _handler.is_raising = was_raising
        for number, handler in before.items():
            if handler is not None:  # None means that it was not set by Python
                signal.signal(number, handler)
