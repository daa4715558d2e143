"""Statistics of the last values of a column, along the column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Running:
    """A figure over a window of values, at K places."""

    places: NDArray[np.intp]  # the number of values before each
    mean: NDArray[np.float64]
    low: NDArray[np.float64]  # the 10th percentile
    median: NDArray[np.float64]
    high: NDArray[np.float64]  # the 90th


def running(
    values: NDArray[Any], window: int, at: NDArray[Any] | None = None, most: int = 400
) -> Running:
    """Statistics of the last `window` of [N] values, or of all while there are fewer.

    Of several values at one position, `at` [N], only the last gives a place. There are at most
    `most` places, evenly spread; the last is the end.

    >>> running(np.array([0.0, 1.0, 5.0]), 2).mean
    array([0. , 0.5, 3. ])
    """
    assert len(values) > 0
    is_last = np.ones(len(values), np.bool_)
    if at is not None:
        is_last[:-1] = np.diff(at) > 0
    ends = np.flatnonzero(is_last) + 1
    chosen = np.unique(np.linspace(0, len(ends) - 1, min(most, len(ends))).round().astype(np.intp))
    pieces = [values[max(0, end - window) : end] for end in ends[chosen]]
    low, median, high = np.array([np.percentile(piece, [10, 50, 90]) for piece in pieces]).T
    mean = np.array([piece.mean() for piece in pieces])
    return Running(ends[chosen], mean, low, median, high)
