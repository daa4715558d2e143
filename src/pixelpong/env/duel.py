"""Atari Pong for two: the same cartridge in its mode 3, on the native emulator.

What was found by experiment (``tests/test_duel.py`` holds each frame to multi-agent-ale-py 0.1.12):

- Of the 22 modes for two, 3 and 4 have the picture the agent was trained on: background 34, the
  left paddle 56 in columns 16–19, the right one 200 in columns 140–143, each 16 rows high, a ball
  14 of two columns by four rows. Modes 9 and 10 look alike, but the ball always flies diagonally
  there; mode 13 is another game altogether.
- In mode 3 the ball flies one column a frame for ever, as in the game the agent learned; in mode
  4 it gets faster, up to four columns a frame. So it is mode 3. Both difficulty switches are on
  easy: on hard both paddles shrink.
- Under the same presses the right paddle is in the same rows, frame for frame, as in the game for
  one; both paddles move at every second frame, some 5.7 rows for a press.
- The first ball comes by itself, to the left. After that the winner of the point has to press FIRE,
  and the ball flies to the other side; it comes 63 or 64 frames after the point, as it does by
  itself in the game for one, or whenever FIRE is pressed later. FIRE of the other side does
  nothing.
- At 21 the game is over. It also ends by itself after 65,270 frames, 18 minutes, whatever is
  pressed: the colours change and no more points are won.
- What differs: in the game for one the left paddle is missing from the first 58 frames, and the
  first frame has colours of its own; here neither is so.

Covered: frame by frame play, the serve, bringing the left paddle to a row.
Not covered: sticky actions and deciding (`pixelpong.faces.games.game`).
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
from pixelpong.atari.palette import PALETTE
from pixelpong.env.cartridge import LEFT_POINTS, RIGHT_POINTS
from pixelpong.env.native import NativeConsole, NotCoveredError
from pixelpong.errors import EmulatorError, expected
from pixelpong.items import DOWN, STAY, UP

LEFT, RIGHT = 0, 1
"""The two sides, as places in `DuelEmulator.points`."""

FIRST_ROW, LAST_ROW = 34, 193
"""Rows of the frame between which paddles are seen."""

MODE = 3
"""Pong for two, with the ball of the single player's game."""

_MAX_FRAMES = 65_000
"""Shortly before the cartridge ends a game of its own accord."""

_BALL = 14
"""Its palette index; that of the borders above and below too."""

_FIRING = {STAY: 1, UP: 4, DOWN: 5}
"""The moves with the button pressed, as Gymnasium numbers actions."""

_MIDDLE_ROW, _ROWS_A_PRESS = 103.0, 5.7
"""Where the left paddle's middle is in the beginning, and how far one frame's press moves it."""

_MIN_PRESSES = (PADDLE_LOWEST - PADDLE_CENTRE) / PADDLE_TURN
_MAX_PRESSES = (PADDLE_HIGHEST - PADDLE_CENTRE) / PADDLE_TURN
"""From the middle to the ends of the knob."""


class DuelEmulator:
    """One game of Pong for two.

    Attributes:
        screen: [210, 160] uint8 palette indices of the newest frame, overwritten at every frame.
        points: won by the left and by the right side.
        num_frames: emulated since the game began.
        frames_since_point: emulated since the last point, or since the game began.
    """

    def __init__(self, mode: int = MODE) -> None:
        """Load the game and start it.

        Args:
            mode: of the cartridge.

        Raises:
            EmulatorError: the native emulator cannot play here; ALE has no game for two.
        """
        try:
            self._console = NativeConsole(mode)
        except NotCoveredError as error:
            raise _no_game(error) from error
        self.screen = self._console.picture
        self.reset()

    def reset(self) -> None:
        """Start a game."""
        self._console.reset()
        self.points = [0, 0]
        self.num_frames = self.frames_since_point = 0
        self._winner: int | None = None
        self._is_over = False
        self._presses = 0.0
        self._look()

    def act(self, left: int, right: int, *, fires: bool = False) -> None:
        """Emulate one frame; the right side serves by itself.

        Args:
            left: STAY, UP or DOWN.
            right: the same for the right side.
            fires: whether the left side serves, if it has to.

        Raises:
            EmulatorError: the game did something that the native emulator does not cover.
        """
        # FIRE counts when it is pressed anew, so it is let go at every second frame.
        is_pressed = self.num_frames % 2 == 1
        moves = [left, right]
        if is_pressed and self.server is not None and (self.server == RIGHT or fires):
            moves[self.server] = _FIRING[moves[self.server]]
        try:
            _, self._is_over, _ = self._console.run(
                bytes([moves[LEFT] << 4 | moves[RIGHT]]), DRAW_PICTURE
            )
        except NotCoveredError as error:
            raise _no_game(error) from error
        self._turn_knob(left)
        self.num_frames += 1
        self.frames_since_point += 1
        points = [int(self._console.memory[place]) for place in (LEFT_POINTS, RIGHT_POINTS)]
        for side in (LEFT, RIGHT):
            if points[side] > self.points[side]:
                self._winner, self.frames_since_point = side, 0
        self.points = points
        self._look()

    @property
    def server(self) -> int | None:
        """The side that has to serve now; None while the ball flies or comes by itself."""
        return self._winner if self._is_waiting else None

    @property
    def is_over(self) -> bool:
        """Whether one side has 21 points, or time is up."""
        return self._is_over or self.num_frames >= _MAX_FRAMES

    def frame(self) -> NDArray[np.uint8]:
        """The newest frame in colour, [210, 160, 3] uint8."""
        return PALETTE[self.screen]

    def steer(self, row: float) -> int:
        """The move that brings the middle of the left paddle to a row.

        The game follows the knob with a delay; so that the paddle comes to rest, what is compared
        is where the knob stands and not where the paddle is seen.

        Args:
            row: of the frame.
        """
        missing = (row - _MIDDLE_ROW) / _ROWS_A_PRESS - self._presses
        return UP if missing < -0.5 else DOWN if missing > 0.5 else STAY

    def _turn_knob(self, move: int) -> None:
        turned = self._presses + {UP: -1, STAY: 0, DOWN: 1}[move]
        self._presses = min(max(turned, _MIN_PRESSES), _MAX_PRESSES)

    def _look(self) -> None:
        field = self.screen[FIRST_ROW : LAST_ROW + 1]
        self._is_waiting = not (field == _BALL).any()


def _no_game(reason: NotCoveredError) -> EmulatorError:
    advice = "watch the agent instead: pixelpong watch"
    return EmulatorError(expected("a machine that the game for two runs on", reason, advice))
