"""The files of a run that are named by an update: its checkpoints and its agents.

Each bears the *mark* of the run that wrote it in its card, so that the file of another run is never
taken for one of this run, and never removed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pixelpong.errors import CheckpointError, RunError, refusing, warn
from pixelpong.run.arrays import read_card
from pixelpong.run.files import gone, write_whole
from pixelpong.schema import decode, encode

ANY_SIZE = 1 << 62
ASIDE = ".of-another-run"  # the ending of a file that is put aside
_ENDING = ".safetensors"


def make_mark(facts: Mapping[str, Any], before: str = "") -> str:
    """The mark of a run with these options, or with these changes since the mark `before`."""
    return hashlib.sha256(before.encode() + encode(facts)).hexdigest()


@dataclass(frozen=True)
class History:
    """The marks of a run: that of its options at first, and one more for each later change.

    A mark is made of what the result depends on. It is written down with the run's first options,
    so that a run may be moved, renamed, and continued by a later version.
    """

    marks: tuple[tuple[int, str], ...] = ((0, ""),)  # the update after which it holds; ascending

    @property
    def current(self) -> str:
        """The mark of what is written from now on."""
        return self.marks[-1][1]

    def has(self, update: int, mark: str) -> bool:
        """Whether a file of an update may bear a mark.

        At the update of a change it may be the mark before the change or after it.
        """
        ends = [since for since, _ in self.marks[1:]] + [update]
        known = zip(self.marks, ends, strict=True)
        return any(mark == own and since <= update <= end for (since, own), end in known)


@dataclass(frozen=True)
class _Card:
    """The part of a card that says of which run a file is."""

    run: str = ""


class NumberedFiles:
    """A folder of a run's files, each named by its update."""

    def __init__(self, folder: Path, history: History | None = None, limit: int = ANY_SIZE) -> None:
        """Use `folder`, which need not exist yet; without a history, files of any run are right.

        `limit` is the size in bytes that no sound file exceeds.
        """
        self.folder, self.history, self.limit = folder, history, limit

    def updates(self) -> list[int]:
        """The updates that have a file, ascending; the content is not checked."""
        with refusing(f"cannot read {self.folder}", RunError, "check the disk"):
            stems = [path.stem for path in self.folder.glob(f"*{_ENDING}")]
        return sorted(int(stem) for stem in stems if stem.isascii() and stem.isdecimal())

    def path(self, update: int) -> Path:
        """The file of an update."""
        return self.folder / f"{update:06d}{_ENDING}"

    def make_folder(self) -> None:
        """Make the folder if there is none; a training does that once, at its start."""
        with refusing(f"cannot make {self.folder}", RunError, "check its permissions"):
            self.folder.mkdir(exist_ok=True)

    def write(self, update: int, content: bytes) -> None:
        """Write the file of an update, completely or not at all."""
        if not self.folder.exists():
            raise gone(self.folder)
        write_whole(self.path(update), content)

    def remove(self, updates: Iterable[int]) -> None:
        """Remove the files of some updates; the caller holds the run's lock."""
        with refusing(f"cannot remove files from {self.folder}", RunError, "check its permissions"):
            for update in updates:
                self.path(update).unlink(missing_ok=True)

    def cut_back(self, update: int) -> None:
        """Remove the files after `update`, and leftovers of killed saves.

        A file of another run is put aside under another name: it may be the only one.
        """
        with refusing(f"cannot remove files from {self.folder}", RunError, "check its permissions"):
            for path in self.folder.glob(f".*{_ENDING}-*"):
                path.unlink(missing_ok=True)
        later = [each for each in self.updates() if each > update]
        for each in filter(self.is_foreign, later):
            path = self.path(each)
            with refusing(f"cannot rename {path}", RunError, "check its permissions"):
                aside = path.rename(path.with_name(path.name + ASIDE))
            warn(f"{path} is of another run; it is now {aside.name}")
        self.remove(later)

    def is_foreign(self, update: int) -> bool:
        """Whether the file of an update is that of another run; a damaged file is not."""
        if self.history is None:
            return False
        try:
            mark = decode(read_card(self.path(update)), _Card).run
        except ValueError:
            return False
        return not self.history.has(update, mark)

    def require_own(self) -> None:
        """Refuse a folder that is a link to the files of another run, before any is removed."""
        if not self.folder.is_symlink():
            return
        for update in filter(self.is_foreign, self.updates()):
            what = f"{self.folder} is a link to a folder with files of another run"
            advice = "make it a folder, or link it to one of this run"
            raise CheckpointError(f"{what} ({self.path(update).name}); {advice}.")
