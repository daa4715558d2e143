"""Pickles of many small arrays, made faster.

A round of the fast mode has hundreds of them, and NumPy's way to pickle an array takes longer than
its content. Most have one dimension, so their buffer and their type are enough.

This is for what our own processes send each other, never for a file: unpickling can run code.
"""

from __future__ import annotations

import copyreg
import io
import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray


def dumps(content: Any) -> bytes:
    """As `pickle.dumps`, twice as fast for many small arrays; `pickle.loads` reads it.

    An array is writable afterwards if it was, and read-only if it was.
    """
    file = io.BytesIO()
    _Pickler(file, protocol=5).dump(content)
    return file.getvalue()


def _reduce(array: NDArray[Any]) -> Any:
    if array.ndim == 1 and array.size and array.flags.c_contiguous and array.dtype.kind in "biuf":
        return np.frombuffer, (pickle.PickleBuffer(array.data), array.dtype)
    return array.__reduce_ex__(5)


class _Pickler(pickle.Pickler):
    dispatch_table = copyreg.dispatch_table | {np.ndarray: _reduce}
