"""``python -m pixelpong``, the same as ``pixelpong``: a command in its own process."""

from __future__ import annotations

import contextlib
import sys

from pixelpong.faces import interrupts


def main() -> None:
    """Run the command on the command line; from here on, SIGTERM works like Ctrl-C."""
    exit_code = 130
    interrupts.note_signals()
    with contextlib.suppress(KeyboardInterrupt):
        from pixelpong.faces import cli

        exit_code = cli.main(begin=interrupts.heed_signals)
        interrupts.ignore_signals()
    interrupts.ignore_signals()  # again, in case a signal interrupted the call above
    try:
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):  # Python would try again, and 3.13 exit with 120
        sys.stderr = None
    sys.exit(exit_code)


if __name__ == "__main__":
    main()
