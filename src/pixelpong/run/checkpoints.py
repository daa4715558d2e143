"""Checkpoints on disk: all or nothing, and never silently wrong.

A checkpoint is a folder. It is written under a temporary name, every file is flushed to the
disk, the manifest with every file's SHA-256 comes last, and only then the folder gets its name.
Where an update is saved again, the old folder stays, under a name that is read as well, until the
new one has its own. Reading checks every hash; a damaged newest checkpoint falls back to the one
before, with a warning. Nothing that is read is ever unpickled: arrays are safetensors, the rest is
JSON of a declared type.

Covered: saving, loading, also while a training saves, falling back, keeping the last three and
the best. Not covered: what the arrays mean.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import math
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.errors import CheckpointError, RunError, VersionError, expected, refusing
from pixelpong.run.arrays import Arrays, decode_arrays, encode_arrays
from pixelpong.run.files import sync_folder, write_file
from pixelpong.schema import Count, Return, convert, decode, encode

FORMAT = 1
"""Number of the layout described here; another one is refused."""

KEEP_LAST = 3

_MANIFEST = "manifest.json"
_BEFORE = ".before"
"""Ends the name of a checkpoint whose update is being saved again."""


@dataclass(frozen=True)
class Checkpoint:
    """The complete state of a training at an update.

    Attributes:
        update: updates done.
        params: name → array.
        optimizer: name → array, the optimizer's memory.
        counters: what else the future or the reports depend on, as JSON holds it.
        score: what `best` is chosen by, the higher the better; None where nothing is known yet.
        score_of: what the score is: ``"evaluation"`` or ``"mean_return_100"``. The best of all
            evaluations goes before the best of the others, with which they do not compare.
    """

    update: int
    params: dict[str, NDArray[Any]]
    optimizer: dict[str, NDArray[Any]]
    counters: dict[str, Any]
    score: float | None = None
    score_of: str = "mean_return_100"


@dataclass(frozen=True)
class _FileEntry:
    """One file of a checkpoint."""

    bytes: Count
    sha256: str


@dataclass(frozen=True)
class _Manifest:
    """What ``manifest.json`` says, beside its own hash; see `Checkpoint`."""

    format: int
    update: Count
    score: Return | None
    score_of: str
    params_sha256: str
    optimizer_sha256: str
    files: dict[str, _FileEntry]

    def __post_init__(self) -> None:
        if self.files.keys() != _DECODERS.keys():
            raise ValueError("other files")


@dataclass(frozen=True)
class _State:
    """What ``state.json`` says."""

    update: Count
    counters: dict[str, Any]


_DECODERS: dict[str, Callable[[bytes], Any]] = {
    "params.safetensors": decode_arrays,
    "state.safetensors": decode_arrays,
    "state.json": functools.partial(decode, kind=_State),
}
"""The files of a checkpoint beside its manifest, and how each is read."""


def fingerprint(arrays: Arrays) -> str:
    """SHA-256 over names, types, shapes and bytes, in the order of the names."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.data)
    return digest.hexdigest()


class CheckpointStore:
    """The checkpoints of one run, each in a folder named by its update."""

    def __init__(self, folder: Path, warn: Callable[[str], None]) -> None:
        """Use `folder`, which need not exist yet.

        Args:
            folder: where the checkpoints are.
            warn: is told in one line when a checkpoint is damaged and another is taken, or when
                one that is not needed any more stays.
        """
        self.folder = folder
        self._warn = warn

    def updates(self) -> list[int]:
        """The updates that have a checkpoint, ascending; whether each is sound is not checked.

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

    def sweep(self) -> None:
        """Remove what a killed save has left; only for the one who holds the run's lock."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            for entry in self.folder.iterdir():
                if entry.name.startswith(".tmp-"):
                    shutil.rmtree(entry, ignore_errors=True)
                elif re.fullmatch(r"\d{6,}" + re.escape(_BEFORE), entry.name):
                    self._end_replacing(entry.with_name(entry.name.removesuffix(_BEFORE)))

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint whole or not at all, then drop those that need not be kept.

        Raises:
            RunError: it could not be written; the checkpoints before it are untouched.
        """
        temporary = self.folder / f".tmp-{checkpoint.update:06d}-{os.getpid()}"
        target = self.folder / self._name(checkpoint.update)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir()
            _write_files(temporary, checkpoint)
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
        self._tidy(checkpoint.update)

    def load(self, update: int) -> Checkpoint:
        """Read one checkpoint and check every byte of it.

        Raises:
            CheckpointError: it is missing, damaged or of another version.
        """
        while True:
            folder = self.path(update)
            identity = _identify(folder)
            try:
                return _read_checkpoint(folder, update)
            except CheckpointError:
                if _identify(self.path(update)) == identity:
                    raise
                # A training has put another in its place, or dropped it: look again.

    def load_latest(self) -> Checkpoint:
        """The newest sound checkpoint; a word to `warn` for each damaged one passed over.

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

    def _load_first(self, by: Callable[[int], Any]) -> Checkpoint:
        tried: set[int] = set()
        while untried := set(self.updates()) - tried:  # a training may go on meanwhile
            update = max(untried, key=by)
            tried.add(update)
            try:
                return self.load(update)
            except VersionError:
                raise
            except CheckpointError as error:
                if os.path.lexists(self.path(update)):  # it has not just been dropped
                    self._warn(f"{error}; taking another checkpoint")
        got = f"{len(tried)} damaged ones" if tried else "none at all"
        advice = "put a copy of one there, or train anew in another run"
        raise CheckpointError(expected(f"a sound checkpoint in {self.folder}", got, advice))

    def _rank(self, update: int) -> tuple[bool, float, int]:
        """Evaluations before means of training episodes, then the score, then the newest."""
        try:
            manifest = _read_manifest(self.path(update), update)
        except CheckpointError:
            return (False, -math.inf, update)
        if manifest.score is None:
            return (False, -math.inf, update)
        return (manifest.score_of == "evaluation", manifest.score, update)

    def _tidy(self, newest: int) -> None:
        """Drop what need not be kept; the new checkpoint is good, whatever happens here."""
        try:
            self.sweep()
            self._drop_old(newest)
        except (OSError, RunError) as error:
            got = getattr(error, "strerror", None) or str(error)
            what = f"to remove checkpoints that are not needed from {self.folder}"
            self._warn(expected(what, got, "they stay until the next save"))

    def _drop_old(self, newest: int) -> None:
        """Keep the last three up to `newest` and the best; put aside what lies beyond it.

        Beyond it lies only what a resume has passed over because it was damaged.
        """
        for update in self.updates():
            if update > newest:
                aside = self.folder / f"damaged-{update:06d}"
                shutil.rmtree(aside, ignore_errors=True)
                self.path(update).rename(aside)
        updates = self.updates()
        kept = {*updates[-KEEP_LAST:], max(updates, key=self._rank)}
        for update in set(updates) - kept:
            # Out of the readers' explanation first: half of it would look like a damaged one.
            dropped = self.folder / f".tmp-{self._name(update)}-dropped"
            shutil.rmtree(dropped, ignore_errors=True)
            self.path(update).rename(dropped)
            shutil.rmtree(dropped, ignore_errors=True)

    @staticmethod
    def _name(update: int) -> str:
        return f"{update:06d}"

    @staticmethod
    def _end_replacing(target: Path) -> None:
        """Drop the old folder where the new one stands, and else give it its name back."""
        before = target.with_name(target.name + _BEFORE)
        if target.exists():
            shutil.rmtree(before, ignore_errors=True)
        elif before.exists():
            before.rename(target)


