"""Opens every file of a run; files that are written whole are complete or absent.

A run directory may come from somebody else. So only regular files are opened, never a pipe or a
device, for which a reader would wait for ever. Links are followed for reading but not for writing,
so that no file outside the run is changed. A *folder* may be a link, because a run or its
checkpoints may be on another disk.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable
from functools import partial
from io import FileIO
from pathlib import Path

from pixelpong.errors import RunError, refusing

# Avoids waiting for the other end of a pipe that has replaced the file since the check.
_SAFE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)

Part = bytes | memoryview  # of a file's content, which follows the part before

HELD_TRIES = 100  # how often a file is tried that another program has open, every 10 ms
_HELD = (5, 32)  # Windows' numbers: access denied, sharing violation


class HeldError(RunError):
    """Another program has a file open, and Windows lets nobody replace or remove it meanwhile."""


def open_to_read(path: Path) -> FileIO:
    """Open a regular file without waiting; raise an `OSError` for anything else."""
    _require_regular(os.stat(path))
    return _checked(os.open(path, os.O_RDONLY | _SAFE), "rb")


def read_file(path: Path, limit: int) -> bytes:
    """Read a regular file of at most `limit` bytes; refuse a larger one without reading it."""
    with open_to_read(path) as file:
        return read_within(file, limit)


def read_within(file: FileIO, limit: int) -> bytes:
    """Read a file from here to its end; refuse one of more than `limit` bytes."""
    if os.fstat(file.fileno()).st_size > limit:
        raise ValueError(f"it has more than {limit:,} bytes")
    return file.readall()


def open_to_write(path: Path, *, create: bool) -> FileIO:
    """Open a file of a run for reading and for writing at its end; refuse links.

    It is created only if `create` is set. A training run does that once, at its start: if a file is
    missing later, it was deleted, and a new one would lack the earlier lines.
    """
    try:
        require_no_link(path)
        flags = os.O_RDWR | os.O_APPEND | _SAFE | _NO_LINK
        if create:
            flags |= os.O_CREAT
        return _checked(os.open(path, flags, 0o666), "ab+")
    except FileNotFoundError as error:
        raise gone(path) from error


def require_no_link(path: Path) -> None:
    """Refuse to write to a link, a pipe or a device; the path need not exist."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return
    if stat.S_ISLNK(status.st_mode):
        advice = "replace it with the file itself (only a run or a folder in it may be a link)"
        raise RunError(f"cannot write to {path}: it is a link; {advice}")
    _require_regular(status)


def gone(path: Path) -> RunError:
    """Return the error for a file or folder that has disappeared during training."""
    return RunError(f"{path} no longer exists; if the run was deleted, train a new one")


def _checked(descriptor: int, mode: str) -> FileIO:
    """Open the file of a descriptor; close it and raise an error if it is not a regular file."""
    try:
        _require_regular(os.fstat(descriptor))
        return FileIO(descriptor, mode)
    except BaseException:
        os.close(descriptor)
        raise


def _require_regular(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")


def require_writable(path: Path) -> None:
    """Refuse a path that cannot be written to before the work starts."""
    if path.is_dir():
        raise RunError(f"cannot write {path}: it is a folder; choose another name")
    if not path.parent.is_dir():
        raise RunError(f"cannot write {path}: the folder {path.parent} does not exist; create it")


def write_whole(path: Path, *parts: Part, make_folder: bool = False) -> None:
    """Write or replace a file completely or not at all; a link at this path is replaced."""
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    advice = "check the free space and the permissions, or choose another path"
    with refusing(f"cannot write {path}", RunError, advice):
        if make_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.unlink(missing_ok=True)  # left by a killed process, or a link
            write_new(temporary, *parts)
            patiently(path, partial(temporary.replace, path))
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
        sync_folder(path.parent)


def remove_file(path: Path) -> None:
    """Remove a file if it exists."""
    patiently(path, partial(path.unlink, missing_ok=True))


def patiently(path: Path, act: Callable[[], object]) -> None:
    """Rename, replace or remove `path`, waiting while another program has it open.

    Only Windows refuses that. Virus scanners and readers hold a file for moments, Excel for hours.
    """
    for _ in range(HELD_TRIES):
        try:
            act()
            return
        except PermissionError as error:
            if getattr(error, "winerror", None) not in _HELD:
                raise
            time.sleep(0.01)
    what = "another program has it open, or you may not change it"
    raise HeldError(f"cannot replace or remove {path}: {what}; close it there, and try again.")


def write_new(path: Path, *parts: Part) -> None:
    """Write a new file and flush it to the disk; raise an `OSError` if that fails."""
    with path.open("xb") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, on systems that can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
