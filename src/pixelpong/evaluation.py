"""Evaluation: the mean return of a policy, with an interval.

Every episode has its own generator, and the number of episodes is fixed in advance. (Playing games
in parallel until N episodes have ended favours short ones, which in Pong are the lost ones.)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pixelpong.engines import Engine
from pixelpong.items import Item, Params
from pixelpong.run.lines import Evaluation
from pixelpong.seeding import make_rng

# The short evaluations that decide, one after the other, whether to play the final test: greedy
# episodes, and how far their mean must exceed the target, since the test needs its whole interval
# above it.
LOOKS = ((10, -0.5), (40, 0.3))
# Greedy episodes of the final test, used for nothing else: no short evaluation, no earlier test.
VERDICT_EPISODES = 200

_RESAMPLES = 10_000


def evaluate(
    engine: Engine,
    params: Params,
    *,
    seed: int,
    episodes: int,
    is_greedy: bool,
    update: int = 0,
    first: int = 0,
    tell: Callable[[int], object] = lambda number: None,
) -> Evaluation:
    """Play episodes numbered from `first` with `params`, and summarise their returns.

    Greedy and sampled play of one seed have the same sticky frames; another `update` or `first`
    gives others. `tell` is called after each episode with the number of finished ones.
    """
    numbers = range(first, first + episodes)
    items = [Item("evaluate", seed, update, number, is_greedy) for number in numbers]
    played = []
    for result in engine.run(items, params):
        played += result.episodes
        tell(len(played))
    return summarize(
        [each.episode_return for each in played], [each.steps for each in played], seed
    )


def summarize(returns: Sequence[float], steps: Sequence[int], seed: int) -> Evaluation:
    """Summarise the returns of episodes; `seed` is that of the interval's bootstrap."""
    values = np.array(returns)
    return Evaluation(
        mean_return=float(values.mean()),
        std=float(values.std(ddof=1)) if len(values) > 1 else 0.0,
        ci95=bootstrap_interval(values, make_rng(seed, "bootstrap")),
        returns=tuple(values.tolist()),
        mean_steps=float(np.mean(steps)),
    )


def judge(play: Callable[..., Evaluation], target: float, *, at_once: bool) -> Evaluation:
    """Test whether greedy play reaches a target return.

    It does if the 95 % interval of the mean return of `VERDICT_EPISODES` greedy episodes lies above
    the target. With a weaker rule, a run that tries until it passes would win by luck. `play` takes
    arguments as `evaluate` does; `at_once` skips the short evaluations.
    """
    first = 0
    for episodes, lead in () if at_once else LOOKS:
        look = play(episodes, first=first)
        first += episodes
        if look.mean_return < target + lead:
            return dataclasses.replace(look, target=target)
    found = play(VERDICT_EPISODES, first=first)
    return dataclasses.replace(found, target=target, is_won=found.ci95[0] >= target)


def bootstrap_interval(
    values: Any, rng: np.random.Generator, statistic: Callable[..., Any] = np.mean
) -> tuple[float, float]:
    """95 % percentile interval of a `statistic`, such as `np.mean`, of `values` [n].

    Its ends agree if all values are equal. Source: Efron (1979).

    >>> bootstrap_interval(np.array([3.0, 3.0]), np.random.default_rng(0))
    (3.0, 3.0)
    """
    values = np.asarray(values, np.float64)
    found: list[float] = []
    while len(found) < _RESAMPLES:  # in blocks: all at once would take gigabytes for many values
        rows = min(max(1_000_000 // len(values), 1), _RESAMPLES - len(found))
        chosen = rng.integers(len(values), size=(rows, len(values)))
        found += statistic(values[chosen], axis=-1).tolist()
    low, high = np.percentile(found, [2.5, 97.5])
    return float(low), float(high)
