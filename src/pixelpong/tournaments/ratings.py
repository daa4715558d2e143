"""Ratings from points: the model of Bradley and Terry, with intervals.

The probability that player i wins a point against j is 1 / (1 + exp(θ_j − θ_i)). Points are counted
instead of games: there are over twenty times as many, each starts anew with a serve, and a 21:19
win is weaker evidence than 21:0. Intervals come from the likelihood of the points. They are widened
by the square root of the dispersion: how much more games vary than independent points would.

Sources: Bradley and Terry (1952); the likelihood is concave (Hunter 2004, "MM algorithms for
generalized Bradley-Terry models"), so Newton's method finds its maximum; the dispersion is defined
as in McCullagh and Nelder (1989, section 4.5), as Pearson's χ² per degree of freedom.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# For each pair of players, the points of both in each of their games.
PointsOfPairs = Mapping[tuple[int, int], Sequence[tuple[int, int]]]

ELO = 400 / np.log(10)  # Elo points per unit of θ: a lead of 400 means ten times the odds
PRIOR = 1.0  # points added as won and lost against θ = 0, to keep ratings finite

_LONGEST_STEP = 1.0
_Z = 1.959964  # standard deviations from the mean to either end of a 95 % interval


def fit(wins: Array, prior: float = PRIOR) -> tuple[Array, Array]:
    """Find the most probable θ, [n], with mean 0, and its covariance, [n, n].

    `wins` has the points that the row won against the column. Without a prior, all players must be
    connected by wins and losses.

    >>> np.round(fit(np.array([[0.0, 3.0], [1.0, 0.0]]), prior=0)[0] * 2, 6).tolist()
    [1.098612, -1.098612]
    """
    size, played = len(wins), wins + wins.T
    centre, theta = np.eye(size) - 1 / size, np.zeros(size)
    for _ in range(200):
        p, q = expect(theta[:, None] - theta), expect(theta)
        slope = (wins - played * p).sum(axis=1) + prior * (1 - 2 * q)
        weights = played * p * (1 - p)
        diagonal = weights.sum(axis=1) + 2 * prior * q * (1 - q)
        # Without a prior, only differences of θ are determined; adding a constant fixes the mean.
        covariance = np.linalg.inv(np.diag(diagonal) - weights + (prior == 0) / size)
        step = covariance @ slope
        theta = theta + np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
        if np.abs(step).max() < 1e-9:
            break
    return centre @ theta, centre @ covariance @ centre


def expect(lead: Any) -> Any:
    """Return the probability of winning a point with this lead in θ."""
    return 1 / (1 + np.exp(-lead))


def rate(games: PointsOfPairs, size: int) -> tuple[Array, Array]:
    """Compute Elo ratings of `size` players with mean 0, [n], and 95 % intervals, [n, 2]."""
    wins = np.zeros((size, size))
    for (i, j), points in games.items():
        wins[i, j], wins[j, i] = np.sum(points, axis=0)
    theta, covariance = fit(wins)
    spread, freedom = 0.0, 1 - size
    for (i, j), points in games.items():
        won, lost = np.transpose(points)
        played, p = won + lost, expect(theta[i] - theta[j])
        spread += ((won - played * p) ** 2 / (np.maximum(played, 1) * p * (1 - p))).sum()
        freedom += len(points)
    dispersion = max(1.0, spread / max(1, freedom))
    margin = _Z * np.sqrt(dispersion * np.diag(covariance))
    return ELO * theta, ELO * np.stack([theta - margin, theta + margin], axis=1)
