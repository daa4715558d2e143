"""Work items, their results, and records of what was played.

Observations stay lists of active pixel indices from the emulator to the gradient: of an input's
6,400 numbers, about 25 are not zero. Sizes: T steps, N active indices in all of them, K first-layer
rows that the episode touched, H hidden units.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

NUM_PIXELS = 80 * 80  # inputs of the network: the cropped field at half resolution
# Actions in Gymnasium's numbers: RIGHT moves the paddle up, LEFT moves it down.
STAY, UP, DOWN = 0, 2, 3
ACTIONS = (STAY, UP, DOWN)  # of the fast mode; the classic mode has only UP and DOWN
# Name → array. ``W1`` has the inputs first, so that an input's row is contiguous.
Params = dict[str, NDArray[Any]]


def read_only(params: Params) -> Params:
    """Return read-only views: engines may share such memory, and kernels are compiled only once."""
    views = {name: w.view() for name, w in params.items()}
    for view in views.values():
        view.flags.writeable = False
    return views


@dataclass(frozen=True)
class Trajectory:
    """One episode that was played."""

    # [N], the active inputs of step 0, then those of step 1 and so on, each step's in
    # ascending order of pixels. A value i below NUM_PIXELS means that input i is +1, and
    # NUM_PIXELS + i that input i is −1.
    indices: NDArray[np.uint16]
    offsets: NDArray[np.int64]  # [T + 1]; step t has ``indices[offsets[t]:offsets[t + 1]]``
    actions: NDArray[np.int8]  # [T], UP or DOWN
    up_probabilities: NDArray[np.float64]  # [T], the policy's probability of UP
    hidden: NDArray[Any]  # [T, H], the policy's hidden activations; the gradient needs them
    rewards: NDArray[np.float32]  # [T], −1, 0 or +1
    num_frames: int  # emulated frames

    def __len__(self) -> int:
        return len(self.actions)

    def dense(self, dtype: Any = np.float32) -> NDArray[Any]:
        """The observations in dense form: [T, NUM_PIXELS]."""
        x = np.zeros((len(self), NUM_PIXELS), dtype)
        for t in range(len(self)):
            active = self.indices[self.offsets[t] : self.offsets[t + 1]].astype(np.intp)
            x[t, active[active < NUM_PIXELS]] = 1
            x[t, active[active >= NUM_PIXELS] - NUM_PIXELS] = -1
        return x


# Opponents: the cartridge's own player; the network that learns; the one or the other.
BUILTIN, SELF, HALF = "builtin", "self", "half"


@dataclass(frozen=True)
class EpisodeStats:
    """Statistics of a finished episode."""

    episode_return: float  # undiscounted sum of the rewards, −21 … 21
    steps: int
    frames: int
    points_won: int
    points_lost: int
    point_ends: tuple[int, ...]  # the step at which each point ended
    point_rewards: tuple[int, ...]  # the reward of each point
    entropy: float  # mean entropy of the policy over the steps, in nats; ln 2 = 0.693 at most
    up_share: float
    play_seconds: float
    opponent: str = BUILTIN  # BUILTIN, SELF, or the word that names an agent

    def to_dict(self) -> dict[str, Any]:
        """As a line of a file, without the wall time: only what depends on the seed."""
        line = asdict(self)
        del line["play_seconds"]
        if self.opponent == BUILTIN:
            del line["opponent"]
        return line


@dataclass
class Tally:
    """The statistics of an unfinished episode, from which `EpisodeStats` is made."""

    steps: int = 0
    point_ends: list[int] = field(default_factory=list)  # the step at which each point ended
    point_rewards: list[int] = field(default_factory=list)  # the reward of each point
    entropy: float = 0.0  # sum of the policy's entropy over the steps, in nats
    ups: int = 0  # steps at which the action was UP
    play_seconds: float = 0.0

    def copy(self) -> Tally:
        """A copy that can be changed independently."""
        return replace(self, point_ends=[*self.point_ends], point_rewards=[*self.point_rewards])

    def to_stats(self, frames: int, opponent: str = BUILTIN) -> EpisodeStats:
        """The statistics of the episode, which has ended."""
        won, lost = self.point_rewards.count(1), self.point_rewards.count(-1)
        return EpisodeStats(
            episode_return=float(won - lost),
            steps=self.steps,
            frames=frames,
            points_won=won,
            points_lost=lost,
            point_ends=tuple(self.point_ends),
            point_rewards=tuple(self.point_rewards),
            entropy=self.entropy / self.steps,
            up_share=self.ups / self.steps,
            play_seconds=self.play_seconds,
            opponent=opponent,
        )


@dataclass(frozen=True)
class EpisodeItem:
    """One or more whole episodes to play: a pure description that any worker can carry out."""

    purpose: str  # ``"train"`` returns a gradient, ``"evaluate"`` the statistics alone
    seed: int
    update: int
    index: int  # the place of its first episode in the batch
    is_greedy: bool = False  # take the more probable action instead of drawing one
    games: int = 1  # consecutive episodes; their gradients are added up (`pixelpong.play.sums`)


@dataclass(frozen=True)
class SparseGrads:
    """The gradient of one or more episodes: only the first-layer rows that they touched."""

    rows: NDArray[np.uint16]  # [K], ascending
    W1: NDArray[Any]  # [K, H], the gradient of those rows; all others are zero
    W2: NDArray[Any]  # [H]


@dataclass(frozen=True)
class EpisodeResult:
    """The result of an `EpisodeItem`."""

    episodes: tuple[EpisodeStats, ...]
    grads: SparseGrads | None  # the sum of their gradients; None if only statistics were requested

    @property
    def stats(self) -> EpisodeStats:
        """Of the first episode, mostly the only one."""
        return self.episodes[0]


@dataclass(frozen=True)
class StreamState:
    """The state of a stream between two segments: everything its future depends on."""

    snapshot: bytes  # of the emulator
    previous: NDArray[np.uint16]  # [·], active pixels of the frame before the newest
    current: NDArray[np.uint16]  # those of the newest frame, which a snapshot does not hold
    last_action: int  # place in `ACTIONS` of the last action chosen
    tally: Tally
    opponent: str = BUILTIN  # in the current game; as in `EpisodeStats`
    opponent_action: int = 0  # the opponent's last action, if a network chose it


@dataclass(frozen=True)
class SegmentItem:
    """The next `horizon` steps of one stream: a pure description that any worker can carry out."""

    seed: int
    update: int
    stream: int
    state: StreamState | None
    opponent: str = BUILTIN  # of the stream, and of the game in `state`

    @property
    def is_left(self) -> bool:
        """Whether the network plays the left side; against another agent odd streams do."""
        return self.opponent not in (BUILTIN, SELF) and self.stream % 2 == 1


@dataclass(frozen=True)
class Segment:
    """T steps of a stream that were played."""

    # [N], the inputs that are 1 at step 0, then those of step 1 and so on
    indices: NDArray[np.uint16]
    offsets: NDArray[np.int64]  # [T + 1]; step t has ``indices[offsets[t]:offsets[t + 1]]``
    actions: NDArray[np.int8]  # [T], places in `ACTIONS`
    log_probabilities: NDArray[np.float64]  # [T], of these actions
    values: NDArray[np.float64]  # [T + 1], of the observations; the last is after the end
    rewards: NDArray[np.float32]  # [T], −1, 0 or +1
    is_end: NDArray[np.bool_]  # [T], whether a point ended there

    def __len__(self) -> int:
        return len(self.actions)


@dataclass(frozen=True)
class SegmentResult:
    """The result of a `SegmentItem`."""

    segments: tuple[Segment, ...]  # one; against itself, the right side's and the left side's
    state: StreamState
    episodes: tuple[EpisodeStats, ...]
    frames: int
    entropy: float  # mean over the steps, in nats
    play_seconds: float
