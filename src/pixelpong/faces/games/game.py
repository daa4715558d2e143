"""A game of Pong, picture by picture: a person against an agent.

`Game.tick` is called sixty times a second and emulates what is due, one frame at speed 1. The agent
plays the right side exactly as in training (`pixelpong.agent.game.Hand`), and takes the most
probable action. A person's moves never stick.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.file import Agent
from pixelpong.agent.game import Hand
from pixelpong.env.duel import FIRST_ROW, LAST_ROW, LEFT, DuelEmulator
from pixelpong.items import STAY

SERVE_FRAMES = 180  # frames after a point when the person's side serves automatically

# Phases of a game: not begun, the ball flies, the person has to serve, halted, finished.
READY, PLAYING, SERVE, PAUSED, OVER = "ready", "playing", "serve", "paused", "over"


class Game:
    """A game; the agent plays the right side, and `speed` is in frames per tick."""

    def __init__(self, agent: Agent, rng: np.random.Generator) -> None:
        """A new game, which begins with `serve`; `rng` draws the agent's coins.

        To load the emulator takes a tenth of a second or more.
        """
        self.speed, self._emulator, self._hand = 1.0, DuelEmulator(), Hand(agent, rng)
        self._person: Callable[[DuelEmulator], int] = lambda _: STAY
        self._state, self._serves, self._credit = READY, False, 0.0
        agent.make_network().act(self.screen)  # before the clock runs: it may compile

    def tick(self) -> None:
        """Advance by a sixtieth of a second, unless the game stands still."""
        if self._state != PLAYING:
            return
        self._credit += self.speed
        while self._credit >= 1 and not self._emulator.is_over:
            self._credit -= 1
            self._advance(self._emulator)

    def _advance(self, emulator: DuelEmulator) -> None:
        fires = self._serves or emulator.frames_since_point >= SERVE_FRAMES
        emulator.act(self._person(emulator), self._hand.move(emulator), fires=fires)
        self._serves &= emulator.server == LEFT

    def move(self, direction: int) -> None:
        """Set the key held: STAY, UP or DOWN."""
        self._person = lambda _: direction

    def aim(self, place: float) -> None:
        """Aim the paddle at a place of the field, 0 at the top and 1 at the bottom."""
        row = FIRST_ROW + place * (LAST_ROW + 1 - FIRST_ROW)
        row = min(max(row, FIRST_ROW + 6), LAST_ROW - 6)
        self._person = lambda emulator: emulator.steer(row)

    def serve(self) -> None:
        """Begin the game, or serve if it is time."""
        self._state = PLAYING if self._state == READY else self._state
        self._serves = self._emulator.server == LEFT

    def pause(self, is_paused: bool) -> None:
        """Halt the game or let it go on, if it has begun."""
        if self._state != READY:
            self._state = PAUSED if is_paused else PLAYING

    @property
    def phase(self) -> str:
        """READY, PLAYING, SERVE, PAUSED or OVER."""
        if self._emulator.is_over:
            return OVER
        is_waiting = self._state == PLAYING and self._emulator.server == LEFT
        return SERVE if is_waiting else self._state

    @property
    def screen(self) -> NDArray[np.uint8]:
        """[210, 160] uint8 palette indices of the newest frame."""
        return self._emulator.screen

    def describe(self) -> dict[str, Any]:
        """The state of the game, as JSON."""
        return {"phase": self.phase, "points": list(self._emulator.points), "speed": self.speed}
