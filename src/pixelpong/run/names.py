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


def find_run(word: str | Path, others: Iterable[str] = ()) -> Path:
    """The directory of the run that `word` names; ``./latest`` is a path.

    `others` are words that the caller accepts too; an error suggests them.
    """
    if not isinstance(word, str | Path) or not str(word):  # an empty one is a path to here
        got = "an empty name" if word == "" else repr(word)
        raise RunError(expected("a run directory", got, "name a run"))
    if word == LATEST:
        for run in list_runs(RUNS_FOLDER):
            with contextlib.suppress(OSError):
                if (run / "metrics.jsonl").stat().st_size > 0:
                    return run
        advice = "train one: pixelpong train"
        raise RunError(expected(f"a run with an update in {RUNS_FOLDER}", "none", advice))
    path = Path(word)
    for each in (path, RUNS_FOLDER / word):
        if is_run(each):
            return each
    folder = path if os.path.isdir(path) else RUNS_FOLDER
    names = [run.name for run in list_runs(folder)]
    listed = ", ".join(names[:MAX_LISTED]) + ", and others" * (len(names) > MAX_LISTED)
    advice = "check its name" + f"; the runs in {folder} are {listed}" * bool(names)
    advice = did_you_mean(path.name, [LATEST, *others, *names], advice)
    raise RunError(expected("a run directory", f"{path}, which is not one", advice))


def list_runs(folder: Path) -> list[Path]:
    """The runs in a folder, the last changed first; none if the folder is missing."""
    try:
        paths = [Path(entry.path) for entry in os.scandir(folder)]
    except OSError:
        return []
    return sorted(filter(is_run, paths), key=lambda path: (last_change(path), path), reverse=True)


def last_change(path: Path) -> float:
    """When the run last changed, in seconds since 1970; 0 if it is missing."""
    times = [0.0]
    for name in ("metrics.jsonl", "config.json"):
        with contextlib.suppress(OSError):
            times.append((path / name).stat().st_mtime)
    return max(times)


def is_run(path: Path) -> bool:
    """Whether a path is that of a run."""
    return os.path.isfile(path / "config.json")  # no error for a name that is too long
