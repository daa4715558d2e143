"""What a stranger may put in a file's place: bytes, and things that are no files."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import socket
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

TERABYTES = 1 << 42


# --- things that are no files -----------------------------------------------------------------


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(TERABYTES)


def _socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # such a name must be short
    try:
        with socket.socket(socket.AF_UNIX) as it:
            it.bind(path.name)
    finally:
        os.chdir(here)


def _filled_folder(path: Path) -> None:
    (path / "folder").mkdir(parents=True)


THINGS: dict[str, Callable[[Path], Any]] = {
    "a pipe": os.mkfifo,
    "a socket": _socket,
    "a folder": _filled_folder,
    "a hole of terabytes": _sparse,
    "a link to /dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "a link to a terminal": lambda path: path.symlink_to("/dev/tty"),
    "a link to itself": lambda path: path.symlink_to(path),
    "a link to memory": lambda path: path.symlink_to("/proc/self/mem"),
    "a link to a canary": lambda path: path.symlink_to(path.anchor + canary_of(path)),
}


def canary_of(path: Path) -> str:
    """The file of others that lies beside the run."""
    run = next(parent for parent in path.parents if parent.name == "run")
    return str(run.parent / "others" / "letters.txt").removeprefix(path.anchor)


# --- bytes ------------------------------------------------------------------------------------


class Bomb:
    """Unpickled, it makes a file."""

    def __init__(self, canary: Path) -> None:
        self._canary = canary

    def __reduce__(self):
        return (Path.touch, (self._canary,))


def disguises(canary: Path) -> dict[str, bytes]:
    """Other formats, those that run what they hold among them."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Bomb(canary)))
        archive.writestr("zeros", bytes(64 << 20))
    objects = io.BytesIO()
    np.save(objects, np.array([Bomb(canary)], object), allow_pickle=True)
    table = b'{"__metadata__":{"x":"' + pickle.dumps(Bomb(canary), 0).hex().encode() + b'"}}'
    return {
        **{f"a pickle of protocol {n}": pickle.dumps(Bomb(canary), n) for n in (0, 2, 5)},
        "a zip with a pickle and a bomb": packed.getvalue(),
        "a gzip bomb": gzip.compress(bytes(64 << 20)),
        "an npy of objects": objects.getvalue(),
        "a pickle in the metadata": struct.pack("<Q", len(table)) + table,
        "python": b"import os; os.system('touch canary')",
        "nothing": b"",
        "zeros": bytes(1000),
    }


def table_of(table: Any, data: bytes = b"") -> bytes:
    """Safetensors with any table."""
    text = table if isinstance(table, bytes) else json.dumps(table).encode()
    return struct.pack("<Q", len(text)) + text + data


def _entry(dtype: str = "F32", shape: Any = (4,), at: Any = (0, 16)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(at)}


def broken_arrays() -> dict[str, bytes]:
    """Safetensors that are none, or cost more than they are."""
    tiny = b'"%06x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
    many = b"{" + b",".join(tiny % n for n in range(39_000)) + b"}"
    more = b"{" + b",".join(tiny % n for n in range(400_000)) + b"}"
    data = bytes(16)
    tables: dict[str, Any] = {
        "deep": b"[" * 100_000,
        "deep in deep": b'{"a":' * 100_000,
        "many entries": many,
        "far more entries": more,
        "megabytes of spaces": b"{" + b" " * (30 << 20) + b"}",
        "metadata that is none": {"__metadata__": {"a": [1]}},
        "a list": [],
        "no UTF-8": b'{"\xff\xfe":1}',
        "overlapping": {"a": _entry(), "b": _entry()},
        "with a gap": {"a": _entry(at=(4, 20))},
        "negative": {"a": _entry(at=(-16, 0))},
        "backwards": {"a": _entry(at=(16, 0))},
        "beyond its end": {"a": _entry(shape=(1 << 40,), at=(0, 1 << 42))},
        "of a shape that overflows": {"a": _entry(shape=(1 << 62, 4), at=(0, 0))},
        "of a shape without end": {"a": _entry(shape=[1] * 100)},
        "of no size and every size": {"a": _entry(shape=(0, 1 << 60, 1 << 60), at=(0, 0))},
        "of no such type": {"a": _entry("F31")},
        "of an odd type": {"a": _entry("BF16", (8,))},
        "of a tiny type": {"a": _entry("F8_E4M3", (16,))},
        "of a tiniest type": {"a": _entry("F4", (32,))},
        "of bits": {"a": _entry("BOOL", (16,))},
        "of complex numbers": {"a": _entry("C64", (2,))},
        "with names that climb": {"../../others/letters.txt": _entry()},
    }
    broken = {f"arrays, {name}": table_of(table, data) for name, table in tables.items()}
    for size in (1 << 20, 1 << 32, 1 << 63, (1 << 64) - 1):
        broken[f"arrays with a table of {size}"] = struct.pack("<Q", size) + b"{}"
    return broken


def altered_arrays(content: bytes) -> dict[str, bytes]:
    """The very arrays with something wrong in them."""
    arrays = {name: w for name, w in load(content).items() if name != "sha256"}
    name = max(arrays, key=lambda each: arrays[each].nbytes)
    w = arrays[name]
    nan, inf = w.copy(), w.copy()
    nan.flat[7], inf.flat[-1] = np.nan, np.inf
    changed: dict[str, Any] = {
        "not a number": nan, "infinite": inf, "whole": w.astype(np.int32),
        "bytes": w.view(np.uint8), "turned": np.ascontiguousarray(w.T), "flat": w.ravel(),
        "cut": w[:-1], "one": w.ravel()[:1], "a scalar": np.array(w.flat[0]),
        "none": w[:0], "larger": np.zeros((4000, *w.shape[1:]), w.dtype).repeat(20, 0),
    }  # fmt: skip
    fewer = {other: array for other, array in arrays.items() if other != name}
    return {
        **{
            f"arrays of which one is {how}": save(arrays | {name: np.asarray(w)})
            for how, w in changed.items()
        },
        "arrays of which one is missing": save(fewer),
        "arrays of which one has another name": save(fewer | {"x" + name: w}),
        "arrays and one more": save(arrays | {"more": w}),
    }


def odd_texts() -> dict[str, bytes]:
    """JSON that is none, or costs more than it is."""
    return {
        "deep JSON": b"[" * 200_000,
        "deep objects": b'{"a":' * 200_000,
        "a number of a million digits": b'{"counters":' + b"9" * 1_000_000 + b"}",
        "NaN": b"NaN",
        "no UTF-8": b'{"counters":"\xff"}',
        "megabytes of lists": b'{"update":2,"counters":{"x":[' + b"[]," * 1_000_000 + b"[]]}}",
        "far more lists": b"[" + b"[]," * 20_000_000 + b"[]]",
        "a list": b"[]",
        "null": b"null",
        "a text": b'"x"',
        "counters that are a list": b'{"update":2,"counters":[]}',
        "those of another update": b'{"update":3,"counters":{}}',
        "no counters": b'{"update":2}',
    }
