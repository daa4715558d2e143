"""Evaluation: the mean return of a policy, with an interval.

Every episode has its own generator, and no episode is left out. (Playing games in parallel until N
episodes have ended favours short ones, which in Pong are the lost ones.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pixelpong.engines import Engine
from pixelpong.items import Episode, Item, Params
from pixelpong.run.lines import Evaluation
from pixelpong.seeding import make_rng

# The sequential test of a target return: after so many greedy games, it goes on only if their mean
# exceeds the target by so much. From `FEWEST` games on it is passed as soon as the mean exceeds the
# target by `ERRORS` standard errors. ``benchmarks/verdict.py`` simulates it: an agent exactly at
# the target passes one test in 190, and some test of a whole training in one of 90.
STAGES = (
    (10, -0.3), (20, 0.0), (40, 0.2), (60, 0.25), (80, 0.3), (120, 0.3), (160, 0.35), (200, 0.4),
)  # fmt: skip
FEWEST, ERRORS = 40, 3.6
# Greedy games after a test that was passed. They are the result: the mean that passed is biased.
NEW_GAMES = 200

_RESAMPLES = 10_000


def play_games(
    engine: Engine,
    params: Params,
    *,
    seed: int,
    episodes: int,
    is_greedy: bool,
    update: int = 0,
    first: int = 0,
    tell: Callable[[int], object] = lambda number: None,
) -> list[Episode]:
    """Play episodes numbered from `first` with `params`.

    Greedy and sampled play of one seed have the same sticky frames; another `update` or `first`
    gives others. `tell` is called after each episode with the number of finished ones.
    """
    numbers = range(first, first + episodes)
    items = [Item("evaluate", seed, update, number, is_greedy) for number in numbers]
    played: list[Episode] = []
    for result in engine.run(items, params):
        played += result.episodes
        tell(len(played))
    return played


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


def describe_games(played: Sequence[Episode], seed: int) -> Evaluation:
    """Summarise episodes."""
    return summarize([it.episode_return for it in played], [it.steps for it in played], seed)


def judge(
    play: Callable[..., list[Episode]], target: float, *, at_once: bool
) -> tuple[list[Episode], bool]:
    """Test whether greedy play reaches a target return, see `STAGES`; also return the games.

    With a weaker rule, a run that tries until it passes would win by luck. `play` takes the
    arguments episodes and first of `play_games`; `at_once` does not give up before the last stage.
    """
    played: list[Episode] = []
    for games, lead in STAGES:
        played += play(episodes=games - len(played), first=len(played))
        returns = np.array([it.episode_return for it in played])
        mean, error = returns.mean(), returns.std(ddof=1) / math.sqrt(games)
        if games >= FEWEST and mean - ERRORS * error >= target:
            return played, True
        if mean < target + lead and not at_once:
            break
    return played, False


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
