"""What a user should know while slow work lasts, such as compiling: one line.

It is printed on a terminal when the work begins. Until the work ends, it is also the `current` one,
which the page shows. A process of a pool passes its lines on to the process that serves the page.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator


def note(line: str) -> None:
    """Print a line about slow work if stderr is a terminal; ignore errors while printing."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # there may be no stderr
        if sys.stderr.isatty():
            print(line, file=sys.stderr, flush=True)


_lines: list[str] = []  # one for each work in progress, the oldest first
_listeners: list[Callable[[str], None]] = []


def begin(line: str, tell: Callable[[str], None] = note) -> None:
    """Tell the line of work that begins; call `end` with the same line after it."""
    tell(line)
    _lines.append(line)
    _pass_on()


def end(line: str) -> None:
    """Forget the line of work that has ended."""
    _lines.remove(line)
    _pass_on()


@contextlib.contextmanager
def slow_work(line: str, tell: Callable[[str], None] = note) -> Iterator[None]:
    """Context manager that tells a line, and keeps it as the current one until the block ends."""
    begin(line, tell)
    try:
        yield
    finally:
        end(line)


def current() -> str:
    """Return the newest line of work in progress in this process, or ``""``."""
    return next(iter(_lines[-1:]), "")


def listen(hear: Callable[[str], None]) -> None:
    """Call `hear` with the current line whenever it changes, from now on."""
    _listeners.append(hear)


def _pass_on() -> None:
    for hear in _listeners:
        with contextlib.suppress(OSError):  # nobody listens any longer
            hear(current())
