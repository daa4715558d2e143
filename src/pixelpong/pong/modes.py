"""Atari Pong for two players: the same cartridge in its mode 3.

Facts found by experiment (``test_duel.py`` compares each frame with multi-agent-ale-py 0.1.12):

- Of the 22 modes for two players, 3 and 4 have the picture the agent was trained on: background 34,
  the left paddle 56 in columns 16–19, the right one 200 in columns 140–143, each 16 rows high, and
  a ball 14 of two columns by four rows. Modes 9 and 10 look the same, but their ball always flies
  diagonally; mode 13 is a different game.
- In mode 3 the ball always flies one column per frame, as in the game the agent learned; in mode
  4 it gets faster, up to four columns per frame. So we use mode 3. Both difficulty switches are set
  to easy; on hard, both paddles shrink.
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

from pixelpong.atari.machine.record import PADDLE_CENTRE, PADDLE_HIGHEST, PADDLE_LOWEST, PADDLE_TURN

LEFT, RIGHT = 0, 1  # the two sides, as indices of `points`
FIRST_ROW, LAST_ROW = 34, 193  # paddles are visible between these rows of the frame
MODE = 3  # Pong for two, with the ball of the one-player game
MAX_FRAMES = 65_000  # shortly before the cartridge itself ends a game, in any mode

# The row of a paddle's middle at the start, and how many rows a press of one frame moves it.
MIDDLE_ROW, ROWS_PER_PRESS = 103.0, 5.7
# The number of presses from the middle to either end of the knob.
MIN_PRESSES = (PADDLE_LOWEST - PADDLE_CENTRE) / PADDLE_TURN
MAX_PRESSES = (PADDLE_HIGHEST - PADDLE_CENTRE) / PADDLE_TURN
