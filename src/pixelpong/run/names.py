"""Names of runs, which mean the same in every command and in Python.

    runs/fast-001   a path
    fast-001        a name in the folder ``runs``
    latest          the newest run there that has an update

A path takes precedence over a name.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

from pixelpong.errors import MAX_GOT, ConfigError, RunError, did_you_mean, expected, on_one_line
from pixelpong.run.directory import RUNS_FOLDER

LATEST = "latest"
MAX_LISTED = 8  # runs that an error message names
# Words with another meaning in commands: agents of the package, players of a tournament.
TAKEN = (
    LATEST, "package", "beginner", "club", "strong", "champion",
    "perfect", "person", "predictor", "builtin",
)  # fmt: skip


def require_new_name(name: str) -> None:
    """Refuse a name for a new run that commands would misunderstand or not accept."""
    plain = r"(?!-|\.*$|sweep-\d+$)[^@/\x00-\x1f\x7f-\x9f]+(?<!\.safetensors)"
    if not re.fullmatch(plain, name) or name in TAKEN or name != name.strip():
        advice = "choose one with no other meaning, such as fast-wide"
        raise ConfigError(f"{name!r} cannot be the name of a run; {advice}")


def find_run(word: str | Path, others: Iterable[str] = ()) -> Path:
    """Find the directory of the run that `word` names; ``./latest`` is a path.

    `others` are words that the caller also accepts; an error suggests them.
    """
    if not isinstance(word, str | Path) or not str(word):  # Path("") is the current folder
        if word == "":
            raise RunError("The name of the run is empty.")
        raise RunError(expected("a run directory", repr(word), "name a run"))
    if word == LATEST:
        for run in list_runs(RUNS_FOLDER):
            with contextlib.suppress(OSError):
                if (run / "metrics.jsonl").stat().st_size > 0:
                    return run
        what = f"No run in {RUNS_FOLDER}/ has finished an update yet"
        raise RunError(f"{what}; train one: pixelpong train")
    path = Path(word)
    for each in (path, RUNS_FOLDER / word):
        if is_run(each):
            return each
    folder = path if os.path.isdir(path) else RUNS_FOLDER
    names = [run.name for run in list_runs(folder)]
    listed = ", ".join(names[:MAX_LISTED])
    if len(names) > MAX_LISTED:
        listed += f", and {len(names) - MAX_LISTED} more"
    advice = "check its name" + (f"; the runs in {folder} are {listed}" if names else "")
    advice = did_you_mean(path.name, [LATEST, *others, *names], advice)
    what = "not a run, an agent or an agent's file" if others else "not a run directory"
    raise RunError(on_one_line(f"{str(path)[:MAX_GOT]} is {what}; {advice}"))


def list_runs(folder: Path) -> list[Path]:
    """The runs in a folder, the most recently changed first; none if the folder is missing."""
    try:
        paths = [Path(entry.path) for entry in os.scandir(folder)]
    except OSError:
        return []
    return sorted(filter(is_run, paths), key=lambda path: (last_change(path), path), reverse=True)


def last_change(path: Path) -> float:
    """The time of the run's last change, in seconds since 1970; 0 if it is missing."""
    times = [0.0]
    for name in ("metrics.jsonl", "config.json"):
        with contextlib.suppress(OSError):
            times.append((path / name).stat().st_mtime)
    return max(times)


def is_run(path: Path) -> bool:
    """Whether there is a run at a path."""
    return os.path.isfile(path / "config.json")  # raises no error for a name that is too long
