"""``python -m pixelpong`` is ``pixelpong``: one command, in a process of its own."""

from __future__ import annotations

import contextlib
import signal
import sys
from typing import Any


def main() -> None:
    """Run the command; from the first line on, SIGTERM is what Ctrl-C is."""
    exit_code = 130
    with contextlib.suppress(KeyboardInterrupt):
        _handle_signals(_interrupt)
        from pixelpong import cli

        exit_code = cli.main()
        _handle_signals(_ignore)
    _handle_signals(signal.SIG_IGN)
    sys.exit(exit_code)


class _Interrupt(KeyboardInterrupt):
    """Ctrl-C by another name: where KeyboardInterrupt itself has come out of an `exec`, Python
    remembers it though it was caught, and in the end kills itself by SIGINT, whatever was returned.
    """


def _interrupt(*_: object) -> None:
    """The first signal ends it; one that comes later must not disturb how it ends."""
    _handle_signals(_ignore)
    raise _Interrupt


def _ignore(*_: object) -> None:
    """Not SIG_IGN, of which Python says a word where a signal is on its way already."""


def _handle_signals(handler: Any) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)


if __name__ == "__main__":
    main()
