"""The run that a word names, the same for every command and from Python.

    runs/fast-001   a path
    fast-001        a name in the folder ``runs``
    latest          the newest run in it with an update

A path comes before a name.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

from pixelpong.errors import ConfigError, RunError, did_you_mean, expected
from pixelpong.run.directory import RUNS_FOLDER

LATEST = "latest"
MAX_LISTED = 8  # runs that an error message names
# Words that commands take for something else: agents of the package, players of a tournament.
TAKEN = (
    LATEST, "package", "beginner", "club", "strong", "champion",
    "perfect", "person", "predictor", "builtin",
)  # fmt: skip


def require_new_name(name: str) -> None:
    """Refuse a name of a new run that a command would take for something else, or cannot take."""
    plain = r"(?!-|\.*$|sweep-\d+$)[^@/\x00-\x1f\x7f-\x9f]+(?<!\.safetensors)"
    if not re.fullmatch(plain, name) or name in TAKEN:
        advice = "give one that means nothing else, such as fast-wide"
        raise ConfigError(expected("the name of a run", repr(name), advice))


def find_run(word: str | Path, folder: Path = RUNS_FOLDER, others: Iterable[str] = ()) -> Path:
    """The directory of the run that `word` names; ``./latest`` is a path.

    `others` are words that the caller accepts too; an error suggests them.
    """
    if not isinstance(word, str | Path) or not str(word):  # an empty one is a path to here
        got = "an empty name" if word == "" else repr(word)
        raise RunError(expected("a run directory", got, "name a run"))
    if word == LATEST:
        for run in list_runs(folder):
            with contextlib.suppress(OSError):
                if (run / "metrics.jsonl").stat().st_size > 0:
                    return run
        advice = "train one: pixelpong train"
        raise RunError(expected(f"a run with an update in {folder}", "none", advice))
    path, named = Path(word), folder / word
    if _is_run(path):
        return path
    if os.path.isdir(path):
        if inside := list_runs(path):
            got, advice = f"{path}, which is a folder of runs", f"name one: {_listed(inside)}"
            raise RunError(expected("a run directory", got, advice))
        return path  # opening it says what is missing
    if _is_run(named):
        return named
    got = f"{path}, which is not one"
    raise RunError(expected("a run directory", got, _advise(named, others)))


def list_runs(folder: Path) -> list[Path]:
    """The runs in a folder, the last changed first; none if the folder is missing."""
    try:
        paths = [Path(entry.path) for entry in os.scandir(folder)]
    except OSError:
        return []
    runs = filter(_is_run, paths)
    return sorted(runs, key=lambda path: (last_change(path) or 0, path), reverse=True)


def last_change(path: Path) -> float | None:
    """When the run last changed, in seconds since 1970; None if it is missing."""
    times = []
    for name in ("metrics.jsonl", "config.json"):
        try:
            times.append((path / name).stat().st_mtime)
        except OSError:
            continue
    return max(times, default=None)


def _is_run(path: Path) -> bool:
    return os.path.isfile(path / "config.json")  # no error for a name that is too long


def _advise(named: Path, others: Iterable[str]) -> str:
    """What to do about a name that no run has."""
    runs = list_runs(named.parent)
    known = [LATEST, *others, *(run.name for run in runs)]
    there = f"; in {named.parent} there are {_listed(runs)}" if runs else ""
    return did_you_mean(named.name, known, f"check its name{there}")


def _listed(runs: list[Path]) -> str:
    names = ", ".join(map(str, runs[:MAX_LISTED]))
    return names + f" and {len(runs) - MAX_LISTED} more" * (len(runs) > MAX_LISTED)
