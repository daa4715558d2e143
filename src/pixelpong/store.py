"""Checkpoints on disk: all or nothing, and never silently wrong.

A checkpoint is a folder. It is written under a temporary name, every file is flushed to the
disk, the manifest with every file's SHA-256 comes last, and only then the folder gets its name.
Reading checks every hash; a damaged newest checkpoint falls back to the one before, with a word.
Nothing that is read is ever unpickled: arrays are safetensors, the rest is JSON.

Covered: saving, loading, falling back, keeping the last three and the best.
Not covered: what the arrays mean.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import shutil
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as decode_arrays
from safetensors.numpy import save as encode_arrays

from pixelpong.errors import CheckpointError, RunError, VersionError, expected

FORMAT = 1
"""Number of the layout described here; another one is refused."""

KEEP_LAST = 3

_MANIFEST = "manifest.json"
_MANIFEST_LIMIT = 1 << 20
_FILES = ("params.safetensors", "state.safetensors", "state.json")

Arrays = Mapping[str, NDArray[Any]]


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
            warn: is told in one line when a checkpoint is damaged and another is taken.
        """
        self.folder = folder
        self._warn = warn

    def updates(self) -> list[int]:
        """The updates that have a checkpoint, ascending; whether each is sound is not checked."""
        if not self.folder.is_dir():
            return []
        names = (entry.name for entry in self.folder.iterdir())
        return sorted(int(name) for name in names if name.isascii() and name.isdecimal())

    def path(self, update: int) -> Path:
        """The folder of an update's checkpoint."""
        return self.folder / f"{update:06d}"

    def sweep(self) -> None:
        """Remove what a killed save has left; only for the one who holds the run's lock."""
        if self.folder.is_dir():
            for entry in self.folder.iterdir():
                if entry.name.startswith(".tmp-"):
                    shutil.rmtree(entry, ignore_errors=True)

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint whole or not at all, then drop those that need not be kept.

        Raises:
            RunError: it could not be written; the checkpoints before it are untouched.
        """
        temporary = self.folder / f".tmp-{checkpoint.update:06d}-{os.getpid()}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir()
            _write_files(temporary, checkpoint)
            target = self.path(checkpoint.update)
            if target.exists():  # the damaged one that a resume fell back from, or the same
                target.rename(temporary.with_name(temporary.name + "-old"))
            temporary.rename(target)
            sync_folder(self.folder)
        except OSError as error:
            with contextlib.suppress(OSError):
                self.sweep()
            kept = self.updates()
            good = f"; the checkpoint of update {kept[-1]} is kept" if kept else ""
            raise RunError(
                expected(
                    f"to write the checkpoint of update {checkpoint.update} to {self.folder}",
                    error.strerror or str(error),
                    "make room there, then resume" + good,
                )
            ) from error
        self.sweep()
        self._drop_old(checkpoint.update)

    def load(self, update: int) -> Checkpoint:
        """Read one checkpoint and check every byte of it.

        Raises:
            CheckpointError: it is missing, damaged or of another version.
        """
        return _read_checkpoint(self.path(update), update)

    def load_latest(self) -> Checkpoint:
        """The newest sound checkpoint; a word to `warn` for each damaged one passed over.

        Raises:
            CheckpointError: there is none.
        """
        return self._load_first(list(reversed(self.updates())))

    def load_best(self) -> Checkpoint:
        """The sound checkpoint with the highest score, the newest of equals.

        Raises:
            CheckpointError: there is none.
        """
        return self._load_first(sorted(self.updates(), key=self._rank, reverse=True))

    def _load_first(self, candidates: list[int]) -> Checkpoint:
        for update in candidates:
            try:
                return self.load(update)
            except VersionError:
                raise
            except CheckpointError as error:
                self._warn(f"{error}; taking another checkpoint")
        got = f"{len(candidates)} damaged ones" if candidates else "none at all"
        advice = "put a copy of one there, or train anew in another run"
        raise CheckpointError(expected(f"a sound checkpoint in {self.folder}", got, advice))

    def _rank(self, update: int) -> tuple[bool, float, int]:
        """Evaluations before means of training episodes, then the score, then the newest."""
        try:
            manifest = _read_manifest(self.path(update), update)
        except CheckpointError:
            return (False, -math.inf, update)
        score = manifest["score"]
        is_evaluation = score is not None and manifest.get("score_of") == "evaluation"
        return (is_evaluation, -math.inf if score is None else score, update)

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
            shutil.rmtree(self.path(update), ignore_errors=True)


def read_file(path: Path, limit: int) -> bytes:
    """The bytes of a file, of an ordinary one: a pipe in its place would be waited for.

    Raises:
        OSError: there is none, or it is longer than `limit`.
    """
    with open_file(path) as file:
        if os.fstat(file.fileno()).st_size > limit:
            raise OSError(errno.EFBIG, f"more than {limit} bytes")
        content = file.read(limit + 1)
    if len(content) > limit:
        raise OSError(errno.EFBIG, f"more than {limit} bytes")
    return content


def open_file(path: Path) -> BinaryIO:
    """An ordinary file, to be read.

    Raises:
        OSError: there is none, or what is there is no file.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except ValueError as error:  # a NUL in its name
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT)) from error
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        raise OSError(errno.EINVAL, "no ordinary file")
    return os.fdopen(descriptor, "rb")


