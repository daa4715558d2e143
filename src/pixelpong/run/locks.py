"""The lock of a folder; only one process trains a run, and readers can tell whether one does."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

from pixelpong.errors import RunError, refusing, warn
from pixelpong.locking import Attempt, try_lock, unlock
from pixelpong.run.files import gone, open_to_read, open_to_write, read_file

LOCK_FILE = "run.lock"
LOCK_SECONDS = 1  # time limit for getting the lock
_FILE_LIMIT = 1 << 16  # size limit in bytes of the file, which holds the owner's process number


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
                f"Process {self._pid} is training in {self._folder}; a fork of it cannot."
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
                unlock(self._file)
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
        return try_lock(file, exclusive=False) is Attempt.HELD
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
                attempt = try_lock(file, exclusive=True)
                if attempt is not Attempt.HELD and _is_at(file, path):
                    if attempt is Attempt.NO_LOCKS:
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


def _is_at(file: FileIO, path: Path) -> bool:
    """Whether an open file is still the one at its path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except OSError:
        return False
