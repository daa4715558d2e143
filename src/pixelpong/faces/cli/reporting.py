"""Reporting, for all commands."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from typing import Any


def report_on(
    report: dict[str, Any], is_json: bool, describe: Callable[[dict[str, Any]], str]
) -> None:
    """Print a report as JSON or as text; on a terminal, lines are folded, except for commands."""
    text = json.dumps(report, indent=1) if is_json else describe(report)
    if not is_json and sys.stdout.isatty():
        from pixelpong.faces.text import fold

        width = shutil.get_terminal_size().columns
        text = "\n".join(
            fold(line, width) if len(line) > width and "pixelpong " not in line else line
            for line in text.split("\n")
        )
    print(text, flush=True)


def count(number: int, total: int, what: str) -> None:
    """Show a counter on a terminal, which disappears at the end."""
    if sys.stderr.isatty():
        text = "" if number == total else f"{number:,} of {total:,} {what}"
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def tell(text: str) -> None:
    """Print a line that is not part of the report."""
    print(text, file=sys.stderr, flush=True)
