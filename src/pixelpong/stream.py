"""Playing with the gated network, sparsely: segments of streams, and whole episodes.

A stream is episode after episode on one emulator, without end; a segment is its next steps. Every
step takes one row of uniform numbers from the segment's own generator: the first chooses the
action, the others are the emulator's draws. So a segment is a pure function of
(params, item, protocol), whatever worker plays it.

Covered: the fast rollout. Not covered: the dense form of what is seen (`pixelpong.env.features`).
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

import numpy as np

from pixelpong import kernels
from pixelpong.env import Emulator
from pixelpong.env.features import list_cells_of_pixels, list_geometry
from pixelpong.env.preprocess import make_is_active
from pixelpong.trajectory import (
    ACTIONS,
    NUM_PIXELS,
    STAY,
    UP,
    EpisodeStats,
    Params,
    Segment,
    SegmentResult,
    StreamState,
    Tally,
)

_BLOCK = 128
"""Steps whose uniform numbers are drawn at once, in an episode of unknown length."""

_LAST_ACTION, _STEP = 3, 5
"""Places in the memory of `kernels.decide`."""

_LOG_PROBABILITY, _VALUE, _ENTROPY = range(3)
"""Columns of the numbers that `kernels.decide` writes."""


class StreamPlayer:
    """Plays on one emulator, which it keeps."""

    def __init__(self, emulator: Emulator) -> None:
        self.emulator = emulator
        self._is_active = make_is_active()
        self._pixels = np.zeros((2, NUM_PIXELS), np.uint16)
        # Which frame is newest, its number of pixels, the other's, the last action, the other's
        # number of features, the step.
        self._memory = np.zeros(6, np.int64)
        self._sight = (list_cells_of_pixels(), list_geometry())
        self._scratch = np.zeros((4, kernels.NUM_MARKS), np.uint16)
        self._z = np.zeros(0, np.float32)
        self._actions = np.zeros(0, np.int8)
        self._tally = Tally()
        self._make_room(_BLOCK)

    def play_segment(
        self, params: Params, state: StreamState | None, horizon: int, rng: np.random.Generator
    ) -> SegmentResult:
        """Play the next steps of a stream.

        Args:
            params: of the gated network.
            state: where the stream stands, not changed; None at its start.
            horizon: T, steps.
            rng: the segment's own generator; its state moves on.
        """
        begin = since = time.perf_counter()
        self._go_to(state)
        self._make_room(horizon + 1)
        decide, act = self._decider(params), self._act
        episodes: list[EpisodeStats] = []
        rewards, is_end, counted, frames = [], [], 0, -self.emulator.num_frames
        for draws in self._draw(rng, horizon):
            reward = act(decide(draws[0]), draws)
            is_over = self.emulator.is_over
            rewards.append(reward)
            is_end.append(reward != 0 or is_over)
            if is_over:
                since = self._count(rewards[counted:], since)
                counted = len(rewards)
                frames += self.emulator.num_frames
                episodes.append(self._tally.to_stats(self.emulator.num_frames))
                self._go_to(None)
        self._count(rewards[counted:], since)
        state = self._state()
        decide(0.0)  # for the value of what comes after the last step
        segment = Segment(
            indices=self._indices[: self._offsets[horizon]].copy(),
            offsets=self._offsets[: horizon + 1].copy(),
            actions=self._actions[:horizon].copy(),
            log_probabilities=self._numbers[:horizon, _LOG_PROBABILITY].copy(),
            values=self._numbers[: horizon + 1, _VALUE].copy(),
            rewards=np.array(rewards, np.float32),
            is_end=np.array(is_end, np.bool_),
        )
        return SegmentResult(
            segment,
            state,
            tuple(episodes),
            frames=frames + self.emulator.num_frames,
            entropy=float(self._numbers[:horizon, _ENTROPY].mean()),
            play_seconds=time.perf_counter() - begin,
        )

    def play_episode(
        self, params: Params, rng: np.random.Generator, *, is_greedy: bool = False
    ) -> EpisodeStats:
        """Play one episode from its start to its end.

        Args:
            params: of the gated network.
            rng: the episode's own generator; its state moves on.
            is_greedy: take the most probable action instead of drawing one.
        """
        since = time.perf_counter()
        self._go_to(None)
        decide = self._decider(params)
        while not self.emulator.is_over:
            rewards = []
            self._memory[_STEP] = 0
            for draws in self._draw(rng, _BLOCK):
                rewards.append(self._act(decide(-1.0 if is_greedy else draws[0]), draws))
                if self.emulator.is_over:
                    break
            since = self._count(rewards, since)
        return self._tally.to_stats(self.emulator.num_frames)

    def _go_to(self, state: StreamState | None) -> None:
        """Set everything that the future depends on."""
        memory = self._memory
        self._scratch[:2] = 0
        if state is None:
            self.emulator.reset()
            memory[:_STEP] = 0  # no frame before: its features are all off
            memory[_LAST_ACTION] = ACTIONS.index(STAY)
            kernels.take_frame(self.emulator.screen, self._is_active, self._pixels, memory)
            self._tally = Tally()
            return
        self.emulator.set_state(state.snapshot)
        memory[:_STEP] = 0, len(state.current), len(state.previous), state.last_action, -1
        self._pixels[0, : len(state.current)] = state.current
        self._pixels[1, : len(state.previous)] = state.previous
        self._tally = state.tally.copy()

    def _state(self) -> StreamState:
        newest, num_current, num_previous, last_action, *_ = self._memory.tolist()
        return StreamState(
            snapshot=self.emulator.get_state(),
            previous=self._pixels[1 - newest, :num_previous].copy(),
            current=self._pixels[newest, :num_current].copy(),
            last_action=last_action,
            tally=self._tally.copy(),
        )

    def _make_room(self, steps: int) -> None:
        """Buffers for so many steps at their worst, written from the start again."""
        self._memory[_STEP] = 0
        if len(self._actions) < steps:
            self._indices = np.zeros(steps * kernels.MAX_INPUTS, np.uint16)
            self._offsets = np.zeros(steps + 1, np.int64)
            self._actions = np.zeros(steps, np.int8)
            self._numbers = np.zeros((steps, 3))

    def _decider(self, params: Params) -> Callable[[float], int]:
        """What decides on a draw, all but the draw put in: looking things up takes time."""
        W1, W2 = (params[name].reshape(len(params[name]), -1) for name in ("W1", "W2"))
        if self._z.shape != W1.shape[1:] or self._z.dtype != W1.dtype:
            self._z = np.zeros(W1.shape[1:], W1.dtype)
        record = (self._indices, self._offsets, self._actions, self._numbers)
        return functools.partial(
            kernels.decide, (W1, W2, params["b2"]), self._z, self._sight, self._pixels,
            self._memory, self._scratch, record,
        )  # fmt: skip

    def _act(self, action: int, draws: list[float]) -> float:
        reward = self.emulator.step(ACTIONS[action], draws[1:])
        kernels.take_frame(self.emulator.screen, self._is_active, self._pixels, self._memory)
        return reward

    def _count(self, rewards: list[float], since: float) -> float:
        """Add the newest steps, with these rewards, to the tally; return the time it is now."""
        tally, stop = self._tally, int(self._memory[_STEP])
        start = stop - len(rewards)
        for t, reward in enumerate(rewards):
            if reward:
                tally.point_ends.append(tally.steps + t)
                tally.point_rewards.append(int(reward))
        tally.steps += len(rewards)
        tally.entropy += float(self._numbers[start:stop, _ENTROPY].sum())
        tally.ups += int((self._actions[start:stop] == ACTIONS.index(UP)).sum())
        now = time.perf_counter()
        tally.play_seconds += now - since
        return now

    def _draw(self, rng: np.random.Generator, steps: int) -> list[list[float]]:
        # As lists: Python reads a float from a list five times as fast as from an array.
        width = 2 + self.emulator.protocol.max_frame_skip
        rows: list[list[float]] = rng.random((steps, width)).tolist()
        return rows
