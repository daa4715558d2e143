"""Work items, their results, and records of what was played.

Observations stay lists of active pixel indices from the emulator to the gradient: of an input's
6,400 numbers, about 25 are not zero.

Sizes: T steps, N active indices in all of them, K first-layer rows that the episode touched,
H hidden units.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

NUM_PIXELS = 80 * 80
"""Inputs of the network: the cropped field at half resolution."""

STAY, UP, DOWN = 0, 2, 3
"""Actions in Gymnasium's numbers: RIGHT moves the paddle up, LEFT moves it down."""

ACTIONS = (STAY, UP, DOWN)
"""The actions of the fast mode; the classic mode has only UP and DOWN."""

Params = dict[str, NDArray[Any]]
"""Name → array. ``W1`` has the inputs first, so that an input's row is contiguous."""


def read_only(params: Params) -> Params:
    """Return read-only views.

    Playing never writes to the params, and some engines share them in read-only memory. The kernels
    are compiled once for read-only arrays, instead of once for each kind of engine.
    """
    views = {name: w.view() for name, w in params.items()}
    for view in views.values():
        view.flags.writeable = False
    return views


@dataclass(frozen=True)
class Trajectory:
    """One episode that was played.

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
        """The observations in dense form: [T, NUM_PIXELS]."""
        x = np.zeros((len(self), NUM_PIXELS), dtype)
        for t in range(len(self)):
            active = self.indices[self.offsets[t] : self.offsets[t + 1]].astype(np.intp)
            x[t, active[active < NUM_PIXELS]] = 1
            x[t, active[active >= NUM_PIXELS] - NUM_PIXELS] = -1
        return x


BUILTIN, SELF, HALF = "builtin", "self", "half"
"""Opponents: the cartridge's own player; the network that learns; the one or the other."""


@dataclass(frozen=True)
class EpisodeStats:
    """Statistics of a finished episode.

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
        opponent: BUILTIN, SELF, or the word that names an agent.
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
    opponent: str = BUILTIN

    def to_dict(self) -> dict[str, Any]:
        """As a line of a file, without the wall time: only what depends on the seed."""
        line = asdict(self)
        del line["play_seconds"]
        if self.opponent == BUILTIN:
            del line["opponent"]
        return line


@dataclass
class Tally:
    """The statistics of an unfinished episode, from which `EpisodeStats` is made.

    Attributes:
        steps: decisions so far.
        point_ends: the step at which each point ended.
        point_rewards: the reward of each point.
        entropy: sum of the policy's entropy over the steps, in nats.
        ups: steps at which the action was UP.
        play_seconds: wall time so far.
    """

    steps: int = 0
    point_ends: list[int] = field(default_factory=list)
    point_rewards: list[int] = field(default_factory=list)
    entropy: float = 0.0
    ups: int = 0
    play_seconds: float = 0.0

    def copy(self) -> Tally:
        """A copy that can be changed independently."""
        return replace(self, point_ends=[*self.point_ends], point_rewards=[*self.point_rewards])

    def to_stats(self, frames: int, opponent: str = BUILTIN) -> EpisodeStats:
        """The statistics of the episode, which has ended after `frames` frames."""
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
    """One or more whole episodes to play: a pure description that any worker can carry out.

    Attributes:
        purpose: ``"train"`` returns a gradient, ``"evaluate"`` the statistics alone.
        seed: the run's seed.
        update: the update it belongs to.
        index: the place of its first episode in the batch.
        is_greedy: take the more probable action instead of drawing one.
        games: consecutive episodes to play; their gradients are added up (`pixelpong.play.sums`).
    """

    purpose: str
    seed: int
    update: int
    index: int
    is_greedy: bool = False
    games: int = 1


@dataclass(frozen=True)
class SparseGrads:
    """The gradient of one or more episodes: only the first-layer rows that they touched.

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
    """The result of an `EpisodeItem`.

    Attributes:
        episodes: statistics of each episode.
        grads: the sum of their gradients; None if only statistics were requested.
    """

    episodes: tuple[EpisodeStats, ...]
    grads: SparseGrads | None

    @property
    def stats(self) -> EpisodeStats:
        """Of the first episode, mostly the only one."""
        return self.episodes[0]


@dataclass(frozen=True)
class StreamState:
    """The state of a stream between two segments: everything its future depends on.

    Attributes:
        snapshot: of the emulator.
        previous: [·] uint16, active pixels of the frame before the newest.
        current: [·] uint16, active pixels of the newest frame, which a snapshot does not hold.
        last_action: place in `ACTIONS` of the last action chosen.
        tally: of the current episode.
        opponent: BUILTIN, SELF, or the word that names an agent: of the game that goes on.
        opponent_action: the opponent's last action, if a network chose it.
    """

    snapshot: bytes
    previous: NDArray[np.uint16]
    current: NDArray[np.uint16]
    last_action: int
    tally: Tally
    opponent: str = BUILTIN
    opponent_action: int = 0


@dataclass(frozen=True)
class SegmentItem:
    """The next `horizon` steps of one stream: a pure description that any worker can carry out.

    Attributes:
        seed: the run's seed.
        update: the update it belongs to.
        stream: the stream's number.
        state: of the stream; None at its start.
        opponent: of the stream, and of the game in `state`.
    """

    seed: int
    update: int
    stream: int
    state: StreamState | None
    opponent: str = BUILTIN

    @property
    def is_left(self) -> bool:
        """Whether the network plays the left side; against another agent odd streams do."""
        return self.opponent not in (BUILTIN, SELF) and self.stream % 2 == 1


@dataclass(frozen=True)
class Segment:
    """T steps of a stream that were played.

    Attributes:
        indices: [N] uint16, the inputs that are 1 at step 0, then those of step 1 and so on.
        offsets: [T + 1] int64; step t has ``indices[offsets[t]:offsets[t + 1]]``.
        actions: [T] int8, places in `ACTIONS`.
        log_probabilities: [T] float64, of these actions.
        values: [T + 1] float64, of the observations; the last is for the one after the end.
        rewards: [T] float32, −1, 0 or +1.
        is_end: [T] bool, whether a point ended there.
    """

    indices: NDArray[np.uint16]
    offsets: NDArray[np.int64]
    actions: NDArray[np.int8]
    log_probabilities: NDArray[np.float64]
    values: NDArray[np.float64]
    rewards: NDArray[np.float32]
    is_end: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.actions)


@dataclass(frozen=True)
class SegmentResult:
    """The result of a `SegmentItem`.

    Attributes:
        segments: the steps played; against itself, those of the right side and of the left one.
        state: of the stream now.
        episodes: statistics of the episodes that ended in it.
        frames: emulated frames.
        entropy: mean over the steps, in nats.
        play_seconds: wall time.
    """

    segments: tuple[Segment, ...]
    state: StreamState
    episodes: tuple[EpisodeStats, ...]
    frames: int
    entropy: float
    play_seconds: float
