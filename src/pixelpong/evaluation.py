"""Evaluation: how well the parameters play, with an interval.

Every episode has its own generator, and the number of episodes is fixed beforehand. (Playing
streams until N episodes have ended favours short ones, which in Pong are the lost ones.)

Covered: greedy and sampled play, mean, deviation, bootstrap interval.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pixelpong.engines import Engine
from pixelpong.items import EpisodeItem, Params
from pixelpong.seeding import make_rng

LOOKS = ((10, -0.5), (40, 0.3))
"""The cheap looks that decide whether the verdict is worth playing, one after the other: greedy
episodes, and by how much their mean must exceed the target, for the verdict wants its interval
above it."""

VERDICT_EPISODES = 200
"""Greedy episodes of the verdict. They are used for nothing else: not for a look, and not for a
verdict before."""

SAMPLED_EPISODES = 40
"""Episodes of sampled play that follow a win, to be told beside it."""

_RESAMPLES = 10_000


@dataclass(frozen=True)
class Evaluation:
    """Returns of a fixed number of episodes.

    Attributes:
        mean_return: −21 … 21.
        std: standard deviation of the returns (of the sample, divisor n − 1).
        ci95: 95 % bootstrap interval of the mean.
        returns: each episode's, in order.
        mean_steps: decisions an episode.
    """

    mean_return: float
    std: float
    ci95: tuple[float, float]
    returns: tuple[float, ...]
    mean_steps: float

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self)


@dataclass(frozen=True)
class Verdict:
    """Whether a training has reached the return it was to reach.

    Attributes:
        is_won: whether the interval of the mean return of greedy play lies above the target.
        target: mean return of greedy play to reach.
        update: of the checkpoint.
        steps: decisions of the agent until then.
        seconds: wall time of the run until the deciding games were played: evaluations are
            included, breaks are not.
        greedy: evaluation of greedy play: the one that decides, or the cheap look before it if
            that one fell short.
        sampled: the same for sampled play; None if it is not won.
    """

    is_won: bool
    target: float
    update: int
    steps: int
    seconds: float
    greedy: Evaluation
    sampled: Evaluation | None

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self)


def tell_nobody(number: int) -> None:
    """Do nothing with the number of episodes that are done."""


def evaluate(
    engine: Engine,
    params: Params,
    *,
    seed: int,
    episodes: int,
    is_greedy: bool,
    update: int = 0,
    first: int = 0,
    tell: Callable[[int], None] = tell_nobody,
) -> Evaluation:
    """Play `episodes` episodes with `params` and summarise their returns.

    Args:
        engine: that plays them.
        params: what plays.
        seed: of the episodes; greedy and sampled play of one seed meet the same coins.
        episodes: how many, at least 1.
        is_greedy: take the most probable action instead of drawing one.
        update: distinguishes evaluations of one seed that are to meet other coins.
        first: number of the first episode, for the same purpose.
        tell: called after each episode with the number that are done.

    Raises:
        WorkerError, Interrupted: as `Engine.run`.
    """
    numbers = range(first, first + episodes)
    items = [EpisodeItem("evaluate", seed, update, number, is_greedy) for number in numbers]
    results = []
    for result in engine.run(items, params):
        results.append(result)
        tell(len(results))
    returns = np.array([result.stats.episode_return for result in results])
    return Evaluation(
        mean_return=float(returns.mean()),
        std=float(returns.std(ddof=1)) if len(returns) > 1 else 0.0,
        ci95=bootstrap_interval(returns, make_rng(seed, "bootstrap")),
        returns=tuple(returns.tolist()),
        mean_steps=float(np.mean([result.stats.steps for result in results])),
    )


def judge(
    play: Callable[..., Evaluation], target: float, *, at_once: bool
) -> tuple[bool, Evaluation]:
    """Whether a target return is reached, and the evaluation of greedy play that says so.

    It is reached if the 95 % interval of the mean return of `VERDICT_EPISODES` greedy episodes lies
    above it. With less, a run that tries until it passes would win by luck.

    Args:
        play: evaluates this many episodes, with ``is_greedy`` and ``first`` as `evaluate` has them.
        target: mean return.
        at_once: leave out the cheap looks, which decide whether the verdict is worth playing.
    """
    first = 0
    for episodes, lead in () if at_once else LOOKS:
        look = play(episodes, is_greedy=True, first=first)
        first += episodes
        if look.mean_return < target + lead:
            return False, look
    greedy = play(VERDICT_EPISODES, is_greedy=True, first=first)
    return greedy.ci95[0] >= target, greedy


def bootstrap_interval(values: Any, rng: np.random.Generator) -> tuple[float, float]:
    """95 % percentile interval of the mean of `values` [n]; its ends agree if all values are equal.

    Source: Efron (1979).

    >>> bootstrap_interval(np.array([3.0, 3.0]), np.random.default_rng(0))
    (3.0, 3.0)
    """
    values = np.asarray(values)
    means: list[float] = []
    while len(means) < _RESAMPLES:  # in blocks: all at once would take gigabytes for many values
        rows = min(max(1_000_000 // len(values), 1), _RESAMPLES - len(means))
        chosen = rng.integers(len(values), size=(rows, len(values)))
        means += values[chosen].mean(axis=1).tolist()
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)
