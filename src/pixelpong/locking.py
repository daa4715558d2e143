"""The system's locks, and temporary folders that are removed even if their process is killed.

The system frees a lock when its process ends, however it ends. Locks work between containers that
share a disk, where process numbers mean nothing.
"""

from __future__ import annotations

import contextlib
import enum
import errno
import os
import shutil
import sys
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL)  # disks without locks


class Attempt(enum.Enum):
    """The result of an attempt to lock a file."""

    LOCKED = enum.auto()
    HELD = enum.auto()  # another process holds the lock
    NO_LOCKS = enum.auto()  # this disk does not support locks


def try_lock(file: FileIO | int, *, exclusive: bool) -> Attempt:
    """Lock a file until it is closed, exclusively or shared; on POSIX it may be a folder."""
    try:
        _lock(file if isinstance(file, int) else file.fileno(), exclusive)
    except BlockingIOError:
        return Attempt.HELD
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return Attempt.NO_LOCKS
        raise
    return Attempt.LOCKED


if sys.platform == "win32":
    import ctypes
    import msvcrt
    from ctypes import wintypes

    class _Overlapped(ctypes.Structure):
        """Where a lock begins: far behind the content, which others could not read otherwise."""

        _fields_ = (
            ("internal", ctypes.c_void_p * 2),
            ("offset", wintypes.DWORD * 2),
            ("event", wintypes.HANDLE),
        )

    _kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    _kernel.LockFileEx.argtypes = (wintypes.HANDLE, *[wintypes.DWORD] * 4, ctypes.c_void_p)
    _kernel.UnlockFileEx.argtypes = (wintypes.HANDLE, *[wintypes.DWORD] * 3, ctypes.c_void_p)
    _AT_ONCE, _EXCLUSIVE, _IS_LOCKED = 1, 2, 33  # of LockFileEx; ERROR_LOCK_VIOLATION

    def _lock(descriptor: int, exclusive: bool) -> None:
        where = ctypes.byref(_Overlapped(offset=(0, 1)))
        how, handle = _AT_ONCE | _EXCLUSIVE * exclusive, msvcrt.get_osfhandle(descriptor)
        if not _kernel.LockFileEx(handle, how, 0, 1, 0, where):
            error = ctypes.get_last_error()
            raise BlockingIOError if error == _IS_LOCKED else ctypes.WinError(error)

    def unlock(file: FileIO) -> None:
        """Unlock a file."""
        where = ctypes.byref(_Overlapped(offset=(0, 1)))
        _kernel.UnlockFileEx(msvcrt.get_osfhandle(file.fileno()), 0, 1, 0, where)

else:
    import fcntl

    def _lock(descriptor: int, exclusive: bool) -> None:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)

    def unlock(file: FileIO) -> None:
        """Unlock a file for this process and for its forked children, which have it open."""
        fcntl.flock(file, fcntl.LOCK_UN)


# --- temporary folders ---------------------------------------------------------------------


@contextlib.contextmanager
def scratch_folder(parent: Path, prefix: str, mode: int = 0o777) -> Iterator[Path]:
    """Make a temporary folder in `parent`, and remove it afterwards.

    It first removes folders with this prefix that killed processes left. Where folders cannot be
    locked, as on Windows, these stay.
    """
    for leftover in parent.glob(f"{prefix}-*"):
        with contextlib.suppress(OSError), _holding(leftover) as attempt:
            if attempt is Attempt.LOCKED:
                shutil.rmtree(leftover, ignore_errors=True)
    with contextlib.ExitStack() as stack:
        yield _make_held(stack, parent, prefix, mode)


def _make_held(stack: contextlib.ExitStack, parent: Path, prefix: str, mode: int) -> Path:
    """Make a folder that is locked and exists until the stack is closed."""
    while True:
        folder = parent / f"{prefix}-{os.getpid()}-{os.urandom(4).hex()}"
        folder.mkdir(mode)
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            attempt = stack.enter_context(_holding(folder))
            # Before it was locked, another process may have taken it for a leftover.
            if attempt is not Attempt.HELD and folder.exists():
                return folder


@contextlib.contextmanager
def _holding(folder: Path) -> Iterator[Attempt]:
    """Context manager that tries to lock a folder itself, without a file in it."""
    if os.name != "posix":
        yield Attempt.NO_LOCKS
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield try_lock(descriptor, exclusive=True)
    finally:
        os.close(descriptor)
