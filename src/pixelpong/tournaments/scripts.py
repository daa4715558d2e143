"""Scripted players for either side, to measure agents against.

    perfect      sees the ball at once and follows it
    person       sees it after 200 ms and misjudges its row, like a human player
    predictor    computes where the ball will arrive, including its bounces off the walls

They read the ball's column and row, which are also visible in the picture, from the console's
memory. They move in every frame, have no sticky actions, and steer the paddle to a row like a mouse
(`Duel.steer`). At each serve and each time the ball turns back, they choose another part of the
paddle, so that no rally repeats for ever. While the ball flies away from them, they return to the
middle. No agent is trained against them.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable

import numpy as np

from pixelpong.pong.cartridge import BALL_ROW
from pixelpong.pong.duel import Duel
from pixelpong.pong.modes import FIRST_ROW, LAST_ROW, LEFT

_BALL_COLUMN = 49  # address of the ball's column in memory
_COLUMN_0, _ROW_0 = 49, 14  # the values in memory for column 0 and row 0 of the frame
_HALF_BALL = 2
_HIGHEST, _ROWS = 31.5, 160.0  # the ball's highest row, and the range of rows below it
_HIT_COLUMNS = (19, 139)  # the ball's column when the left or the right paddle hits it
_MIDDLE = (FIRST_ROW + LAST_ROW) / 2


class Script:
    """A scripted player on one side of a game."""

    def __init__(
        self,
        side: int,
        rng: np.random.Generator,
        *,
        delay: int = 0,
        noise: float = 4.0,
        foresees: bool = False,
    ) -> None:
        """Play the side LEFT or RIGHT; `rng` chooses the part of the paddle that hits the ball.

        Args:
            delay: number of frames after which it sees the ball.
            noise: maximum rows between the paddle's middle and the ball; up to 10, it still hits.
            foresees: whether it aims at the row where the ball will arrive.
        """
        self._side, self._rng, self._noise, self._foresees = side, rng, noise, foresees
        nothing: list[tuple[int, int] | None] = [None] * (delay + 2)
        self._balls = deque(nothing, maxlen=len(nothing))  # it sees only the two oldest
        self._along, self._offset = 0, 0.0

    def move(self, game: Duel) -> int:
        """Return the move in the next frame: STAY, UP or DOWN."""
        self._balls.append(find_ball(game))
        before, ball = self._balls[0], self._balls[1]
        row = _MIDDLE
        if before is None or ball is None:
            self._along = 0
        else:
            along, down = ball[0] - before[0], ball[1] - before[1]
            if along and along * self._along <= 0:  # it was served or turned back
                self._offset = self._rng.uniform(-self._noise, self._noise)
            self._along = along or self._along
            if self._along < 0 if self._side == LEFT else self._along > 0:
                row = self._foresee(*ball, down) if self._foresees else ball[1]
                row += _HALF_BALL + self._offset
        return game.steer(row, self._side)

    def _foresee(self, column: int, row: int, down: int) -> float:
        """Predict the ball's first row when it arrives."""
        frames = max((_HIT_COLUMNS[self._side] - column) / self._along, 0.0)
        way = (row + down * frames - _HIGHEST) % (2 * _ROWS)
        return _HIGHEST + min(way, 2 * _ROWS - way)


SCRIPTS: dict[str, Callable[[int, np.random.Generator], Script]] = {
    "perfect": Script,
    # With only the delay, the paddle would be where the ball was, and it would always lose.
    "person": functools.partial(Script, delay=12, noise=10.0),
    "predictor": functools.partial(Script, noise=6.0, foresees=True),
}
"""The scripted players by name; each is made from a side and a generator."""


def find_ball(game: Duel) -> tuple[int, int] | None:
    """Return the ball's column and first row in the frame; None while it is out of play."""
    column, row = int(game.memory[_BALL_COLUMN]), int(game.memory[BALL_ROW])
    return (column - _COLUMN_0, row - _ROW_0) if row else None
