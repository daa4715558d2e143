"""A run's lines as columns: one array a figure, with NaN where a line has none.

Lines may be of another version, or written while they are read; what is no number is no reason
to show nothing. Covered: metrics, episodes, evaluations, means over the last so many.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.run.directory import RunDirectory

Columns = dict[str, NDArray[Any]]

_LARGEST = 1e12
"""Above it, a number is taken for damage: nothing that a run writes comes near."""


def as_number(value: Any) -> float:
    """The number in a line; NaN for what is none.

    >>> as_number(3), as_number(None), as_number(True), as_number(10**400)
    (3.0, nan, nan, nan)
    """
    if type(value) not in (int, float) or not -_LARGEST < value < _LARGEST:
        return float("nan")
    return float(value)


def read_metrics(run: RunDirectory) -> Columns:
    """The columns of ``metrics.jsonl``, those of ``timing`` among them, a row an update.

    Whole numbers are int64 where every row has one, all others are float64.
    """
    rows = []
    for line in run.metrics.read():
        timing = line.get("timing")
        inner = timing if isinstance(timing, dict) else {}
        rows.append({name: value for name, value in (line | inner).items() if name != "timing"})
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: _column([row.get(name) for row in rows]) for name in names}


def _column(values: list[Any]) -> NDArray[Any]:
    numbers = np.array([as_number(value) for value in values])
    is_whole = all(type(value) is int for value in values) and np.isfinite(numbers).all()
    return numbers.astype(np.int64) if is_whole else numbers


@dataclass(frozen=True)
class Episodes:
    """What ``episodes.jsonl`` says, each thing at the steps played when its update was done.

    Attributes:
        steps: [E] of the training at the end of each episode's update.
        returns: [E].
        rally_steps: [P] the same, of each point.
        rally_lengths: [P] steps that the point took.
        is_won: [P] bool, whether the agent won it.
    """

    steps: NDArray[np.float64]
    returns: NDArray[np.float64]
    rally_steps: NDArray[np.float64]
    rally_lengths: NDArray[np.float64]
    is_won: NDArray[np.bool_]


def read_episodes(run: RunDirectory, metrics: Columns) -> Episodes:
    """The episodes whose update is among `metrics`, in the order of the training."""
    steps_at = _steps_by_update(metrics)
    steps, returns = [], []
    rallies: list[tuple[float, float, bool]] = []
    for line in run.episodes.read():
        at, result = steps_at.get(line["update"]), as_number(line.get("episode_return"))
        if at is None or np.isnan(result):
            continue
        steps.append(at)
        returns.append(result)
        rallies += [(at, *rally) for rally in _rallies(line)]
    table = np.array(rallies, np.float64).reshape(-1, 3)
    return Episodes(np.array(steps), np.array(returns), table[:, 0], table[:, 1], table[:, 2] > 0)


def _rallies(line: dict[str, Any]) -> Iterable[tuple[float, bool]]:
    """Of each point of an episode, how long it took and whether it was won."""
    ends, rewards = line.get("point_ends"), line.get("point_rewards")
    if not isinstance(ends, list) or not isinstance(rewards, list) or len(ends) != len(rewards):
        return []
    lengths = np.diff([-1.0, *map(as_number, ends)])
    if not (lengths > 0).all():
        return []
    return zip(lengths.tolist(), (as_number(reward) > 0 for reward in rewards), strict=True)


def read_evaluations(run: RunDirectory, metrics: Columns) -> NDArray[np.float64]:
    """[N, 4] steps, mean return, and the ends of its 95 % interval, of each evaluation."""
    steps_at, rows = _steps_by_update(metrics), []
    for line in run.evaluations.read():
        interval = line.get("ci95")
        low, high = interval if isinstance(interval, list) and len(interval) == 2 else (None, None)
        numbers = [as_number(each) for each in (line.get("mean_return"), low, high)]
        row = [steps_at.get(line["update"], float("nan")), *numbers]
        if np.isfinite(row).all() and row[2] <= row[1] <= row[3]:
            rows.append(row)
    return np.array(rows, np.float64).reshape(-1, 4)


def _steps_by_update(metrics: Columns) -> dict[int, float]:
    if not {"update", "steps"} <= metrics.keys():
        return {}
    pairs = zip(metrics["update"].tolist(), metrics["steps"].tolist(), strict=True)
    return {int(update): steps for update, steps in pairs if steps == steps and update == update}


@dataclass(frozen=True)
class Running:
    """A figure over the last so many values, at some places.

    Attributes:
        places: [K] of `values`, how many stood before each place.
        mean: [K].
        low: [K] the 10th percentile.
        median: [K].
        high: [K] the 90th percentile.
    """

    places: NDArray[np.intp]
    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    median: NDArray[np.float64]
    high: NDArray[np.float64]


def running(
    values: NDArray[Any], window: int, at: NDArray[Any] | None = None, most: int = 400
) -> Running:
    """What the last `window` values are like, or all while there are fewer.

    Args:
        values: [N], at least one, in order.
        window: how many, at least 1.
        at: [N] where each stands; of those that stand at the same place, only the last is one.
        most: places at most, evenly spread; the last is the end.

    >>> running(np.array([0.0, 1.0, 5.0]), 2).mean
    array([0. , 0.5, 3. ])
    """
    assert len(values) > 0
    is_last = np.ones(len(values), np.bool_)
    if at is not None:
        is_last[:-1] = np.diff(at) > 0
    ends = np.flatnonzero(is_last) + 1
    chosen = np.unique(np.linspace(0, len(ends) - 1, min(most, len(ends))).round().astype(np.intp))
    pieces = [values[max(0, end - window) : end] for end in ends[chosen]]
    low, median, high = np.array([np.percentile(piece, [10, 50, 90]) for piece in pieces]).T
    mean = np.array([piece.mean() for piece in pieces])
    return Running(ends[chosen], mean, low, median, high)
