"""The cache folder, which keeps slow results for the next process, and what may be read from it.

Code is loaded from here, so two things are checked. The folder must belong to this user or to root,
and nobody else may write to it. And each file has a checksum: it precedes the content of the files
that `keep` writes, whose names are derived from everything that their content depends on. For files
that another library writes, it is in a list next to them (`seal_files`).

If the cache cannot be written or is not trusted, this costs only time. Each process writes to a
temporary file, which it then renames, so several can write at the same time.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from pixelpong.errors import warn

_SEALS = "SHA256SUMS"


def cache_folder() -> Path | None:
    """Return the cache folder: PIXELPONG_CACHE_DIR, or a folder in the user's cache.

    Folders that are not trusted are skipped. Return None if none is left.
    """
    given = os.environ.get("PIXELPONG_CACHE_DIR")
    if given:
        with contextlib.suppress(RuntimeError):  # ~ without a home
            folder = Path(given).expanduser()
            if is_trusted(folder):
                return folder
    with contextlib.suppress(RuntimeError):  # there is no home
        folder = _users_cache() / "pixelpong"
        if is_trusted(folder):
            return folder
    return None


def is_trusted(folder: Path) -> bool:
    """Return whether code from a folder may run; if not, warn once.

    A folder that does not exist yet is trusted. So is every folder on Windows, where a user's own
    folders are private.
    """
    if sys.platform == "win32":
        return True
    try:
        status = folder.stat()
    except OSError:  # nothing can be read from it
        return True
    if status.st_uid not in (0, os.geteuid()):
        _warn_once(
            f"the cache folder {folder} is not used, because it belongs to another user; "
            "set PIXELPONG_CACHE_DIR to a folder of your own"
        )
        return False
    if stat.S_IMODE(status.st_mode) & (stat.S_IWGRP | stat.S_IWOTH):
        _warn_once(
            f"the cache folder {folder} is not used, because other users can write to it; "
            f"empty it and run chmod go-w on it"
        )
        return False
    return True


# Each line only once in a process, although the folder is asked for often.
_warn_once = functools.cache(warn)


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, which only this user can write to."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _users_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def read_kept(path: Path) -> bytes | None:
    """Read a file's content; None if it is missing, damaged, not trusted or not a regular file."""
    try:
        if not path.is_file() or not is_trusted(path.parent):  # reading a named pipe would wait
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
        make_folder(path.parent)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_seal(path, content) + content)
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise


def seal_files(folder: Path, paths: Iterable[Path]) -> None:
    """Add the checksums of files in a folder to its list, for `drop_unsealed`.

    The list only grows, by lines that are written at once. So processes that write the same file
    at the same moment do not undo each other's seals.
    """
    with contextlib.suppress(OSError):
        known = _read_seals(folder)
        lines = [line for path in paths if (line := _seal_line(folder, path)) not in known]
        handle = os.open(folder / _SEALS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(handle, "".join(lines).encode())
        finally:
            os.close(handle)


def drop_unsealed(folder: Path, paths: Iterable[Path]) -> None:
    """Delete the files whose checksums are not on their folder's list.

    Raises:
        OSError: a file can neither be trusted nor be deleted.
    """
    known = _read_seals(folder)
    for path in paths:
        try:
            is_sealed = path.is_file() and _seal_line(folder, path) in known
        except OSError:
            is_sealed = False
        if not is_sealed:
            path.unlink(missing_ok=True)


def _read_seals(folder: Path) -> set[str]:
    path = folder / _SEALS
    if not path.is_file():
        return set()
    return set(path.read_text("utf-8", "replace").splitlines(keepends=True))


def _seal_line(folder: Path, path: Path) -> str:
    """Return a line in the format of the program ``sha256sum``, which can check the list."""
    name = path.relative_to(folder).as_posix()
    return f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}\n"
