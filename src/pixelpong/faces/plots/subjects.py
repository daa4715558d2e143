"""The data of a run for plots: read once for any number of plots."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.choice import find_game
from pixelpong.agent.explain import Explanations, explain_all
from pixelpong.errors import RunError, expected
from pixelpong.faces.plots.drawing import plain, short_names
from pixelpong.run.directory import RunDirectory
from pixelpong.run.table import (
    Columns,
    Episodes,
    read_episodes,
    read_evaluations,
    read_metrics,
)


class Subject:
    """One run to draw.

    Attributes:
        run: the directory.
        name: its name in a legend.
        file_name: its name in files that show it alone.
    """

    def __init__(self, run: RunDirectory, name: str) -> None:
        """Store the run and its name; nothing is read yet."""
        self.run = run
        self.name = plain(name)
        self.file_name = name.replace("/", "-")

    @functools.cached_property
    def metrics(self) -> Columns:
        """The columns of its metrics.

        Raises:
            RunError: there are none yet.
        """
        metrics = read_metrics(self.run)
        if not np.isfinite(metrics.get("steps", np.array([np.nan]))).any():
            raise RunError(
                expected(f"metrics in {self.run.path}", "none", "train it for an update or more")
            )
        return metrics

    @functools.cached_property
    def episodes(self) -> Episodes:
        """Its episodes; raises the errors of `metrics`."""
        return read_episodes(self.run, self.metrics)

    @functools.cached_property
    def evaluations(self) -> NDArray[np.float64]:
        """See `read_evaluations`; raises the errors of `metrics`."""
        return read_evaluations(self.run, self.metrics)

    @functools.cached_property
    def explanations(self) -> Explanations:
        """A game of the best agent, explained.

        Raises:
            CheckpointError: there is no agent yet, or it is damaged.
            EmulatorError: the emulator or its game is not installed.
        """
        return explain_all(find_game(self.run))

    def column(self, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """Steps and figure of the updates that have it."""
        steps, values = self.metrics["steps"], self.metrics.get(name)
        if values is None:
            return np.zeros(0), np.zeros(0)
        has = np.isfinite(steps) & np.isfinite(values)
        return steps[has], values[has]


def name_subjects(runs: Sequence[RunDirectory]) -> list[Subject]:
    """The runs, each with its own name."""
    names = short_names([run.path for run in runs])
    return [Subject(run, name) for run, name in zip(runs, names, strict=True)]
