"""Sums of gradients, in an order that is always the same.

Float addition does not associate. So a batch is added up in groups of consecutive episodes: first
the episodes of each group, in their order, then the groups. In a large batch, an item is a whole
group, and only its sum comes home; in a smaller one, an item is one episode, and the learner adds
up the groups. Both make the same additions.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pixelpong import kernels
from pixelpong.items import NUM_PIXELS, Episode, Result, SparseGrads

GROUP_SIZE = 20  # episodes; the last group of a batch may be smaller
# Episodes from which on an item is a whole group: then there are 15 of them or more to share.
LARGE_BATCH = 300


def games_per_item(batch_size: int) -> int:
    """How many episodes an item has; it follows from the batch alone, not from the workers."""
    return GROUP_SIZE if batch_size >= LARGE_BATCH else 1


def join(results: Iterable[Result]) -> Result:
    """One or more results of games as one; their gradients are added one after the other."""
    episodes: list[Episode] = []
    frames, seconds, W1, W2 = 0, 0.0, np.zeros(0), np.zeros(0)
    has_gradient = np.zeros(NUM_PIXELS, np.bool_)
    for each in results:
        assert each.grads is not None
        if not episodes:
            W2 = np.zeros_like(each.grads.W2)
            W1 = np.zeros((NUM_PIXELS, len(W2)), W2.dtype)
        episodes += each.episodes
        frames, seconds = frames + each.frames, seconds + each.seconds
        has_gradient[each.grads.rows] = True
        kernels.add_rows(W1, each.grads.rows, each.grads.W1)
        W2 += each.grads.W2
    rows = np.flatnonzero(has_gradient).astype(np.uint16)
    return Result(tuple(episodes), frames, seconds, grads=SparseGrads(rows, W1[rows], W2))
