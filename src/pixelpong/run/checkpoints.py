"""Checkpoints on disk: complete or not there, and never silently wrong.

A checkpoint is one file, written under another name, flushed, and then renamed. Reading it checks
its SHA-256; if the newest checkpoint is damaged, pixelpong warns and takes the one before. Nothing
is ever unpickled. Of large arrays only the rows that differ from the start are kept: a training
that wins has changed a third of them. A checkpoint can be read while a training saves.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.errors import CheckpointError, RunError, VersionError, expected, refusing
from pixelpong.learners.start import Start
from pixelpong.run.arrays import Arrays, decode_arrays, encode_arrays, fingerprint, read_card
from pixelpong.run.files import NumberedFiles
from pixelpong.schema import Count, Return, decode

FORMAT = 1  # of the layout described here
KEEP_LAST = 2  # during a training; after a win only the last, see `CheckpointStore.thin`

# Draws the parameters and the optimizer's memory of a start, new arrays each time.
Draw = Callable[[Start], tuple[Arrays, Arrays]]
_SMALL = 1 << 16  # bytes of an array below which it is kept whole


@dataclass(frozen=True)
class Checkpoint:
    """The complete state of a training at an update; `best` is that with the highest score.

    A score of an ``"evaluation"`` always ranks before one of ``"mean_return_100"``, because the two
    cannot be compared.
    """

    update: int
    params: dict[str, NDArray[Any]]
    optimizer: dict[str, NDArray[Any]]  # the optimizer's memory
    counters: dict[str, Any]  # all else that the future or the reports depend on, as in JSON
    score: float | None = None
    score_of: str = "mean_return_100"
    start: Start | None = None  # only what differs from it is kept; None to keep all


@dataclass(frozen=True)
class _Card:
    """What a checkpoint's file holds besides its arrays."""

    format: int
    update: Count
    counters: dict[str, Any]
    score: Return | None
    score_of: str
    start: Start | None
    params_sha256: str