def _write_files(folder: Path, checkpoint: Checkpoint) -> None:
    contents = {
        "params.safetensors": encode_arrays(checkpoint.params),
        "state.safetensors": encode_arrays(checkpoint.optimizer),
        "state.json": _encode_json({"update": checkpoint.update, "counters": checkpoint.counters}),
    }
    manifest = dataclasses.asdict(
        _Manifest(
            FORMAT,
            checkpoint.update,
            checkpoint.score,
            checkpoint.score_of,
            fingerprint(checkpoint.params),
            fingerprint(checkpoint.optimizer),
            {name: _FileEntry(len(it), _sha256(it)) for name, it in contents.items()},
        )
    )
    manifest["manifest_sha256"] = _hash_of_manifest(manifest)
    for name, content in contents.items():
        write_file(folder / name, content)
    write_file(folder / _MANIFEST, _encode_json(manifest))
    sync_folder(folder)


def _read_checkpoint(folder: Path, update: int) -> Checkpoint:
    manifest = _read_manifest(folder, update)
    params, optimizer, state = (
        _read_file(folder, name, manifest.files[name], decoder)
        for name, decoder in _DECODERS.items()
    )
    if state.update != update:
        raise _damaged(folder, f"counters of update {state.update}")
    for name, w in params.items():
        if w.dtype.kind != "f" or not np.isfinite(w).all():
            raise _damaged(folder, f"{name} of the parameters with what is no finite number")
    return Checkpoint(update, params, optimizer, state.counters, manifest.score, manifest.score_of)


def _read_manifest(folder: Path, update: int) -> _Manifest:
    try:
        content = decode(_read_bytes(folder / _MANIFEST), dict[str, Any])
        if content.pop("manifest_sha256", None) != _hash_of_manifest(content):
            raise ValueError("it does not match its own hash")
        version = content.get("format")
        if version != FORMAT:
            got = f"format {str(version)[:20]}"
            advice = "use the version of pixelpong that wrote it"
            what = f"a checkpoint of format {FORMAT} in {folder}"
            raise VersionError(expected(what, got, advice))
        manifest = convert(content, _Manifest)
    except ValueError as error:
        raise _damaged(folder, f"a manifest that cannot be read ({error})") from error
    if manifest.update != update:
        raise _damaged(folder, f"the manifest of update {manifest.update}")
    return manifest


def _read_file(folder: Path, name: str, entry: _FileEntry, decoder: Callable[[bytes], Any]) -> Any:
    content = _read_bytes(folder / name)
    if len(content) != entry.bytes or _sha256(content) != entry.sha256:
        raise _damaged(folder, f"{name} with another SHA-256")
    try:
        return decoder(content)
    except ValueError as error:
        raise _damaged(folder, f"{name} that cannot be read ({error})") from error


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _damaged(path.parent, f"{path.name}: {error.strerror}") from error


def _identify(folder: Path) -> tuple[int, int, int] | None:
    """What tells a folder from another of its name."""
    try:
        state = os.stat(folder)
    except OSError:
        return None
    return state.st_dev, state.st_ino, state.st_mtime_ns


def _damaged(folder: Path, got: str) -> CheckpointError:
    return CheckpointError(
        expected(f"a sound checkpoint in {folder}", got, "this checkpoint cannot be used")
    )


def _hash_of_manifest(manifest: dict[str, Any]) -> str:
    return _sha256(_encode_json(manifest))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _encode_json(value: Any) -> bytes:
    return encode(value, indent=1) + b"\n"
