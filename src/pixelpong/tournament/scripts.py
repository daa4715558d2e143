"""Scripted players of either side, to measure agents against.

    perfect      sees the ball at once, and follows it
    person       sees it after 200 ms and misjudges its row: stands for a human player
    predictor    works out where the ball will arrive, with its bounces off the walls

They see what the picture shows of the ball, its column and row, through the console's memory. They
move in every frame, never stick, and bring the paddle to a row as a mouse does
(`DuelEmulator.steer`). Each time the ball turns back, and at each serve, they choose another part
of the paddle, so that no rally repeats itself for ever. While the ball flies away from them they go
to the middle. Nothing is trained with them.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from pixelpong.env.cartridge import BALL_ROW
from pixelpong.env.duel import FIRST_ROW, LAST_ROW, LEFT, DuelEmulator

_FRAMES_PER_SECOND = 60

_BALL_COLUMN = 49  # address of the ball's column in memory
_COLUMN_0, _ROW_0 = 49, 14  # what memory has for column 0 and row 0 of the frame
_HALF_BALL = 2
_HIGHEST, _LOWEST = 31.5, 191.5  # first rows of the ball between which it flies
_HIT_COLUMNS = (19, 139)  # of the ball when a paddle hits it, left and right
_MIDDLE = (FIRST_ROW + LAST_ROW) / 2


@dataclass(frozen=True)
class Script:
    """What a scripted player does."""

    delay: int = 0  # milliseconds after which it sees the ball
    noise: float = 4.0  # rows at most from the paddle's middle to where it hits; up to 10 still hit
    foresees: bool = False  # whether it aims where the ball will arrive instead of where it is


SCRIPTS = {
    "perfect": Script(),
    # With a delay alone it would lose to everybody: its paddle is always where the ball was.
    "person": Script(200, noise=10.0),
    "predictor": Script(noise=6.0, foresees=True),
}
"""The scripted players, by name."""


class Follower:
    """A scripted player at one side of a game."""

    looks = False  # it never needs the picture of the next frame

    def __init__(self, script: Script, side: int, rng: np.random.Generator) -> None:
        """Take the side LEFT or RIGHT; `rng` draws the part of the paddle that hits."""
        self._script, self._side, self._rng = script, side, rng
        delay = round(script.delay * _FRAMES_PER_SECOND / 1000)
        self._past: deque[tuple[int, int] | None] = deque(maxlen=delay + 1)
        self._last: tuple[int, int] | None = None
        self._along = self._down = 0
        self._offset = 0.0

    def move(self, game: DuelEmulator) -> int:
        """The move in the next frame: STAY, UP or DOWN."""
        self._past.append(find_ball(game))
        ball = self._past[0]
        self._judge(ball)
        is_coming = self._along > 0 if self._side != LEFT else self._along < 0
        row = _MIDDLE
        if ball is not None and is_coming:
            row = self._foresee(*ball) if self._script.foresees else ball[1]
            row += _HALF_BALL + self._offset
        return game.steer(row, self._side)

    def _judge(self, ball: tuple[int, int] | None) -> None:
        """Note how the ball flies, and whether it has turned back."""
        before, self._last = self._last, ball
        if ball is None or before is None:
            self._along = 0
            return
        along, self._down = ball[0] - before[0], ball[1] - before[1]
        if along and along * self._along <= 0:
            self._offset = self._rng.uniform(-self._script.noise, self._script.noise)
        self._along = along or self._along

    def _foresee(self, column: int, row: int) -> float:
        """The first row of the ball when it arrives."""
        frames = max((_HIT_COLUMNS[self._side] - column) / self._along, 0.0)
        height = _LOWEST - _HIGHEST
        way = (row + self._down * frames - _HIGHEST) % (2 * height)
        return _HIGHEST + min(way, 2 * height - way)


def find_ball(game: DuelEmulator) -> tuple[int, int] | None:
    """Column and first row of the ball in the frame; None while it is out of play."""
    column, row = int(game.memory[_BALL_COLUMN]), int(game.memory[BALL_ROW])
    return (column - _COLUMN_0, row - _ROW_0) if row else None
