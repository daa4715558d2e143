"""The names of runs, which have the same meaning in every command and in Python.

    runs/fast-001   a path
    fast-001        a name in the folder ``runs``
    latest          the newest run there that has an update

A path takes precedence over a name.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from pixelpong.errors import MAX_GOT, ConfigError, RunError, did_you_mean, on_one_line
from pixelpong.run.folders import CONFIG_FILE, RUNS_FOLDER, is_making

LATEST = "latest"
MAX_LISTED = 8  # most runs that an error message lists
# Names with another meaning in commands: agents in the package, and players in a tournament.
RESERVED = (
    LATEST, "package", "beginner", "club", "strong", "champion",
    "perfect", "person", "predictor", "builtin",
)  # fmt: skip


def require_new_name(name: str) -> None:
    """Refuse names for new runs that commands would misunderstand or not accept."""
    plain = r"(?!-|\.*$|\.new-|sweep-\d+$)[^@/\x00-\x1f\x7f-\x9f]+(?<!\.safetensors)"
    if not re.fullmatch(plain, name) or name in RESERVED or name != name.strip():
        raise ConfigError(f"A run cannot be called {name!r}; choose a name such as fast-wide.")


def find_run(name: str | Path, others: Iterable[str] = ()) -> Path:
    """Find the directory of a run by its name or path; ``./latest`` is a path.

    `others` are names that the caller also accepts; an error suggests them.
    """
    if not isinstance(name, str | Path):
        raise RunError(on_one_line(f"{name!r} is not a run. Give its name or its path."))
    if name == "":  # Path("") is the current folder
        raise RunError("The name of the run is empty. Give its name or its path.")
    if name == LATEST:
        return _find_latest()
    path = Path(name)
    for candidate in (path, RUNS_FOLDER / name):
        if is_run(candidate):
            return candidate
    folder = path if os.path.isdir(path) else RUNS_FOLDER
    names = [run.name for run in list_runs(folder)]
    advice = did_you_mean(path.name, [LATEST, *others, *names], _list_names(folder, names))
    accepted = "a run, an agent or an agent's file" if others else "a run"
    raise RunError(on_one_line(f"{str(path)[:MAX_GOT]} is not {accepted}; {advice}"))


def _find_latest() -> Path:
    for run in list_runs(RUNS_FOLDER):
        with contextlib.suppress(OSError):
            if (run / "metrics.jsonl").stat().st_size > 0:
                return run
    what = f"No run in {RUNS_FOLDER}/ has finished an update yet"
    raise RunError(f"{what}; train one: pixelpong train")


def _list_names(folder: Path, names: Sequence[str]) -> str:
    """List the runs in a folder for an error message."""
    if not names:
        return f"there are no runs in {folder}"
    listed = ", ".join(names[:MAX_LISTED])
    if len(names) > MAX_LISTED:
        listed += f" and {len(names) - MAX_LISTED} more"
    return f"{folder} has {listed}"


def list_runs(folder: Path) -> list[Path]:
    """List the runs in a folder, most recently changed first; none if the folder is missing."""
    try:
        paths = [Path(entry.path) for entry in os.scandir(folder)]
    except OSError:
        return []
    return sorted(filter(is_run, paths), key=lambda path: (last_change(path), path), reverse=True)


def last_change(path: Path) -> float:
    """Return the time of the run's last change, in seconds since 1970; 0 if it is missing."""
    times = [0.0]
    for name in ("metrics.jsonl", "config.json"):
        with contextlib.suppress(OSError):
            times.append((path / name).stat().st_mtime)
    return max(times)


def is_run(path: Path) -> bool:
    """Whether there is a run at a path; one that is still being made does not count."""
    # `isfile` raises no error for a name that is too long.
    return not is_making(path) and os.path.isfile(path / CONFIG_FILE)
