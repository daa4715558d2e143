"""Catch: a toy in Pong's colours that takes the console's place in tests.

A ball flies in a straight line from the left edge to the right edge. The agent gets +1 if its
paddle catches the ball, and −1 if not. `POINTS` points are an episode. The interface is that of
`pixelpong.env.native.NativeConsole`. Catch costs a hundredth of ALE's time and is far easier than
Pong, so a test can train on it in seconds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine import PADDLE_CENTRE, ROWS, STATE, WIDTH

POINTS = 5
"""Points per episode."""

_BACKGROUND, _PADDLE, _BALL = 34, 200, 14
_SPEED = 5  # columns per frame
_PADDLE_SPEED = 4  # rows per frame
_PADDLE_HEIGHT = 40
_DIRECTIONS = (0, 0, -1, 1, -1, 1)  # of Pong's six actions


class CatchConsole:
    """A console with Catch in it.

    Attributes:
        picture: [210, 160] uint8 palette indices of the newest frame.
    """

    name = "catch"

    def __init__(self) -> None:
        """Start a game."""
        self.picture = np.zeros((ROWS, WIDTH), np.uint8)
        self.reset()

    @property
    def is_over(self) -> bool:
        """Whether all points have been played."""
        return self._points >= POINTS

    def reset(self) -> None:
        """Start a game."""
        self._points, self._paddle = 0, 95
        self._serve(seed=0)
        self._draw()

    def run(self, actions: bytes, draws: int) -> tuple[int, bool, int]:
        """Play frames; see `pixelpong.env.native.NativeConsole.run`."""
        reward = frames = 0
        for action in actions:
            if self.is_over:
                break
            reward += self._emulate(_DIRECTIONS[action])
            frames += 1
        if draws:
            self._draw()
        return reward, self.is_over, frames

    def get_state(self) -> NDArray[np.void]:
        """Everything the future depends on, in the form of a console's state: [1] STATE."""
        state = np.zeros(1, STATE)
        state["p"], state["resistance"] = 0x30, [PADDLE_CENTRE, PADDLE_CENTRE, 0, 0]
        numbers = self._points, self._paddle, self._x, self._y, self._slope + 1
        state["ram"][0, :7] = *numbers, *divmod(self._seed, 256)
        return state

    def set_state(self, state: NDArray[np.void]) -> None:
        """Continue from a state, [1] STATE."""
        self._points, self._paddle, self._x, self._y, slope, high, low = state["ram"][
            0, :7
        ].tolist()
        self._slope, self._seed = slope - 1, high << 8 | low

    def _serve(self, seed: int) -> None:
        # The next serve depends on how the last point was played, as in the real game.
        self._seed = seed
        self._x = 8
        self._y = 45 + (seed * 37) % 140
        self._slope = seed % 3 - 1

    def _emulate(self, direction: int) -> int:
        self._paddle = min(max(self._paddle + direction * _PADDLE_SPEED, 35), 194 - _PADDLE_HEIGHT)
        self._x += _SPEED
        self._y = min(max(self._y + self._slope, 37), 190)
        if self._x < 140:
            return 0
        self._points += 1
        is_caught = self._paddle <= self._y < self._paddle + _PADDLE_HEIGHT
        self._serve(seed=self._seed * 5 + self._paddle + 3 + self._points & 0xFFFF)
        return 1 if is_caught else -1

    def _draw(self) -> None:
        self.picture[:] = _BACKGROUND
        self.picture[self._paddle : self._paddle + _PADDLE_HEIGHT, 140:144] = _PADDLE
        self.picture[self._y : self._y + 4, self._x : self._x + 2] = _BALL
