"""Playing one episode with the policy, sparsely.

Every step takes one row of uniform numbers from the episode's own generator: the first chooses
the action, the others are the emulator's draws. So an episode is a pure function of
(params, generator, protocol), whatever worker plays it.

Covered: the fast rollout and the statistics of what was played.
Not covered: the dense form, which is its test's oracle.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong import kernels
from pixelpong.env import Emulator
from pixelpong.env.preprocess import make_is_active
from pixelpong.learn.reinforce import entropy
from pixelpong.trajectory import DOWN, NUM_PIXELS, UP, EpisodeStats, Params, Trajectory

_BLOCK = 128
"""Steps whose uniform numbers are drawn at once."""


class Player:
    """Plays episodes on one emulator, which it keeps."""

    def __init__(self, emulator: Emulator) -> None:
        self.emulator = emulator
        self._is_active = make_is_active()
        self._pixels = np.zeros((2, NUM_PIXELS), np.uint16)
        self._memory = np.zeros(2, np.int64)
        self._indices = np.zeros(2 * _BLOCK * kernels.MAX_ACTIVE, np.uint16)
        self._hidden = np.zeros((4 * _BLOCK, 1), np.float32)

    def play(
        self, params: Params, rng: np.random.Generator, *, is_greedy: bool = False
    ) -> Trajectory:
        """Play one episode from its start to its end.

        Args:
            params: W1 [NUM_PIXELS, H], W2 [H].
            rng: the episode's own generator; its state moves on.
            is_greedy: UP where its probability is at least one half, instead of a draw.
        """
        emulator, W1, W2 = self.emulator, params["W1"], params["W2"]
        offsets, actions, probabilities, rewards = [0], [], [], []
        self._start_episode(W2)
        start = t = 0
        while not emulator.is_over:
            indices, hidden = self._room_for_a_block(start, t)
            for draws in self._draw_block(rng):
                end = kernels.observe(
                    emulator.screen, self._is_active, self._pixels, self._memory, indices, start
                )
                p = kernels.up_probability(W1, W2, indices, start, end, hidden, t)
                action = UP if (p >= 0.5 if is_greedy else draws[0] < p) else DOWN
                rewards.append(emulator.step(action, draws[1:]))
                offsets.append(end)
                actions.append(action)
                probabilities.append(p)
                start, t = end, t + 1
                if emulator.is_over:
                    break
        return Trajectory(
            indices=self._indices[:start].copy(),
            offsets=np.array(offsets, np.int64),
            actions=np.array(actions, np.int8),
            up_probabilities=np.array(probabilities, np.float64),
            hidden=self._hidden[:t].copy(),
            rewards=np.array(rewards, np.float32),
            num_frames=emulator.num_frames,
        )

    def _start_episode(self, W2: NDArray[Any]) -> None:
        self.emulator.reset()
        self._memory[:] = 0, -1  # no frame before: the first observation is all zeros
        if self._hidden.shape[1] != len(W2) or self._hidden.dtype != W2.dtype:
            self._hidden = np.zeros((len(self._hidden), len(W2)), W2.dtype)

    def _draw_block(self, rng: np.random.Generator) -> list[list[float]]:
        # As lists: Python reads a float from a list five times as fast as from an array.
        width = 2 + self.emulator.protocol.max_frame_skip
        block: list[list[float]] = rng.random((_BLOCK, width)).tolist()
        return block

    def _room_for_a_block(self, start: int, t: int) -> tuple[NDArray[np.uint16], NDArray[Any]]:
        """The buffers, grown where a block of steps might not fit behind `start` and `t`."""
        if start + _BLOCK * kernels.MAX_ACTIVE > len(self._indices):
            self._indices = _grown(self._indices, start, start + _BLOCK * kernels.MAX_ACTIVE)
        if t + _BLOCK > len(self._hidden):
            self._hidden = _grown(self._hidden, t, t + _BLOCK)
        return self._indices, self._hidden


def _grown(buffer: NDArray[Any], used: int, needed: int) -> NDArray[Any]:
    grown = np.zeros((2 * needed, *buffer.shape[1:]), buffer.dtype)
    grown[:used] = buffer[:used]
    return grown


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
