"""Proximal policy optimisation in readable NumPy: the advantages, the loss and its gradient.

For a segment of T steps, v_t is the value of observation t; v_T belongs to the one after the last:

    δ_t = r_t + gamma · v_{t+1} − v_t            if the point continues
    δ_t = r_t − v_t                              if it ends
    A_t = δ_t + gamma · gae_lambda · A_{t+1}     if it continues, else δ_t
    R_t = A_t + v_t                              the target of the value

The loss of a step, where ρ = π(a) / π_played(a), Â is the standardised advantage and c = clip_coef:

    L = −min(ρ Â, clip(ρ, 1 − c, 1 + c) Â) + vf_coef · ½ (v − R)² − ent_coef · H(π)

In Pong, the bootstrap ends with the point, like the returns of the classic mode, because a point's
outcome does not depend on later points. In other games it ends with a life.

In other games, an action has up to three parts: a direction across, one up or down, and the button.
The logit of action a is the sum of its own output and the outputs of its parts, plus the preference
of the game that is played, a constant that the game keeps for many steps:

    z_a = y_a + Σ_{k in parts of a} y_k + preference_a

So what is learned of going left also holds for going left while firing, and a game with preferences
explores in one direction for longer than chance would. Both policies of ρ have the preference.

The learning rate η can be steered by how far an update moves the policy, KL(played ‖ new):

    η ← η / 1.3  if KL > 1.5 target_kl,    1.3 η  if KL < target_kl / 1.5,    else η

Source: Schulman et al. (2016), equation 16, and Schulman et al. (2017), equations 7 and 9, and its
section 4 for the steering, there of a penalty. Parts of actions: Tavakoli et al. (2021).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

RATE_STEP = 1.3  # the factor by which the learning rate is steered
RATE_BOUNDS = 1e-5, 5e-3
_TOLERANCE = 1.5  # how far the KL divergence may be from its target, as a factor


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


def steer(rate: float, kl: float, target_kl: float) -> float:
    """Return the learning rate after an update that moved the policy by `kl`.

    >>> steer(1e-3, 0.05, 0.01), steer(1e-3, 0.01, 0.01)
    (0.0007692307692307692, 0.001)
    """
    low, high = RATE_BOUNDS
    if kl > target_kl * _TOLERANCE:
        return max(rate / RATE_STEP, low)
    return min(rate * RATE_STEP, high) if kl < target_kl / _TOLERANCE else rate


def add_parts(y: NDArray[Any], parts: NDArray[np.int64], preferences: NDArray[Any]) -> NDArray[Any]:
    """Compute logits [M, A] from outputs y [M, O].

    `parts` [A, K] has the outputs that are added to each action's own; `preferences` is [M, A], or
    [M, 0] without preferences.
    """
    logits: NDArray[Any] = y[:, : len(parts)] + y[:, parts].sum(axis=2)
    return logits + preferences if preferences.shape[1] else logits


def log_softmax(logits: NDArray[Any]) -> NDArray[Any]:
    """Compute log π [M, A] from logits [M, A], without overflow."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_pi: NDArray[Any] = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return log_pi


class Minibatch(NamedTuple):
    """The M steps to learn from."""

    actions: NDArray[Any]  # [M], indices among the A actions
    log_probabilities: NDArray[Any]  # [M], of the actions, under the policy that played
    advantages: NDArray[Any]  # [M], standardised
    targets: NDArray[Any]  # [M], R in the formula
    preferences: NDArray[Any]  # [M, A], those of the game that was played; [M, 0] without any


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
    y: NDArray[Any], batch: Minibatch, weights: LossWeights, parts: NDArray[np.int64]
) -> tuple[NDArray[Any], LossStats]:
    """Compute the gradient [M, O] of the mean loss with respect to the outputs y.

    y has a column per action, then the value, then the outputs of `parts`, see `add_parts`.
    """
    size, num_actions = len(y), len(parts)
    assert batch.actions.shape == (size,), batch.actions.shape
    log_pi = log_softmax(add_parts(y, parts, batch.preferences))
    pi = np.exp(log_pi)
    taken = np.eye(num_actions, dtype=y.dtype)[batch.actions]
    log_ratio = (log_pi * taken).sum(axis=1) - batch.log_probabilities
    ratio = np.exp(log_ratio)
    gain = batch.advantages
    low, high = 1 - weights.clip_coef, 1 + weights.clip_coef
    is_clipped = np.where(gain >= 0, ratio > high, ratio < low)
    entropy = -(pi * log_pi).sum(axis=1)
    error = y[:, num_actions] - batch.targets
    dlog = np.where(is_clipped, 0, -ratio * gain)
    dlogits = dlog[:, None] * (taken - pi)
    dlogits += weights.ent_coef * pi * (log_pi + entropy[:, None])
    gradient = np.zeros(y.shape)
    gradient[:, :num_actions], gradient[:, num_actions] = dlogits, weights.vf_coef * error
    for action, others in enumerate(parts):
        gradient[:, others] += dlogits[:, [action]]
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
    return (gradient / size).astype(y.dtype), stats
