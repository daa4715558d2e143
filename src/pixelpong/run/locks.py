"""The lock of a folder: only one training writes to a run, and readers can tell that one does."""

from __future__ import annotations

import contextlib
import enum
import errno
import os
import sys
import time
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

from pixelpong.errors import RunError, refusing, warn
from pixelpong.run.files import gone, open_to_read, open_to_write, read_file

LOCK_FILE = "run.lock"
LOCK_SECONDS = 1  # how long a training waits for its lock
_LIMIT = 1 << 16  # bytes of the file, which has the number of the process that holds the lock
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL)  # what such disks say


class _Found(enum.Enum):
    """What came of an attempt to lock a file."""

    OURS = enum.auto()
    HELD = enum.auto()  # another process has it
    NO_LOCKS = enum.auto()  # this disk has none


class Lock:
    """The lock of a folder, held by this process."""

    def __init__(self, folder: Path, file: FileIO, before: bytes | None) -> None:
        self._folder, self._file, self._before = folder, file, before
        self._pid = os.getpid()
        self.is_kept = False  # whether the lock's file stays as it is now when the lock ends
        with contextlib.suppress(OSError):  # a full disk has no room to name the owner
            self._write(b"%d\n" % self._pid)

    def require_held(self) -> None:
        """Raise a `RunError` if the folder was removed or replaced, or this is a forked copy."""
        if os.getpid() != self._pid:
            raise RunError(
                f"Process {self._pid} is training in {self._folder}, not this copy of it."
            )
        if not _is_at(self._file, self._folder / LOCK_FILE):
            raise gone(self._folder)

    def end(self) -> None:
        """Free the folder; a file that was not to be kept becomes what it was."""
        if os.getpid() == self._pid:  # a forked child only has a copy
            if not self.is_kept:
                with contextlib.suppress(OSError):
                    self._put_back()
            # Explicitly: the lock would live on in the copies that forked children have.
            with contextlib.suppress(OSError):
                _unlock(self._file)
        self._file.close()

    def _put_back(self) -> None:
        if self._before is not None:
            self._write(self._before)
        elif _is_at(self._file, self._folder / LOCK_FILE):
            (self._folder / LOCK_FILE).unlink()

    def _write(self, content: bytes) -> None:
        self._file.truncate(0)
        self._file.write(content)


@contextlib.contextmanager
def lock_folder(path: Path) -> Iterator[Lock]:
    """Let only this process write to a folder while inside.

    On a disk without locks, which some network and cloud disks are, it works too, with a warning.
    """
    lock = _take(path)
    try:
        yield lock
    finally:
        lock.end()


def is_live(path: Path) -> bool:
    """Whether a training is writing to a run directory; none can begin during this call.

    On a disk without locks nobody can tell, and the answer is no.
    """
    with contextlib.suppress(OSError), open_to_read(path / LOCK_FILE) as file:
        return _try_lock(file, exclusive=False) is _Found.HELD
    return False


def _take(path: Path) -> Lock:
    place, tries = path / LOCK_FILE, LOCK_SECONDS * 100
    with refusing(f"cannot lock {path}", RunError, "check its permissions"):
        while True:
            before: bytes | None = None
            if os.path.lexists(place):
                before = read_file(place, _LIMIT)
            file = open_to_write(place, create=True)
            try:
                found = _try_lock(file, exclusive=True)
                if found is not _Found.HELD and _is_at(file, place):
                    if found is _Found.NO_LOCKS:
                        what = f"the disk of {path} has no locks: nothing keeps"
                        warn(f"{what} a second training from writing there")
                    return Lock(path, file, before)
            except BaseException:
                file.close()
                raise
            file.close()
            tries -= 1
            if tries == 0:
                owner = (before or b"")[:20].strip().decode("ascii", "replace") or "unknown"
                raise RunError(f"Process {owner} is training in {path}; wait for it, or stop it.")
            time.sleep(0.01)  # `is_live` may hold it for a moment, or it was just put back


def _is_at(file: FileIO, place: Path) -> bool:
    """Whether a file that is open is still the one at its place."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(place))
    except OSError:
        return False


def _try_lock(file: FileIO, *, exclusive: bool) -> _Found:
    """Lock a file until it is closed, alone or with others."""
    if sys.platform == "win32":
        return _Found.OURS
    import fcntl

    try:
        fcntl.flock(file, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return _Found.HELD
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return _Found.NO_LOCKS
        raise
    return _Found.OURS


def _unlock(file: FileIO) -> None:
    if sys.platform == "win32":
        return
    import fcntl

    fcntl.flock(file, fcntl.LOCK_UN)
