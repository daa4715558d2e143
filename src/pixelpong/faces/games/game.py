"""A game of Pong, picture by picture: a person against an agent.

`Game.tick` is called sixty times a second and emulates what is due, one frame at speed 1. The agent
plays the right side exactly as in training: it decides every `frame_skip` frames, its policy sees
the same pixels and has the same memory, its moves stick with the protocol's probability, and it
takes the most probable action. A person's moves never stick.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.file import Agent
from pixelpong.agent.hand import Hand
from pixelpong.env.duel import FIRST_ROW, LAST_ROW, LEFT, DuelEmulator
from pixelpong.items import DOWN, STAY, UP

SERVE_FRAMES = 180  # frames after a point when the person's side serves automatically

# Phases of a game: not begun, the ball flies, the person has to serve, halted, finished.
READY, PLAYING, SERVE, PAUSED, OVER = "ready", "playing", "serve", "paused", "over"


class Game:
    """A game; its `agent` plays the right side, and `speed` is in frames per tick."""

    def __init__(self, agent: Agent, rng: np.random.Generator) -> None:
        """Load the emulator, in a tenth of a second or more; `rng` draws the agent's coins."""
        self.speed, self._rng, self._emulator = 1.0, rng, DuelEmulator()
        self._direction = STAY
        self._row: float | None = None  # where the mouse points; None if the keys hold
        self.seat(agent)

    def seat(self, agent: Agent) -> None:
        """Let another agent play, and start a new game."""
        self.agent, self._hand = agent, Hand(agent, self._rng)
        self._hand.network.act(self.screen)  # before the clock runs: it may compile
        self.restart()

    def restart(self) -> None:
        """Start a new game, 0 to 0, which begins with `serve`."""
        self._emulator.reset()
        self._hand.start_episode()
        self._credit, self.is_paused = 0.0, False
        self._serves = self._has_begun = False

    def tick(self) -> None:
        """Advance by a sixtieth of a second, unless the game stands still."""
        if self.phase in (READY, PAUSED, OVER):
            return
        self._credit += self.speed
        frames, self._credit = int(self._credit), self._credit % 1
        for _ in range(frames):
            if not self._emulator.is_over:
                self._advance()

    def _advance(self) -> None:
        emulator = self._emulator
        left = self._direction if self._row is None else emulator.steer(self._row)
        fires = self._serves or emulator.frames_since_point >= SERVE_FRAMES
        emulator.act(left, self._hand.move(emulator), fires=fires)
        self._serves &= emulator.server == LEFT

    def move(self, direction: int) -> None:
        """Set the key held: STAY, UP or DOWN."""
        assert direction in (STAY, UP, DOWN), direction
        self._direction, self._row = direction, None

    def aim(self, place: float) -> None:
        """Aim the paddle at a place of the field, 0 at the top and 1 at the bottom."""
        row = FIRST_ROW + place * (LAST_ROW + 1 - FIRST_ROW)
        self._row = min(max(row, FIRST_ROW + 6), LAST_ROW - 6)

    def serve(self) -> None:
        """Begin the game, or serve if it is time."""
        self._has_begun = True
        self._serves = self._emulator.server == LEFT

    @property
    def phase(self) -> str:
        """READY, PLAYING, SERVE, PAUSED or OVER."""
        if self._emulator.is_over:
            return OVER
        if not self._has_begun:
            return READY
        if self.is_paused:
            return PAUSED
        return SERVE if self._emulator.server == LEFT else PLAYING

    @property
    def screen(self) -> NDArray[np.uint8]:
        """[210, 160] uint8 palette indices of the newest frame."""
        return self._emulator.screen

    def describe(self) -> dict[str, Any]:
        """The state of the game, as JSON."""
        return {"phase": self.phase, "points": list(self._emulator.points), "speed": self.speed}
