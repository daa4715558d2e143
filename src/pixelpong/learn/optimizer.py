"""RMSProp as the seeds write it: ascent, with the constant outside the root.

    c ← decay · c + (1 − decay) · g²
    w ← w + rate · g / (√c + 1e-5)

Source: Tieleman and Hinton (2012), lecture 6e; Karpathy (2016) for the constant and its place.
The rate of 1e-4 was tuned on sums over batches of 10 episodes. RMSProp divides the gradient's
scale out, so a smaller batch takes steps of the same length in a noisier direction: with batches
of 4, as in Ray's example, the same rate is relatively high.
"""

from __future__ import annotations

import numpy as np

from pixelpong.trajectory import Params

EPSILON = 1e-5


def rmsprop(
    params: Params, grads: Params, cache: Params, learning_rate: float, decay_rate: float
) -> tuple[Params, Params]:
    """One step of ascent.

    Args:
        params: name → array; not changed.
        grads: same keys and shapes.
        cache: same keys and shapes, the running mean squares; not changed.
        learning_rate: length of a step.
        decay_rate: share of the old mean square that is kept.

    Returns:
        The new params and the new cache.
    """
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
