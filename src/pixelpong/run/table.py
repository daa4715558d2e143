"""A run's lines as columns: one array per figure, with NaN if a line does not have it.

Lines that are damaged or incomplete are left out. Files that grow: `pixelpong.run.tail`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.run.directory import RunDirectory
from pixelpong.run.lines import EpisodeLine, EvaluationLine
from pixelpong.schema import Figure

Columns = dict[str, NDArray[Any]]

_Figures = dict[str, Figure | None]
_MetricsLine = dict[str, Figure | _Figures | None]


def read_metrics(run: RunDirectory) -> Columns:
    """The columns of ``metrics.jsonl``, including those of ``timing``, one row per update.

    A column is int64 if every row has a whole number, otherwise float64.
    """
    rows: list[dict[str, Any]] = []
    for line in run.metrics.read_as(_MetricsLine):
        timing = line.pop("timing", None)
        rows.append({**line, **(timing if isinstance(timing, dict) else {})})
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: _column([row.get(name) for row in rows]) for name in names}


def _column(values: list[Any]) -> NDArray[Any]:
    if all(type(value) is int for value in values):
        return np.array(values, np.int64)
    return np.array([value if isinstance(value, int | float) else math.nan for value in values])


def read_episodes(run: RunDirectory, metrics: Columns) -> tuple[NDArray[Any], NDArray[Any]]:
    """The steps at the end of each episode's update, and its return; only updates in `metrics`."""
    steps_at = _steps_by_update(metrics)
    known = [line for line in run.episodes.read_as(EpisodeLine) if line.update in steps_at]
    steps = [steps_at[line.update] for line in known]
    return np.array(steps), np.array([line.episode_return for line in known])


def read_evaluations(run: RunDirectory, metrics: Columns) -> NDArray[np.float64]:
    """[N, 4] steps, mean return, and the ends of its 95 % interval, of each evaluation."""
    steps_at, rows = _steps_by_update(metrics), []
    for line in run.evaluations.read_as(EvaluationLine):
        low, high = line.ci95
        if line.update in steps_at and low <= line.mean_return <= high:
            rows.append([steps_at[line.update], line.mean_return, low, high])
    return np.array(rows, np.float64).reshape(-1, 4)


def _steps_by_update(metrics: Columns) -> dict[int, float]:
    if not {"update", "steps"} <= metrics.keys():
        return {}
    pairs = zip(metrics["update"].tolist(), metrics["steps"].tolist(), strict=True)
    return {int(update): steps for update, steps in pairs if steps == steps and update == update}


@dataclass(frozen=True)
class Running:
    """A figure over a window of values, at K places."""

    places: NDArray[np.intp]  # the number of values before each
    mean: NDArray[np.float64]
    low: NDArray[np.float64]  # the 10th percentile
    median: NDArray[np.float64]
    high: NDArray[np.float64]  # the 90th


def running(
    values: NDArray[Any], window: int, at: NDArray[Any] | None = None, most: int = 400
) -> Running:
    """Statistics of the last `window` of [N] values, or of all while there are fewer.

    Of several values at one position, `at` [N], only the last gives a place. There are at most
    `most` places, evenly spread; the last is the end.

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
