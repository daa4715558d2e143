"""Playing one episode with the policy, sparsely.

Every step takes one row of uniform numbers from the episode's own generator: the first chooses
the action, the others are the emulator's draws. So an episode is a pure function of
(params, generator, protocol), whatever worker plays it.

Covered: the fast rollout and the statistics of what was played.
Not covered: the dense form, which is its test's oracle.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from pixelpong import kernels
from pixelpong.env import Emulator
from pixelpong.env.preprocess import make_is_active
from pixelpong.learn.reinforce import entropy
from pixelpong.trajectory import DOWN, NUM_PIXELS, UP, EpisodeStats, Params, Trajectory

_BLOCK = 256
"""Steps whose uniform numbers are drawn at once."""


class Observer:
    """Turns screens into observations, one episode after another.

    Holds the previous frame's pixels, so that each screen is read once.
    """

    def __init__(self) -> None:
        self._is_active = make_is_active()
        self._previous = np.zeros(NUM_PIXELS, np.uint16)
        self._current = np.zeros(NUM_PIXELS, np.uint16)
        self.reset()

    def reset(self) -> None:
        """Forget the previous frame: the next observation is all zeros."""
        self._num_previous = -1

    def observe(self, screen: NDArray[np.uint8], indices: NDArray[np.uint16], start: int) -> int:
        """Write the observation of `screen` into ``indices[start:]`` and return where it ends.

        Args:
            screen: [210, 160] palette indices.
            indices: room for at least ``kernels.MAX_ACTIVE`` more; changed.
            start: where to begin.
        """
        num_current = kernels.find_active(screen, self._is_active, self._current)
        end = start
        if self._num_previous >= 0:
            end = kernels.find_difference(
                self._previous, self._num_previous, self._current, num_current, indices, start
            )
        self._previous, self._current = self._current, self._previous
        self._num_previous = num_current
        return end


class Player:
    """Plays episodes on one emulator, which it keeps."""

    def __init__(self, emulator: Emulator) -> None:
        self.emulator = emulator
        self._observer = Observer()
        self._indices = np.zeros(64 * kernels.MAX_ACTIVE, np.uint16)

    def play(
        self, params: Params, rng: np.random.Generator, *, is_greedy: bool = False
    ) -> Trajectory:
        """Play one episode from its start to its end.

        Args:
            params: W1 [NUM_PIXELS, H], W2 [H].
            rng: the episode's own generator; its state moves on.
            is_greedy: UP where its probability is at least one half, instead of a draw.
        """
        emulator, observer = self.emulator, self._observer
        W1, W2 = params["W1"], params["W2"]
        h = np.zeros_like(W2)
        offsets, actions, probabilities, rewards = [0], [], [], []
        emulator.reset()
        observer.reset()
        start = 0
        while not emulator.is_over:
            for draws in self._draw_block(rng):
                indices = self._room_for_one_more(start)
                end = observer.observe(emulator.screen, indices, start)
                p = kernels.up_probability(W1, W2, indices, start, end, h)
                action = UP if (p >= 0.5 if is_greedy else draws[0] < p) else DOWN
                rewards.append(emulator.step(action, draws[1:]))
                offsets.append(end)
                actions.append(action)
                probabilities.append(p)
                start = end
                if emulator.is_over:
                    break
        return Trajectory(
            indices=self._indices[:start].copy(),
            offsets=np.array(offsets, np.int64),
            actions=np.array(actions, np.int8),
            up_probabilities=np.array(probabilities, np.float64),
            rewards=np.array(rewards, np.float32),
            num_frames=emulator.num_frames,
        )

    def _draw_block(self, rng: np.random.Generator) -> list[list[float]]:
        # As lists: Python reads a float from a list five times as fast as from an array.
        width = 2 + self.emulator.protocol.max_frame_skip
        block: list[list[float]] = rng.random((_BLOCK, width)).tolist()
        return block

    def _room_for_one_more(self, start: int) -> NDArray[np.uint16]:
        needed = start + kernels.MAX_ACTIVE
        if needed > len(self._indices):
            grown = np.zeros(2 * needed, np.uint16)
            grown[:start] = self._indices[:start]
            self._indices = grown
        return self._indices


def summarize(trajectory: Trajectory, play_seconds: float) -> EpisodeStats:
    """The statistics of an episode.

    Args:
        trajectory: what was played.
        play_seconds: how long it took.
    """
    ends = np.flatnonzero(trajectory.rewards)
    points = trajectory.rewards[ends].astype(int)
    return EpisodeStats(
        episode_return=float(points.sum()),
        steps=len(trajectory),
        frames=trajectory.num_frames,
        points_won=int((points > 0).sum()),
        points_lost=int((points < 0).sum()),
        point_ends=tuple(ends.tolist()),
        point_rewards=tuple(points.tolist()),
        entropy=float(entropy(trajectory.up_probabilities).mean()),
        up_share=float((trajectory.actions == UP).mean()),
        play_seconds=play_seconds,
    )


def timed_play(
    player: Player, params: Params, rng: np.random.Generator, *, is_greedy: bool = False
) -> tuple[Trajectory, EpisodeStats]:
    """Play an episode and summarise it, with the wall time that the playing took."""
    begin = time.perf_counter()
    trajectory = player.play(params, rng, is_greedy=is_greedy)
    return trajectory, summarize(trajectory, time.perf_counter() - begin)
