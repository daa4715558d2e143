"""Steps of the optimizers, and the norm of the gradient."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.steps.compiling import kernel
from pixelpong.items import Indices
from pixelpong.learn.optimizer import ADAM_DECAYS, ADAM_EPSILON, EPSILON


@kernel
def rmsprop(w, g, c, rows, learning_rate, decay_rate):  # type: ignore[no-untyped-def]
    """Do one step of RMSProp on some `rows` [K] of w, g and c [D, C]; w and c are changed.

    Definition: `pixelpong.learn.optimizer.rmsprop`. A row whose gradient and mean square are all 0
    would not change, so it may be missing from `rows`.
    """
    number = w.dtype.type
    rate, decay = number(learning_rate), number(decay_rate)
    keep_out, epsilon = number(1 - decay_rate), number(EPSILON)
    for k in range(len(rows)):
        w_, g_, c_ = w[rows[k]], g[rows[k]], c[rows[k]]
        for i in range(len(w_)):
            c_[i] = decay * c_[i] + keep_out * g_[i] * g_[i]
            w_[i] += rate * g_[i] / (np.sqrt(c_[i]) + epsilon)


def sum_of_squares(g: NDArray[Any], rows: Indices) -> float:
    """Compute Σ g² over some rows of g [D, C]; it is not finite if any entry is not."""
    squares = np.zeros(g.shape[1])
    _add_squares(g, rows, squares)
    return float(squares.sum())


@kernel
def _add_squares(g, rows, squares):  # type: ignore[no-untyped-def]
    for k in range(len(rows)):
        g_ = g[rows[k]]
        for i in range(len(g_)):
            value = np.float64(g_[i])
            squares[i] += value * value


class AdamArrays(NamedTuple):
    """A parameter [D, C] and its Adam moments."""

    w: NDArray[Any]
    m: NDArray[Any]  # [D, C], running mean of the gradient
    v: NDArray[Any]  # [D, C], running mean of the squared gradient


@kernel
def adam_rows(arrays, g, rows, scales, squares):  # type: ignore[no-untyped-def]
    """Do one step of Adam on some rows, in place.

    Definition: `pixelpong.learn.optimizer.adam`, applied to these rows only.

    Args:
        arrays: `AdamArrays` [D, C]; changed.
        g: [K, C], the gradient of these rows.
        rows: [K], the indices of the rows.
        scales: `pixelpong.learn.optimizer.AdamScales` of this step.
        squares: [C]; changed: the squares of the gradient, summed over the rows.
    """
    number = arrays.w.dtype.type
    decay_m, decay_v = number(ADAM_DECAYS[0]), number(ADAM_DECAYS[1])
    keep_m, keep_v = number(1 - ADAM_DECAYS[0]), number(1 - ADAM_DECAYS[1])
    scale_m, scale_v, epsilon = number(scales.m), number(scales.v), number(ADAM_EPSILON)
    squares[:] = 0
    for k in range(len(rows)):
        w_, g_ = arrays.w[rows[k]], g[k]
        m_, v_ = arrays.m[rows[k]], arrays.v[rows[k]]
        for i in range(len(squares)):
            m_[i] = decay_m * m_[i] + keep_m * g_[i]
            v_[i] = decay_v * v_[i] + keep_v * g_[i] * g_[i]
            w_[i] -= scale_m * m_[i] / (np.sqrt(scale_v * v_[i]) + epsilon)
        for i in range(len(squares)):  # a separate loop, because a combined one is not vectorised
            squares[i] += g_[i] * g_[i]
