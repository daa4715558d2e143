"""Learners own the parameters, the optimizer's memory and the counts of the training.

A learner says what to play next (`items`) and learns from the results (`apply`), always in the
order of the items, never in the order of arrival: float addition does not associate.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pixelpong.config import Config
from pixelpong.errors import CheckpointError, NumericsError, expected
from pixelpong.items import EpisodeStats, Params
from pixelpong.learners.progress import Progress

# Parameters, other arrays, and counters as in JSON: everything the future depends on.
State = tuple[Params, dict[str, NDArray[Any]], dict[str, Any]]


@dataclass(frozen=True)
class UpdateStats:
    """One round of rollouts and the step taken on it."""

    episodes: tuple[EpisodeStats, ...]
    running_means: tuple[float | None, ...]  # the originals' running mean after each of them
    steps: int
    points_won: int
    points_lost: int
    entropy: float  # mean entropy of the policy over the steps, in nats
    up_share: float
    grad_norm: float  # Euclidean norm of the gradient
    rollout_seconds: float  # wall time from requesting the first item to adding the last result
    play_seconds: float
    learn_seconds: float  # wall time of the learner's work after that
    attempt: int = 1  # number of the attempt; 2 if it has started again with other parameters
    losses: Mapping[str, float] = field(default_factory=dict)  # those of the algorithm, by name

    @property
    def steps_per_second(self) -> float:
        """Decisions per second of the whole update, rollouts and learning."""
        return self.steps / (self.rollout_seconds + self.learn_seconds)


class Learner(Protocol):
    """The interface of both algorithms."""

    params: Params
    progress: Progress
    is_whole: bool  # False during an optimizer step, when nothing may be saved
    attempt: int  # the number of times it has started with new parameters

    def items(self) -> Sequence[Any]:
        """What to play for the next update."""

    def params_to_play(self) -> Params:
        """What the items are played with: the parameters, and those of the opponent."""

    def apply(self, results: Iterable[Any]) -> UpdateStats:
        """Learn from the results of `items`, in their order, and count them."""

    def touched_rows(self, most: int | None = None) -> NDArray[np.intp]:
        """The first-layer rows that a gradient has reached so far: [K], ascending.

        By default all; or the `most` with the largest mean squares.
        """

    def get_state(self) -> State:
        """Everything the future depends on."""

    def set_state(
        self, params: Params, arrays: dict[str, NDArray[Any]], counters: dict[str, Any]
    ) -> None:
        """Continue from a state of `get_state`; refuse that of another network or algorithm."""


def make_learner(config: Config, opponent: Params | None = None) -> Learner:
    """Make a new learner; `opponent` has the parameters of the agent that is met, if any."""
    if config.learning.algorithm == "ppo":
        from pixelpong.learners.ppo import PPOLearner

        return PPOLearner(config, opponent)
    from pixelpong.learners.reinforce import ReinforceLearner

    return ReinforceLearner(config)


def count_episodes(
    progress: Progress, episodes: Iterable[EpisodeStats]
) -> tuple[float | None, ...]:
    """Add finished episodes; return the running mean after each."""
    running_means = []
    for stats in episodes:
        progress.end_episode(stats)
        running_means.append(progress.running_mean)
    return tuple(running_means)


def rows_in(memory: NDArray[Any], most: int | None = None) -> NDArray[np.intp]:
    """The rows of an optimizer's mean squares [D, ...] that are not 0, the `most` largest of them.

    >>> rows_in(np.array([[0.0], [4.0], [0.0], [1.0], [9.0]])), rows_in(np.eye(3), 2)
    (array([1, 3, 4]), array([0, 1]))
    """
    flat = memory.reshape(len(memory), -1)
    rows = np.flatnonzero(flat.any(axis=1))
    if most is None or len(rows) <= most:
        return rows
    return np.sort(rows[np.argsort(-flat[rows].sum(axis=1), kind="stable")[:most]])


def refuse_other_shapes(
    wanted: Mapping[str, NDArray[Any]], got: Mapping[str, NDArray[Any]]
) -> None:
    """Refuse arrays of other names, shapes or types."""
    have, need = (
        {name: (array.shape, str(array.dtype)) for name, array in sorted(arrays.items())}
        for arrays in (got, wanted)
    )
    if have != need:
        advice = "resume with the --algorithm, --hidden and --dtype it has"
        raise CheckpointError(expected(f"arrays {need}", have, advice))


def refuse_non_finite(numbers: Mapping[str, float], update: int) -> None:
    """Refuse an update with numbers that are not finite, before it is whole and can be saved."""
    for name, number in numbers.items():
        if not math.isfinite(number):
            what, got = f"finite numbers after update {update}", f"others in {name}"
            advice = "lower --learning-rate and resume from the last checkpoint"
            raise NumericsError(expected(what, got, advice))


@contextlib.contextmanager
def restoring() -> Iterator[None]:
    """While inside, turn errors of a state that does not fit into a `CheckpointError`."""
    try:
        yield
    except (KeyError, ValueError) as error:
        what, got = "a learner's state in the checkpoint", str(error).removeprefix("expected ")
        raise CheckpointError(expected(what, got, "resume from another one")) from error
