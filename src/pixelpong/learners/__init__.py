"""Learners: own the parameters, the optimizer's memory and the count of what was played.

A learner says what to play next (`items`) and learns from what comes back (`apply`), always in
the order of the items, never in the order of arrival: float addition does not associate.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pixelpong.config import Config
from pixelpong.errors import CheckpointError, NumericsError, expected
from pixelpong.items import EpisodeStats, Params
from pixelpong.learners.progress import Progress
from pixelpong.play.replay import Replay

State = tuple[Params, dict[str, NDArray[Any]], dict[str, Any]]
"""Parameters, other arrays, and counters as JSON holds them: all that the future depends on."""


@dataclass(frozen=True)
class UpdateStats:
    """One round of rollouts and the step taken on it.

    Attributes:
        episodes: statistics of the episodes that ended in it, in item order.
        running_means: the originals' running mean after each of them.
        steps: decisions of the agent.
        points_won: points with reward +1.
        points_lost: points with reward −1.
        entropy: mean entropy of the policy over the steps, in nats.
        up_share: share of the steps at which the action was UP.
        grad_norm: Euclidean norm of the gradient.
        rollout_seconds: wall time from asking for the first item to having the last.
        play_seconds: wall time that the workers played, added up.
        reduce_seconds: wall time of putting the results together, in the order of the items.
        learn_seconds: wall time of what the learner did with them after that.
        attempt: which one this is; 2 where it has started again with other parameters.
        losses: what the algorithm alone knows of, by name.
        replays: of some of the episodes.
    """

    episodes: tuple[EpisodeStats, ...]
    running_means: tuple[float, ...]
    steps: int
    points_won: int
    points_lost: int
    entropy: float
    up_share: float
    grad_norm: float
    rollout_seconds: float
    play_seconds: float
    reduce_seconds: float
    learn_seconds: float
    attempt: int = 1
    losses: Mapping[str, float] = field(default_factory=dict)
    replays: tuple[Replay, ...] = ()

    @property
    def steps_per_second(self) -> float:
        """Decisions a second of the whole update, rollouts and learning."""
        return self.steps / (self.rollout_seconds + self.reduce_seconds + self.learn_seconds)


class Learner(Protocol):
    """What both algorithms offer.

    Attributes:
        params: what plays.
        progress: what has been played.
        is_whole: False while a step is being taken: then nothing may be saved.
    """

    params: Params
    progress: Progress
    is_whole: bool

    def items(self) -> Sequence[Any]:
        """What to play for the next update."""

    def apply(self, results: Iterable[Any]) -> UpdateStats:
        """Learn from the results of `items`, in their order, and count them.

        Raises:
            NumericsError: a number is not finite.
        """

    def touched_rows(self) -> NDArray[np.intp]:
        """The first-layer rows that a gradient has reached so far: [K], ascending."""

    def get_state(self) -> State:
        """All that the future depends on.

        Raises:
            NumericsError: a parameter is not finite, and must not reach the disk.
        """

    def set_state(
        self, params: Params, arrays: dict[str, NDArray[Any]], counters: dict[str, Any]
    ) -> None:
        """Go on from a state that `get_state` gave.

        Raises:
            CheckpointError: it is the state of another network or algorithm.
        """


def make_learner(config: Config) -> Learner:
    """The learner of the algorithm that `config` names, at its start."""
    if config.learning.algorithm == "ppo":
        from pixelpong.learners.ppo import PPOLearner

        return PPOLearner(config)
    from pixelpong.learners.reinforce import ReinforceLearner

    return ReinforceLearner(config)


def count_episodes(progress: Progress, episodes: Iterable[EpisodeStats]) -> tuple[float, ...]:
    """Add finished episodes; the running mean after each of them."""
    running_means = []
    for stats in episodes:
        progress.end_episode(stats)
        assert progress.running_mean is not None
        running_means.append(progress.running_mean)
    return tuple(running_means)


def rows_in(memory: NDArray[Any]) -> NDArray[np.intp]:
    """The rows of an optimizer's mean squares [D, ...] that are not 0."""
    return np.flatnonzero(memory.reshape(len(memory), -1).any(axis=1))


def refuse_other_shapes(
    wanted: Mapping[str, NDArray[Any]], got: Mapping[str, NDArray[Any]]
) -> None:
    """Refuse arrays of other names, shapes or types.

    Raises:
        CheckpointError: they differ.
    """
    have, need = (
        {name: (array.shape, str(array.dtype)) for name, array in sorted(arrays.items())}
        for arrays in (got, wanted)
    )
    if have != need:
        advice = "resume with the --algorithm, --hidden and --dtype it has"
        raise CheckpointError(expected(f"arrays {need}", have, advice))


def refuse_non_finite(arrays: Mapping[str, Any], of: str) -> None:
    """Refuse what must reach neither the parameters nor the disk.

    Args:
        arrays: name → array or number; whole numbers and bytes are always finite.
        of: what they are of, and at which update, for the error message.

    Raises:
        NumericsError: one of them is not finite.
    """
    for name, array in arrays.items():
        num_bad = int(np.size(array)) - int(np.isfinite(array).sum())
        if num_bad:
            raise diverged(name, of, f"{num_bad} that are not")


def refuse_overflow(
    squares: Mapping[str, float], grads: Mapping[str, Sequence[NDArray[Any]]], update: int
) -> None:
    """Refuse a gradient that is not finite, or whose squares an optimizer's memory could not hold.

    One such number would stay in that memory for ever. What passes keeps memory and parameters
    finite: no entry of RMSProp's memory exceeds the largest square, and no step 1 / √(1 − decay)
    rates; Adam's are of the same kind.

    Args:
        squares: name → sum of the squares of a gradient.
        grads: the same names, each in one or several pieces; their type says what fits.
        update: for which it was computed.

    Raises:
        NumericsError: there is one.
    """
    for name, total in squares.items():
        if not total < float(np.finfo(grads[name][0].dtype).max) / len(squares):
            bad = sum(int((~np.isfinite(piece)).sum()) for piece in grads[name])
            got = f"{bad} that are not" if bad else f"numbers whose squares add up to {total:.3g}"
            raise diverged(name, f"the gradient of update {update}", got)


def diverged(name: str, of: str, got: str) -> NumericsError:
    """The error of a number that has run away: which array, of what, and what to do."""
    advice = "lower --learning-rate and resume from the last checkpoint"
    return NumericsError(expected(f"finite numbers in {name} of {of}", got, advice))


@contextlib.contextmanager
def restoring() -> Iterator[None]:
    """While inside, what does not fit into a learner is a checkpoint that cannot be used.

    Raises:
        CheckpointError: something was missing or of another kind.
    """
    try:
        yield
    except (KeyError, ValueError, NumericsError) as error:
        what, got = "a learner's state in the checkpoint", str(error).removeprefix("expected ")
        raise CheckpointError(expected(what, got, "resume from another one")) from error
