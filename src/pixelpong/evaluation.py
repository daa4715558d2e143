"""Evaluation: the mean return of a policy, with an interval.

Every episode has its own generator, and no episode is left out. (Playing games in parallel until N
episodes have ended favours short ones, which in Pong are the lost ones.)
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pixelpong.config import OPTIONS, Config, require_used
from pixelpong.config.protocols import PROTOCOLS, Protocol
from pixelpong.engines import Engine, make_engine, never
from pixelpong.errors import ConfigError, list_words
from pixelpong.items import Episode, Item, Params
from pixelpong.play.scenes import Scene
from pixelpong.run.lines import Evaluation
from pixelpong.seeding import make_rng

# The sequential test of a target return. At each stage (number of greedy games so far, lead), the
# test gives up if their mean does not exceed the target by the lead. It is passed as soon as
# `FEWEST` games or more have a mean `ERRORS` standard errors above the target.
# ``benchmarks/target.py`` simulates it: an agent exactly at the target passes one test in 190. If
# an agent stays exactly there for a whole run, one run in 90 passes some test.
STAGES = (
    (10, -0.3), (20, 0.0), (40, 0.2), (60, 0.25), (80, 0.3), (120, 0.3), (160, 0.35), (200, 0.4),
)  # fmt: skip
FEWEST, ERRORS = 40, 3.6
# Number of new greedy games after a passed test. Their mean is the result, because the mean that
# passed the test is biased.
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

    With the same seed, greedy and sampled play get the same sticky frames; these change with
    `update` and `first`. `tell` is called after each episode with the number of finished ones.
    """
    numbers = range(first, first + episodes)
    items = [Item("evaluate", seed, update, number, is_greedy) for number in numbers]
    played: list[Episode] = []
    for result in engine.run(items, params):
        played += result.episodes
        tell(len(played))
    return played


def evaluate_params(
    config: Config,
    params: Params,
    scene: Scene | None = None,
    *,
    seed: int,
    episodes: int,
    is_greedy: bool,
    should_stop: Callable[[], bool] = never,
    tell: Callable[[int], object] = lambda number: None,
) -> Evaluation:
    """Evaluate `params` by the protocol and with the engine of `config`; see `play_games`.

    `scene` is what the agent sees, as in `pixelpong.play.player.Player`.
    """
    from pixelpong.play.worker import make_worker  # loads the compiler

    make = functools.partial(make_worker, config, scene=scene)
    with contextlib.closing(make_engine(config, make, should_stop)) as engine:
        played = play_games(
            engine, params, seed=seed, episodes=episodes, is_greedy=is_greedy, tell=tell
        )
        return describe_games(played, seed)


def configure_play(algorithm: str, protocol: Protocol, options: Mapping[str, Any]) -> Config:
    """Make the configuration for an agent's games: its own protocol, changed by the `options`.

    >>> configure_play("ppo", Config(sticky=0.5).protocol, {"workers": 2}).sticky
    0.5
    """
    accepted = [it.name for it in OPTIONS.values() if it.section in ("environment", "engine")]
    for name in options:
        if name in OPTIONS and name not in accepted:
            advice = f"It takes {list_words(accepted, 'and')}."
            raise ConfigError(f"evaluate does not take the option {name}. {advice}")
    defaults: dict[str, Any] = {"algorithm": algorithm, "game": protocol.game}
    if "environment" not in options:
        low, high = protocol.frame_skips
        if protocol.environment in PROTOCOLS:
            defaults["environment"] = protocol.environment
        defaults |= {
            "frame_skip": low if low == high else None,
            "sticky": protocol.sticky,
            "max_frames": protocol.max_frames,
        }
    config = Config().updated({**defaults, **options}, "evaluate")
    require_used(options, config, "evaluate")
    return config


def summarize(returns: Sequence[float], steps: Sequence[int], seed: int) -> Evaluation:
    """Summarise the returns of episodes; `seed` seeds the interval's bootstrap."""
    values = np.array(returns)
    return Evaluation(
        mean_return=float(values.mean()),
        std=float(values.std(ddof=1)) if len(values) > 1 else 0.0,
        ci95=bootstrap_interval(values, make_rng(seed, "bootstrap")),
        returns=tuple(values.tolist()),
        mean_steps=float(np.mean(steps)),
    )


def describe_games(played: Sequence[Episode], seed: int) -> Evaluation:
    """Summarise the returns of finished episodes."""
    returns = [episode.episode_return for episode in played]
    return summarize(returns, [episode.steps for episode in played], seed)


class TargetTest(NamedTuple):
    """A test of a target return."""

    played: list[Episode]
    is_passed: bool


def run_target_test(
    play: Callable[..., list[Episode]], target: float, *, gives_up: bool = True
) -> TargetTest:
    """Test whether greedy play reaches a target return, see `STAGES`.

    With a weaker rule, a run that is tested until it passes would win by luck. `play` takes the
    arguments episodes and first of `play_games`. With `gives_up`, the test ends early if passing
    has become unlikely.
    """
    played: list[Episode] = []
    for games, lead in STAGES:
        played += play(episodes=games - len(played), first=len(played))
        returns = np.array([episode.episode_return for episode in played])
        mean, error = returns.mean(), returns.std(ddof=1) / math.sqrt(games)
        if games >= FEWEST and mean - ERRORS * error >= target:
            return TargetTest(played, is_passed=True)
        if mean < target + lead and gives_up:
            break
    return TargetTest(played, is_passed=False)


def bootstrap_interval(
    values: Any, rng: np.random.Generator, statistic: Callable[..., Any] = np.mean
) -> tuple[float, float]:
    """Compute the 95 % percentile interval of a `statistic`, such as `np.mean`, of `values` [n].

    Both ends are the same if all values are equal. Source: Efron (1979).

    >>> bootstrap_interval(np.array([3.0, 3.0]), np.random.default_rng(0))
    (3.0, 3.0)
    """
    return stratified_interval([values], rng, statistic)


def stratified_interval(
    groups: Sequence[Any], rng: np.random.Generator, statistic: Callable[..., Any]
) -> tuple[float, float]:
    """Compute the interval of a statistic of all values, as `bootstrap_interval` does.

    The values [n] of each group, such as the runs of a game, are drawn from that group alone.
    Source: Agarwal et al. (2021), section 4.1.
    """
    groups = [np.asarray(group, np.float64) for group in groups]
    size = sum(map(len, groups))
    resampled: list[float] = []
    while len(resampled) < _RESAMPLES:  # in blocks, because all at once could take gigabytes
        rows = min(max(1_000_000 // size, 1), _RESAMPLES - len(resampled))
        drawn = [it[rng.integers(len(it), size=(rows, len(it)))] for it in groups]
        resampled += statistic(np.concatenate(drawn, axis=1), axis=-1).tolist()
    low, high = np.percentile(resampled, [2.5, 97.5])
    return float(low), float(high)
