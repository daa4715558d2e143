"""Proximal policy optimisation in readable NumPy: the advantages, the loss and its gradient.

For a segment of T steps, v_t is the value of observation t; v_T belongs to the one after the last:

    δ_t = r_t + gamma · v_{t+1} − v_t            if the point continues
    δ_t = r_t − v_t                              if it ends
    A_t = δ_t + gamma · gae_lambda · A_{t+1}     if it continues, else δ_t
    R_t = A_t + v_t                              the target of the value

The loss of a step, where ρ = π(a) / π_played(a), Â is the standardised advantage and c = clip_coef:

    L = −min(ρ Â, clip(ρ, 1 − c, 1 + c) Â) + vf_coef · ½ (v − R)² − ent_coef · H(π)

The bootstrap ends with the point, like the returns of the classic mode, because a point's outcome
does not depend on later points.

Source: Schulman et al. (2016), equation 16, and Schulman et al. (2017), equations 7 and 9.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

NUM_ACTIONS = 3


def generalized_advantages(
    rewards: NDArray[Any],
    is_end: NDArray[np.bool_],
    values: NDArray[Any],
    gamma: float,
    gae_lambda: float,
) -> NDArray[np.float64]:
    """Compute advantages A [N, T] of N segments from rewards, ends [N, T] and values [N, T + 1].

    >>> rewards, values = np.array([[0, 1]]), np.zeros((1, 3))
    >>> generalized_advantages(rewards, rewards != 0, values, 1.0, 1.0)
    array([[1., 1.]])
    """
    assert values.shape == (len(rewards), rewards.shape[1] + 1), (values.shape, rewards.shape)
    values = values.astype(np.float64)
    discounts = np.where(is_end, 0.0, gamma)
    deltas = rewards + discounts * values[:, 1:] - values[:, :-1]
    advantages = np.zeros(rewards.shape)
    following = np.zeros(len(rewards))
    for t in reversed(range(rewards.shape[1])):
        following = deltas[:, t] + discounts[:, t] * gae_lambda * following
        advantages[:, t] = following
    return advantages


def log_softmax(logits: NDArray[Any]) -> NDArray[Any]:
    """Compute log π [M, 3] from logits [M, 3], without overflow."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_pi: NDArray[Any] = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return log_pi


class Minibatch(NamedTuple):
    """The M steps to learn from."""

    actions: NDArray[Any]  # [M], indices in `ACTIONS`
    log_probabilities: NDArray[Any]  # [M], of the actions, under the policy that played
    advantages: NDArray[Any]  # [M], standardised
    targets: NDArray[Any]  # [M], R in the formula


class LossWeights(NamedTuple):
    """The constants of the loss."""

    clip_coef: float  # how far ρ may be from 1
    vf_coef: float
    ent_coef: float


class LossStats(NamedTuple):
    """The loss and its parts, as means over a minibatch."""

    loss: float  # the sum of all terms
    value_loss: float  # mean of (v − R)²
    entropy: float  # entropy of the policy, in nats; ln 3 = 1.099 at most
    kl: float  # estimate of KL(played ‖ new), mean of (ρ − 1) − log ρ (Schulman 2020)
    clip_share: float  # share of the steps with a clipped ratio, whose policy gradient is 0


def loss_gradient(
    y: NDArray[Any], batch: Minibatch, weights: LossWeights
) -> tuple[NDArray[Any], LossStats]:
    """Compute the gradient [M, 4] of the mean loss with respect to y: three logits and a value."""
    size = len(y)
    assert y.shape == (size, NUM_ACTIONS + 1), y.shape
    assert batch.actions.shape == (size,), batch.actions.shape
    log_pi = log_softmax(y[:, :NUM_ACTIONS])
    pi = np.exp(log_pi)
    taken = np.eye(NUM_ACTIONS, dtype=y.dtype)[batch.actions]
    log_ratio = (log_pi * taken).sum(axis=1) - batch.log_probabilities
    ratio = np.exp(log_ratio)
    gain = batch.advantages
    low, high = 1 - weights.clip_coef, 1 + weights.clip_coef
    is_clipped = np.where(gain >= 0, ratio > high, ratio < low)
    entropy = -(pi * log_pi).sum(axis=1)
    error = y[:, NUM_ACTIONS] - batch.targets
    dlog = np.where(is_clipped, 0, -ratio * gain)
    dlogits = dlog[:, None] * (taken - pi)
    dlogits += weights.ent_coef * pi * (log_pi + entropy[:, None])
    dvalue = weights.vf_coef * error
    surrogate = np.minimum(ratio * gain, np.clip(ratio, low, high) * gain)
    stats = LossStats(
        loss=float(
            np.mean(-surrogate + weights.vf_coef * error**2 / 2 - weights.ent_coef * entropy)
        ),
        value_loss=float(np.mean(error**2)),
        entropy=float(np.mean(entropy)),
        kl=float(np.mean(ratio - 1 - log_ratio)),
        clip_share=float(np.mean(is_clipped)),
    )
    return (np.column_stack([dlogits, dvalue]) / size).astype(y.dtype), stats
