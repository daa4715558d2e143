"""Whether a training is at work in a run's directory, seen without asking for its lock.

To take the lock, even for a moment, would refuse a training that begins in that moment. So this
looks at the process that the lock file names, and whether it has that file open.
"""

from __future__ import annotations

import os
from pathlib import Path


def is_live(path: Path) -> bool:
    """Whether a training is at work in a run's directory.

    It is if the process that `run.lock` names has the file open. The file itself outlives the
    training, and a process of that number may be another one by now.
    """
    file = path / "run.lock"
    try:
        owner = file.read_text("ascii").strip()
        if not (owner.isdecimal() and 0 < int(owner) < 2**31):
            return False
        os.kill(int(owner), 0)
    except PermissionError:
        return True  # somebody else's process: it is there, and more cannot be seen
    except (OSError, ValueError):
        return False
    try:
        wanted = file.stat()
        folder = f"/proc/{owner}/fd"
        return any(_is_file(f"{folder}/{name}", wanted) for name in os.listdir(folder))
    except OSError:
        return True  # no /proc here, or not ours to read


def _is_file(path: str, wanted: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path), wanted)
    except OSError:
        return False  # closed meanwhile
