"""Ratings from points: the model of Bradley and Terry, with intervals.

The chance that player i wins a point against j is 1 / (1 + exp(θ_j − θ_i)). Points are counted, not
games: a game has twenty times as many, each begins anew with a serve, and a win by 21:19 is weaker
evidence than one by 21:0. An interval is the wider of two: a bootstrap over games, pair by pair,
which keeps the dependence within a game; and that of the likelihood over points, which knows that a
few games that ended alike prove little.

Source: Bradley and Terry (1952); the likelihood is concave (Hunter 2004, "MM algorithms for
generalized Bradley-Terry models"), so that Newton's method finds its maximum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pixelpong.seeding import make_rng

Array = NDArray[np.float64]

# For each pair of players, the points of both in each of their games.
Games = Mapping[tuple[int, int], Sequence[tuple[int, int]]]

ELO = 400 / np.log(10)  # for one unit of θ: 400 points more are ten times the odds
PRIOR = 1.0  # points that each has won, and lost, against θ = 0: a whitewash stays finite

_RESAMPLES = 1000
_LONGEST_STEP = 1.0
_Z = 1.959964  # standard deviations to either end of a 95 % interval


def fit(wins: Array, prior: float = PRIOR) -> Array:
    """The most probable θ: [..., n], with mean 0, from the points won by row against column.

    With no prior, everybody must be connected by wins and losses.

    >>> np.round(fit(np.array([[0.0, 3.0], [1.0, 0.0]]), prior=0) * 2, 6).tolist()
    [1.098612, -1.098612]
    """
    theta = np.zeros(wins.shape[:-1])
    for _ in range(200):
        slope, curvature = _differentiate(theta, wins, prior)
        step = np.linalg.solve(curvature, slope[..., None])[..., 0]
        theta = theta + np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
        if np.abs(step).max() < 1e-9:
            break
    return np.asarray(theta - theta.mean(axis=-1, keepdims=True))


def _differentiate(theta: Array, wins: Array, prior: float) -> tuple[Array, Array]:
    """The log likelihood's slope, [..., n], and minus its curvature, [..., n, n]."""
    played = wins + np.swapaxes(wins, -1, -2)
    p = 1 / (1 + np.exp(theta[..., None, :] - theta[..., :, None]))
    q = 1 / (1 + np.exp(-theta))
    slope = (wins - played * p).sum(axis=-1) + prior * (1 - 2 * q)
    weights = played * p * (1 - p)
    own = weights.sum(axis=-1) + 2 * prior * q * (1 - q)
    size = wins.shape[-1]
    # Without a prior a number added to all θ changes nothing; the ones then settle it.
    return slope, own[..., None] * np.eye(size) - weights + (prior == 0) / size


def rate(games: Games, size: int) -> tuple[Array, Array]:
    """Elo ratings of `size` players with mean 0, [n], and their 95 % intervals, [n, 2]."""
    rng = make_rng(0, "bootstrap")
    wins, drawn = np.zeros((size, size)), np.zeros((_RESAMPLES, size, size))
    for (i, j), points in games.items():
        table = np.array(points, np.float64)
        wins[i, j], wins[j, i] = table.sum(axis=0)
        chosen = rng.integers(len(table), size=(_RESAMPLES, len(table)))
        drawn[:, i, j], drawn[:, j, i] = table[chosen].sum(axis=1).T
    theta = fit(wins)
    by_games = np.percentile(fit(drawn), [2.5, 97.5], axis=0)
    centre = np.eye(size) - 1 / size
    covariance = centre @ np.linalg.inv(_differentiate(theta, wins, PRIOR)[1]) @ centre
    by_points = theta + np.outer([-_Z, _Z], np.sqrt(np.diag(covariance)))
    ends = np.minimum(by_games[0], by_points[0]), np.maximum(by_games[1], by_points[1])
    return ELO * theta, ELO * np.stack(ends, axis=1)
