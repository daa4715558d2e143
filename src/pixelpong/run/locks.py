"""The lock of a folder; only one process trains a run, and readers can tell whether one does.

Locks also tell which temporary folders are still in use, see `scratch_folder`. The system frees
them when a process ends, however it ends, and they work between containers that share a disk.
"""

from __future__ import annotations

import contextlib
import enum
import errno
import os
import secrets
import shutil
import sys
import time
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

from pixelpong.errors import RunError, refusing, warn
from pixelpong.run.files import gone, open_to_read, open_to_write, read_file

LOCK_FILE = "run.lock"
LOCK_SECONDS = 1  # time limit for getting the lock
_FILE_LIMIT = 1 << 16  # size limit in bytes of the file, which holds the owner's process number
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL)  # disks without locks


class _Attempt(enum.Enum):
    """The result of an attempt to lock a file."""

    LOCKED = enum.auto()
    HELD = enum.auto()  # another process holds the lock
    NO_LOCKS = enum.auto()  # this disk does not support locks


class Lock:
    """The lock of a folder, held by this process."""

    def __init__(self, folder: Path, file: FileIO, before: bytes | None) -> None:
        self._folder, self._file, self._before = folder, file, before
        self._pid = os.getpid()
        self.is_kept = False  # whether the lock's file stays unchanged when the lock ends
        with contextlib.suppress(OSError):  # a full disk has no room for the owner's number
            self._write(b"%d\n" % self._pid)

    def require_held(self) -> None:
        """Raise a `RunError` if the folder was removed or replaced, or in a forked process."""
        if os.getpid() != self._pid:
            raise RunError(
                f"Process {self._pid} is training in {self._folder}; this fork of it cannot."
            )
        if not _is_at(self._file, self._folder / LOCK_FILE):
            raise gone(self._folder)

    def end(self) -> None:
        """Free the folder, and restore its file unless `is_kept` is set."""
        if os.getpid() == self._pid:  # a forked child has only a copy
            if not self.is_kept:
                with contextlib.suppress(OSError):
                    self._restore()
            # Unlock explicitly; otherwise forked children, which have the file open, would keep it.
            with contextlib.suppress(OSError):
                _unlock(self._file)
        self._file.close()

    def _restore(self) -> None:
        if self._before is not None:
            self._write(self._before)
        elif _is_at(self._file, self._folder / LOCK_FILE):
            (self._folder / LOCK_FILE).unlink()

    def _write(self, content: bytes) -> None:
        self._file.truncate(0)
        self._file.write(content)


@contextlib.contextmanager
def lock_folder(path: Path) -> Iterator[Lock]:
    """Context manager that lets only this process write to a folder.

    If the disk does not support locks, as on some network and cloud disks, this prints a warning.
    """
    lock = _take(path)
    try:
        yield lock
    finally:
        lock.end()


def is_live(path: Path) -> bool:
    """Whether a process is training in a run directory; none can start during this call.

    If the disk does not support locks, this cannot be known, and the answer is no.
    """
    with contextlib.suppress(OSError), open_to_read(path / LOCK_FILE) as file:
        return _try_lock(file, exclusive=False) is _Attempt.HELD
    return False


def _take(folder: Path) -> Lock:
    path, tries = folder / LOCK_FILE, LOCK_SECONDS * 100
    with refusing(f"cannot lock {folder}", RunError, "check its permissions"):
        while True:
            before: bytes | None = None
            if os.path.lexists(path):
                before = read_file(path, _FILE_LIMIT)
            file = open_to_write(path, create=True)
            try:
                attempt = _try_lock(file, exclusive=True)
                if attempt is not _Attempt.HELD and _is_at(file, path):
                    if attempt is _Attempt.NO_LOCKS:
                        warn(
                            f"the disk of {folder} does not support locks, so nothing keeps a "
                            "second process from training there"
                        )
                    return Lock(folder, file, before)
            except BaseException:
                file.close()
                raise
            file.close()
            tries -= 1
            if tries == 0:
                number = (before or b"")[:20].strip().decode("ascii", "replace")
                owner = f"Process {number}" if number else "Another process"
                raise RunError(f"{owner} is training in {folder}; wait for it, or stop it.")
            time.sleep(0.01)  # `is_live` may hold the lock for a moment, or the file was replaced


@contextlib.contextmanager
def scratch_folder(parent: Path, prefix: str, mode: int = 0o777) -> Iterator[Path]:
    """Make a temporary folder in `parent`, and remove it afterwards.

    Folders with this prefix that killed processes left are removed first. Where folders cannot be
    locked, as on Windows, these stay.
    """
    for leftover in parent.glob(f"{prefix}-*"):
        with contextlib.suppress(OSError), _holding(leftover) as attempt:
            if attempt is _Attempt.LOCKED:
                shutil.rmtree(leftover, ignore_errors=True)
    with contextlib.ExitStack() as stack:
        yield _make_held(stack, parent, prefix, mode)


def _make_held(stack: contextlib.ExitStack, parent: Path, prefix: str, mode: int) -> Path:
    """Make a folder that is locked and exists until the stack is closed."""
    while True:
        folder = parent / f"{prefix}-{os.getpid()}-{secrets.token_hex(4)}"
        folder.mkdir(mode)
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            attempt = stack.enter_context(_holding(folder))
            # Before it was locked, another process may have taken it for a leftover.
            if attempt is not _Attempt.HELD and folder.exists():
                return folder


@contextlib.contextmanager
def _holding(folder: Path) -> Iterator[_Attempt]:
    """Context manager that tries to lock a folder itself, without a file in it."""
    if os.name != "posix":
        yield _Attempt.NO_LOCKS
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield _try_lock(descriptor, exclusive=True)
    finally:
        os.close(descriptor)


def _is_at(file: FileIO, path: Path) -> bool:
    """Whether an open file is still the one at its path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except OSError:
        return False


def _try_lock(file: FileIO | int, *, exclusive: bool) -> _Attempt:
    """Lock a file or a folder until it is closed, exclusively or shared."""
    if sys.platform == "win32":
        return _Attempt.LOCKED
    import fcntl

    try:
        fcntl.flock(file, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return _Attempt.HELD
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return _Attempt.NO_LOCKS
        raise
    return _Attempt.LOCKED


def _unlock(file: FileIO) -> None:
    if sys.platform == "win32":
        return
    import fcntl

    fcntl.flock(file, fcntl.LOCK_UN)
