"""Catch: a toy in Pong's colours that takes the emulator's place in tests.

A ball flies from the left to the right edge in a straight line; the agent's paddle catches it
or not, and that is a point: +1 or −1. `POINTS` points are an episode. Same interface, same
screen, same draws as `pixelpong.env.pong.PongEmulator`, at a hundredth of its cost, so that a
test can train on it in seconds. Nothing of Pong's difficulty is in it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pixelpong.config.protocols import Protocol
from pixelpong.errors import EmulatorError, expected

POINTS = 5
"""Points of an episode."""

_BACKGROUND, _PADDLE, _BALL = 34, 200, 14
_COLOURS = {_BACKGROUND: (144, 72, 17), _PADDLE: (92, 186, 92), _BALL: (236, 236, 236)}
_SPEED = 5  # columns a frame
_PADDLE_SPEED = 4  # rows a frame
_PADDLE_HEIGHT = 40
_DIRECTIONS = (0, 0, -1, 1, -1, 1)  # of Pong's six actions
_LAYOUT = struct.Struct("<8q")


class CatchEmulator:
    """One game of Catch."""

    native = None

    def turn_to_ale(self, reason: Exception) -> None:
        """See `pixelpong.env.Emulator.turn_to_ale`: nothing is compiled here."""
        raise AssertionError(reason)

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self._low, self._high = protocol.frame_skips
        self.screen = np.zeros((210, 160), np.uint8)
        self.reset()

    def reset(self) -> None:
        """See `pixelpong.env.Emulator.reset`."""
        self.num_frames = self._points = 0
        self.held = 0
        self._paddle = 95
        self._serve(seed=0)
        self._draw()

    def step(self, action: int, draws: Sequence[float]) -> float:
        """See `pixelpong.env.Emulator.step`."""
        skip = self._low + int(draws[0] * (self._high - self._low + 1))
        wanted = _DIRECTIONS[action]
        reward = 0.0
        for coin in draws[1 : 1 + skip]:
            if coin >= self.protocol.sticky:
                self.held = wanted
            reward += self._emulate()
        self._draw()
        return reward

    @property
    def is_over(self) -> bool:
        """See `pixelpong.env.Emulator.is_over`."""
        return self._points >= POINTS or self.num_frames >= self.protocol.max_frames

    def frame(self) -> NDArray[np.uint8]:
        """See `pixelpong.env.Emulator.frame`."""
        palette = np.zeros((256, 3), np.uint8)
        for index, colour in _COLOURS.items():
            palette[index] = colour
        return palette[self.screen]

    def get_state(self) -> bytes:
        """See `pixelpong.env.Emulator.get_state`."""
        return _LAYOUT.pack(
            self.held, self.num_frames, self._points, self._paddle,
            self._x, self._y, self._slope, self._seed,
        )  # fmt: skip

    def set_state(self, state: bytes) -> None:
        """See `pixelpong.env.Emulator.set_state`."""
        if len(state) != _LAYOUT.size:
            got = f"{len(state)} bytes"
            raise EmulatorError(expected("a snapshot of Catch", got, "take one with get_state()"))
        (
            self.held, self.num_frames, self._points, self._paddle,
            self._x, self._y, self._slope, self._seed,
        ) = _LAYOUT.unpack(state)  # fmt: skip

    def _serve(self, seed: int) -> None:
        # The next serve follows from how the last point was played, as in the real game.
        self._seed = seed
        self._x = 8
        self._y = 45 + (seed * 37) % 140
        self._slope = seed % 3 - 1

    def _emulate(self) -> float:
        if self.is_over:
            return 0.0
        self.num_frames += 1
        self._paddle = min(max(self._paddle + self.held * _PADDLE_SPEED, 35), 194 - _PADDLE_HEIGHT)
        self._x += _SPEED
        self._y = min(max(self._y + self._slope, 37), 190)
        if self._x < 140:
            return 0.0
        self._points += 1
        is_caught = self._paddle <= self._y < self._paddle + _PADDLE_HEIGHT
        self._serve(seed=self._seed * 5 + self._paddle + 3 + self._points & 0xFFFF)
        return 1.0 if is_caught else -1.0

    def _draw(self) -> None:
        self.screen[:] = _BACKGROUND
        self.screen[self._paddle : self._paddle + _PADDLE_HEIGHT, 140:144] = _PADDLE
        self.screen[self._y : self._y + 4, self._x : self._x + 2] = _BALL
