"""Steps of the optimizers, and the norm of what they step along."""

from __future__ import annotations

import numpy as np

from pixelpong.kernels.compiling import compiled
from pixelpong.learn.optimizer import ADAM_DECAYS, ADAM_EPSILON, EPSILON

# The NumPy error model: a division that cannot fail needs no check, and so can be vectorised.
_kernel = compiled(error_model="numpy")


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
def adam_slice(w, g, moments, rows, columns, rate, step):  # type: ignore[no-untyped-def]
    """One step of Adam on some rows and some columns, in place.

    Definition: `pixelpong.learn.optimizer.adam`, applied to these alone.

    Args:
        w: [D, 2H]; changed.
        g: [D, columns], the gradient.
        moments: m and v, [D, 2H]; changed.
        rows: [K], the inputs that the gradient has touched.
        columns: the first, and the one after the last.
        rate: length of a step.
        step: number of this step, from 1 on.

    Returns:
        The sum of the gradient's squares.
    """
    (m, v), (first, last) = moments, columns
    kind = w.dtype.type
    decay_m, decay_v = kind(ADAM_DECAYS[0]), kind(ADAM_DECAYS[1])
    keep_m, keep_v = kind(1 - ADAM_DECAYS[0]), kind(1 - ADAM_DECAYS[1])
    scale_m = kind(rate / (1 - ADAM_DECAYS[0] ** step))
    scale_v = kind(1 / (1 - ADAM_DECAYS[1] ** step))
    epsilon = kind(ADAM_EPSILON)
    squares = np.zeros(last - first, w.dtype)
    for row in rows:
        w_, g_, m_, v_ = (
            w[row, first:last],
            g[row],
            m[row, first:last],
            v[row, first:last],
        )
        for i in range(last - first):
            m_[i] = decay_m * m_[i] + keep_m * g_[i]
            v_[i] = decay_v * v_[i] + keep_v * g_[i] * g_[i]
            w_[i] -= scale_m * m_[i] / (np.sqrt(scale_v * v_[i]) + epsilon)
            squares[i] += g_[i] * g_[i]
    total = 0.0
    for square in squares:
        total += square
    return total
