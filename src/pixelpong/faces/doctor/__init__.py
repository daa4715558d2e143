"""Checks this machine, the game and a run: what is wrong, and what to do about it.

    pixelpong doctor                    versions, cores, memory, disk, the game
    pixelpong doctor runs/fast-001      and a run: is it sound, how does it learn

No check may crash: a check that fails to run reports that. Each imports what it needs only when it
runs, because that may be what is missing.

Covered: the list of checks, the report as data and as text.
Not covered: what tests check for all machines, such as frame skip and sticky actions; speed
(`pixelpong bench predict`).
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, TextIO

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from pixelpong import __version__
from pixelpong.errors import PixelpongError, expected

SCHEMA = 2
"""Version of the report's form; docs/howto/doctor.md describes it."""

OK, NOTE, WARNING, FAILURE = LEVELS = ("ok", "note", "warning", "failure")
"""Good; worth knowing; worse than it could be; broken."""

_STYLES = {OK: "green", NOTE: "cyan", WARNING: "bold yellow", FAILURE: "bold red"}

_MACHINE = ("packages", "extras", "cores", "memory", "disk", "rom", "emulator")


@dataclass(frozen=True)
class Check:
    """The result of a check.

    Attributes:
        name: of the check, always the same.
        level: one of `LEVELS`.
        text: one line: what was found; if something is wrong, what was expected, what was got,
            and what to do.
        facts: the same as data, as JSON.
    """

    name: str
    level: str
    text: str
    facts: dict[str, Any] = field(default_factory=dict)


def problem(name: str, level: str, wanted: str, got: object, advice: str, **facts: Any) -> Check:
    """The result of a check that found a problem: what was expected, what was got, what to do."""
    return Check(name, level, expected(wanted, got, advice), facts)


def examine(run: str | None) -> Iterator[Check]:
    """Make all checks.

    Args:
        run: a run to check too, see `pixelpong.run.names`.
    """
    for name in _MACHINE:
        yield from _carry_out("machine", name)
    if run is not None:
        yield from _carry_out("of_run", "run", run)


def summarize(checks: Iterable[Check], run: str | None) -> dict[str, Any]:
    """The report as data."""
    checks = list(checks)
    counts = Counter(check.level for check in checks)
    return {
        "schema": SCHEMA,
        "pixelpong": __version__,
        "run": None if run is None else str(run),
        "is_sound": not counts[FAILURE],
        "counts": {level: counts[level] for level in LEVELS},
        "checks": [asdict(check) for check in checks],
    }


def show(checks: Iterable[Check], stream: TextIO) -> Iterator[Check]:
    """Print each check when it is made, folded to the terminal, and yield it."""
    console = Console(file=stream, highlight=False)
    for check in checks:
        row = Table.grid(Column(width=7), Column(width=12), Column(overflow="fold"), padding=(0, 2))
        text = "".join(letter if letter.isprintable() else "?" for letter in check.text)
        row.add_row(f"[{_STYLES[check.level]}]{check.level}", check.name, Text(text))
        console.print(row)
        yield check


def describe(report: dict[str, Any]) -> str:
    """The last line: the number of checks at each level."""
    counts = report["counts"]
    listed = ", ".join(f"{counts[level]} {level}" for level in LEVELS)
    return f"{'nothing is broken' if report['is_sound'] else 'something is broken'}: {listed}"


def _carry_out(file: str, name: str, *about: str) -> Iterator[Check]:
    try:
        module = importlib.import_module(f"pixelpong.faces.doctor.{file}")
        found = getattr(module, f"check_{name}")(*about)
        yield from [found] if isinstance(found, Check) else found
    except PixelpongError as error:
        yield Check(name, FAILURE, str(error))
    except Exception as error:
        got = f"{type(error).__name__}: {error}"
        advice = "reinstall pixelpong, and report it if that does not help"
        yield problem(name, FAILURE, "a check that runs", got, advice)
