"""What a check finds, and what it is asked about."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pixelpong.config import Config
from pixelpong.errors import expected

OK, NOTE, WARNING, FAILURE = LEVELS = ("ok", "note", "warning", "failure")
"""Good; good to know; something is worse than it could be; something does not work."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: of the check, the same each time.
        level: one of `LEVELS`.
        text: one line: what was found, or where that is not well, what was expected, what was
            got, what to do.
        facts: the same as data, as JSON holds it.
        page: of the documentation, with an anchor, relative to its folder; empty for none.
    """

    name: str
    level: str
    text: str
    facts: dict[str, Any] = field(default_factory=dict)
    page: str = ""


@dataclass(frozen=True)
class Case:
    """What is to be examined.

    Attributes:
        config: with the protocol, the engine and the workers to look at.
        run: directory of the run; None for the machine alone.
        runs_folder: where new runs go.
        is_quick: leave out what takes seconds.
        is_cluster_asked: a Ray address was given, not found in the surroundings.
        seconds_left: until the time is used up.
    """

    config: Config
    run: Path | None = None
    runs_folder: Path = Path("runs")
    is_quick: bool = False
    is_cluster_asked: bool = False
    seconds_left: Callable[[], float] = lambda: 15.0


Look = Callable[[Case], Iterable[Check]]
"""Looks at one thing or a few that belong together."""


def trouble(
    level: str,
    name: str,
    what: str,
    got: object,
    advice: str,
    *,
    facts: Mapping[str, Any] | None = None,
    page: str = "",
) -> Check:
    """A check that did not come out well.

    Args:
        level: NOTE, WARNING or FAILURE.
        name: of the check.
        what: was expected.
        got: instead.
        advice: what to do.
        facts: as data.
        page: of the documentation.

    >>> trouble(NOTE, "shm", "/dev/shm", "none", "mount it").text
    'expected /dev/shm, got none; mount it'
    """
    return Check(name, level, expected(what, got, advice), dict(facts or {}), page)


def can_write(folder: Path) -> bool:
    """Whether files can be made in a folder; nothing is left there."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def megabytes(size: float) -> str:
    """A size as people write it.

    >>> megabytes(3.2e9), megabytes(48e6)
    ('3.2 GB', '48 MB')
    """
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
