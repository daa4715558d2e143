"""Looks at a machine and a run, and says in plain words what is not well and what to do.

    pixelpong doctor                    this machine: does it work, is it the right Pong, how fast
    pixelpong doctor runs/fast-001      and a run: is it sound, how does it learn

What can be measured is measured: the protocol card on the emulator, the BLAS threads in a worker
that is really started, the speed by playing. Nothing here may fail: what a check cannot do is what
it has found.

Covered: the plan of the checks, carrying it out, the report. The checks themselves have a file a
subject; each is loaded only when its turn comes, because what is missing may be what it imports.
"""

from __future__ import annotations

import importlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from pixelpong import __version__
from pixelpong.doctor.records import FAILURE, LEVELS, NOTE, Case, Check, Look, trouble
from pixelpong.errors import PixelpongError

SCHEMA = 1
"""Number of the report's form; docs/howto/doctor.md describes it."""


@dataclass(frozen=True)
class Step:
    """One step of the plan.

    Attributes:
        section: of the report.
        name: of the first check that it makes.
        place: file and function.
        needs: checks that must not have failed.
        is_slow: left out of a quick look.
    """

    section: str
    name: str
    place: str
    needs: tuple[str, ...] = ()
    is_slow: bool = False


@dataclass(frozen=True)
class Outcome:
    """A check that was made, where it belongs, and the seconds since the one before."""

    section: str
    check: Check
    seconds: float


_MACHINE = (
    Step("Packages", "python", "packages.check_python"),
    Step("Packages", "packages", "packages.check_packages"),
    Step("Packages", "extras", "packages.check_extras"),
    Step("Machine", "cores", "machine.check_cores"),
    Step("Machine", "memory", "machine.check_memory"),
    Step("Machine", "disk", "machine.check_disk"),
    Step("Machine", "shared_memory", "machine.check_shared_memory"),
    Step("Game", "rom", "rom.check_rom"),
    Step("Game", "emulator", "emulator.check_emulator", ("packages", "rom")),
    Step("Game", "ale", "emulator.check_ale", ("packages", "rom")),
    Step("Game", "frame_skip", "card.check_card", ("packages", "rom")),
    Step("Workers", "workers", "workers.check_workers", ("packages", "rom"), is_slow=True),
    Step("Workers", "ray", "cluster.check_ray"),
)
_RUN = Step("Run", "run", "of_run.check_run", ("packages",))
_SPEED = Step("Speed", "speed", "speed.check_speed", ("packages", "rom", "workers"), is_slow=True)
"""Comes last: it makes do with the time that is left."""


def examine(case: Case) -> Iterator[Outcome]:
    """Carry out the plan; a check that cannot be made is a failure that says why.

    Args:
        case: what is to be examined.
    """
    failed: set[str] = set()
    run = () if case.run is None else (_RUN,)
    for step in (*_MACHINE, *run, _SPEED):
        if step.is_slow and case.is_quick:
            continue
        since = time.monotonic()
        for check in _carry_out(step, case, failed):
            if check.level == FAILURE:
                failed.add(check.name)
            now = time.monotonic()
            yield Outcome(step.section, check, now - since)
            since = now


def summarize(
    outcomes: Iterable[Outcome], case: Case, clock: Callable[[], float]
) -> dict[str, Any]:
    """The report as data.

    Args:
        outcomes: of `examine`.
        case: what was examined.
        clock: tells the seconds that it took, when all is done.
    """
    outcomes = list(outcomes)
    counts = Counter(outcome.check.level for outcome in outcomes)
    return {
        "schema": SCHEMA,
        "pixelpong": __version__,
        "run": None if case.run is None else str(case.run),
        "is_quick": case.is_quick,
        "is_sound": not counts[FAILURE],
        "counts": {level: counts[level] for level in LEVELS},
        "seconds": round(clock(), 2),
        "checks": [
            {"section": each.section, **asdict(each.check), "seconds": round(each.seconds, 3)}
            for each in outcomes
        ],
    }


def _carry_out(step: Step, case: Case, failed: set[str]) -> Iterator[Check]:
    missing = sorted(failed & set(step.needs))
    if missing:
        got = " and ".join(missing) + " that failed"
        yield trouble(NOTE, step.name, "to look at this", got, "mend that first")
        return
    try:
        yield from _load(step)(case)
    except PixelpongError as error:
        yield Check(step.name, FAILURE, str(error))
    except ImportError as error:
        advice = "install it anew: pip install --force-reinstall pixelpong"
        yield trouble(FAILURE, step.name, "packages that can be loaded", error, advice)
    except MemoryError:
        got = "too little"
        yield trouble(FAILURE, step.name, "enough memory", got, "close other programs")
    except OSError as error:
        got = error.strerror or str(error)
        if error.filename:
            got += f": {error.filename}"
        yield trouble(FAILURE, step.name, "the system to play along", got, "mend that first")
    except Exception as error:
        got = f"{type(error).__name__}: {error}"
        advice = "a damaged package, or a bug: install it anew, then tell of it"
        yield trouble(FAILURE, step.name, "no such error", got, advice)


def _load(step: Step) -> Look:
    file, function = step.place.split(".")
    look: Look = getattr(importlib.import_module(f"pixelpong.doctor.{file}"), function)
    return look
