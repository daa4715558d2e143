"""``python -m pixelpong`` is ``pixelpong``: one command, in a process of its own."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Run the command; from the first line to the last, SIGTERM is what Ctrl-C is."""
    exit_code = 130
    try:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        from pixelpong import cli

        exit_code = cli.main()
    except KeyboardInterrupt:
        pass  # too early or too late for a word
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # it ends already
    sys.exit(exit_code)


if __name__ == "__main__":
    main()
