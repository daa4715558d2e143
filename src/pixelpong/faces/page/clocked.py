"""What all games in the browser share: the person's messages, the phases, the clock."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine.palette import PALETTES
from pixelpong.schema import Share

# The phases of a game: not started, being played, waiting for the person's serve, paused, ended for
# the person while the agent still plays, finished.
READY, PLAYING, SERVE, PAUSED = "ready", "playing", "serve", "paused"
AGENT_ONLY, OVER = "agent only", "over"

Held = Literal["up", "down", "left", "right", "fire"]


class Message(msgspec.Struct, forbid_unknown_fields=True):
    """A message from the browser."""

    move: Literal["stay", "up", "down"] | None = None  # Pong: the key that is held
    aim: Share | None = None  # Pong: the height of the mouse or finger, 0 at the top of the field
    # Other games: what is held, the newest last; a longer list than a browser sends is refused.
    held: list[Held] | None = None
    speed: Literal["0.5", "1", "2"] | None = None  # a factor on sixty frames a second
    pause: bool | None = None
    serve: bool = False  # serve the ball or start the game


class ClockedGame:
    """A game of a person and an agent; its `speed` is in frames per tick."""

    palette = "NTSC"

    def __init__(self) -> None:
        """Set up the clock of a game, which starts with the message ``serve``."""
        self.speed, self._state, self._credit = 1.0, READY, 0.0

    def tick(self) -> None:
        """Advance the game by a sixtieth of a second unless it is paused or over."""
        if self._state != PLAYING:
            return
        self._credit += self.speed
        while self._credit >= 1 and not self.is_over:
            self._credit -= 1
            self._advance()

    def obey(self, message: Message) -> None:
        """Carry out a message from the person."""
        if message.speed is not None:
            self.speed = float(message.speed)
        if message.pause is not None and self._state != READY:
            self._state = PAUSED if message.pause else PLAYING
        if message.serve and self._state == READY:
            self._state = PLAYING

    def introduce(self) -> dict[str, Any]:
        """Describe what never changes, as JSON."""
        return {"palette": PALETTES[self.palette].tolist()}

    def describe(self) -> dict[str, Any]:
        """Describe the state of the game, as JSON; the person's points come first."""
        return {"phase": self.phase, "points": list(self.points), "speed": self.speed}

    def _advance(self) -> None:
        """Emulate a frame."""
        raise NotImplementedError

    @property
    def phase(self) -> str:
        """The phase, as above."""
        raise NotImplementedError

    @property
    def points(self) -> tuple[int, int]:
        """The points of the person and of the agent."""
        raise NotImplementedError

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left to play."""
        raise NotImplementedError

    @property
    def screens(self) -> tuple[NDArray[np.uint8], ...]:
        """The newest frames, each [rows, 160] uint8 palette indices, the person's first."""
        raise NotImplementedError
