"""The cache folder: what takes time to make is kept for the next process.

Each file's name is derived from all that its content depends on, and a checksum is in front of the
content: what is damaged, or another file under this name, is not read. A cache that cannot be
written costs only time. Two processes that write at the same moment each write to a temporary file,
which they then rename.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
from pathlib import Path


def cache_folder() -> Path | None:
    """The folder: PIXELPONG_CACHE_DIR, or the user's cache folder.

    None if the user has no home: code from a folder that others can write to must not be run.
    """
    folder = os.environ.get("PIXELPONG_CACHE_DIR")
    try:
        return Path(folder).expanduser() if folder else _users_cache() / "pixelpong"
    except RuntimeError:  # there is no home
        return None


def _users_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def read_kept(path: Path) -> bytes | None:
    """Read what is kept; None if there is nothing, it is damaged, or no regular file."""
    try:
        if not path.is_file():  # a named pipe would be waited for
            return None
        content = path.read_bytes()
    except OSError:
        return None
    kept = content[32:]
    return kept if kept and _seal(path, kept) == content[:32] else None


def _seal(path: Path, content: bytes) -> bytes:
    """The checksum in front; it includes the name, so another file's content does not pass."""
    return hashlib.sha256(path.name.encode() + content).digest()


def keep(path: Path, content: bytes) -> None:
    """Write a file completely or not at all; do nothing if it cannot be written."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_seal(path, content) + content)
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
