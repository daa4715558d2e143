"""Every file of a run is opened here; a file that is written whole is complete or absent.

A run directory may come from somebody else, so what is opened is a regular file and nothing else:
never a pipe or a device, for which a reader would wait for ever. A link is followed to read, but
not to write, so that no file outside the run is changed. A *folder* may be a link: a run, or its
checkpoints, may lie on another disk.
"""

from __future__ import annotations

import errno
import os
import stat
from io import FileIO
from pathlib import Path

from pixelpong.errors import RunError, refusing

# Not to wait for the other end of a pipe that was put there since the check; 0 if unknown.
_SAFE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def open_to_read(path: Path) -> FileIO:
    """Open a regular file, without waiting; anything else is an `OSError`."""
    _require_regular(os.stat(path))
    return _checked(os.open(path, os.O_RDONLY | _SAFE), "rb")


def read_file(path: Path, limit: int) -> bytes:
    """Read a regular file of at most `limit` bytes; a larger one is refused unread."""
    with open_to_read(path) as file:
        if os.fstat(file.fileno()).st_size > limit:
            raise ValueError(f"it has more than {limit} bytes")
        return file.readall()


def open_to_write(path: Path, *, create: bool) -> FileIO:
    """Open a file of a run to read it and to write at its end; links are refused.

    It is made only if `create` is set. A training does that once, at its start: a file that is gone
    later was deleted, and a new one would be part of nothing.
    """
    try:
        require_no_link(path)
        flags = os.O_RDWR | os.O_APPEND | _SAFE | _NO_LINK | (os.O_CREAT if create else 0)
        return _checked(os.open(path, flags, 0o666), "ab+")
    except FileNotFoundError as error:
        raise gone(path) from error


def require_no_link(path: Path) -> None:
    """Refuse to write to a path where a link, a pipe or a device lies; it may be free."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if stat.S_ISLNK(found.st_mode):
        advice = "put the file itself there; only a whole run or a folder of it may be a link"
        raise RunError(f"cannot write to {path}: it is a link; {advice}")
    _require_regular(found)


def gone(path: Path) -> RunError:
    """The error about a file or folder that a training has lost."""
    return RunError(f"{path} is gone; if the run was deleted, train again")


def _checked(descriptor: int, mode: str) -> FileIO:
    """The file of a descriptor, if it is a regular one; otherwise close it."""
    try:
        _require_regular(os.fstat(descriptor))
        return FileIO(descriptor, mode)
    except BaseException:
        os.close(descriptor)
        raise


def _require_regular(found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")


def require_writable(path: Path) -> None:
    """Refuse a path that cannot be written to, before the work begins."""
    if path.is_dir() or not path.parent.is_dir():
        raise RunError(f"cannot write {path}: it is a folder, or its folder does not exist")


def write_whole(path: Path, content: bytes, *, make_folder: bool = False) -> None:
    """Write or replace a file, completely or not at all; a link at its place is replaced."""
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    with refusing(f"cannot write {path}", RunError, "make room there, or choose another place"):
        if make_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.unlink(missing_ok=True)  # of a killed process, or a link put there
            with temporary.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        if os.name == "posix":  # other systems cannot flush a folder
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
