"""The cache folder, which keeps results that take time to make for the next process.

Each file's name is derived from everything that its content depends on, and a checksum precedes the
content. So a damaged file, or another file with this name, is not used. If the cache cannot be
written, this costs only time. Each process writes to a temporary file, which it then renames, so
several can write at the same time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
from pathlib import Path


def cache_folder() -> Path | None:
    """The cache folder: PIXELPONG_CACHE_DIR, or the user's cache folder.

    None if the user has no home, because code from a folder that others can write to must not be
    run.
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
    """Read a file's content; None if it is missing, damaged, or not a regular file."""
    try:
        if not path.is_file():  # reading a named pipe would wait
            return None
        content = path.read_bytes()
    except OSError:
        return None
    kept = content[32:]
    return kept if kept and _seal(path, kept) == content[:32] else None


def _seal(path: Path, content: bytes) -> bytes:
    """Compute the checksum, which includes the name, so that another file's content fails."""
    return hashlib.sha256(path.name.encode() + content).digest()


def keep(path: Path, content: bytes) -> None:
    """Write a file completely or not at all; ignore a folder that cannot be written."""
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
