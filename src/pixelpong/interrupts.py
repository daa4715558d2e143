"""Ctrl-C and SIGTERM, checked at safe places instead of raised anywhere.

A command in its own process handles them from its first line on. During its start they are only
recorded. A training checks whether one came; any other command is ended by an exception. Only the
first one counts: the stop has begun, and later ones change nothing.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _Mark:
    """Whether a signal came. It has no lock, unlike an Event: a second signal may interrupt the
    handler of the first one, in the same thread, and would wait for that lock for ever.
    """

    is_set = False

    def set(self, *_: object) -> None:
        """Handle a signal."""
        self.is_set = True


_asked = _Mark()  # by a signal, to stop
_command = _Mark()  # set if this process is a command of its own


class Interrupt(KeyboardInterrupt):
    """Ctrl-C. If KeyboardInterrupt itself comes out of an `exec`, Python remembers it although it
    was caught, and kills itself by SIGINT at exit, whatever the exit code.
    """


def note_signals() -> None:
    """From now on, only record signals: an exception raised during an import may get lost."""
    _command.set()
    _handle_signals(_asked.set)


def is_command() -> bool:
    """Whether this process is a command of its own, and no notebook or script."""
    return _command.is_set


def heed_signals() -> None:
    """From now on, the first signal raises `Interrupt`; at once if one was recorded."""

    def interrupt(*_: object) -> None:
        _asked.set()
        _handle_signals(_ignore)
        raise Interrupt

    _handle_signals(interrupt)
    if _asked.is_set:
        interrupt()


def ignore_signals() -> None:
    """From now on, ignore signals, so that the process can end undisturbed."""
    _handle_signals(signal.SIG_IGN)


@contextmanager
def stop_on_signals() -> Iterator[Callable[[], bool]]:
    """While inside, SIGINT and SIGTERM only set a mark; yields the function that reads it.

    In a command, once it is set, later signals change nothing, inside or after: every wait during
    the exit has a deadline. Elsewhere, as in a notebook, the previous handlers return. Outside the
    main thread, where Python cannot handle signals, this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = [signal.getsignal(number) for number in _SIGNALS]
    _asked.is_set &= _command.is_set  # elsewhere, one that stopped the last training is done with
    _handle_signals(_asked.set)
    try:
        yield lambda: _asked.is_set
    finally:
        if not (_asked.is_set and _command.is_set):
            for number, handler in zip(_SIGNALS, before, strict=True):
                if handler is not None:  # None: not set by Python
                    signal.signal(number, handler)


def _handle_signals(handler: Any) -> None:
    for number in _SIGNALS:
        signal.signal(number, handler)


def _ignore(*_: object) -> None:
    """Ignore a signal. With SIG_IGN, Python prints a message if one is already on its way."""
