"""Atari Pong for two players: the same cartridge in its mode 3.

Facts found by experiment (``test_duel.py`` compares each frame with multi-agent-ale-py 0.1.12):

- Of the 22 modes for two, 3 and 4 have the picture the agent was trained on: background 34, the
  left paddle 56 in columns 16–19, the right one 200 in columns 140–143, each 16 rows high, a ball
  14 of two columns by four rows. Modes 9 and 10 look the same, but their ball always flies
  diagonally; mode 13 is a different game.
- In mode 3 the ball always flies one column per frame, as in the game the agent learned; in mode
  4 it gets faster, up to four columns per frame. So we use mode 3. Both difficulty switches are on
  easy: on hard both paddles shrink.
- With the same presses, the right paddle is in the same rows, frame for frame, as in the one-player
  game; both paddles move in every second frame, about 5.7 rows per press.
- The first ball is served automatically, to the left. After that the winner of a point has to press
  FIRE, and the ball flies to the other side. It appears 63 or 64 frames after the point, as in the
  one-player game, or when FIRE is pressed later. The other side's FIRE does nothing.
- At 21 the game is over. It also ends after 65,270 frames, 18 minutes, whatever is pressed: the
  colours change and nobody wins any more points.
- In the one-player game, the left paddle is missing from the first 58 frames, and the first frame
  has other colours; here neither is the case.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine import (
    DRAW_PICTURE,
    PADDLE_CENTRE,
    PADDLE_HIGHEST,
    PADDLE_LOWEST,
    PADDLE_TURN,
)
from pixelpong.env.cartridge import BALL_ROW, LEFT_POINTS, RIGHT_POINTS, SERVE
from pixelpong.env.native import NativeConsole
from pixelpong.items import DOWN, STAY, UP

LEFT, RIGHT = 0, 1  # the two sides, as indices of `DuelEmulator.points`
FIRST_ROW, LAST_ROW = 34, 193  # rows of the frame between which paddles are visible
MODE = 3  # Pong for two, with the ball of the one-player game
MAX_FRAMES = 65_000  # shortly before the cartridge itself ends a game, in any mode

# The row of a paddle's middle at the start, and how far one frame's press moves it.
_MIDDLE_ROW, _ROWS_A_PRESS = 103.0, 5.7
# From the middle to the ends of the knob.
_MIN_PRESSES = (PADDLE_LOWEST - PADDLE_CENTRE) / PADDLE_TURN
_MAX_PRESSES = (PADDLE_HIGHEST - PADDLE_CENTRE) / PADDLE_TURN


class DuelEmulator:
    """A game of Pong for two, frame by frame."""

    def __init__(self, mode: int = MODE) -> None:
        """Start a game; `mode` is the cartridge's, see `NativeGame.switch_on`."""
        self.console = NativeConsole(mode)
        self.reset()

    def reset(self) -> None:
        """Start a game."""
        self.console.reset()
        self.num_frames = 0
        self.points = [0, 0]  # of the left and the right side
        self.frames_since_point = 0
        self._winner: int | None = None
        self._presses = [0.0, 0.0]

    def act(self, left: int, right: int, *, fires: bool = False) -> None:
        """Emulate one frame with the moves STAY, UP or DOWN.

        The right side serves whenever it is its turn; the left side only if it `fires`.
        """
        buttons = (left | SERVE * fires) << 4 | right | SERVE
        self.console.run(bytes([buttons]), DRAW_PICTURE)
        for side, move in ((LEFT, left), (RIGHT, right)):
            turned = self._presses[side] + {UP: -1, STAY: 0, DOWN: 1}[move]
            self._presses[side] = min(max(turned, _MIN_PRESSES), _MAX_PRESSES)
        self.num_frames += 1
        self.frames_since_point += 1
        points = [int(self.memory[place]) for place in (LEFT_POINTS, RIGHT_POINTS)]
        for side in (LEFT, RIGHT):
            if points[side] > self.points[side]:
                self._winner, self.frames_since_point = side, 0
        self.points = points

    @property
    def screen(self) -> NDArray[np.uint8]:
        """The newest frame, [210, 160] palette indices, overwritten at every frame."""
        return self.console.picture

    @property
    def is_over(self) -> bool:
        """Whether a side has 21 points, or the cartridge would soon end the game."""
        return self.console.is_over or self.num_frames >= MAX_FRAMES

    @property
    def server(self) -> int | None:
        """The side whose turn it is to serve; None during a rally and before the first ball."""
        return self._winner if self.memory[BALL_ROW] == 0 else None

    @property
    def memory(self) -> NDArray[np.uint8]:
        """The console's memory, [128] uint8."""
        return self.console.memory

    def steer(self, row: float, side: int = LEFT) -> int:
        """Return the move that brings the middle of a side's paddle to a row of the frame.

        The paddle follows the knob with a delay. So the row is compared with the knob's position,
        not with the visible paddle's; otherwise the paddle would not come to rest.
        """
        missing = (row - _MIDDLE_ROW) / _ROWS_A_PRESS - self._presses[side]
        return UP if missing < -0.5 else DOWN if missing > 0.5 else STAY
