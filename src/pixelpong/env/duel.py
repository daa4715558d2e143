"""Atari Pong for two: the only file with the two-player emulator.

It is the same game, ale-py's own ``pong.bin``, in the emulator of ``multi-agent-ale-py``. Both
packages are under the GNU General Public License, version 2, and stay what they are: ordinary
dependencies, installed by ``pip install 'pixelpong[play]'``. The ROM comes with ale-py and is not
copied.

Found by experiment, ale-py 0.12.1 against multi-agent-ale-py 0.1.12 (``tests/test_duel.py`` holds
them to it):

- Of the 22 modes for two, 3 and 4 have the picture the agent was trained on: background 34, the
  left paddle 56 in columns 16–19, the right one 200 in columns 140–143, each 16 rows high, a ball
  14 of two columns by four rows, the same red, green and blue. Modes 9 and 10 look alike, but the
  ball always flies diagonally there; mode 13 is another game altogether.
- In mode 3 the ball flies one column a frame for ever, as in the game the agent learned; in mode
  4 it gets faster, up to four columns a frame. So mode 3 it is, at difficulty 0: at 1 both paddles
  shrink.
- Of ``act([a, b])``, a moves the right paddle, b the left one. Under the same presses the right
  one is in the same rows, frame for frame, as in single player; both move at every second frame,
  some 5.7 rows for a press.
- The first ball comes by itself, to the left. After that whoever won the point has to press FIRE,
  and the ball flies to the other side; it comes 63 or 64 frames after the point, as it does by
  itself in single player, or whenever FIRE is pressed later. FIRE of the other side does nothing.
- Who has not served 119 frames after the point is charged −1 by multi-agent-ale-py, and again
  every 120 frames. The game itself knows nothing of it: it is left out of the points here.
- At 21 the game is over. Both emulators live in one process without harm.
- What differs: in single player the left paddle is missing from the first 58 frames, and the first
  frame has colours of its own; here neither is so.
- A frame takes 64 µs, as in single player, and other threads may run meanwhile.

Covered: frame by frame play, the serve, bringing the left paddle to a row.
Not covered: sticky actions and deciding (`pixelpong.report.web.game`).
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.errors import ConfigError, expected
from pixelpong.trajectory import DOWN, STAY, UP

LEFT, RIGHT = 0, 1
"""The two sides, as places in `DuelEmulator.points`."""

FIRST_ROW, LAST_ROW = 34, 193
"""Rows of the frame between which paddles are seen."""

MODE = 3
"""Pong for two, with the ball of the single player's game."""

_BALL = 14
"""Its palette index; that of the borders above and below too."""

_NOOP, _FIRE = 0, 1
_MOVES = {STAY: _NOOP, UP: 3, DOWN: 4}
_FIRING = {STAY: _FIRE, UP: 11, DOWN: 12}

_MIDDLE_ROW, _ROWS_A_PRESS = 103.0, 5.7
"""Where the left paddle's middle is in the beginning, and how far one frame's press moves it."""

_MAX_PRESSES = (790_196 - 27_450) / 2 / 23_000
"""From the middle to either end of the knob. Source: ALE, ``PADDLE_MIN/MAX/DELTA``."""


def require_play() -> None:
    """Make sure that the emulator for two is installed.

    Raises:
        ConfigError: it is not.
    """
    if importlib.util.find_spec("multi_agent_ale_py") is None:
        advice = "run: pip install 'pixelpong[play]'"
        raise ConfigError(expected("multi-agent-ale-py to be installed", "none", advice))


class DuelEmulator:
    """One game of Pong for two.

    Attributes:
        screen: [210, 160] uint8 palette indices of the newest frame, overwritten at every frame.
        points: won by the left and by the right side.
        num_frames: emulated since the game began.
        frames_since_point: emulated since the last point, or since the game began.
    """

    def __init__(self) -> None:
        """Load the game and start it.

        Raises:
            ConfigError: the emulator for two is not installed.
            EmulatorError: the game is not where the ale-py package keeps it.
        """
        self._ale = _load()
        self.screen = np.zeros((210, 160), np.uint8)
        self.reset()

    def reset(self) -> None:
        """Start a game; takes some milliseconds."""
        self._ale.reset_game()
        self.points = [0, 0]
        self.num_frames = self.frames_since_point = 0
        self._winner: int | None = None
        self._presses = 0.0
        self._look()

    def act(self, left: int, right: int, *, fires: bool = False) -> None:
        """Emulate one frame; the right side serves by itself.

        Args:
            left: STAY, UP or DOWN.
            right: the same for the right side.
            fires: whether the left side serves, where it has to.
        """
        # FIRE counts when it is pressed anew, so it is let go at every second frame.
        is_pressed = self.num_frames % 2 == 1
        left_moves = _FIRING if is_pressed and fires and self.server == LEFT else _MOVES
        right_moves = _FIRING if is_pressed and self.server == RIGHT else _MOVES
        rewards = self._ale.act([right_moves[right], left_moves[left]])
        self._turn_knob(left)
        self.num_frames += 1
        self.frames_since_point += 1
        for side, reward in ((RIGHT, rewards[0]), (LEFT, rewards[1])):
            if reward > 0:  # below 0 alone, it is the charge for not serving
                self.points[side] += 1
                self._winner, self.frames_since_point = side, 0
        self._look()

    @property
    def server(self) -> int | None:
        """The side that has to serve now; None while the ball flies or comes by itself."""
        return self._winner if self._is_waiting else None

    @property
    def is_over(self) -> bool:
        """Whether one side has 21 points."""
        return bool(self._ale.game_over())

    def frame(self) -> NDArray[np.uint8]:
        """The newest frame in colour, [210, 160, 3] uint8."""
        frame: NDArray[np.uint8] = self._ale.getScreenRGB()
        return frame

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
        self._presses = min(max(turned, -_MAX_PRESSES), _MAX_PRESSES)

    def _look(self) -> None:
        self._ale.getScreen(self.screen.reshape(-1))
        field = self.screen[FIRST_ROW : LAST_ROW + 1]
        self._is_waiting = not (field == _BALL).any()


def _load() -> Any:
    require_play()
    from multi_agent_ale_py import ALEInterface

    from pixelpong.env.rom import find_rom

    ALEInterface.setLoggerMode("error")
    ale = ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    ale.setInt("frame_skip", 1)
    ale.loadROM(str(find_rom()))
    ale.setMode(MODE)
    ale.setDifficulty(0)
    return ale
