"""Statistics over trainings, as rliable defines them: what a few seeds can tell, and how surely.

Source: Agarwal et al. (2021), "Deep reinforcement learning at the edge of the statistical
precipice", sections 4.1 to 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.evaluation import bootstrap_interval
from pixelpong.seeding import make_rng

Array = NDArray[np.float64]

_RESAMPLES = 10_000


def interquartile_mean(scores: Any, axis: int = -1) -> Any:
    """Mean of the middle half along an axis: a quarter, rounded down, is cut off at each end, as by
    ``scipy.stats.trim_mean(scores, 0.25)``.

    >>> float(interquartile_mean([-21.0, 17.0, 18.0, 19.0, 20.0, 21.0]))
    18.5
    """
    ordered = np.sort(np.moveaxis(np.asarray(scores, np.float64), axis, -1))
    cut = ordered.shape[-1] // 4
    return ordered[..., cut : ordered.shape[-1] - cut].mean(axis=-1)


def interval(scores: Sequence[float], statistic: Callable[..., Any]) -> tuple[float, float]:
    """95 % bootstrap interval of a statistic of scores, such as ``np.median``."""
    return bootstrap_interval(scores, make_rng(0, "bootstrap"), statistic)


def performance_profile(scores: Sequence[float], thresholds: Any) -> Array:
    """Share of the scores above each threshold [T].

    >>> performance_profile([-20.0, 10.0, 18.0, 19.0], [-21.0, 10.0, 18.5]).tolist()
    [1.0, 0.5, 0.25]
    """
    return np.mean(np.asarray(scores)[:, None] > np.asarray(thresholds)[None, :], axis=0)


def profile_band(scores: Sequence[float], thresholds: Any) -> tuple[Array, Array]:
    """95 % percentile band of a `performance_profile`, separate for each threshold: [T] and [T]."""
    shares = performance_profile(scores, thresholds)
    # To draw scores with replacement and count those above is to draw from a binomial distribution.
    counts = make_rng(0, "bootstrap").binomial(len(scores), shares, (_RESAMPLES, len(shares)))
    low, high = np.percentile(counts / len(scores), [2.5, 97.5], axis=0)
    return low, high
