"""A game for two sides, frame by frame; each side may be an agent, a script or a person."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.games.rules import Rules
from pixelpong.atari.machine.record import STATE
from pixelpong.items import DOWN, STAY, UP
from pixelpong.pong.cartridge import BALL_ROW, SERVE
from pixelpong.pong.emulator import SteppedGame
from pixelpong.pong.modes import (
    LEFT,
    MAX_FRAMES,
    MAX_PRESSES,
    MIDDLE_ROW,
    MIN_PRESSES,
    MODE,
    RIGHT,
    ROWS_PER_PRESS,
)
from pixelpong.pong.native import for_two

_TURNS = {UP: -1, STAY: 0, DOWN: 1}  # how far each move turns the knob
_SIDES = (RIGHT, LEFT)  # the order of the console's moves


class Move(NamedTuple):
    """A side's move in one frame."""

    action: int  # STAY, UP or DOWN
    # In [0, 1). If it is less than the side's `sticky`, the side keeps its previous action.
    uniform: float = 0.0


class Duel(SteppedGame):
    """A game of Pong for two, frame by frame."""

    def __init__(self, mode: int = MODE, sticky: tuple[float, float] = (0.0, 0.0)) -> None:
        """Start a game.

        Args:
            mode: the number of the game on the cartridge, see `for_two`.
            sticky: the probability that a frame keeps the action, for the left and right side.
        """
        chances = sticky[RIGHT], sticky[LEFT]
        super().__init__(Rules(for_two(mode), 1, 1, MAX_FRAMES, chances, num_sides=2))
        # The console's memory, [128] uint8.
        self.memory: NDArray[np.uint8] = self._games.states.view(STATE)[0]["ram"][0]

    def reset(self) -> None:
        """Start a game."""
        super().reset()
        self.frames_since_point = 0
        self._winner: int | None = None
        self._presses = [0.0, 0.0]  # each knob's distance from the middle, in presses

    def act(self, left: Move, right: Move, *, fires: bool = False) -> None:
        """Emulate one frame.

        The right side serves whenever it is its turn, the left side only if `fires` is True.
        """
        orders = self._games.orders
        orders.moves[0] = right.action | SERVE, left.action | SERVE * fires
        orders.uniforms[0, 0, 2::3] = right.uniform, left.uniform
        reward = self._step()
        for side, held in zip(_SIDES, self._game["held"].tolist(), strict=True):
            turned = self._presses[side] + _TURNS[held & ~SERVE]
            self._presses[side] = min(max(turned, MIN_PRESSES), MAX_PRESSES)
        self.frames_since_point += 1
        if reward:
            self._winner, self.frames_since_point = RIGHT if reward > 0 else LEFT, 0

    @property
    def points(self) -> tuple[int, int]:
        """The points of the left and the right side."""
        right, left = self._game["points"].tolist()
        return left, right

    @property
    def server(self) -> int | None:
        """The side whose turn it is to serve; None during a rally and before the first ball."""
        return self._winner if self.memory[BALL_ROW] == 0 else None

    def steer(self, row: float, side: int = LEFT) -> int:
        """Return the move that brings the middle of a side's paddle to a row of the frame.

        The paddle follows the knob with a delay. So the row is compared with the knob's position,
        not with the visible paddle's; otherwise the paddle would not come to rest.
        """
        missing = (row - MIDDLE_ROW) / ROWS_PER_PRESS - self._presses[side]
        return UP if missing < -0.5 else DOWN if missing > 0.5 else STAY
