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
from pixelpong.env.features import NUM_INPUTS
from pixelpong.errors import CheckpointError, NumericsError, expected
from pixelpong.items import Episode, Params
from pixelpong.learn import gated, network
from pixelpong.learners.progress import Progress
from pixelpong.seeding import make_rng

# Arrays, and counters as in JSON: everything the future depends on. Of what has a row per input,
# the arrays have only the rows that training has touched; the others are as the seed drew them.
State = tuple[dict[str, NDArray[Any]], dict[str, Any]]


@dataclass(frozen=True)
class UpdateStats:
    """One round of rollouts and the step taken on it."""

    episodes: tuple[Episode, ...]
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

    def items(self) -> Sequence[Any]:
        """What to play for the next update."""

    def params_to_play(self) -> Params:
        """What the items are played with: the parameters, and those of the opponent."""

    def apply(self, results: Iterable[Any]) -> UpdateStats:
        """Learn from the results of `items`, in their order, and count them."""

    def get_state(self) -> State:
        """Everything the future depends on, as `cut_rows` cuts it.

        The arrays are the parameters under their names, the means of the squares of the gradient
        under ``v.NAME``, what else there is, and ``rows`` [K], ascending.
        """

    def set_state(self, arrays: Mapping[str, NDArray[Any]], counters: dict[str, Any]) -> None:
        """Continue from a state of `get_state`; refuse that of another network or algorithm."""


def make_learner(config: Config, opponent: Params | None = None) -> Learner:
    """Make a new learner; `opponent` has the parameters of the agent that is met, if any."""
    if config.learning.algorithm == "ppo":
        from pixelpong.learners.ppo import PPOLearner

        return PPOLearner(config, opponent)
    from pixelpong.learners.reinforce import ReinforceLearner

    return ReinforceLearner(config)


def draw_params(algorithm: str, hidden: int, dtype: str, seed: int, attempt: int) -> Params:
    """The parameters before the first step of an attempt to train with this seed."""
    rng = make_rng(seed, "params", *([attempt] if attempt > 1 else []))
    if algorithm == "ppo":
        return gated.init_params(rng, NUM_INPUTS, hidden, dtype)
    return network.init_params(rng, hidden, dtype)


def cut_rows(
    arrays: Mapping[str, NDArray[Any]], is_touched: NDArray[np.bool_]
) -> dict[str, NDArray[Any]]:
    """Of the arrays of the first layer, only the rows that training has touched, and ``rows``."""
    rows = np.flatnonzero(is_touched).astype(np.uint16)
    kept = {name: w[rows] if name.endswith("W1") else w for name, w in arrays.items()}
    return kept | {"rows": rows}


def put_rows(arrays: Mapping[str, NDArray[Any]], kept: Mapping[str, NDArray[Any]]) -> None:
    """Change `arrays`, which are as at the start, to those that `cut_rows` was given.

    `kept` may hold other arrays as well. Those of another network are refused.
    """
    rows = kept.get("rows", np.zeros(0))
    need = {
        name: ((len(rows), *w.shape[1:]) if name.endswith("W1") else w.shape, str(w.dtype))
        for name, w in sorted(arrays.items())
    }
    have = {name: (kept[name].shape, str(kept[name].dtype)) for name in need if name in kept}
    if have != need:
        advice = "resume with the --algorithm, --hidden and --dtype it has"
        raise CheckpointError(expected(f"arrays {need}", have, advice))
    if rows.dtype != np.uint16 or rows.ndim != 1 or rows.max(initial=0) >= len(arrays["W1"]):
        raise ValueError("rows that are not those of a first layer")
    for name, w in arrays.items():
        w[rows if name.endswith("W1") else ...] = kept[name]


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
