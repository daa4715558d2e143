"""Arrays and a card (their metadata) in one file, in which every bit is checked when it is read.

The file is in the safetensors format: a table of names, types and shapes, then the numbers. Nothing
in it is ever executed, and an untrusted file takes no more memory than its size. The array ``card``
is JSON; ``sha256`` is the hash of everything else.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from pixelpong.run.files import open_to_read
from pixelpong.schema import Count, convert, decode, encode

Arrays = Mapping[str, NDArray[Any]]

LARGEST_BYTE = 127  # the largest int8
CARD_LIMIT = 1 << 20  # size limit of a card in bytes; those in the package take about 1,000
TABLE_LIMIT = 1 << 20  # size limit in bytes of the table of names and shapes


def fingerprint(arrays: Arrays) -> str:
    """The SHA-256 of names, types, shapes and bytes, in alphabetical order of the names."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.data)
    return digest.hexdigest()


def encode_arrays(arrays: Arrays, card: dict[str, Any]) -> bytes:
    """Encode arrays and a card as the content of a file."""
    whole = {name: np.ascontiguousarray(w) for name, w in arrays.items()}
    whole["card"] = np.frombuffer(encode(card), np.uint8)
    whole["sha256"] = np.frombuffer(bytes.fromhex(fingerprint(whole)), np.uint8)
    return save(whole)


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


@dataclass(frozen=True)
class _Entry:
    """An array's entry in the table."""

    data_offsets: tuple[Count, Count]  # start and end, counted from the end of the table


def read_card(path: Path) -> bytes:
    """Read only the card of a file, without checking the hash."""
    try:
        with open_to_read(path) as file:
            size = int.from_bytes(file.read(8) or b"", "little")
            if size > TABLE_LIMIT:
                raise ValueError("its table is too large")
            table = decode(file.read(size) or b"", dict[str, Any])
            begin, end = convert(table["card"], _Entry).data_offsets
            if not 0 <= end - begin <= CARD_LIMIT:
                raise ValueError(f"it has {end - begin} bytes")
            file.seek(8 + size + begin)
            return file.read(end - begin) or b""
    except (ValueError, OSError, KeyError, OverflowError) as error:
        raise ValueError(f"it has no metadata ({_shorten(error)})") from error


def _shorten(error: Exception) -> str:
    return " ".join(str(error).split())[:80]


def squeeze(array: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Round numbers from -127 to 127, [K, N], and compress them column by column to bytes [·]."""
    rounded = np.clip(np.rint(array), -LARGEST_BYTE, LARGEST_BYTE).astype(np.int8)
    # Small numbers are frequent but patterns are not, so only Huffman coding helps.
    packer = zlib.compressobj(9, strategy=zlib.Z_RLE)
    return np.frombuffer(packer.compress(rounded.T.tobytes()) + packer.flush(), np.uint8)


def unsqueeze(squeezed: NDArray[np.uint8], num_rows: int, size: int) -> NDArray[np.int8]:
    """Decompress the bytes from `squeeze` to the rounded numbers, [num_rows, size]."""
    stream, count = zlib.decompressobj(), num_rows * size
    try:
        content = stream.decompress(squeezed.tobytes(), count + 1)  # stops a zip bomb
    except zlib.error as error:
        raise ValueError("invalid rows") from error
    if len(content) != count:
        raise ValueError("invalid rows")
    return np.frombuffer(content, np.int8).reshape(size, num_rows).T
