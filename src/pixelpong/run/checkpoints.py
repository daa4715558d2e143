"""Checkpoints on disk, which are complete or absent and never silently wrong.

A checkpoint is one file, written under another name, flushed, and then renamed. Reading it checks
its SHA-256. If the newest checkpoint is damaged, pixelpong warns and uses the previous one. Nothing
is ever unpickled. A checkpoint can be read while another one is saved.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pixelpong.errors import CheckpointError, RunError, refusing, warn
from pixelpong.run.arrays import Arrays, list_parts, read_arrays, read_card
from pixelpong.run.numbered import NumberedFiles
from pixelpong.schema import Count, Return, convert, decode

KEEP_LAST = 2  # number of checkpoints kept in training; after a win, only the last one is kept


@dataclass(frozen=True)
class Checkpoint:
    """The complete state of a training run at an update; the best checkpoint has the highest score.

    A score from an ``"evaluation"`` always ranks above one from ``"mean_return_100"``, because the
    two cannot be compared.
    """

    arrays: Arrays
    card: dict[str, Any]  # JSON: update, score, score_of and all other necessary facts

    @property
    def update(self) -> int:
        """The update after which it was saved."""
        return int(self.card["update"])


@dataclass(frozen=True)
class _Card:
    """The part that all cards of checkpoints share."""

    update: Count
    score: Return | None
    score_of: str
    run: str = ""  # the mark of the run


class CheckpointStore(NumberedFiles):
    """The checkpoints of one run; each is a file named by its update."""

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint completely or not at all, then remove those no longer needed."""
        self.write(checkpoint.update, *list_parts(checkpoint.arrays, checkpoint.card))
        self.thin(checkpoint.update, KEEP_LAST)

    def load(self, update: int) -> Checkpoint:
        """Read one checkpoint; check its hash and that it belongs to this run and update."""
        path = self.path(update)
        with refusing(f"cannot use the checkpoint {path}", CheckpointError):
            arrays, card = read_arrays(path, self.limit)
            facts = convert(card, _Card)
            if facts.update != update:
                raise ValueError(f"it belongs to update {facts.update}, not {update}")
            if self.history is not None and not self.history.has(update, facts.run):
                raise ValueError("it belongs to another run, with another seed or other options")
            return Checkpoint(arrays, card)

    def is_sound(self, update: int) -> bool:
        """Whether the checkpoint of an update exists and is undamaged."""
        with contextlib.suppress(CheckpointError):
            return self.load(update).update == update
        return False

    def load_latest(self, check: Callable[[Checkpoint], object] = lambda _: None) -> Checkpoint:
        """Load the newest intact checkpoint; warn about each one that is skipped.

        A checkpoint for which `check` raises a `CheckpointError` is skipped too.
        """
        tried: set[int] = set()
        while untried := set(self.updates()) - tried:  # listed again, as a process may train here
            update = max(untried)
            tried.add(update)
            try:
                checkpoint = self.load(update)
                check(checkpoint)
                return checkpoint
            except CheckpointError as error:
                if os.path.lexists(self.path(update)):  # otherwise it has just been removed
                    warn(f"{error}; trying another checkpoint")
        if tried:
            what = f"None of the checkpoints in {self.folder} can be used"
        else:
            what = f"There are no checkpoints in {self.folder}"
        raise CheckpointError(f"{what}; put a copy of an intact one there, or start a new run.")

    def thin(self, update: int, keep_last: int) -> None:
        """Keep only the last `keep_last` checkpoints up to `update`, the best one and update 0.

        Checkpoints after `update`, which a resume skipped as damaged, are removed. The caller holds
        the lock.
        """
        try:
            self.cut_back(update)
            updates = self.updates()
            self.remove({*updates} - {0, *updates[-keep_last:], self.find_best()})
        except RunError as error:
            warn(f"{error}; old checkpoints stay until the next save")

    def find_best(self) -> int | None:
        """Find the update with the highest score, the newest on a tie; its file is not checked."""
        return max(self.updates(), key=self._rank, default=None)

    def find_best_evaluated(self) -> int | None:
        """Find the update with the highest score from an evaluation; None if none was evaluated."""
        is_evaluated, _, update = max(map(self._rank, self.updates()), default=(False, 0.0, 0))
        return update if is_evaluated else None

    def _rank(self, update: int) -> tuple[bool, float, int]:
        """Make a sort key: evaluations rank above training means, then score, then update."""
        try:
            card = decode(read_card(self.path(update)), _Card)
        except ValueError:
            return (False, -math.inf, update)
        score = -math.inf if card.score is None else card.score
        return (card.score_of == "evaluation", score, update)
