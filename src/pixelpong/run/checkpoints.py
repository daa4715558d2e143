"""Checkpoints on disk: complete or not there, and never silently wrong.

A checkpoint is a folder. It is written under a temporary name, every file is flushed to the
disk, the manifest with every file's SHA-256 comes last, and only then the folder gets its name. If
an update is saved again, the old folder stays readable, under another name, until the new one has
its name. Reading checks every hash; if the newest checkpoint is damaged, pixelpong warns and takes
the one before.

Covered: saving; loading, even while a training saves; falling back; keeping the last two, the
best and that of update 0. Not covered: the files of one (`pixelpong.run.checkpoint`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pixelpong.errors import CheckpointError, RunError, VersionError, expected, refusing
from pixelpong.learners.start import Start
from pixelpong.run.checkpoint import (
    FORMAT,
    Checkpoint,
    Draw,
    fingerprint,
    read_checkpoint,
    read_manifest,
    write_checkpoint,
)
from pixelpong.run.files import sync_folder

__all__ = ["KEEP_LAST", "Checkpoint", "CheckpointStore", "fingerprint"]

KEEP_LAST = 2
"""While a training goes on; of one that has won the last alone, see `CheckpointStore.thin`."""

_BEFORE = ".before"
"""Ends the name of a checkpoint whose update is being saved again."""


class CheckpointStore:
    """The checkpoints of one run, each in a folder named by its update."""

    def __init__(
        self, folder: Path, warn: Callable[[str], None], draw: Draw = lambda start: ({}, {})
    ) -> None:
        """Use `folder`, which need not exist yet.

        Args:
            folder: where the checkpoints are.
            warn: called with one line if a checkpoint is damaged and another is taken, or if an
                old one cannot be removed.
            draw: returns the arrays of a start, new ones each time; by default a start has none.
        """
        self.folder = folder
        self._warn = warn
        self._draw = draw

    def updates(self) -> list[int]:
        """The updates that have a checkpoint, ascending; the checkpoints are not checked.

        Raises:
            RunError: the folder cannot be read.
        """
        names: list[str] = []
        is_none = contextlib.suppress(FileNotFoundError, NotADirectoryError)
        with refusing(f"to read {self.folder}", "check the disk", RunError), is_none:
            names = [entry.name.removesuffix(_BEFORE) for entry in self.folder.iterdir()]
        numbers = {int(name) for name in names if name.isascii() and name.isdecimal()}
        return sorted(number for number in numbers if self._name(number) in names)

    def path(self, update: int) -> Path:
        """The folder of an update's checkpoint."""
        path = self.folder / self._name(update)
        before = path.with_name(path.name + _BEFORE)
        return before if before.exists() and not path.exists() else path

    def sweep(self, *, and_damaged: bool = False) -> None:
        """Remove what a killed save left behind; only for the holder of the run's lock.

        Args:
            and_damaged: also the checkpoints that were put aside because they are damaged.
        """
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            for entry in self.folder.iterdir():
                if entry.name.startswith(".tmp-") or (and_damaged and entry.name[:8] == "damaged-"):
                    shutil.rmtree(entry, ignore_errors=True)
                elif re.fullmatch(r"\d{6,}" + re.escape(_BEFORE), entry.name):
                    self._end_replacing(entry.with_name(entry.name.removesuffix(_BEFORE)))

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint completely or not at all, then remove those no longer needed.

        Raises:
            RunError: it could not be written; the checkpoints before it are untouched.
        """
        self._write(checkpoint)
        self._tidy(checkpoint.update)

    def repack(self, update: int, find_start: Callable[[Checkpoint], Start]) -> None:
        """Write a checkpoint of an older format anew, as what differs from its start.

        Only for the holder of the run's lock.

        Raises:
            CheckpointError: it is damaged, and stays as it is.
            RunError: it could not be written; the old one is untouched.
        """
        if read_manifest(self.path(update), update).format != FORMAT:
            checkpoint = self.load(update)
            self._write(dataclasses.replace(checkpoint, start=find_start(checkpoint)))
            self.sweep()

    def _write(self, checkpoint: Checkpoint) -> None:
        temporary = self.folder / f".tmp-{checkpoint.update:06d}-{os.getpid()}"
        target = self.folder / self._name(checkpoint.update)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir()
            write_checkpoint(temporary, checkpoint, self._draw)
            self._end_replacing(target)
            if target.exists():  # the damaged one that a resume fell back from, or the same
                target.rename(target.with_name(target.name + _BEFORE))
            temporary.rename(target)
            sync_folder(self.folder)
        except OSError as error:
            kept: list[int] = []
            with contextlib.suppress(OSError, RunError):
                shutil.rmtree(temporary, ignore_errors=True)
                kept = self.updates()
            good = f"; the checkpoint of update {kept[-1]} is kept" if kept else ""
            raise RunError(
                expected(
                    f"to write the checkpoint of update {checkpoint.update} to {self.folder}",
                    error.strerror or str(error),
                    "make room there, then resume" + good,
                )
            ) from error

    def load(self, update: int) -> Checkpoint:
        """Read one checkpoint and check every byte of it.

        Raises:
            CheckpointError: it is missing, damaged or of another version.
        """
        while True:
            folder = self.path(update)
            identity = _identify(folder)
            try:
                return read_checkpoint(folder, update, self._draw)
            except CheckpointError:
                if _identify(self.path(update)) == identity:
                    raise
                # A training has replaced it, or removed it: read again.

    def load_latest(self) -> Checkpoint:
        """The newest sound checkpoint; warns of each damaged one that is skipped.

        Raises:
            CheckpointError: there is none.
        """
        return self._load_first(by=int)

    def load_best(self) -> Checkpoint:
        """The sound checkpoint with the highest score, the newest of equals.

        Raises:
            CheckpointError: there is none.
        """
        return self._load_first(by=self._rank)

    def thin(self, keep_last: int) -> None:
        """Remove all but the last `keep_last`, the best and that of update 0.

        Only for the holder of the run's lock.

        Raises:
            RunError: one cannot be removed.
        """
        with refusing(f"to remove checkpoints from {self.folder}", "check its rights", RunError):
            self._keep(keep_last)

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
            manifest = read_manifest(self.path(update), update)
        except CheckpointError:
            return (False, -math.inf, update)
        if manifest.score is None:
            return (False, -math.inf, update)
        return (manifest.score_of == "evaluation", manifest.score, update)

    def _tidy(self, newest: int) -> None:
        """Remove what is not needed; the new checkpoint is safe, whatever happens here."""
        try:
            self.sweep()
            self._drop_old(newest)
        except (OSError, RunError) as error:
            got = getattr(error, "strerror", None) or str(error)
            what = f"to remove checkpoints that are not needed from {self.folder}"
            self._warn(expected(what, got, "they stay until the next save"))

    def _drop_old(self, newest: int) -> None:
        """Keep what `thin` keeps up to `newest`; put aside those after `newest`.

        Those after it are damaged checkpoints that a resume skipped.
        """
        for update in self.updates():
            if update > newest:
                aside = self.folder / f"damaged-{update:06d}"
                shutil.rmtree(aside, ignore_errors=True)
                self.path(update).rename(aside)
        self._keep(KEEP_LAST)

    def _keep(self, keep_last: int) -> None:
        updates = self.updates()
        kept = {0, *updates[-keep_last:], max(updates, key=self._rank, default=0)}
        for update in set(updates) - kept:
            # Rename it first: half of one would look like a damaged checkpoint.
            dropped = self.folder / f".tmp-{self._name(update)}-dropped"
            shutil.rmtree(dropped, ignore_errors=True)
            self.path(update).rename(dropped)
            shutil.rmtree(dropped, ignore_errors=True)

    @staticmethod
    def _name(update: int) -> str:
        return f"{update:06d}"

    @staticmethod
    def _end_replacing(target: Path) -> None:
        """Remove the old folder if the new one is in place; otherwise restore its name."""
        before = target.with_name(target.name + _BEFORE)
        if target.exists():
            shutil.rmtree(before, ignore_errors=True)
        elif before.exists():
            before.rename(target)


def _identify(folder: Path) -> tuple[int, int, int] | None:
    """The identity of a folder, which differs from that of another with its name."""
    try:
        state = os.stat(folder)
    except OSError:
        return None
    return state.st_dev, state.st_ino, state.st_mtime_ns
