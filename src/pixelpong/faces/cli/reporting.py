"""Reporting, for all commands."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any


def report_on(
    report: dict[str, Any], is_json: bool, describe: Callable[[dict[str, Any]], str]
) -> None:
    """Print a report, as one JSON object or as text."""
    print(json.dumps(report, indent=1) if is_json else describe(report), flush=True)


def tell(text: str) -> None:
    """Print something besides the report."""
    print(text, file=sys.stderr, flush=True)
