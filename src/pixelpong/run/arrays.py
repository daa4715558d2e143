"""Arrays and a card (their metadata) in one file, in which every bit is checked when it is read.

The file is in the safetensors format: a table of names, types and shapes, then the numbers. Nothing
in it is ever executed, and an untrusted file takes no more memory than its size. The array ``card``
is JSON; ``sha256`` is the hash of everything else.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load

from pixelpong.run.files import open_to_read, read_file, read_within
from pixelpong.schema import Count, convert, decode, encode

Arrays = Mapping[str, NDArray[Any]]

_TYPES = {"b": "BOOL", "i": "I", "u": "U", "f": "F"}  # the format's names of NumPy's kinds
CARD_LIMIT = 1 << 20  # size limit of a card in bytes; those in the package take about 1,000
TABLE_LIMIT = 1 << 20  # size limit in bytes of the table of names and shapes


def fingerprint(arrays: Arrays) -> str:
    """Compute the SHA-256 of names, types, shapes and bytes, in alphabetical order of names."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.data)
    return digest.hexdigest()


def encode_arrays(arrays: Arrays, card: dict[str, Any]) -> bytes:
    """Encode arrays and a card as the content of a file."""
    return b"".join(list_parts(arrays, card))


def list_parts(arrays: Arrays, card: dict[str, Any]) -> list[memoryview]:
    """List the parts of a file's content: its table, then the numbers of each array.

    Nothing in a row in memory is copied; the library's own `save` makes two copies.
    """
    whole = {name: np.ascontiguousarray(w) for name, w in arrays.items()}
    whole["card"] = np.frombuffer(encode(card), np.uint8)
    whole["sha256"] = np.frombuffer(bytes.fromhex(fingerprint(whole)), np.uint8)
    # Large types come first, so that every array is aligned.
    ordered = dict(sorted(whole.items(), key=lambda it: (-it[1].itemsize, it[0])))
    ends = np.cumsum([0, *(w.nbytes for w in ordered.values())]).tolist()
    table = {
        name: {"dtype": type_name(w.dtype), "shape": w.shape, "data_offsets": span}
        for (name, w), span in zip(ordered.items(), itertools.pairwise(ends), strict=True)
    }
    text = encode(table)
    text += b" " * (-len(text) % 8)
    head = len(text).to_bytes(8, "little") + text
    return [memoryview(head), *(w.data for w in ordered.values())]


def type_name(dtype: np.dtype[Any]) -> str:
    """Return the format's name of a type.

    >>> type_name(np.dtype(np.float32)), type_name(np.dtype(np.bool_))
    ('F32', 'BOOL')
    """
    name = _TYPES[dtype.kind]
    return name if dtype.kind == "b" else f"{name}{8 * dtype.itemsize}"


def decode_arrays(content: bytes) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Decode the arrays and the card from the content of a file."""
    size = int.from_bytes(content[:8], "little")
    if size > TABLE_LIMIT:
        raise ValueError("it is not a safetensors file, or its table is too large")
    try:
        arrays = load(content)
        claimed = arrays.pop("sha256").tobytes().hex()
        if claimed != fingerprint(arrays):
            raise ValueError("it is damaged: its SHA-256 is wrong")
        card = arrays.pop("card")
        if card.nbytes > CARD_LIMIT:
            raise ValueError(f"its metadata has more than {CARD_LIMIT:,} bytes")
        return arrays, decode(card.tobytes(), dict[str, Any])
    except KeyError as error:
        raise ValueError(f"it lacks {error}, so pixelpong did not write it") from error
    except (SafetensorError, TypeError, OverflowError) as error:
        raise ValueError(f"it contains no arrays ({_shorten(error)})") from error


def read_arrays(
    path: Path, limit: int | Callable[[bytes], int]
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Read the arrays and the card of a file, which is opened once.

    `limit` is its size limit in bytes, or a function that derives it from the card.
    """
    if not callable(limit):
        return decode_arrays(read_file(path, limit))
    with _open_with_card(path) as (file, card):
        most = limit(card)
        file.seek(0)
        return decode_arrays(read_within(file, most))


def read_card(path: Path) -> bytes:
    """Read only the card of a file, without checking the hash."""
    try:
        with _open_with_card(path) as (_, card):
            return card
    except OSError as error:  # from closing it
        raise ValueError(f"its metadata cannot be read ({_shorten(error)})") from error


@contextlib.contextmanager
def _open_with_card(path: Path) -> Iterator[tuple[FileIO, bytes]]:
    """Open a file and read its card."""
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(open_to_read(path))
            card = _read_card(file)
        except (ValueError, OSError, KeyError, OverflowError) as error:
            raise ValueError(f"its metadata cannot be read ({_shorten(error)})") from error
        yield file, card


@dataclass(frozen=True)
class _Entry:
    """An array's entry in the table."""

    data_offsets: tuple[Count, Count]  # start and end, counted from the end of the table


def _read_card(file: FileIO) -> bytes:
    size = int.from_bytes(file.read(8) or b"", "little")
    if size > TABLE_LIMIT:
        raise ValueError("its table is too large")
    table = decode(file.read(size) or b"", dict[str, Any])
    begin, end = convert(table["card"], _Entry).data_offsets
    if not 0 <= end - begin <= CARD_LIMIT:
        raise ValueError(f"its size would be {end - begin} bytes")
    file.seek(8 + size + begin)
    return file.read(end - begin) or b""


def _shorten(error: Exception) -> str:
    return " ".join(str(error).split())[:80]
