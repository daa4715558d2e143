"""Checkpoints on disk: complete or not there, and never silently wrong.

A checkpoint is one file, written under another name, flushed, and then renamed. Reading it checks
its SHA-256; if the newest checkpoint is damaged, pixelpong warns and takes the one before. Nothing
is ever unpickled. A checkpoint can be read while a training saves.
"""

from __future__ import annotations

import contextlib
import math
import os
from dataclasses import dataclass
from typing import Any

from pixelpong.errors import CheckpointError, RunError, expected, refusing, warn
from pixelpong.run.arrays import Arrays, decode_arrays, encode_arrays, read_card
from pixelpong.run.files import NumberedFiles
from pixelpong.schema import Count, Return, convert, decode

KEEP_LAST = 2  # during a training; after a win only the last, see `CheckpointStore.thin`


@dataclass(frozen=True)
class Checkpoint:
    """The complete state of a training at an update; `best` is that with the highest score.

    A score of an ``"evaluation"`` always ranks before one of ``"mean_return_100"``, because the two
    cannot be compared.
    """

    arrays: Arrays
    card: dict[str, Any]  # update, score, score_of and all else that is needed, as in JSON

    @property
    def update(self) -> int:
        """The update that it is of."""
        return int(self.card["update"])


@dataclass(frozen=True)
class _Card:
    """What every checkpoint's card has."""

    update: Count
    score: Return | None
    score_of: str


class CheckpointStore(NumberedFiles):
    """The checkpoints of one run, each a file named by its update."""

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint completely or not at all, then remove those no longer needed."""
        self.write(checkpoint.update, encode_arrays(checkpoint.arrays, checkpoint.card))
        self.thin(checkpoint.update, KEEP_LAST)

    def load(self, update: int) -> Checkpoint:
        """Read one checkpoint and check every bit of it."""
        path, advice = self.path(update), "this checkpoint cannot be used"
        with refusing(f"a sound checkpoint in {path}", advice, CheckpointError):
            arrays, card = decode_arrays(path.read_bytes())
            if (found := convert(card, _Card).update) != update:
                raise ValueError(f"that of update {found}")
            return Checkpoint(arrays, card)

    def is_sound(self, update: int) -> bool:
        """Whether the checkpoint of an update is there, to the last bit."""
        with contextlib.suppress(CheckpointError):
            return self.load(update).update == update
        return False

    def load_latest(self) -> Checkpoint:
        """The newest sound checkpoint; warns of each damaged one it skips."""
        tried: set[int] = set()
        while untried := set(self.updates()) - tried:  # a training may be running
            update = max(untried)
            tried.add(update)
            try:
                return self.load(update)
            except CheckpointError as error:
                if os.path.lexists(self.path(update)):  # it has not just been removed
                    warn(f"{error}; taking another checkpoint")
        got = f"{len(tried)} damaged ones" if tried else "none at all"
        advice = "put a copy of one there, or start a new run"
        raise CheckpointError(expected(f"a sound checkpoint in {self.folder}", got, advice))

    def thin(self, update: int, keep_last: int) -> None:
        """Remove those after `update`, which a resume skipped as damaged, and all but the last
        `keep_last`, the best and update 0; the caller holds the lock."""
        try:
            self.cut_back(update)
            updates = self.updates()
            self.remove({*updates} - {0, *updates[-keep_last:], self.find_best()})
        except RunError as error:
            warn(f"{error}; they stay until the next save")

    def find_best(self) -> int | None:
        """The update with the highest score, the newest of equals; its file may be damaged."""
        return max(self.updates(), key=self._rank, default=None)

    def _rank(self, update: int) -> tuple[bool, float, int]:
        """Evaluations before means of training episodes, then the score, then the newest."""
        try:
            card = decode(read_card(self.path(update)), _Card)
        except ValueError:
            return (False, -math.inf, update)
        score = -math.inf if card.score is None else card.score
        return (card.score_of == "evaluation", score, update)
