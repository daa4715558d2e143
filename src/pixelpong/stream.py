"""Playing with the gated network, sparsely: segments of streams, and whole episodes.

A stream is episode after episode on one emulator, without end; a segment is its next steps. Every
step takes one row of uniform numbers from the segment's own generator: the first chooses the
action, the others are the emulator's draws. So a segment is a pure function of
(params, item, protocol), whatever worker plays it.

Covered: the fast rollout. Not covered: the dense form of what is seen (`pixelpong.env.cells`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from pixelpong import kernels
from pixelpong.env import Emulator
from pixelpong.env.cells import CELL_SHAPES, NUM_CELLS
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

_SHAPES = np.array(CELL_SHAPES)

_VALUE, _LOG_PROBABILITIES, _ENTROPY = 3, 4, 7
"""Places in what `kernels.decide` writes."""


class StreamPlayer:
    """Plays on one emulator, which it keeps."""

    def __init__(self, emulator: Emulator) -> None:
        self.emulator = emulator
        self._is_active = make_is_active()
        self._pixels = np.zeros((2, NUM_PIXELS), np.uint16)
        self._memory = np.zeros(3, np.int64)  # which frame is newest, its pixels, the other's
        self._is_on = np.zeros((2, NUM_CELLS), np.bool_)
        self._cells = np.zeros((2, NUM_CELLS), np.uint16)
        self._indices = np.zeros(kernels.MAX_INPUTS, np.uint16)
        self._z = np.zeros(0, np.float32)
        self._y = np.zeros(8)
        self._last_action = 0
        self._tally = Tally()

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
        offsets, actions, logs, values, rewards, is_end = [0], [], [], [], [], []
        episodes: list[EpisodeStats] = []
        start, entropy, frames = 0, 0.0, -self.emulator.num_frames
        for draws in self._draw(rng, horizon):
            start = self._look(params, start)
            action = self._draw_action(draws[0])
            reward = self._act(action, draws[1:])
            offsets.append(start)
            actions.append(action)
            logs.append(self._y[_LOG_PROBABILITIES + action])
            values.append(self._y[_VALUE])
            rewards.append(reward)
            entropy += self._y[_ENTROPY]
            is_over = self.emulator.is_over
            is_end.append(reward != 0 or is_over)
            if is_over:
                since = self._add_time(since)
                frames += self.emulator.num_frames
                episodes.append(self._tally.to_stats(self.emulator.num_frames))
                self._go_to(None)
        self._add_time(since)
        self._look(params, start)
        values.append(self._y[_VALUE])
        segment = Segment(
            indices=self._indices[:start].copy(),
            offsets=np.array(offsets, np.int64),
            actions=np.array(actions, np.int8),
            log_probabilities=np.array(logs),
            values=np.array(values),
            rewards=np.array(rewards, np.float32),
            is_end=np.array(is_end, np.bool_),
        )
        return SegmentResult(
            segment,
            self._state(),
            tuple(episodes),
            frames=frames + self.emulator.num_frames,
            entropy=float(entropy / horizon),
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
        begin = time.perf_counter()
        self._go_to(None)
        while True:
            for draws in self._draw(rng, _BLOCK):
                self._look(params, 0)
                action = int(self._y[:3].argmax()) if is_greedy else self._draw_action(draws[0])
                self._act(action, draws[1:])
                if self.emulator.is_over:
                    self._add_time(begin)
                    return self._tally.to_stats(self.emulator.num_frames)

    def _go_to(self, state: StreamState | None) -> None:
        """Set everything that the future depends on."""
        if state is None:
            self.emulator.reset()
            self._memory[:] = 0  # no frame before: its cells are all off
            kernels.take_frame(self.emulator.screen, self._is_active, self._pixels, self._memory)
            self._last_action = ACTIONS.index(STAY)
            self._tally = Tally()
            return
        self.emulator.set_state(state.snapshot)
        self._memory[:] = 0, len(state.current), len(state.previous)
        self._pixels[0, : len(state.current)] = state.current
        self._pixels[1, : len(state.previous)] = state.previous
        self._last_action = state.last_action
        self._tally = state.tally.copy()

    def _state(self) -> StreamState:
        newest, num_current, num_previous = self._memory.tolist()
        return StreamState(
            snapshot=self.emulator.get_state(),
            previous=self._pixels[1 - newest, :num_previous].copy(),
            current=self._pixels[newest, :num_current].copy(),
            last_action=self._last_action,
            tally=self._tally.copy(),
        )

    def _look(self, params: Params, start: int) -> int:
        """Decide on what is seen now, which is written to `_indices` from `start` on."""
        if start + kernels.MAX_INPUTS > len(self._indices):
            grown = np.zeros(2 * (start + kernels.MAX_INPUTS), np.uint16)
            grown[:start] = self._indices[:start]
            self._indices = grown
        W1, W2 = (params[name].reshape(len(params[name]), -1) for name in ("W1", "W2"))
        if self._z.shape != W1.shape[1:] or self._z.dtype != W1.dtype:
            self._z = np.zeros(W1.shape[1:], W1.dtype)
        end: int = kernels.observe_cells(
            _SHAPES, self._pixels, self._memory, self._last_action, self._is_on, self._cells,
            self._indices, start,
        )  # fmt: skip
        kernels.decide(W1, W2, params["b2"], self._indices, start, end, self._z, self._y)
        return end

    def _draw_action(self, draw: float) -> int:
        stay, up = self._y[:2].tolist()
        return 0 if draw < stay else 1 if draw < stay + up else 2

    def _act(self, action: int, draws: Sequence[float]) -> float:
        reward = self.emulator.step(ACTIONS[action], draws)
        kernels.take_frame(self.emulator.screen, self._is_active, self._pixels, self._memory)
        self._last_action = action
        tally = self._tally
        if reward:
            tally.point_ends.append(tally.steps)
            tally.point_rewards.append(int(reward))
        tally.steps += 1
        tally.entropy += float(self._y[_ENTROPY])
        tally.ups += ACTIONS[action] == UP
        return reward

    def _draw(self, rng: np.random.Generator, steps: int) -> list[list[float]]:
        # As lists: Python reads a float from a list five times as fast as from an array.
        width = 2 + self.emulator.protocol.max_frame_skip
        rows: list[list[float]] = rng.random((steps, width)).tolist()
        return rows

    def _add_time(self, since: float) -> float:
        now = time.perf_counter()
        self._tally.play_seconds += now - since
        return now
