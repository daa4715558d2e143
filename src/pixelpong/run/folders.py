"""New folders of runs and sweeps, which appear whole or not at all.

A process may be killed at any moment, and a disk may be full. So a folder is filled under a hidden
name, ``.new-…``, and then renamed. Nothing takes a hidden folder for a run, and the next process
that makes a folder there removes what a killed one left.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pixelpong.errors import RunError, as_argument, refusing
from pixelpong.locking import scratch_folder
from pixelpong.run.files import patiently, sync_folder

RUNS_FOLDER = Path("runs")
CONFIG_FILE = "config.json"  # marks a folder as a run
PLAN_FILE = "sweep.json"  # a sweep's plan
SWEEP_FILE = "sweep.csv"  # a sweep's table of results; it or the plan marks a folder as a sweep
_MAKING = ".new"


def make_folder(
    path: Path | None, name: str, fill: Callable[[Path], None], command: str = "resume"
) -> Path:
    """Make a new folder, by default ``runs/NAME-NNN``, or leave nothing; refuse one that exists.

    `fill` writes its files while it has a temporary name, so it appears with all of them or not at
    all. NNN exceeds all existing numbers, so that none is used twice. `command` continues such a
    folder.
    """
    if path is not None:
        require_new(path, command)
    target = path or _next_free(name)
    missing = [parent for parent in target.parents if not parent.exists()]
    try:
        with refusing(f"cannot create the folder {target}", RunError, "choose another name"):
            target.parent.mkdir(parents=True, exist_ok=True)
        advice = "check the free space and the permissions, or choose another path"
        with refusing(f"cannot write {target}", RunError, advice):
            with scratch_folder(target.parent, _MAKING) as scratch:
                fill(scratch)
                while not _rename(scratch, target):
                    if path is not None:  # another process has just made it
                        require_new(path, command)
                    target = _next_free(name)
    except BaseException:
        for parent in missing:
            with contextlib.suppress(OSError):
                parent.rmdir()
        raise
    return target


def require_new(path: Path, command: str = "resume") -> None:
    """Refuse a path for a new folder if it exists; `command` continues a run or a sweep there."""
    if os.path.lexists(path):
        again = ""
        if any(os.path.isfile(path / name) for name in (CONFIG_FILE, PLAN_FILE, SWEEP_FILE)):
            again = f", or continue it with `pixelpong {command} {as_argument(path)}`"
        raise RunError(f"{path} already exists; choose another name{again}.")


def _next_free(name: str) -> Path:
    """Return the path ``runs/NAME-NNN`` with the next number."""
    stems = (folder.name.removeprefix(f"{name}-") for folder in RUNS_FOLDER.glob(f"{name}-*"))
    last = max((int(stem) for stem in stems if re.fullmatch(r"\d{3,9}", stem)), default=0)
    return RUNS_FOLDER / f"{name}-{last + 1:03d}"


def _rename(scratch: Path, target: Path) -> bool:
    """Give a folder its name, also on the disk; False if the name is taken."""
    with refusing(f"cannot create the folder {target}", RunError, "choose another name"):
        try:
            patiently(target, partial(scratch.rename, target))
        except OSError:
            if os.path.lexists(target):
                return False
            raise
    try:
        sync_folder(target.parent)
    except OSError:
        target.rename(scratch)
        raise
    return True


def is_making(path: Path) -> bool:
    """Whether a folder is still being made, or its making was killed."""
    return path.name.startswith(f"{_MAKING}-")
