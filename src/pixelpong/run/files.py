"""Files that are complete or not there: written under another name, flushed, then renamed.

Covered: writing one file, and flushing names. Not covered: files that grow
(`pixelpong.run.lines`), folders of several files (`pixelpong.run.checkpoints`).
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from pixelpong.errors import RunError, refusing


def write_file(path: Path, content: bytes) -> None:
    """Write a new file and wait until the disk has it."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the disk has a folder's names, if the system supports it."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(
    path: Path,
    content: bytes,
    *,
    advice: str = "make room there, or choose another file",
    make_folder: bool = False,
) -> None:
    """Write a file, or replace the one that is there.

    Args:
        path: of the file.
        content: its whole content.
        advice: what to do if it cannot be written.
        make_folder: make its folder if that is missing.

    Raises:
        RunError: it cannot be written; an existing file is untouched.
    """
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        with refusing(f"to write {path}", advice, RunError):  # ValueError: a name with a zero byte
            if make_folder:
                path.parent.mkdir(parents=True, exist_ok=True)
            temporary.unlink(missing_ok=True)  # left by a killed process
            write_file(temporary, content)
            temporary.replace(path)
            sync_folder(path.parent)
    finally:
        with contextlib.suppress(OSError, ValueError):
            temporary.unlink()
