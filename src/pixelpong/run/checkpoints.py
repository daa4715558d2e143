"""Checkpoints on disk: complete or absent, and never silently wrong.

A checkpoint is one file, written under another name, flushed, and then renamed. Reading it checks
its SHA-256; if the newest checkpoint is damaged, pixelpong warns and takes the previous one.
Nothing is ever unpickled. A checkpoint can be read while another one is saved.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pixelpong.errors import CheckpointError, RunError, refusing, warn
from pixelpong.run.arrays import Arrays, decode_arrays, encode_arrays, read_card
from pixelpong.run.files import read_file
from pixelpong.run.numbered import NumberedFiles
from pixelpong.schema import Count, Return, convert, decode

KEEP_LAST = 2  # during training; after a win only the last is kept, see `CheckpointStore.thin`


@dataclass(frozen=True)
class Checkpoint:
    """The complete state of a training run at an update; the best has the highest score.

    A score of an ``"evaluation"`` always ranks before one of ``"mean_return_100"``, because the two
    cannot be compared.
    """

    arrays: Arrays
    card: dict[str, Any]  # JSON: update, score, score_of and all other facts needed

    @property
    def update(self) -> int:
        """The update after which it was saved."""
        return int(self.card["update"])


@dataclass(frozen=True)
class _Card:
    """The part that the cards of all checkpoints share."""

    update: Count
    score: Return | None
    score_of: str
    run: str = ""  # the mark of the run


class CheckpointStore(NumberedFiles):
    """The checkpoints of one run, each a file named by its update."""

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint completely or not at all, then remove those no longer needed."""
        self.write(checkpoint.update, encode_arrays(checkpoint.arrays, checkpoint.card))
        self.thin(checkpoint.update, KEEP_LAST)

    def load(self, update: int) -> Checkpoint:
        """Read one checkpoint, and check its hash, and that it is of this run and update."""
        path = self.path(update)
        with refusing(f"cannot use the checkpoint {path}", CheckpointError):
            arrays, card = decode_arrays(read_file(path, self.limit))
            facts = convert(card, _Card)
            if facts.update != update:
                raise ValueError(f"it belongs to update {facts.update}")
            if self.history is not None and not self.history.has(update, facts.run):
                raise ValueError("it belongs to another run, with another seed or other options")
            return Checkpoint(arrays, card)

    def is_sound(self, update: int) -> bool:
        """Whether the checkpoint of an update exists and is undamaged."""
        with contextlib.suppress(CheckpointError):
            return self.load(update).update == update
        return False

    def load_latest(self, check: Callable[[Checkpoint], object] = lambda _: None) -> Checkpoint:
        """Load the newest sound checkpoint; warn about each that is skipped.

        A checkpoint for which `check` raises a `CheckpointError` is skipped too.
        """
        tried: set[int] = set()
        while untried := set(self.updates()) - tried:  # a process may be training here
            update = max(untried)
            tried.add(update)
            try:
                checkpoint = self.load(update)
                check(checkpoint)
                return checkpoint
            except CheckpointError as error:
                if os.path.lexists(self.path(update)):  # it has not just been removed
                    warn(f"{error}; trying another checkpoint")
        if tried:
            what = f"None of the checkpoints in {self.folder} can be used"
        else:
            what = f"There are no checkpoints in {self.folder}"
        raise CheckpointError(f"{what}; put a copy of a sound one there, or start a new run.")

    def thin(self, update: int, keep_last: int) -> None:
        """Remove checkpoints after `update`, which a resume skipped as damaged, and all but the
        last `keep_last`, the best and update 0; the caller holds the lock."""
        try:
            self.cut_back(update)
            updates = self.updates()
            self.remove({*updates} - {0, *updates[-keep_last:], self.find_best()})
        except RunError as error:
            warn(f"{error}; old checkpoints stay until the next save")

    def find_best(self) -> int | None:
        """The update with the highest score, the newest if several tie; it may be damaged."""
        return max(self.updates(), key=self._rank, default=None)

    def is_evaluated(self, update: int) -> bool:
        """Whether the score of a checkpoint is that of an evaluation."""
        return self._rank(update)[0]

    def _rank(self, update: int) -> tuple[bool, float, int]:
        """A sort key: evaluations above means of training episodes, then score, then update."""
        try:
            card = decode(read_card(self.path(update)), _Card)
        except ValueError:
            return (False, -math.inf, update)
        score = -math.inf if card.score is None else card.score
        return (card.score_of == "evaluation", score, update)
