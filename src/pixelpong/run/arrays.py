"""Arrays as bytes and back: safetensors, a table of names, types and shapes before the numbers.

Nothing in it is ever run, and a stranger's file costs no more memory than its size.

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
"""Size limit of the table, in bytes; with 4,096 streams it has 1.2 million."""


def decode_arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """Read arrays in the safetensors form.

    Raises:
        ValueError: the content is not in that form.
    """
    size = int.from_bytes(content[:8], "little")
    if size > TABLE_LIMIT:
        raise ValueError(f"a table of {size} bytes")
    try:
        return load(content)
    except (SafetensorError, KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"no arrays ({' '.join(str(error).split())[:80]})") from error
