"""REINFORCE: the gradient of one episode in readable NumPy.

The objective of an episode is Σ_t A_t log π(a_t | x_t), where A are the standardised returns. Its
gradient with respect to the logit is (y_t − p_t) A_t, where y is 1 for UP and 0 for DOWN: the
originals' "label minus probability" times the advantage. Ascent makes good actions more probable.

Source: Williams (1992), equation 4; Karpathy (2016).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.items import UP, Params
from pixelpong.learn.network import backward, forward, logits
from pixelpong.learn.returns import discounted_returns, standardize


def advantages(rewards: NDArray[Any], gamma: float) -> NDArray[np.float64]:
    """Compute the standardised discounted returns [T] of an episode's rewards [T]."""
    return standardize(discounted_returns(rewards, gamma))


def objective(
    params: Params, x: NDArray[Any], actions: NDArray[Any], advantages: NDArray[Any]
) -> float:
    """Compute Σ_t A_t log π(a_t | x_t) from x [T, D], actions [T] and advantages [T]."""
    z, _ = logits(params, x)
    # log p = −log(1 + e⁻ᶻ) and log(1 − p) = −log(1 + eᶻ); both stay exact if p is near 1.
    log_taken = -np.logaddexp(0, np.where(actions == UP, -z, z))
    return float(np.sum(advantages * log_taken))


def episode_gradient(
    params: Params, x: NDArray[Any], actions: NDArray[Any], advantages: NDArray[Any]
) -> Params:
    """Compute the gradient of `objective`, which takes the same arguments."""
    p, h = forward(params, x)
    labels = (actions == UP).astype(p.dtype)
    dz = (labels - p) * advantages.astype(p.dtype)
    return backward(params, x, h, dz)


def entropy(p: NDArray[Any]) -> NDArray[Any]:
    """Compute the entropy of a choice with probabilities p and 1 − p, in nats; 0 log 0 is 0.

    >>> entropy(np.array([0.0, 0.5])).round(4)
    array([0.    , 0.6931])
    """
    q = np.stack([p, 1 - p])
    terms = np.where(q > 0, -q * np.log(np.where(q > 0, q, 1)), 0)
    total: NDArray[Any] = np.sum(terms, axis=0)
    return total
