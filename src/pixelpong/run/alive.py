"""Finds whether a training is writing to a run directory, without taking its lock.

Taking the lock, even for a moment, would stop a training that begins in that moment. So this checks
whether the process that the lock file names has that file open.
"""

from __future__ import annotations

import os
from pathlib import Path


def is_live(path: Path) -> bool:
    """Whether a training is writing to a run directory.

    `run.lock` outlives its training, and its process number may belong to another process by now.
    """
    file = path / "run.lock"
    try:
        owner = file.read_text("ascii").strip()
        if not (owner.isdecimal() and 0 < int(owner) < 2**31):
            return False
        os.kill(int(owner), 0)
    except PermissionError:
        return True  # another user's process: it exists, and we can't see more
    except (OSError, ValueError):
        return False
    try:
        wanted = file.stat()
        folder = f"/proc/{owner}/fd"
        return any(_is_file(f"{folder}/{name}", wanted) for name in os.listdir(folder))
    except OSError:
        return True  # no /proc here, or we may not read it


def _is_file(path: str, wanted: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path), wanted)
    except OSError:
        return False  # closed meanwhile
