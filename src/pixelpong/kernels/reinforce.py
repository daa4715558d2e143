"""The gradient of the classic network, sparsely; `pixelpong.kernels.playing` plays with it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.kernels.compiling import compiled
from pixelpong.trajectory import NUM_PIXELS, UP, SparseGrads, Trajectory

_kernel = compiled()


@_kernel
def _find_rows(indices, slots):  # type: ignore[no-untyped-def]
    """The touched rows, ascending; ``slots[row]`` becomes a row's place among them."""
    slots[:] = -1
    for index in indices:
        slots[index if index < NUM_PIXELS else index - NUM_PIXELS] = 0
    rows = np.empty(NUM_PIXELS, np.uint16)
    count = 0
    for row in range(NUM_PIXELS):
        if slots[row] == 0:
            slots[row] = count
            rows[count] = row
            count += 1
    return rows[:count].copy()


@_kernel
def _episode_gradient(W2, hidden, indices, offsets, dz):  # type: ignore[no-untyped-def]
    slots = np.empty(NUM_PIXELS, np.int32)
    rows = _find_rows(indices, slots)
    dW1 = np.zeros((len(rows), len(W2)), W2.dtype)
    dW2 = np.zeros_like(W2)
    dh = np.empty_like(W2)
    for t in range(len(dz)):
        h = hidden[t]
        for unit in range(len(h)):
            dW2[unit] += dz[t] * h[unit]
            dh[unit] = dz[t] * W2[unit] if h[unit] > 0 else 0
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
    return rows, dW1, dW2


def episode_gradient(
    W2: NDArray[Any], trajectory: Trajectory, advantages: NDArray[Any]
) -> SparseGrads:
    """The REINFORCE gradient of one episode, from the activations that it was played with.

    Definition: `pixelpong.learn.reinforce.episode_gradient`.

    Args:
        W2: [H], of the parameters that played.
        trajectory: T steps.
        advantages: [T].
    """
    labels = trajectory.actions == UP
    dz = ((labels - trajectory.up_probabilities) * advantages).astype(W2.dtype)
    rows, dW1, dW2 = _episode_gradient(
        W2, trajectory.hidden, trajectory.indices, trajectory.offsets, dz
    )
    return SparseGrads(rows, dW1, dW2)


@_kernel
def add_rows(total, rows, values):  # type: ignore[no-untyped-def]
    """Add `values` [K, H] to the rows [K] of `total` [NUM_PIXELS, H], in place."""
    for k in range(len(rows)):
        target = total[rows[k]]
        for unit in range(values.shape[1]):
            target[unit] += values[k, unit]


@_kernel
def discounted_returns(rewards, discount):  # type: ignore[no-untyped-def]
    """Definition: `pixelpong.learn.returns.discounted_returns`."""
    returns = np.zeros(len(rewards))
    following = 0.0
    for t in range(len(rewards) - 1, -1, -1):
        following = rewards[t] if rewards[t] != 0 else discount * following
        returns[t] = following
    return returns
