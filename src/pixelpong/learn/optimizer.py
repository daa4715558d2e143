"""The optimizers: RMSProp as in the originals, and Adam.

RMSProp, for ascent, with the constant outside the root:

    c ← decay · c + (1 − decay) · g²
    w ← w + rate · g / (√c + 1e-5)

Source: Tieleman and Hinton (2012), lecture 6e; Karpathy (2016) for the constant and its position.
The rate of 1e-4 was tuned on sums over batches of 10 episodes. RMSProp divides out the gradient's
scale, so a smaller batch takes steps of the same length in a noisier direction. With batches of 4,
as in Ray's example, the same rate is relatively high.

Adam, for descent, with running means of the gradient and its square, corrected for starting at 0:

    m ← β₁ m + (1 − β₁) g
    v ← β₂ v + (1 − β₂) g²
    w ← w − rate · m / (1 − β₁ⁿ) / (√(v / (1 − β₂ⁿ)) + 1e-5)

Source: Kingma and Ba (2015), algorithm 1; the constant is that of PPO's authors.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pixelpong.items import Params

EPSILON = 1e-5  # for RMSProp
ADAM_DECAYS = (0.9, 0.999)  # β₁ and β₂
ADAM_EPSILON = 1e-5


def rmsprop(
    params: Params, grads: Params, cache: Params, learning_rate: float, decay_rate: float
) -> tuple[Params, Params]:
    """Do one step of ascent; return copies: new params and a new cache of mean squares."""
    new_params, new_cache = {}, {}
    for name, w in params.items():
        rate, decay, keep_out = (
            w.dtype.type(value) for value in (learning_rate, decay_rate, 1 - decay_rate)
        )
        g = grads[name]
        c = decay * cache[name] + keep_out * g * g
        new_cache[name] = c
        new_params[name] = w + rate * g / (np.sqrt(c) + w.dtype.type(EPSILON))
    return new_params, new_cache


def adam(
    w: NDArray[Any],
    g: NDArray[Any],
    m: NDArray[Any],
    v: NDArray[Any],
    learning_rate: float,
    step: int,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Do one step of descent, numbered from 1; return copies: new w, m and v."""
    decay_m, decay_v = ADAM_DECAYS
    number = w.dtype.type
    m = number(decay_m) * m + number(1 - decay_m) * g
    v = number(decay_v) * v + number(1 - decay_v) * g * g
    scales = adam_scales(learning_rate, step)
    scaled_m, scaled_v = number(scales.m) * m, number(scales.v) * v
    return w - scaled_m / (np.sqrt(scaled_v) + number(ADAM_EPSILON)), m, v


class AdamScales(NamedTuple):
    """The factors of the running means in a step of Adam."""

    m: float  # learning rate / (1 − β₁ⁿ), in step n
    v: float  # 1 / (1 − β₂ⁿ)


def adam_scales(learning_rate: float, step: int) -> AdamScales:
    """Compute the factors for a step, numbered from 1."""
    left_m, left_v = (_power(decay, step) for decay in ADAM_DECAYS)
    return AdamScales(learning_rate / (1 - left_m), 1 / (1 - left_v))


def _power(base: float, exponent: int) -> float:
    """Multiply only: the C library's power may differ from system to system in the last bit."""
    even = _power(base * base, exponent // 2) if exponent else 1.0
    return even * base if exponent % 2 else even
