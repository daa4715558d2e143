"""The learner: owns the parameters, the optimizer's memory and the count of what was played.

It says what to play next (`items`) and learns from what comes back (`apply`). The gradient sums
run in the order of the items, never in the order of arrival: float addition does not associate.

Covered: REINFORCE with RMSProp. Not covered: where the episodes are played.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pixelpong import kernels
from pixelpong.config import Config
from pixelpong.errors import CheckpointError, NumericsError, expected
from pixelpong.learn.network import init_params
from pixelpong.seeding import make_rng
from pixelpong.trajectory import EpisodeItem, EpisodeResult, EpisodeStats, Params

RETURN_WINDOW = 100
"""Episodes that the mean return is taken over."""


@dataclass
class Progress:
    """What has been played since the start of the run.

    Attributes:
        update: updates done.
        steps: decisions of the agent.
        frames: emulated frames.
        episodes: finished episodes.
        running_mean: the seeds' running mean of episode returns, 0.99 old + 0.01 new; it starts
            at the first episode's return. None before that.
        recent_returns: returns of the last RETURN_WINDOW episodes, oldest first.
    """

    update: int = 0
    steps: int = 0
    frames: int = 0
    episodes: int = 0
    running_mean: float | None = None
    recent_returns: deque[float] = field(default_factory=lambda: deque(maxlen=RETURN_WINDOW))

    def count(self, stats: EpisodeStats) -> None:
        """Add a finished episode."""
        self.steps += stats.steps
        self.frames += stats.frames
        self.episodes += 1
        self.recent_returns.append(stats.episode_return)
        if self.running_mean is None:
            self.running_mean = stats.episode_return
        else:
            self.running_mean = 0.99 * self.running_mean + 0.01 * stats.episode_return

    @property
    def mean_return_100(self) -> float | None:
        """Mean return of the last 100 episodes, or of all while there are fewer."""
        if not self.recent_returns:
            return None
        return math.fsum(self.recent_returns) / len(self.recent_returns)

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {**vars(self), "recent_returns": list(self.recent_returns)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Progress:
        """The inverse of `to_dict`."""
        returns = deque(values["recent_returns"], maxlen=RETURN_WINDOW)
        return cls(**{**values, "recent_returns": returns})


@dataclass(frozen=True)
class UpdateStats:
    """One round of rollouts and the step taken on it.

    Attributes:
        episodes: statistics of the episodes, in item order.
        running_means: the seeds' running mean after each of them.
        grad_norm: Euclidean norm of the summed gradient.
        rollout_seconds: wall time from asking for the first episode to having the last.
        learn_seconds: wall time of adding gradients and of the optimizer.
    """

    episodes: tuple[EpisodeStats, ...]
    running_means: tuple[float, ...]
    grad_norm: float
    rollout_seconds: float
    learn_seconds: float

    @property
    def steps_per_second(self) -> float:
        """Decisions a second of the whole update, rollouts and learning."""
        steps = sum(episode.steps for episode in self.episodes)
        return steps / (self.rollout_seconds + self.learn_seconds)


class ReinforceLearner:
    """REINFORCE: every episode's gradient, summed over the batch, into one step of RMSProp."""

    def __init__(self, config: Config) -> None:
        self._config = config
        rng = make_rng(config.seed, "params")
        self.params: Params = init_params(rng, config.network.hidden, config.network.dtype)
        self.cache: Params = {name: np.zeros_like(w) for name, w in self.params.items()}
        self._total: Params = {name: np.zeros_like(w) for name, w in self.params.items()}
        self.progress = Progress()
        self.is_whole = True  # False while a step is being taken: then nothing may be saved

    def items(self) -> list[EpisodeItem]:
        """What to play for the next update."""
        update = self.progress.update + 1
        seed, size = self._config.seed, self._config.learning.batch_size
        return [EpisodeItem("train", seed, update, index) for index in range(size)]

    def apply(self, results: Iterable[EpisodeResult]) -> UpdateStats:
        """Learn from the results of `items`, in their order, and count them.

        Results are added as they come, so that adding overlaps with playing.

        Raises:
            NumericsError: the gradient is not finite; nothing has been changed.
        """
        update = self.progress.update + 1
        begin = time.perf_counter()
        episodes, adding = [], 0.0
        for array in self._total.values():
            array[:] = 0
        for result in results:
            since = time.perf_counter()
            assert result.grads is not None
            kernels.add_rows(self._total["W1"], result.grads.rows, result.grads.W1)
            self._total["W2"] += result.grads.W2
            episodes.append(result.stats)
            adding += time.perf_counter() - since
        played = time.perf_counter()
        grad_norm = self._step(update)
        running_means = self._count(episodes)
        self.is_whole = True
        learn_seconds = adding + time.perf_counter() - played
        return UpdateStats(
            tuple(episodes), running_means, grad_norm, played - begin - adding, learn_seconds
        )

    def get_state(self) -> tuple[Params, Params, dict[str, Any]]:
        """Parameters, optimizer arrays and counters: all that the future depends on.

        Raises:
            NumericsError: a parameter is not finite, and must not reach the disk.
        """
        _refuse_non_finite(self.params, self.progress.update)
        return self.params, self.cache, self.progress.to_dict()

    def set_state(self, params: Params, cache: Params, counters: dict[str, Any]) -> None:
        """Go on from a state that `get_state` gave.

        Raises:
            CheckpointError: it is the state of another network.
        """
        for arrays in (params, cache):
            got = {name: (array.shape, str(array.dtype)) for name, array in arrays.items()}
            wanted = {name: (w.shape, str(w.dtype)) for name, w in self.params.items()}
            if got != wanted:
                raise CheckpointError(
                    expected(f"arrays {wanted}", got, "resume with the --hidden and --dtype it has")
                )
        self.params, self.cache = dict(params), dict(cache)
        self.progress = Progress.from_dict(counters)

    def _step(self, update: int) -> float:
        learning = self._config.learning
        squares = {name: kernels.sum_of_squares(g.reshape(-1)) for name, g in self._total.items()}
        _refuse_overflow(squares, self._total, update)
        self.is_whole = False
        for name, w in self.params.items():
            kernels.rmsprop(
                w.reshape(-1),
                self._total[name].reshape(-1),
                self.cache[name].reshape(-1),
                learning.learning_rate,
                learning.decay_rate,
            )
        return math.sqrt(math.fsum(squares.values()))

    def _count(self, episodes: list[EpisodeStats]) -> tuple[float, ...]:
        running_means = []
        for stats in episodes:
            self.progress.count(stats)
            assert self.progress.running_mean is not None
            running_means.append(self.progress.running_mean)
        self.progress.update += 1
        return tuple(running_means)


def _refuse_overflow(squares: dict[str, float], grads: Params, update: int) -> None:
    """Refuse a gradient that is not finite, or whose squares RMSProp's memory could not hold.

    One such number would stay in that memory for ever. What passes keeps memory and parameters
    finite: no entry of the memory exceeds the largest square, and no step 1 / √(1 − decay) rates.
    """
    for name, total in squares.items():
        if not total < float(np.finfo(grads[name].dtype).max):
            bad = int((~np.isfinite(grads[name])).sum())
            got = f"{bad} that are not" if bad else f"numbers whose squares add up to {total:.3g}"
            raise NumericsError(
                f"expected finite numbers in {name} of the gradient of update {update}, got {got}; "
                "lower --learning-rate and resume from the last checkpoint"
            )


def _refuse_non_finite(params: Params, update: int) -> None:
    for name, w in params.items():
        if not np.isfinite(w).all():
            raise NumericsError(
                f"expected finite numbers in {name} of the parameters after update {update}, got "
                f"{int((~np.isfinite(w)).sum())} that are not; lower --learning-rate and resume "
                "from the last checkpoint"
            )
