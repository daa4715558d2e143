"""What is played, what comes of it, and the work items that ask for it.

Observations stay lists of active pixel indices from the emulator to the gradient: an input of
6,400 numbers of which some 25 are not zero.

Sizes: T steps, N active indices in all of them, K first-layer rows that the episode touched,
H hidden units.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

NUM_PIXELS = 80 * 80
"""Inputs of the network: the cropped field at half resolution."""

UP, DOWN = 2, 3
"""The two actions, as Gymnasium numbers them: RIGHT moves the paddle up, LEFT moves it down."""

Params = dict[str, NDArray[Any]]
"""Name → array. ``W1`` [NUM_PIXELS, H], so that an input's row is contiguous; ``W2`` [H]."""


@dataclass(frozen=True)
class Trajectory:
    """One episode as it was played.

    Attributes:
        indices: [N] uint16, the active inputs of step 0, then those of step 1 and so on, each
            step's in ascending order of pixels. A value i below NUM_PIXELS means that input i
            is +1; NUM_PIXELS + i means that input i is −1.
        offsets: [T + 1] int64; step t has ``indices[offsets[t]:offsets[t + 1]]``.
        actions: [T] int8, UP or DOWN.
        up_probabilities: [T] float64, the policy's probability of UP.
        hidden: [T, H], the hidden activations that the policy had; the gradient needs them.
        rewards: [T] float32, −1, 0 or +1.
        num_frames: emulated frames.
    """

    indices: NDArray[np.uint16]
    offsets: NDArray[np.int64]
    actions: NDArray[np.int8]
    up_probabilities: NDArray[np.float64]
    hidden: NDArray[Any]
    rewards: NDArray[np.float32]
    num_frames: int

    def __len__(self) -> int:
        return len(self.actions)

    def dense(self, dtype: Any = np.float32) -> NDArray[Any]:
        """The observations as the network's definition takes them: [T, NUM_PIXELS]."""
        x = np.zeros((len(self), NUM_PIXELS), dtype)
        for t in range(len(self)):
            active = self.indices[self.offsets[t] : self.offsets[t + 1]].astype(np.intp)
            x[t, active[active < NUM_PIXELS]] = 1
            x[t, active[active >= NUM_PIXELS] - NUM_PIXELS] = -1
        return x


@dataclass(frozen=True)
class EpisodeStats:
    """What is worth knowing of one finished episode.

    Attributes:
        episode_return: undiscounted sum of the rewards, −21 … 21.
        steps: decisions of the agent.
        frames: emulated frames.
        points_won: points with reward +1.
        points_lost: points with reward −1.
        point_ends: the step at which each point ended.
        point_rewards: the reward of each point.
        entropy: mean entropy of the policy over the steps, in nats; ln 2 = 0.693 at most.
        up_share: share of the steps at which the action was UP.
        play_seconds: wall time of the rollout.
    """

    episode_return: float
    steps: int
    frames: int
    points_won: int
    points_lost: int
    point_ends: tuple[int, ...]
    point_rewards: tuple[int, ...]
    entropy: float
    up_share: float
    play_seconds: float

    def to_dict(self) -> dict[str, Any]:
        """As a line of a file, without the wall time: what depends on nothing but the seed."""
        line = asdict(self)
        del line["play_seconds"]
        return line


@dataclass(frozen=True)
class EpisodeItem:
    """One whole episode to be played: the pure description that any worker can carry out.

    Attributes:
        purpose: ``"train"`` returns a gradient, ``"evaluate"`` the statistics alone.
        seed: the run's seed.
        update: the update it belongs to.
        index: its place in the batch.
        is_greedy: take the more probable action instead of drawing one.
    """

    purpose: str
    seed: int
    update: int
    index: int
    is_greedy: bool = False


@dataclass(frozen=True)
class SparseGrads:
    """The gradient of one episode: only the first-layer rows that it touched.

    Attributes:
        rows: [K] uint16, ascending.
        W1: [K, H], the gradient of those rows; all others are zero.
        W2: [H].
    """

    rows: NDArray[np.uint16]
    W1: NDArray[Any]
    W2: NDArray[Any]


@dataclass(frozen=True)
class EpisodeResult:
    """What a worker makes of an `EpisodeItem`; `grads` is None where only statistics were asked."""

    stats: EpisodeStats
    grads: SparseGrads | None
