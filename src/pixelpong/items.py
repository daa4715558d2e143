"""Parameters, work items, their results, and records of what was played.

From the emulator to the gradient, observations are lists of active inputs, because only about 25 of
the classic network's 6,400 inputs are not zero. Sizes: T steps, N active inputs of all steps, K
first-layer rows that a gradient touches, H hidden units.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.sides import BUILTIN as BUILTIN
from pixelpong.atari.sides import SELF as SELF

NUM_PIXELS = 80 * 80  # the inputs of the classic network: the cropped field at half resolution
# Actions in Gymnasium's numbers; its RIGHT moves the paddle up, its LEFT moves it down.
STAY, UP, DOWN = 0, 2, 3
ACTIONS = (STAY, UP, DOWN)  # for the fast mode; the classic mode has only UP and DOWN
# Name → array. The first axis of ``W1`` is the inputs, so that an input's row is contiguous.
Params = dict[str, NDArray[Any]]
HALF = "half"  # as an opponent: the built-in player in half the games, the learning network in half


# Lists of rows or inputs: uint16 if all numbers fit, else uint32; see `row_type`.
Indices = NDArray[np.unsignedinteger[Any]]


def row_type(num_rows: int) -> type[np.unsignedinteger[Any]]:
    """Return the smallest type for lists of rows.

    >>> row_type(65_536).__name__, row_type(65_537).__name__
    ('uint16', 'uint32')
    """
    return np.uint16 if num_rows <= 1 << 16 else np.uint32


def read_only(params: Params) -> Params:
    """Return read-only views, so that kernels are compiled for one type in every engine."""
    views = {name: w.view() for name, w in params.items()}
    for view in views.values():
        view.flags.writeable = False
    return views


def load_state(state: Params, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Copy the arrays from a file into the arrays of a learner or network.

    Raises `ValueError` if their shapes or types differ, and `KeyError` if one is missing.
    """
    rows = arrays["rows"]
    num_rows = len(state["W1"])
    if rows.dtype != row_type(num_rows) or rows.ndim != 1 or rows.max(initial=0) >= num_rows:
        raise ValueError("its list of rows is not valid")
    for name, w in state.items():
        indices, values = touched_indices(name, w, rows), arrays[name]
        shape = len(indices), *w.shape[1:]
        if (values.shape, values.dtype) != (shape, w.dtype):
            raise ValueError(f"{name} is {values.shape} {values.dtype}, not {shape} {w.dtype}")
        w[indices] = values


def touched_indices(name: str, array: NDArray[Any], rows: Indices) -> Indices:
    """Return the indices that training touches in an array: `rows` in the first layer, else all."""
    return rows if name.endswith("W1") else np.arange(len(array), dtype=np.uint16)


def as_matrix(array: NDArray[Any]) -> NDArray[Any]:
    """View an array as a matrix [·, C], with one row per index of the first dimension."""
    return array.reshape(len(array), math.prod(array.shape[1:]))


@dataclass(frozen=True)
class Item:
    """A piece of work that any worker can play.

    It is either whole games against the built-in opponent or the next steps of streams. A stream is
    an endless series of games against one opponent.
    """

    purpose: str  # ``"train"`` returns everything for learning, ``"evaluate"`` only episodes
    seed: int
    update: int
    index: int  # index of the item, or of its first game, in this update
    is_greedy: bool = False  # take the most probable action instead of drawing one
    games: int = 1  # number of consecutive games, whose gradients are added up
    steps: int | None = None  # number of steps of each stream; None for whole games
    # [N] `pixelpong.kernels.records.STREAM`, the streams to continue; None: a single new one.
    streams: NDArray[np.void] | None = field(default=None, repr=False)
    opponent: str = BUILTIN  # BUILTIN, SELF, or the word that names an agent


@dataclass(frozen=True)
class Played:
    """One side's observations and actions in T steps, as the kernels record them."""

    # [T] `PLAIN_STEP` or `GATED_STEP` of `pixelpong.kernels.records`. For a stream, one more entry
    # follows the last step; it has no inputs, only the value of the next observation.
    steps: NDArray[np.void]
    # [N], the inputs of step 0 that are not 0, then those of step 1 and so on. For the classic
    # network, a value i below NUM_PIXELS means that input i is +1, and NUM_PIXELS + i means that
    # input i is −1. For the fast network, all of them are 1.
    indices: Indices
    offsets: NDArray[np.int64]  # [T + 1]; step t has ``indices[offsets[t]:offsets[t + 1]]``
    hidden: NDArray[Any]  # [T, H] for the classic network, whose gradient needs them, else [T, 0]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def dense(self, dtype: Any = np.float32) -> NDArray[Any]:
        """Return the classic network's observations in dense form: [T, NUM_PIXELS]."""
        x = np.zeros((len(self), NUM_PIXELS), dtype)
        for t in range(len(self)):
            active = self.indices[self.offsets[t] : self.offsets[t + 1]].astype(np.intp)
            x[t, active[active < NUM_PIXELS]] = 1
            x[t, active[active >= NUM_PIXELS] - NUM_PIXELS] = -1
        return x


@dataclass(frozen=True)
class Episode:
    """The statistics of a finished episode."""

    steps: int
    frames: int
    entropy: float  # entropy of the policy in nats, summed over the steps
    episode_return: float  # the undiscounted sum of the game's rewards; in Pong, −21 … 21
    # In Pong alone: the number of steps with the action UP, the step at which each point ended, and
    # the reward of each point.
    ups: int | None = None
    ends: tuple[int, ...] = ()
    rewards: tuple[int, ...] = ()
    opponent: str = BUILTIN  # the item's opponent
    explores: bool = False  # whether the game had preferences at its end, see `learn.ppo`

    @classmethod
    def of_points(
        cls,
        steps: int,
        frames: int,
        entropy: float,
        ups: int,
        ends: tuple[int, ...],
        rewards: tuple[int, ...],
        opponent: str = BUILTIN,
    ) -> Episode:
        """Make an episode of Pong, whose return is the sum of its points."""
        total = float(sum(rewards))
        return cls(steps, frames, entropy, total, ups, ends, rewards, opponent)

    def line(self) -> dict[str, Any]:
        """Return the episode as a line of a file; everything in it follows from the seed."""
        line: dict[str, Any] = {
            "episode_return": self.episode_return,
            "steps": self.steps,
            "frames": self.frames,
            "entropy": self.entropy / self.steps,
        }
        if self.ups is not None:
            line |= {
                "points_won": self.rewards.count(1),
                "points_lost": self.rewards.count(-1),
                "point_ends": self.ends,
                "point_rewards": self.rewards,
                "up_share": self.ups / self.steps,
            }
        if self.opponent != BUILTIN:
            line["opponent"] = self.opponent
        return line | ({"explores": True} if self.explores else {})


@dataclass(frozen=True)
class SparseGrads:
    """The gradient of one or more episodes, with only the first-layer rows that they touched."""

    rows: NDArray[np.uint16]  # [K], ascending
    W1: NDArray[Any]  # [K, H], the gradient of those rows; all others are zero
    W2: NDArray[Any]  # [H]


@dataclass(frozen=True)
class Result:
    """The result of an `Item`."""

    episodes: tuple[Episode, ...]  # the episodes that ended
    frames: int  # number of emulated frames
    seconds: float  # wall time of playing
    # The record of the learning network; in a game against itself, right side and left side.
    sides: tuple[Played, ...] = ()
    streams: NDArray[np.void] | None = None  # the streams to continue; None for whole games
    grads: SparseGrads | None = None  # the sum of the games' gradients, replacing their `sides`
