"""Sums of gradients, in an order that is always the same.

Float addition does not associate. So a batch is added up in groups of consecutive episodes: first
the episodes of each group, in their order, then the groups. In a large batch, an item is a whole
group, and only its sum comes home; in a smaller one, an item is one episode, and the learner adds
up the groups. Both make the same additions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pixelpong import kernels
from pixelpong.items import NUM_PIXELS, Params, SparseGrads

GROUP_SIZE = 20  # episodes; the last group of a batch may be smaller
# Episodes from which on an item is a whole group: then there are 15 of them or more to share.
LARGE_BATCH = 300


def games_per_item(batch_size: int) -> int:
    """How many episodes an item has; it follows from the batch alone, not from the workers."""
    return GROUP_SIZE if batch_size >= LARGE_BATCH else 1


class GradientSum:
    """A sum of gradients, added up one after the other."""

    def __init__(self, hidden: int, dtype: str) -> None:
        """An empty sum, for a network of `hidden` units."""
        self.arrays: Params = {
            "W1": np.zeros((NUM_PIXELS, hidden), dtype),
            "W2": np.zeros(hidden, dtype),
        }
        # The rows of W1 that a gradient has reached.
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
