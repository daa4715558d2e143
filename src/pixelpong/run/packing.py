"""Arrays as what has changed of them since the start, which the run's seed gives.

The fast network has 59,958 rows in its first layer. A training that wins has changed a third of
them; the others are as they were drawn, and the optimizer's memory of them is 0. So of each array
only the rows that differ from the start are kept, as the bits in which they differ: bytes of the
same significance side by side, each such plane deflated if that makes it smaller. The exponents
shrink to half; the other bytes are as good as random. Nothing is rounded.

Covered: packing, unpacking to the same bits, within sizes that the start sets.
Not covered: what the start is (`pixelpong.learners.start`).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.run.arrays import Arrays

_SMALL = 1 << 16
"""Bytes of an array below which it is kept as it is."""

_SAMPLE = 1 << 16
"""Bytes of a plane that show whether deflating it is worth the time."""

_WORTH = 0.9
"""Share of the sample's size below which it is."""


def pack(arrays: Arrays, start: Arrays) -> dict[str, NDArray[Any]]:
    """What has to be kept of arrays, beside their start.

    Args:
        arrays: name → array; they are not changed.
        start: of those that have one, under the same names.

    Returns:
        Small ones, and those without a start of the same shape and type, as they are. Of each
        other one ``NAME/rows``, [K] the rows that have changed, and ``NAME/0``, ``NAME/1`` …, a
        plane of bytes each.
    """
    packed: dict[str, NDArray[Any]] = {}
    for name, array in arrays.items():
        before = start.get(name) if array.nbytes >= _SMALL else None
        if before is None or (before.shape, before.dtype) != (array.shape, array.dtype):
            packed[name] = array
            continue
        new, old = _bits(np.ascontiguousarray(array)), _bits(before)
        rows = np.flatnonzero((new != old).any(axis=1))
        changed = (new[rows] ^ old[rows]).view(np.uint8).reshape(-1, array.itemsize)
        packed[f"{name}/rows"] = rows.astype(np.uint32)
        for place in range(array.itemsize):
            packed[f"{name}/{place}"] = _deflate(changed[:, place].copy())
    return packed


def unpack(packed: Arrays, draw: Callable[[], Arrays]) -> dict[str, NDArray[Any]]:
    """What `pack` was given, bit for bit.

    Args:
        packed: what it returned.
        draw: gives the same start, anew: it is changed. Called if it is needed.

    Raises:
        ValueError: it is something else. Nothing larger than the start was made of it.
    """
    arrays = {name: array for name, array in packed.items() if "/" not in name}
    if len(arrays) == len(packed):
        return arrays
    start = draw()
    for name in sorted({name.partition("/")[0] for name in packed.keys() - arrays.keys()}):
        if name not in start or name in arrays:
            raise ValueError(f"changes of {name[:40]!r}, which is nothing that has a start")
        array = start[name]
        bits = _bits(array)
        parts = [packed.get(f"{name}/{part}") for part in ("rows", *range(array.itemsize))]
        rows, *planes = (_flat(name, part) for part in parts)
        _require_rows(name, rows, len(bits))
        changed = np.empty((len(rows) * bits.shape[1], array.itemsize), np.uint8)
        for place, plane in enumerate(planes):
            changed[:, place] = _inflate(name, plane, len(changed))
        bits[rows] ^= changed.view(bits.dtype).reshape(len(rows), bits.shape[1])
        arrays[name] = array
    return arrays


def _bits(array: NDArray[Any]) -> NDArray[Any]:
    """A view of an array [D, ...] as whole numbers [D, N]."""
    flat = array.reshape(len(array), -1)
    return flat.view(np.dtype(f"u{array.itemsize}"))


def _deflate(plane: NDArray[np.uint8]) -> NDArray[np.uint8]:
    sample = plane[:_SAMPLE].tobytes()
    if len(zlib.compress(sample, 1)) < _WORTH * len(sample):
        content = zlib.compress(plane.tobytes(), 1)
        if len(content) < len(plane):
            return np.frombuffer(content, np.uint8)
    return plane


def _inflate(name: str, plane: NDArray[Any], size: int) -> NDArray[np.uint8]:
    """The plane, of which it is known how large it is: no more is ever made of it."""
    if plane.dtype != np.uint8:
        raise ValueError(f"a plane of {name} that is no bytes")
    if len(plane) == size:
        return plane
    inflater = zlib.decompressobj()
    try:
        content = inflater.decompress(plane.tobytes(), size + 1)
    except zlib.error as error:
        raise ValueError(f"a plane of {name} that cannot be inflated") from error
    if len(content) != size or not inflater.eof or inflater.unused_data:
        raise ValueError(f"a plane of {name} of another size")
    return np.frombuffer(content, np.uint8)


def _flat(name: str, part: NDArray[Any] | None) -> NDArray[Any]:
    if part is None or part.ndim != 1:
        raise ValueError(f"changes of {name} of which a part is missing")
    return part


def _require_rows(name: str, rows: NDArray[Any], number: int) -> None:
    """Rows ascend: none is changed twice."""
    is_sound = rows.dtype == np.uint32 and (np.diff(rows.astype(np.int64)) > 0).all()
    if not is_sound or (len(rows) and rows[-1] >= number):
        raise ValueError(f"rows of {name} that are not there")
