"""What all commands share: how they report, and how they refuse a number."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pixelpong.errors import ConfigError, expected


def report_on(
    report: dict[str, Any], is_json: bool, describe: Callable[[dict[str, Any]], str]
) -> None:
    """Print a report, as one JSON object or as text."""
    print(json.dumps(report, indent=1) if is_json else describe(report), flush=True)


def require_at_least(flag: str, value: float, minimum: float) -> None:
    """Refuse a value that is too small.

    Raises:
        ConfigError: it is.
    """
    if not value >= minimum:  # also for what is not a number
        raise ConfigError(expected(f"{flag} of at least {minimum:g}", value, "see --help"))


def require_between(flag: str, value: float, low: float, high: float) -> None:
    """Refuse a value out of range.

    Raises:
        ConfigError: it is.
    """
    if not low <= value <= high:
        raise ConfigError(expected(f"{flag} from {low:g} to {high:g}", value, "see --help"))
