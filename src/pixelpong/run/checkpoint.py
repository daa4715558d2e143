"""One checkpoint on disk: four files in a folder, checked to the last byte.

`manifest.json` has every file's SHA-256 and its own, and is written last. Nothing that is read is
ever unpickled: arrays are safetensors, the rest is JSON of a declared type. Of the arrays only what
has changed since the start is kept (`pixelpong.run.packing`): that of update 0 has no size.

Covered: writing the files, reading and checking them. Not covered: how a folder gets its name, and
which of them are kept (`pixelpong.run.checkpoints`); what the arrays mean.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.errors import CheckpointError, VersionError, expected
from pixelpong.learners.start import Start
from pixelpong.run.arrays import Arrays, decode_arrays, encode_arrays
from pixelpong.run.files import sync_folder, write_file
from pixelpong.run.packing import pack, unpack
from pixelpong.schema import Count, Return, convert, decode, encode

FORMAT = 2
"""Number of the layout described here."""

READABLE = (1, FORMAT)
"""Numbers of the layouts that are read: in the first, arrays are kept whole."""

Draw = Callable[[Start], tuple[Arrays, Arrays]]
"""Gives parameters and optimizer's memory as they were at a start."""

_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Checkpoint:
    """The complete state of a training at an update.

    Attributes:
        update: updates done.
        params: name → array.
        optimizer: name → array, the optimizer's memory.
        counters: everything else the future or the reports depend on, as in JSON.
        score: what `best` is chosen by, the higher the better; None if it is unknown.
        score_of: the kind of score: ``"evaluation"`` or ``"mean_return_100"``. An evaluation always
            ranks before a mean return, because the two cannot be compared.
        start: the start of the training: only what differs from it is kept; None to keep all.
    """

    update: int
    params: dict[str, NDArray[Any]]
    optimizer: dict[str, NDArray[Any]]
    counters: dict[str, Any]
    score: float | None = None
    score_of: str = "mean_return_100"
    start: Start | None = None


@dataclass(frozen=True)
class FileEntry:
    """One file of a checkpoint: its length and its hash."""

    bytes: Count
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The contents of ``manifest.json`` besides its own hash; see `Checkpoint`."""

    format: int
    update: Count
    score: Return | None
    score_of: str
    params_sha256: str
    optimizer_sha256: str
    files: dict[str, FileEntry]
    start: Start | None = None

    def __post_init__(self) -> None:
        if self.files.keys() != _DECODERS.keys():
            raise ValueError("other files")


@dataclass(frozen=True)
class _State:
    """The contents of ``state.json``."""

    update: Count
    counters: dict[str, Any]


_DECODERS: dict[str, Callable[[bytes], Any]] = {
    "params.safetensors": decode_arrays,
    "state.safetensors": decode_arrays,
    "state.json": functools.partial(decode, kind=_State),
}
"""The files of a checkpoint besides its manifest, and how to read each."""


def fingerprint(arrays: Arrays) -> str:
    """SHA-256 over names, types, shapes and bytes, in the order of the names."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.data)
    return digest.hexdigest()


def write_checkpoint(folder: Path, checkpoint: Checkpoint, draw: Draw) -> None:
    """Write its files into a folder that has none, the manifest last.

    Raises:
        OSError: one could not be written.
    """
    params, memory = _draw(draw, checkpoint.start)
    contents = {
        "params.safetensors": encode_arrays(pack(checkpoint.params, params)),
        "state.safetensors": encode_arrays(pack(checkpoint.optimizer, memory)),
        "state.json": _encode_json({"update": checkpoint.update, "counters": checkpoint.counters}),
    }
    manifest = dataclasses.asdict(
        Manifest(
            FORMAT,
            checkpoint.update,
            checkpoint.score,
            checkpoint.score_of,
            fingerprint(checkpoint.params),
            fingerprint(checkpoint.optimizer),
            {name: FileEntry(len(it), _sha256(it)) for name, it in contents.items()},
            checkpoint.start,
        )
    )
    manifest["manifest_sha256"] = _hash_of_manifest(manifest)
    for name, content in contents.items():
        write_file(folder / name, content)
    write_file(folder / _MANIFEST, _encode_json(manifest))
    sync_folder(folder)


def _draw(draw: Draw, start: Start | None) -> tuple[Arrays, Arrays]:
    return ({}, {}) if start is None else draw(start)


def read_checkpoint(folder: Path, update: int, draw: Draw) -> Checkpoint:
    """The checkpoint in a folder, which has to be of this update.

    Raises:
        CheckpointError: it is missing or damaged.
        VersionError: it is of another version, or began from numbers that are not drawn here.
    """
    manifest = read_manifest(folder, update)
    params, optimizer, state = (
        _read_file(folder, name, manifest.files[name], decoder)
        for name, decoder in _DECODERS.items()
    )
    drawn = functools.cache(lambda: _draw(draw, manifest.start))
    try:
        params = unpack(params, lambda: drawn()[0])
        optimizer = unpack(optimizer, lambda: drawn()[1])
    except ValueError as error:
        raise _damaged(folder, f"arrays that cannot be read ({error})") from error
    if state.update != update:
        raise _damaged(folder, f"counters of update {state.update}")
    for name, w in params.items():
        if w.dtype.kind != "f" or not np.isfinite(w).all():
            raise _damaged(folder, f"{name} of the parameters with a number that is not finite")
    if fingerprint(params) != manifest.params_sha256:
        what = f"the parameters of {folder}, by their SHA-256"
        advice = "use the library versions in config.json: with these, a seed gives other numbers"
        raise VersionError(expected(what, "others", advice))
    return Checkpoint(
        update,
        params,
        optimizer,
        state.counters,
        manifest.score,
        manifest.score_of,
        manifest.start,
    )


def read_manifest(folder: Path, update: int) -> Manifest:
    """What its manifest says, which has to be of this update.

    Raises:
        CheckpointError: it is missing, damaged or of another version.
    """
    try:
        content = decode(_read_bytes(folder / _MANIFEST), dict[str, Any])
        if content.pop("manifest_sha256", None) != _hash_of_manifest(content):
            raise ValueError("it does not match its own hash")
        version = content.get("format")
        if version not in READABLE:
            got = f"format {str(version)[:20]}"
            advice = "use the version of pixelpong that wrote it"
            what = f"a checkpoint of format {' or '.join(map(str, READABLE))} in {folder}"
            raise VersionError(expected(what, got, advice))
        manifest = convert(content, Manifest)
    except ValueError as error:
        raise _damaged(folder, f"a manifest that cannot be read ({error})") from error
    if manifest.update != update:
        raise _damaged(folder, f"the manifest of update {manifest.update}")
    return manifest


def _read_file(folder: Path, name: str, entry: FileEntry, decoder: Callable[[bytes], Any]) -> Any:
    content = _read_bytes(folder / name)
    if len(content) != entry.bytes or _sha256(content) != entry.sha256:
        raise _damaged(folder, f"{name} with a different SHA-256")
    try:
        return decoder(content)
    except ValueError as error:
        raise _damaged(folder, f"{name} that cannot be read ({error})") from error


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _damaged(path.parent, f"{path.name}: {error.strerror}") from error


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
