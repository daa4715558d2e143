"""Counts the bounces of the ball, from the picture alone: the page makes a sound for each.

The ball turns back at a paddle, and up or down at a wall. So a change of its direction is a bounce,
whatever game or emulator drew it.

Covered: counting. Not covered: the sounds (``faces/page/static/sound.js``), points.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pixelpong.env.duel import FIRST_ROW, LAST_ROW

_BALL = 14
"""Its palette index."""

_HEIGHT = 4
"""Its rows."""

_NEAR = 10
"""Rows from the edge of the field within which the ball may bounce off a wall."""


class Bounces:
    """The ball's bounces since the game began.

    Attributes:
        walls: off the upper and the lower wall.
        paddles: off the two paddles.
    """

    def __init__(self) -> None:
        """No ball has been seen yet."""
        self.walls = self.paddles = 0
        self._place: tuple[int, int] | None = None
        self._direction = [0, 0]

    def see(self, screen: NDArray[np.uint8]) -> None:
        """Look at the next frame.

        Args:
            screen: [210, 160] uint8 palette indices; not changed.
        """
        field = screen[FIRST_ROW : LAST_ROW + 1] == _BALL
        before, self._place = self._place, _find_ball(field)
        place = self._place
        if before is None or place is None:
            self._direction = [0, 0]  # a point, or a serve
            return
        rows, columns = place[0] - before[0], place[1] - before[1]
        if self._turns(1, columns):
            self.paddles += 1
            self._direction[0] = 0  # a paddle may turn it up or down as well
        if self._turns(0, rows) and not _NEAR <= place[0] < len(field) - _NEAR:
            self.walls += 1

    def _turns(self, axis: int, moved: int) -> bool:
        """Whether it has changed direction along an axis; remember the new one."""
        before = self._direction[axis]
        if moved:
            self._direction[axis] = 1 if moved > 0 else -1
        return before * moved < 0


def _find_ball(field: NDArray[np.bool_]) -> tuple[int, int] | None:
    """The row and column of its upper left corner, or None; the upper wall may hide some rows."""
    row, column = divmod(int(field.argmax()), field.shape[1])
    if not field[row, column]:
        return None
    return (row or int(field[:_HEIGHT, column].sum()) - _HEIGHT), column