class CheckpointStore(NumberedFiles):
    """The checkpoints of one run, each a file named by its update."""

    def __init__(
        self, folder: Path, warn: Callable[[str], None], draw: Draw = lambda start: ({}, {})
    ) -> None:
        """Use `folder`, which need not exist yet; `warn` is called with one line."""
        super().__init__(folder)
        self._warn, self._draw = warn, draw

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint completely or not at all, then remove those no longer needed."""
        card = _Card(
            FORMAT,
            checkpoint.update,
            checkpoint.counters,
            checkpoint.score,
            checkpoint.score_of,
            checkpoint.start,
            fingerprint(checkpoint.params),
        )
        arrays: dict[str, NDArray[Any]] = {}
        starts = ({}, {}) if checkpoint.start is None else self._draw(checkpoint.start)
        for kind, now, before in zip(
            ("params", "optimizer"), (checkpoint.params, checkpoint.optimizer), starts, strict=True
        ):
            for name, array in now.items():
                arrays |= _cut(f"{kind}/{name}", array, before.get(name))
        content = encode_arrays(arrays, dataclasses.asdict(card))
        self.write(checkpoint.update, content, "make room there, then resume")
        try:
            # Those after it are damaged ones that a resume skipped.
            self.cut_back(checkpoint.update)
            self.thin(KEEP_LAST)
        except RunError as error:
            self._warn(f"{error}; they stay until the next save")

    def load(self, update: int) -> Checkpoint:
        """Read one checkpoint and check every bit of it."""
        path, advice = self.path(update), "this checkpoint cannot be used"
        with refusing(f"a sound checkpoint in {path}", advice, CheckpointError):
            arrays, content = decode_arrays(path.read_bytes())
            version = decode(content, dict[str, Any]).get("format")
            if version != FORMAT:
                what, advice = f"a checkpoint of format {FORMAT} in {path}", "use the version of"
                got = f"format {str(version)[:20]}"
                raise VersionError(expected(what, got, f"{advice} pixelpong that wrote it"))
            card = decode(content, _Card)
            if card.update != update:
                raise ValueError(f"that of update {card.update}")
            starts = ({}, {}) if card.start is None else self._draw(card.start)
            params, optimizer = (
                _restore(kind, arrays, before)
                for kind, before in zip(("params/", "optimizer/"), starts, strict=True)
            )
        if fingerprint(params) != card.params_sha256:
            what = f"the parameters of {path}, by their SHA-256"
            advice = "use the library versions in config.json: with these, a seed gives other ones"
            raise VersionError(expected(what, "others", advice))
        return Checkpoint(
            update, params, optimizer, card.counters, card.score, card.score_of, card.start
        )

    def load_latest(self) -> Checkpoint:
        """The newest sound checkpoint; warns of each damaged one it skips."""
        return self._load_first(by=int)

    def load_best(self) -> Checkpoint:
        """The sound checkpoint with the highest score, the newest of equals."""
        return self._load_first(by=self._rank)

    def thin(self, keep_last: int) -> None:
        """Remove all but the last `keep_last`, the best and update 0; the caller holds the lock."""
        updates = self.updates()
        kept = {0, *updates[-keep_last:], max(updates, key=self._rank, default=0)}
        self.remove(set(updates) - kept)

    def find_best(self) -> int | None:
        """The update of the checkpoint that `load_best` takes if it is sound."""
        return max(self.updates(), key=self._rank, default=None)

    def _load_first(self, by: Callable[[int], Any]) -> Checkpoint:
        tried: set[int] = set()
        while untried := set(self.updates()) - tried:  # a training may be running
            update = max(untried, key=by)
            tried.add(update)
            try:
                return self.load(update)
            except VersionError:
                raise
            except CheckpointError as error:
                if os.path.lexists(self.path(update)):  # it has not just been removed
                    self._warn(f"{error}; taking another checkpoint")
        got = f"{len(tried)} damaged ones" if tried else "none at all"
        advice = "put a copy of one there, or start a new run"
        raise CheckpointError(expected(f"a sound checkpoint in {self.folder}", got, advice))

    def _rank(self, update: int) -> tuple[bool, float, int]:
        """Evaluations before means of training episodes, then the score, then the newest."""
        try:
            card = decode(read_card(self.path(update)), _Card)
        except ValueError:
            return (False, -math.inf, update)
        if card.score is None:
            return (False, -math.inf, update)
        return (card.score_of == "evaluation", card.score, update)


def _cut(name: str, array: NDArray[Any], before: NDArray[Any] | None) -> dict[str, NDArray[Any]]:
    """The array; if it is large, only the rows that have changed, and ``NAME/rows``."""
    is_large = before is not None and array.nbytes >= _SMALL
    if before is None or not is_large or (before.shape, before.dtype) != (array.shape, array.dtype):
        return {name: array}
    rows = np.flatnonzero((_bits(array) != _bits(before)).any(axis=1))
    return {name: array[rows], f"{name}/rows": rows.astype(np.uint32)}


def _restore(kind: str, arrays: Arrays, start: Arrays) -> dict[str, NDArray[Any]]:
    """What `_cut` was given, bit for bit."""
    found: dict[str, NDArray[Any]] = {}
    for name in arrays:
        own = name.removeprefix(kind)
        if own == name or own.endswith("/rows"):
            continue
        found[own] = arrays[name]
        if (rows := arrays.get(f"{name}/rows")) is not None:
            if own not in start or rows.max(initial=0) >= len(start[own]):
                raise ValueError(f"changes of {own}, which is nothing that has a start")
            found[own] = np.array(start[own])
            found[own][rows] = arrays[name]
    return found


def _bits(array: NDArray[Any]) -> NDArray[Any]:
    """An array [D, ...] as whole numbers [D, N]."""
    flat = np.ascontiguousarray(array).reshape(len(array), -1)
    return flat.view(np.dtype(f"u{array.itemsize}"))
