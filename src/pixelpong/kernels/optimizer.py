"""Steps of the optimizers, and the norm of what they step along."""

from __future__ import annotations

import numpy as np
from numba import njit

from pixelpong.learn.optimizer import ADAM_DECAYS, ADAM_EPSILON, EPSILON

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


@_kernel
def adam_slice(w, g, moments, rows, units, rate, step):  # type: ignore[no-untyped-def]
    """One step of Adam on some rows and some units, in place.

    Definition: `pixelpong.learn.optimizer.adam`, applied to these rows alone.

    Args:
        w: [D, 2, H]; changed.
        g: [D, 2, H], the gradient.
        moments: m and v, [D, 2, H]; changed.
        rows: [K], the inputs that the gradient has touched.
        units: the first, and the one after the last.
        rate: length of a step.
        step: number of this step, from 1 on.

    Returns:
        The sum of the gradient's squares.
    """
    (m, v), (first, last) = moments, units
    one = w.dtype.type(1)
    decay_m, decay_v = w.dtype.type(ADAM_DECAYS[0]), w.dtype.type(ADAM_DECAYS[1])
    scale_m = w.dtype.type(rate / (1 - ADAM_DECAYS[0] ** step))
    scale_v = w.dtype.type(1 / (1 - ADAM_DECAYS[1] ** step))
    epsilon = w.dtype.type(ADAM_EPSILON)
    squares = np.zeros(last - first)
    for row in rows:
        for half in range(2):
            w_, g_ = w[row, half, first:last], g[row, half, first:last]
            m_, v_ = m[row, half, first:last], v[row, half, first:last]
            for unit in range(last - first):
                m_[unit] = decay_m * m_[unit] + (one - decay_m) * g_[unit]
                v_[unit] = decay_v * v_[unit] + (one - decay_v) * g_[unit] * g_[unit]
                w_[unit] -= scale_m * m_[unit] / (np.sqrt(scale_v * v_[unit]) + epsilon)
                squares[unit] += np.float64(g_[unit]) * np.float64(g_[unit])
    total = 0.0
    for square in squares:
        total += square
    return total
