"""Milestones of a run: the agent at earlier updates, a small file each.

They are close together at first, when the agent learns most, and then further and further apart:
there are fourteen after a thousand updates. So you can watch the agent learn, and choose how strong
an agent you play.

Covered: the files, and which of them stay. Not covered: their content (`pixelpong.agent.file`).
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from pixelpong.errors import CheckpointError, RunError, refusing
from pixelpong.run.files import write_whole


class MilestoneStore:
    """The milestones of one run, a file each, named by its update."""

    def __init__(self, folder: Path) -> None:
        """Use `folder`, which need not exist yet."""
        self.folder = folder

    def updates(self) -> list[int]:
        """The updates that have a milestone, ascending."""
        with contextlib.suppress(OSError):
            stems = (path.stem for path in self.folder.glob("*.safetensors"))
            return sorted(int(stem) for stem in stems if stem.isascii() and stem.isdecimal())
        return []

    def path(self, update: int) -> Path:
        """The file of an update's milestone."""
        return self.folder / f"{update:06d}.safetensors"

    def read(self, update: int) -> bytes:
        """The file of one.

        Raises:
            CheckpointError: it is missing or damaged.
        """
        path = self.path(update)
        advice = f"use one of {', '.join(map(str, self.updates())) or 'none'}"
        with refusing(f"the milestone {path}", advice, CheckpointError):
            return path.read_bytes()

    def save(self, update: int, content: bytes) -> None:
        """Write one, completely or not at all.

        Raises:
            RunError: it could not be written; those before it are untouched.
        """
        write_whole(self.path(update), content, advice="make room there", make_folder=True)

    def remove(self, update: int) -> None:
        """Remove one.

        Raises:
            RunError: it cannot be removed.
        """
        path = self.path(update)
        with refusing(f"to remove {path}", "check its rights", RunError):
            path.unlink(missing_ok=True)

    def cut_back(self, update: int) -> None:
        """Remove those after `update`, and what a killed save left behind."""
        with contextlib.suppress(OSError):
            for path in self.folder.glob(".*.safetensors-*"):
                path.unlink()
            for each in self.updates():
                if each > update:
                    self.path(each).unlink()


def is_due(update: int, every: int) -> bool:
    """Whether there is a milestone at this update: 0, 1, 2, 3, 4, 6, 8, 12, 16 … times `every`.

    Args:
        update: the update in question.
        every: updates between the first milestones; 0 for none.

    >>> [update for update in range(130) if is_due(update, every=10)]
    [0, 10, 20, 30, 40, 60, 80, 120]
    """
    if every == 0 or update % every:
        return False
    number = update // every
    unit = 1 << max(0, number.bit_length() - 2)
    return number % unit == 0
