"""The sparse gradient of the classic network; `pixelpong.kernels.playing` plays with it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.steps.compiling import compiled
from pixelpong.items import NUM_PIXELS, UP, Played, SparseGrads
from pixelpong.learn import returns

_kernel = compiled()


@_kernel
def _add_gradient(W2, hidden, indices, offsets, dz, slots, dW1, outputs):  # type: ignore[no-untyped-def]
    """Add the gradient to `dW1` and ``outputs[0]``; `slots` has the index of each row in `dW1`.

    The second row of `outputs` [2, H] is scratch.
    """
    dW2, dh = outputs[0], outputs[1]
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


def episode_gradient(W2: NDArray[Any], played: Played, advantages: NDArray[Any]) -> SparseGrads:
    """Compute an episode's gradient from W2 [H], the record, and the advantages [T].

    Definition: `pixelpong.learn.reinforce.episode_gradient`.
    """
    steps, indices = played.steps, played.indices
    dz = (((steps["action"] == UP) - steps["up_probability"]) * advantages).astype(W2.dtype)
    is_touched, slots = np.zeros(2 * NUM_PIXELS, np.bool_), np.empty(NUM_PIXELS, np.int32)
    is_touched[indices] = True
    rows = np.flatnonzero(is_touched[:NUM_PIXELS] | is_touched[NUM_PIXELS:]).astype(np.uint16)
    slots[rows] = np.arange(len(rows))
    dW1, outputs = np.zeros((len(rows), len(W2)), W2.dtype), np.zeros((2, len(W2)), W2.dtype)
    _add_gradient(W2, played.hidden, indices, played.offsets, dz, slots, dW1, outputs)
    return SparseGrads(rows, dW1, outputs[0].copy())


@_kernel
def add_rows(total, rows, values):  # type: ignore[no-untyped-def]
    """Add `values` [K, H] to the rows [K] of `total` [NUM_PIXELS, H], in place."""
    for k in range(len(rows)):
        target = total[rows[k]]
        for unit in range(values.shape[1]):
            target[unit] += values[k, unit]


discounted_returns = _kernel(returns.discounted_returns)  # the definition itself, compiled
