"""Files as others may have left them: nothing here waits, and nothing reads without a limit.

A run directory may come from anybody. In a file's place there may be a pipe that nobody writes to,
a device without end, a hole of a terabyte, a link to somebody's letters.

Covered: opening and reading such files, writing a new one, names that last.
Not covered: what is in them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from pixelpong.errors import RunError, expected

_AT_ONCE = getattr(os, "O_NONBLOCK", 0)
_UNLINKED = getattr(os, "O_NOFOLLOW", 0)


def open_to_read(path: Path) -> BinaryIO:
    """Open an ordinary file.

    Raises:
        OSError: it cannot be opened, or it is a folder, a pipe or a device.
    """
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | _AT_ONCE))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "something that is no ordinary file")
    return file


def open_to_write(path: Path, mode: str) -> BinaryIO:
    """Open a file to go on writing it, unbuffered; where a link stands in its place, not.

    Args:
        path: of the file.
        mode: as of `open`.

    Raises:
        OSError: it cannot be opened, or it is a link: a stranger's would lead to a file of ours.
    """

    def open_it(name: str, flags: int) -> int:
        return os.open(name, flags | _AT_ONCE | _UNLINKED, 0o666)

    try:
        file: BinaryIO = open(path, mode, buffering=0, opener=open_it)  # type: ignore[assignment] # noqa: SIM115
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "a symbolic link, which is not written through") from error
        raise
    return file


def read_bytes(path: Path, limit: int) -> bytes:
    """The content of an ordinary file of no more than `limit` bytes.

    Raises:
        OSError: it cannot be read, it is larger, or it is no ordinary file.
    """
    with open_to_read(path) as file:
        size = os.fstat(file.fileno()).st_size
        content = b"" if size > limit else file.read(size + 1)
    if max(size, len(content)) > limit:
        raise OSError(errno.EFBIG, f"more than {limit} bytes")
    return content


def write_file(path: Path, content: bytes) -> None:
    """Write a new file and wait until the disk has it."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the disk has a folder's names, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, or replace the one that is there.

    Raises:
        RunError: it cannot be written; what was there before is untouched.
    """
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        temporary.unlink(missing_ok=True)  # of a kill, long ago
        write_file(temporary, content)
        temporary.replace(path)
    except (OSError, ValueError) as error:  # ValueError: a name with a zero byte
        got = getattr(error, "strerror", None) or str(error)
        advice = "make room there, or choose another file"
        raise RunError(expected(f"to write {path}", got, advice)) from error
    finally:
        with contextlib.suppress(OSError, ValueError):
            temporary.unlink()
