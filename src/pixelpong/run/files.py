"""Files that are complete or absent: written under another name, flushed, then renamed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from pixelpong.errors import RunError, refusing

_ENDING = ".safetensors"


def require_place(path: Path) -> None:
    """Refuse a path that cannot be written to, before the work begins."""
    if path.is_dir() or not path.parent.is_dir():
        raise RunError(f"cannot write {path}: it is a folder, or its folder does not exist")


def write_whole(path: Path, content: bytes, *, make_folder: bool = False) -> None:
    """Write or replace a file, completely or not at all."""
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    with refusing(f"cannot write {path}", RunError, "make room there, or choose another place"):
        if make_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("wb") as file:
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


class NumberedFiles:
    """A folder of a run's files, each named by its update."""

    def __init__(self, folder: Path) -> None:
        """Use `folder`, which need not exist yet."""
        self.folder = folder

    def updates(self) -> list[int]:
        """The updates that have a file, ascending; the content is not checked."""
        with refusing(f"cannot read {self.folder}", RunError, "check the disk"):
            stems = [path.stem for path in self.folder.glob(f"*{_ENDING}")]
        return sorted(int(stem) for stem in stems if stem.isascii() and stem.isdecimal())

    def path(self, update: int) -> Path:
        """The file of an update."""
        return self.folder / f"{update:06d}{_ENDING}"

    def write(self, update: int, content: bytes) -> None:
        """Write the file of an update, completely or not at all."""
        write_whole(self.path(update), content, make_folder=True)

    def remove(self, updates: Iterable[int]) -> None:
        """Remove the files of some updates; the caller holds the run's lock."""
        with refusing(f"cannot remove files from {self.folder}", RunError, "check its permissions"):
            for update in updates:
                self.path(update).unlink(missing_ok=True)

    def cut_back(self, update: int) -> None:
        """Remove the files after `update`, and leftovers of killed saves."""
        with refusing(f"cannot remove files from {self.folder}", RunError, "check its permissions"):
            for path in self.folder.glob(f".*{_ENDING}-*"):
                path.unlink(missing_ok=True)
        self.remove(each for each in self.updates() if each > update)
