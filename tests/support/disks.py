"""Disks that a test can fill, narrow or make read-only, and files of limited size."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from needs import is_needed


def as_root(*words: str | Path) -> None:
    """Run a command that only root may run; where it is needed, as in CI, with sudo."""
    sudo = ["sudo", "-n"] if is_needed("MOUNT") and os.geteuid() else []
    subprocess.run([*sudo, *words], check=True, capture_output=True, text=True)


def remount(disk: Path, options: str) -> None:
    """Change a disk: ``"size=4k"``, ``"ro"``, ``"rw"``."""
    as_root("mount", "-o", f"remount,{options}", disk)


def contents(folder: Path) -> dict[Path, bytes]:
    """All files in a folder, with what they hold, and the folders in it."""
    return {path: path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


@contextlib.contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size."""
    import resource  # Windows has none

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
