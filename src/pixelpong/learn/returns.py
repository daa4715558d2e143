"""Discounted returns, which restart at every point, and their standardisation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def discounted_returns(rewards: NDArray[Any], gamma: float) -> NDArray[np.float64]:
    """Compute the discounted sum of the point's future rewards at each step.

        G_t = r_t                          if r_t ≠ 0 (a point ends here)
        G_t = r_t + gamma · G_{t+1}     otherwise, with G_T = 0

    Source: Karpathy (2016); the restart is specific to Pong, because a point's outcome does not
    depend on later points.

    >>> discounted_returns(np.array([0, 0, -1, 0, 1]), 0.5)
    array([-0.25, -0.5 , -1.  ,  0.5 ,  1.  ])
    """
    assert rewards.ndim == 1, rewards.shape
    returns = np.zeros(len(rewards))
    following = 0.0
    rewards = rewards.astype(np.float64)  # otherwise the products would have the rewards' type
    for t in range(len(rewards) - 1, -1, -1):
        following = rewards[t] if rewards[t] != 0 else gamma * following
        returns[t] = following
    return returns


def standardize(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shift `values` to mean 0 and scale them to standard deviation 1.

    If all values are equal, the deviation is 0, and the originals divide by it. Here the result is
    all zeros, because such an episode does not show which action was better. Rounding can leave a
    deviation of about 1e-17 instead of 0, so the values are compared too.

    >>> standardize(np.array([1.0, 3.0])), standardize(np.array([-0.1, -0.1, -0.1]))
    (array([-1.,  1.]), array([0., 0., 0.]))
    """
    if len(values) == 0 or values.min() == values.max():
        return np.zeros(len(values))
    centred = values - values.mean()
    deviation = centred.std()
    return centred / deviation if deviation > 0 else np.zeros(len(values))
