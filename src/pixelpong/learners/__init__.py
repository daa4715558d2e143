"""Learners own the parameters, the optimizer's memory and the counts of the run.

A learner decides what to play next (`items`) and learns from the results (`apply`). It uses them in
the order of the items, not in the order of arrival, because float addition is not associative.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.steps.records import aligned_zeros
from pixelpong.config import Config
from pixelpong.errors import CheckpointError, NumericsError, refusing
from pixelpong.items import (
    Episode,
    Indices,
    Item,
    Result,
    as_matrix,
    load_state,
    row_type,
    touched_indices,
)
from pixelpong.kernels.optimizer import sum_of_squares
from pixelpong.learners.progress import Progress
from pixelpong.play.networks import draw_params
from pixelpong.play.scenes import Scene, find_scene, scene_of
from pixelpong.schema import convert


@dataclass(frozen=True)
class UpdateStats:
    """Statistics of an update, from its rollouts and from learning."""

    episodes: tuple[Episode, ...]
    running_means: tuple[float | None, ...]  # the originals' running mean after each episode
    steps: int
    play_seconds: float  # summed over all workers
    rollout_seconds: float  # wall time from the request of the first item to the last result
    learn_seconds: float  # wall time of the learner's work after that
    # The metrics for a line of metrics: those of `Progress.count`, the attempt (2 after a restart),
    # ``grad_norm``, and the losses of the algorithm.
    metrics: dict[str, Any]

    @property
    def steps_per_second(self) -> float:
        """Decisions per second over the whole update, rollouts and learning."""
        return self.steps / (self.rollout_seconds + self.learn_seconds)


class Learner:
    """The base of both algorithms."""

    moments: ClassVar[tuple[str, ...]]  # the prefixes of the optimizer's arrays for each parameter

    def __init__(self, config: Config) -> None:
        """Start with the parameters drawn from the seed."""
        self.config, self.progress = config, Progress()
        self._scene = scene_of(config.game)
        self._reset_params()

    @property
    def scene(self) -> Scene:
        """What the network sees of the game: by the state, or else by random play."""
        if not self._scene.can_see:
            self._scene = find_scene(self.config.game)
        return self._scene

    def _reset_params(self) -> None:
        """Reset the parameters and the optimizer's memory to the start of the attempt."""
        config, attempt = self.config, self.progress.attempt
        drawn = draw_params(
            self._scene, config.algorithm, config.hidden, config.dtype, config.seed, attempt
        )
        # The parameters, and the optimizer's memory for each of them.
        self.state = {
            prefix + name: aligned_zeros(*w.shape, dtype=w.dtype)
            for prefix in ("", *self.moments)
            for name, w in drawn.items()
        }
        self.params = {name: self.state[name] for name in drawn}
        for name, w in drawn.items():
            self.params[name][:] = w
        # Whether a row of the first layer ever had a gradient.
        self.has_memory = np.zeros(len(self.params["W1"]), np.bool_)

    def items(self) -> list[Item]:
        """Return the items to play for the next update."""
        raise NotImplementedError

    def apply(self, results: Iterable[Result]) -> UpdateStats:
        """Learn from the results of `items`, in their order, and count them."""
        start, attempt = time.perf_counter(), self.progress.attempt
        played = list(results)
        played_at = time.perf_counter()
        self.progress.update += 1  # an incomplete update is never recorded, so it is never saved
        with np.errstate(over="ignore", invalid="ignore"):  # such numbers are refused below
            losses, rows = self._learn(played)
        self.has_memory[rows] = True
        counts = self._count(played)
        # Both have an entropy; the reported one is that of the policy that played.
        metrics = losses | counts.pop("metrics") | {"attempt": attempt}
        self._refuse_non_finite(rows, metrics)
        self._finish_update(counts["steps"])
        return UpdateStats(
            **counts,
            metrics=metrics,
            rollout_seconds=played_at - start,
            learn_seconds=time.perf_counter() - played_at,
        )

    def _learn(self, played: list[Result]) -> tuple[dict[str, float], Indices]:
        """Do the update's optimizer steps; return metrics and the changed first-layer rows."""
        raise NotImplementedError

    def _count(self, played: list[Result]) -> dict[str, Any]:
        """Count the results, see `Progress.count`."""
        raise NotImplementedError

    def _finish_update(self, steps: int) -> None:
        """Finish an update with this many steps, which are already counted."""

    def _refuse_non_finite(self, rows: Indices, metrics: dict[str, Any]) -> None:
        """Refuse an update that has numbers that are not finite, before it can be saved.

        Such a number makes the sum of the squares of all changed parameters infinite or NaN. In the
        first layer, only some rows have changed.
        """
        sums = {
            name: sum_of_squares(as_matrix(w), touched_indices(name, w, rows))
            for name, w in self.state.items()
        }
        for name, number in (metrics | sums).items():
            if not math.isfinite(number or 0):
                what = f"{name} is not finite after update {self.progress.update}"
                advice = "lower --learning-rate and resume from the last checkpoint"
                raise NumericsError(f"{what}; {advice}")

    def get_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return everything that the next updates depend on: arrays, and counters as JSON.

        The arrays are the parameters under their names, the optimizer's means of the squared
        gradient as ``v.NAME``, and its means of the gradient, if it has any, as ``m.NAME``. The
        rows of the first layer that training has touched are listed in ``rows`` [K], ascending.
        The other rows are left out, because they can be drawn from the seed. In games other than
        Pong there is also the network's sight.
        """
        rows = np.flatnonzero(self.has_memory).astype(row_type(len(self.has_memory)))
        arrays = {name: w[touched_indices(name, w, rows)] for name, w in self.state.items()}
        arrays |= {"rows": rows} | self.scene.arrays()
        return arrays, dataclasses.asdict(self.progress)

    def set_state(self, arrays: Mapping[str, NDArray[Any]], counters: dict[str, Any]) -> None:
        """Continue from a state; refuse the state of another network or algorithm."""
        own = "--algorithm, --hidden and --dtype"
        advice = f"resume with its own {own}, and with the version of pixelpong that wrote it"
        with refusing("the checkpoint does not fit this network", CheckpointError, advice):
            self._restore(arrays, counters)

    def _restore(self, arrays: Mapping[str, NDArray[Any]], counters: dict[str, Any]) -> None:
        self.progress = convert(counters, Progress)
        self._scene = self._scene.with_arrays(arrays)
        self._reset_params()
        load_state(self.state, arrays)
        self.has_memory[arrays["rows"]] = True


def make_learner(config: Config) -> Learner:
    """Make a new learner."""
    if config.algorithm == "ppo":
        from pixelpong.learners.ppo import PPOLearner

        return PPOLearner(config)
    from pixelpong.learners.reinforce import ReinforceLearner

    return ReinforceLearner(config)
