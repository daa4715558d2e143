"""Evaluation: how well the parameters play, with an interval.

Every episode has its own generator, and the number of episodes is fixed in advance. (Playing
streams until N episodes have ended favours short ones, which in Pong are the lost ones.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from pixelpong.engines import Engine
from pixelpong.errors import number_of
from pixelpong.items import Item, Params
from pixelpong.run.words import describe_mean, signed
from pixelpong.seeding import make_rng

# The short evaluations that decide, one after the other, whether to play the verdict: greedy
# episodes, and how far their mean must exceed the target, since the verdict needs its whole
# interval above it.
LOOKS = ((10, -0.5), (40, 0.3))
# Greedy episodes of the verdict, used for nothing else: no short evaluation, no earlier verdict.
VERDICT_EPISODES = 200
SAMPLED_EPISODES = 40  # of sampled play after a win, reported with it

_RESAMPLES = 10_000


@dataclass(frozen=True)
class Evaluation:
    """Returns of a fixed number of episodes."""

    mean_return: float  # −21 … 21
    std: float  # standard deviation of the returns (of the sample, divisor n − 1)
    ci95: tuple[float, float]  # 95 % bootstrap interval of the mean
    returns: tuple[float, ...]  # each episode's, in order
    mean_steps: float  # decisions per episode
    # Which agent played where, how and with which seed, if it is told.
    about: dict[str, Any] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, returns: Sequence[float], steps: Sequence[int], seed: int) -> Evaluation:
        """Summarise episodes; `seed` is that of the interval's bootstrap."""
        values = np.array(returns)
        return cls(
            mean_return=float(values.mean()),
            std=float(values.std(ddof=1)) if len(values) > 1 else 0.0,
            ci95=bootstrap_interval(values, make_rng(seed, "bootstrap")),
            returns=tuple(values.tolist()),
            mean_steps=float(np.mean(steps)),
        )

    def __str__(self) -> str:
        """Mean, interval and number of games; in front, a line about the agent if it is told.

        >>> print(Evaluation(19.5, 0.5, (19.2, 19.8), (19.0, 20.0) * 5, 3500.0))
        mean return +19.50 (+19.20 to +19.80) over 10 games of 3,500 steps
        """
        found = describe_mean(self.mean_return, self.ci95, len(self.returns))
        line, about = f"mean return {found} of {self.mean_steps:,.0f} steps", self.about
        if not about:
            return line
        how = "sampled" if about["sampled"] else "greedy"
        where = f"{about['environment']}{' in Gymnasium' * about['in_gymnasium']}"
        agent = f"{about['agent']}, update {about['update']}"
        lines = [f"{agent}: {how} play on {where}, seed {about['seed']}", line]
        if how == "greedy" and about["sticky"] == 0 and len(set(about["frame_skip"])) == 1:
            lines.append("Nothing is random in this protocol: all greedy episodes are the same.")
        return "\n".join(lines)

    def __repr__(self) -> str:
        """What it says, and where the returns are."""
        return f"<Evaluation: {self}; .returns>"

    def _repr_html_(self) -> str:
        """Words and a histogram of the returns, for a notebook."""
        return f"<p>{self}</p>{_draw_histogram(self.returns)}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        found = asdict(self)
        return found.pop("about") | found


@dataclass(frozen=True)
class Verdict:
    """Whether a training has reached its target return."""

    is_won: bool  # whether the interval of the mean return of greedy play lies above the target
    target: float  # mean return of greedy play
    update: int  # of the checkpoint
    steps: int  # decisions of the agent until then
    seconds: float  # of the run up to the deciding games, with evaluations, without breaks
    greedy: Evaluation  # the deciding one, or the short one that fell short before it
    sampled: Evaluation | None  # None if it is not won


def _draw_histogram(returns: Sequence[float]) -> str:
    """How many games ended with each return from −21 to 21, as SVG."""
    counts = Counter(round(value) for value in returns)
    tallest = max(counts.values())
    bars = []
    for value, count in sorted(counts.items()):
        height = round(70 * count / tallest)
        title = f"{signed(value, 0)}: {number_of(count, 'game')}"
        place = f'x="{9 * (value + 21) + 8}" y="{80 - height}" width="8" height="{height}"'
        bars.append(
            f'<rect {place} fill="currentColor" opacity="0.6"><title>{title}</title></rect>'
        )
    marks = []
    for value, text in ((-21, "−21"), (-10, "−10"), (0, "0"), (10, "+10"), (21, "+21")):
        place = f'x="{9 * (value + 21) + 12}" y="95" font-size="10" text-anchor="middle"'
        marks.append(f'<text {place} fill="currentColor">{text}</text>')
    label = f"Histogram of the returns of {number_of(len(returns), 'game')}"
    head = f'<svg viewBox="0 0 403 100" width="403" role="img" aria-label="{label}">'
    line = '<line x1="8" x2="395" y1="80.5" y2="80.5" stroke="currentColor"/>'
    return "".join([head, *bars, line, *marks, "</svg>"])


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

    Greedy and sampled play of one seed have the same coins; another `update` or `first` gives
    others. `tell` is called after each episode with the number of finished ones.
    """
    numbers = range(first, first + episodes)
    items = [Item("evaluate", seed, update, number, is_greedy) for number in numbers]
    played = []
    for result in engine.run(items, params):
        played += result.episodes
        tell(len(played))
    return Evaluation.of(
        [each.episode_return for each in played], [each.steps for each in played], seed
    )


def judge(
    play: Callable[..., Evaluation], target: float, *, at_once: bool
) -> tuple[bool, Evaluation]:
    """Whether a target return is reached, and the evaluation of greedy play that decides.

    It is reached if the 95 % interval of the mean return of `VERDICT_EPISODES` greedy episodes lies
    above it. With a weaker rule, a run that tries until it passes would win by luck. `play` takes
    arguments as `evaluate` does; `at_once` skips the short evaluations.
    """
    first = 0
    for episodes, lead in () if at_once else LOOKS:
        look = play(episodes, is_greedy=True, first=first)
        first += episodes
        if look.mean_return < target + lead:
            return False, look
    greedy = play(VERDICT_EPISODES, is_greedy=True, first=first)
    return greedy.ci95[0] >= target, greedy


def bootstrap_interval(
    values: Any, rng: np.random.Generator, statistic: Callable[..., Any] = np.mean
) -> tuple[float, float]:
    """95 % percentile interval of a statistic of `values` [n], a function as of NumPy.

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
