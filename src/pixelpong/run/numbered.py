"""A run's files that are named by an update: its checkpoints and its agents.

The card of each file contains the *mark* of the run that wrote it. So a file of another run is
never mistaken for one of this run and never removed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pixelpong.errors import CheckpointError, RunError, refusing, warn
from pixelpong.run.arrays import read_card
from pixelpong.run.files import Part, gone, patiently, remove_file, write_whole
from pixelpong.schema import decode, encode

ANY_SIZE = 1 << 62
FOREIGN_ENDING = ".of-another-run"  # added to the name of a file of another run
_ENDING = ".safetensors"


def make_mark(facts: Mapping[str, Any], before: str = "") -> str:
    """Hash a run's options, or extend the mark `before` by later changes."""
    return hashlib.sha256(before.encode() + encode(facts)).hexdigest()


class Mark(NamedTuple):
    """A hash of everything that the result of a run depends on."""

    since: int  # the update after which it applies
    text: str


@dataclass(frozen=True)
class History:
    """The marks of a run: one for its first options, and another for each later change.

    They are stored with the run, so a run may be moved, renamed, or continued by a later version.
    """

    marks: tuple[Mark, ...] = (Mark(0, ""),)

    @property
    def current(self) -> str:
        """The mark for files that are written now."""
        return self.marks[-1].text

    def has(self, update: int, mark: str) -> bool:
        """Whether a file of an update may have a mark.

        At the update of a change, it may be the mark before or after the change.
        """
        ends = [known.since for known in self.marks[1:]] + [update]
        return any(
            mark == known.text and known.since <= update <= end
            for known, end in zip(self.marks, ends, strict=True)
        )


@dataclass(frozen=True)
class _Card:
    """The part of a card that tells which run a file belongs to."""

    run: str = ""


class NumberedFiles:
    """A folder of a run's files, each named by its update."""

    def __init__(self, folder: Path, history: History | None = None, limit: int = ANY_SIZE) -> None:
        """Use `folder`, which need not exist yet; without a history, accept files of any run.

        `limit` is a size in bytes that no intact file exceeds.
        """
        self.folder, self.history, self.limit = folder, history, limit

    def updates(self) -> list[int]:
        """List the updates that have a file, ascending, without checking the content."""
        with refusing(f"cannot read {self.folder}", RunError, "check the disk"):
            stems = [path.stem for path in self.folder.glob(f"*{_ENDING}")]
        return sorted(int(stem) for stem in stems if stem.isascii() and stem.isdecimal())

    def path(self, update: int) -> Path:
        """Return the path of an update's file."""
        return self.folder / f"{update:06d}{_ENDING}"

    def make_folder(self) -> None:
        """Create the folder if it is missing; training does this once, at its start."""
        with refusing(f"cannot create {self.folder}", RunError, "check the permissions"):
            self.folder.mkdir(exist_ok=True)

    def write(self, update: int, *parts: Part) -> None:
        """Write the file of an update, completely or not at all."""
        if not self.folder.exists():
            raise gone(self.folder)
        write_whole(self.path(update), *parts)

    def remove(self, updates: Iterable[int]) -> None:
        """Remove the files of some updates; the caller holds the run's lock."""
        with refusing(f"cannot remove files from {self.folder}", RunError, "check its permissions"):
            for update in updates:
                remove_file(self.path(update))

    def cut_back(self, update: int) -> None:
        """Remove the files after `update`, and leftovers of killed saves.

        A file of another run is renamed instead, because it may be the only copy.
        """
        with refusing(f"cannot remove files from {self.folder}", RunError, "check its permissions"):
            for path in self.folder.glob(f".*{_ENDING}-*"):
                remove_file(path)
        later = [number for number in self.updates() if number > update]
        for number in filter(self.is_foreign, later):
            path = self.path(number)
            with refusing(f"cannot rename {path}", RunError, "check its permissions"):
                renamed = path.with_name(path.name + FOREIGN_ENDING)
                patiently(path, partial(path.rename, renamed))
            warn(f"{path} belongs to another run; it was renamed to {renamed.name}")
        self.remove(later)

    def is_foreign(self, update: int) -> bool:
        """Whether the file of an update belongs to another run; False for a damaged file."""
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
            what = f"{self.folder} is a link to files of another run"
            advice = "replace it with a folder, or link it to a folder of this run"
            raise CheckpointError(f"{what} ({self.path(update).name}); {advice}.")
