"""Sums of gradients, in an order that is always the same.

Float addition does not associate. So a batch is added up in groups of consecutive episodes: first
the episodes of each group, in their order, then the groups. A place that has played a whole group
sends home its sum alone; if a group was played in several places, the learner adds it up. Both
make the same additions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from pixelpong import kernels
from pixelpong.items import NUM_PIXELS, EpisodeResult, Params, SparseGrads

GROUP_SIZE = 20
"""Episodes in a group. The last group of a batch may be smaller."""


class GradientSum:
    """A sum of gradients, added up one after the other.

    Attributes:
        arrays: the sum, dense: W1 [NUM_PIXELS, H], W2 [H].
        has_gradient: [NUM_PIXELS] bool, the rows of W1 that a gradient has reached.
    """

    def __init__(self, hidden: int, dtype: str) -> None:
        """An empty sum, for a network of `hidden` units."""
        self.arrays: Params = {
            "W1": np.zeros((NUM_PIXELS, hidden), dtype),
            "W2": np.zeros(hidden, dtype),
        }
        self.has_gradient: NDArray[np.bool_] = np.zeros(NUM_PIXELS, np.bool_)

    def add(self, grads: SparseGrads) -> None:
        """Add one gradient."""
        self.has_gradient[grads.rows] = True
        kernels.add_rows(self.arrays["W1"], grads.rows, grads.W1)
        self.arrays["W2"] += grads.W2

    def take(self) -> SparseGrads:
        """The sum as one gradient; after this it is empty."""
        rows = np.flatnonzero(self.has_gradient).astype(np.uint16)
        grads = SparseGrads(rows, self.arrays["W1"][rows], self.arrays["W2"].copy())
        self.clear()
        return grads

    def clear(self) -> None:
        """Start again at zero."""
        self.arrays["W1"][self.has_gradient] = 0
        self.arrays["W2"][:] = 0
        self.has_gradient[:] = False


def gather(results: Iterable[EpisodeResult]) -> list[EpisodeResult]:
    """What is sent home for a whole group: the first result has the sum, the others no gradient.

    Args:
        results: of the group's episodes, in their order.
    """
    total, gathered = None, []
    for result in results:
        assert result.grads is not None
        if total is None:
            total = GradientSum(len(result.grads.W2), result.grads.W2.dtype.name)
        total.add(result.grads)
        gathered.append(dataclasses.replace(result, grads=None))
    if total is not None:
        gathered[0] = dataclasses.replace(gathered[0], grads=total.take())
    return gathered