def write_file(path: Path, content: bytes) -> None:
    """Write a new file and wait until the disk has it."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the disk has a folder's names, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_files(folder: Path, checkpoint: Checkpoint) -> None:
    contents = {
        "params.safetensors": encode_arrays(checkpoint.params),
        "state.safetensors": encode_arrays(checkpoint.optimizer),
        "state.json": _encode_json({"update": checkpoint.update, "counters": checkpoint.counters}),
    }
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "update": checkpoint.update,
        "score": checkpoint.score,
        "score_of": checkpoint.score_of,
        "params_sha256": fingerprint(checkpoint.params),
        "optimizer_sha256": fingerprint(checkpoint.optimizer),
        "files": {
            name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in contents.items()
        },
    }
    manifest["manifest_sha256"] = _hash_of_manifest(manifest)
    for name, content in contents.items():
        write_file(folder / name, content)
    write_file(folder / _MANIFEST, _encode_json(manifest))
    sync_folder(folder)


def _read_checkpoint(folder: Path, update: int) -> Checkpoint:
    manifest = _read_manifest(folder, update)
    contents = {}
    for name in _FILES:
        entry = manifest["files"][name]
        content = _read_bytes(folder / name, limit=entry["bytes"])
        if hashlib.sha256(content).hexdigest() != entry["sha256"]:
            raise _damaged(folder, f"{name} with another SHA-256")
        contents[name] = content
    try:
        params = decode_arrays(contents["params.safetensors"])
        optimizer = decode_arrays(contents["state.safetensors"])
        counters = json.loads(contents["state.json"])["counters"]
        if not isinstance(counters, dict):
            raise ValueError("counters that are none")
        score, score_of = manifest["score"], manifest["score_of"]
        return Checkpoint(update, params, optimizer, counters, score, score_of)
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged(folder, f"content that cannot be read ({error})") from error


def _read_manifest(folder: Path, update: int) -> dict[str, Any]:
    content = _read_bytes(folder / _MANIFEST, limit=_MANIFEST_LIMIT)
    try:
        manifest = json.loads(content)
        claimed = manifest.pop("manifest_sha256")
        actual = _hash_of_manifest(manifest)
        version = manifest["format"]
        if version == FORMAT:
            _require_shape(manifest)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged(folder, f"a manifest that cannot be read ({error})") from error
    if version != FORMAT:
        got = f"format {version}"
        advice = "use the version of pixelpong that wrote it"
        raise VersionError(expected(f"a checkpoint of format {FORMAT} in {folder}", got, advice))
    if claimed != actual or manifest["update"] != update:
        raise _damaged(folder, "a manifest that does not match its own hash or place")
    return manifest


def _require_shape(manifest: dict[str, Any]) -> None:
    """Refuse a manifest whose entries are of other kinds: a forger can write a fitting hash.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: they are.
    """
    files, score = manifest["files"], manifest["score"]
    if files.keys() != set(_FILES) or type(manifest["update"]) is not int:
        raise ValueError("other entries")
    for entry in files.values():
        if type(entry["bytes"]) is not int or not 0 <= entry["bytes"] < 1 << 40:
            raise ValueError("sizes that are none")
        if not isinstance(entry["sha256"], str):
            raise ValueError("hashes that are none")
    is_number = type(score) in (int, float) and abs(score) <= 1e12
    if not (score is None or is_number) or not isinstance(manifest["score_of"], str):
        raise ValueError("a score that is none")


def _read_bytes(path: Path, limit: int) -> bytes:
    try:
        return read_file(path, limit)
    except OSError as error:
        raise _damaged(path.parent, f"{path.name}: {error.strerror}") from error


def _damaged(folder: Path, got: str) -> CheckpointError:
    return CheckpointError(
        expected(f"a sound checkpoint in {folder}", got, "this checkpoint cannot be used")
    )


def _hash_of_manifest(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(_encode_json(manifest)).hexdigest()


def _encode_json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()
