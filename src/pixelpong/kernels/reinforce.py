"""The sparse gradient of the classic network; `pixelpong.kernels.playing` plays with it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.compiling import compiled
from pixelpong.items import NUM_PIXELS, UP, SparseGrads, Trajectory
from pixelpong.learn import returns

_kernel = compiled()


@_kernel
def _find_rows(indices, slots, rows):  # type: ignore[no-untyped-def]
    """List the touched rows, ascending, and count them; ``slots[row]`` becomes a row's place."""
    slots[:] = -1
    for k in range(len(indices)):
        index = indices[k]
        slots[index if index < NUM_PIXELS else index - NUM_PIXELS] = 0
    count = 0
    for row in range(NUM_PIXELS):
        if slots[row] == 0:
            slots[row] = count
            rows[count] = row
            count += 1
    return count


@_kernel
def _add_gradient(W2, hidden, indices, offsets, dz, slots, dW1, sums):  # type: ignore[no-untyped-def]
    """Add to the touched rows and to the first line of `sums`; its second line is scratch."""
    dW2, dh = sums[0], sums[1]
    for t in range(len(dz)):
        h, d = hidden[t], dz[t]
        for unit in range(len(h)):
            dW2[unit] += d * h[unit]
            dh[unit] = d * W2[unit] if h[unit] > 0 else 0
        for k in range(offsets[t], offsets[t + 1]):
            index = indices[k]
            if index < NUM_PIXELS:
                row = dW1[slots[index]]
                for unit in range(len(dh)):
                    row[unit] += dh[unit]
            else:
                row = dW1[slots[index - NUM_PIXELS]]
                for unit in range(len(dh)):
                    row[unit] -= dh[unit]


def episode_gradient(
    W2: NDArray[Any], trajectory: Trajectory, advantages: NDArray[Any]
) -> SparseGrads:
    """The gradient of an episode, from the activations and the W2 [H] of play; advantages are [T].

    Definition: `pixelpong.learn.reinforce.episode_gradient`.
    """
    labels = trajectory.actions == UP
    dz = ((labels - trajectory.up_probabilities) * advantages).astype(W2.dtype)
    slots, rows = np.empty(NUM_PIXELS, np.int32), np.empty(NUM_PIXELS, np.uint16)
    rows = rows[: _find_rows(trajectory.indices, slots, rows)].copy()
    dW1, sums = np.zeros((len(rows), len(W2)), W2.dtype), np.zeros((2, len(W2)), W2.dtype)
    _add_gradient(
        W2, trajectory.hidden, trajectory.indices, trajectory.offsets, dz, slots, dW1, sums
    )
    return SparseGrads(rows, dW1, sums[0].copy())


@_kernel
def add_rows(total, rows, values):  # type: ignore[no-untyped-def]
    """Add `values` [K, H] to the rows [K] of `total` [NUM_PIXELS, H], in place."""
    for k in range(len(rows)):
        target = total[rows[k]]
        for unit in range(values.shape[1]):
            target[unit] += values[k, unit]


discounted_returns = _kernel(returns.discounted_returns)  # the definition itself, compiled
