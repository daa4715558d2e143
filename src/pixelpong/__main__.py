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
        _handle_signals(signal.SIG_IGN)
    sys.exit(exit_code)


def _interrupt(*_: object) -> None:
    """The first signal ends it; one that comes later must not disturb how it ends."""
    _handle_signals(signal.SIG_IGN)
    raise KeyboardInterrupt


def _handle_signals(handler: Any) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)


if __name__ == "__main__":
    main()
