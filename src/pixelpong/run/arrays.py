"""Arrays as bytes and back: safetensors, a table of names, types and shapes before the numbers.

Nothing in it is ever run, and what a stranger wrote costs no more than its own size.

Covered: encoding, decoding with limits. Not covered: which arrays there should be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load
from safetensors.numpy import save as encode_arrays

__all__ = ["Arrays", "decode_arrays", "encode_arrays"]

Arrays = Mapping[str, NDArray[Any]]

TABLE_LIMIT = 2 << 20
"""Bytes of the longest table that is read; that of 4,096 streams has 1.2 million."""


def decode_arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """What `encode_arrays` made.

    Raises:
        ValueError: it is something else.
    """
    size = int.from_bytes(content[:8], "little")
    if size > TABLE_LIMIT:
        raise ValueError(f"a table of {size} bytes")
    try:
        return load(content)
    except (SafetensorError, KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"no arrays ({' '.join(str(error).split())[:80]})") from error
