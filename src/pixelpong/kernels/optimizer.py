"""Steps of the optimizers, and the norm of what they step along."""

from __future__ import annotations

import numpy as np
from numba import njit

from pixelpong.learn.optimizer import EPSILON

_kernel = njit(cache=True, nogil=True)


@_kernel
def rmsprop(w, g, c, learning_rate, decay_rate):  # type: ignore[no-untyped-def]
    """One step of RMSProp on flat arrays, `w` and `c` in place.

    Definition: `pixelpong.learn.optimizer.rmsprop`.
    """
    rate, decay = w.dtype.type(learning_rate), w.dtype.type(decay_rate)
    keep_out, epsilon = w.dtype.type(1 - decay_rate), w.dtype.type(EPSILON)
    for i in range(len(w)):
        c[i] = decay * c[i] + keep_out * g[i] * g[i]
        w[i] += rate * g[i] / (np.sqrt(c[i]) + epsilon)


@_kernel
def sum_of_squares(g):  # type: ignore[no-untyped-def]
    """Σ g² of a flat array in float64, in a fixed order; not finite where an entry is not."""
    lanes = np.zeros(16)
    whole = len(g) - len(g) % 16
    for i in range(0, whole, 16):
        for lane in range(16):
            value = np.float64(g[i + lane])
            lanes[lane] += value * value
    for i in range(whole, len(g)):
        value = np.float64(g[i])
        lanes[i - whole] += value * value
    total = 0.0
    for lane in range(16):
        total += lanes[lane]
    return total
