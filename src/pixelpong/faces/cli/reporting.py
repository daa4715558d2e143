"""Reporting, for all commands."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Callable
from typing import Any


def report_on(
    report: dict[str, Any], is_json: bool, describe: Callable[[dict[str, Any]], str]
) -> None:
    """Print a report, as one JSON object or as text."""
    text = json.dumps(report, indent=1) if is_json else describe(report)
    if not is_json and sys.stdout.isatty():
        text = fold(text, shutil.get_terminal_size().columns)
    print(text, flush=True)


def tell(text: str) -> None:
    """Print something besides the report."""
    print(text, file=sys.stderr, flush=True)


def fold(text: str, width: int) -> str:
    """Break long lines between two words, but none with a command, which somebody may copy.

    >>> print(fold("won after 0:35\\nmean return 18.47 over 200 games", 20))
    won after 0:35
    mean return 18.47
      over 200 games
    """
    lines = []
    for line in text.split("\n"):
        if len(line) <= width or "pixelpong " in line:
            lines.append(line)
        else:
            lines += textwrap.wrap(
                line, max(width, 4), subsequent_indent="  ", break_long_words=False,
                break_on_hyphens=False,
            )  # fmt: skip
    return "\n".join(lines)
