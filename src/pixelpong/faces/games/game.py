"""A game of Pong, picture by picture: an agent against a person or the game itself, or two people.

`Game.tick` is called sixty times a second and emulates what is due, one frame at speed 1. The agent
plays the right side exactly as in training: it decides every `frame_skip` frames, its policy sees
the same pixels and has the same memory, its moves stick with the protocol's probability, and it
takes the most probable action. A person's moves never stick. A game that is only watched is bit for
bit the one that `Agent.play_episode` plays with the same generator. If two people play, the agent
has no part in the game.

Covered: moves, points, bounces, serve, pause, speed, another agent, the end at 21.
Not covered: clocks and the web (`pixelpong.faces.games.socket`).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.choice import name_strength
from pixelpong.agent.file import Agent
from pixelpong.agent.hand import Hand
from pixelpong.env import make_emulator
from pixelpong.env.duel import FIRST_ROW, LAST_ROW, LEFT, RIGHT, DuelEmulator
from pixelpong.env.pong import Emulator
from pixelpong.faces.games.bounces import Bounces
from pixelpong.items import DOWN, STAY, UP

PLAY, TWO, WATCH = "play", "two", "watch"
MODES = (PLAY, TWO, WATCH)
"""A person plays the left side against the agent; two people play; the agent plays the game."""

SPEEDS = (0.5, 1.0, 2.0)
"""Multiples of the game's own sixty frames a second."""

SERVE_FRAMES = 180
"""Frames after a point when a person's side serves by itself."""

READY, PLAYING, SERVE, PAUSED, OVER = "ready", "playing", "serve", "paused", "over"
"""Phases of a game: not begun, the ball flies, a person has to serve, halted, finished."""


class Game:
    """A game and its players.

    Attributes:
        agent: the right side, unless two people play.
        mode: one of `MODES`.
        speed: one of `SPEEDS`.
        is_paused: whether time stands still.
        points: won by the left and by the right side.
        bounces: of the ball.
    """

    def __init__(self, agent: Agent, mode: str, rng: np.random.Generator) -> None:
        """Load the emulator; takes a tenth of a second or more.

        Args:
            agent: plays the right side.
            mode: one of `MODES`.
            rng: draws the agent's coins.

        Raises:
            EmulatorError: the emulator or its game is not installed.
        """
        assert mode in MODES, mode
        self.mode, self.speed, self._rng = mode, 1.0, rng
        self._emulator: Emulator | DuelEmulator = (
            make_emulator(dataclasses.replace(agent.protocol, frame_skips=(1, 1)))
            if mode == WATCH
            else DuelEmulator()
        )
        self._directions = [STAY, STAY]
        self._row: float | None = None  # where the mouse points; None if the keys hold
        self.seat(agent)

    def seat(self, agent: Agent) -> None:
        """Let another agent play, and start a new game."""
        self.agent, self._hand = agent, Hand(agent, self._rng)
        self._hand.network.act(self.screen)  # before the clock runs: it may compile
        self.restart()

    def restart(self) -> None:
        """Start a new game, 0 to 0; a person's begins with `serve`."""
        self._emulator.reset()
        self._hand.start_episode()
        self.points, self.bounces = [0, 0], Bounces()
        self._credit, self.is_paused = 0.0, False
        self._serves, self._has_begun = False, self.mode == WATCH

    def tick(self) -> bool:
        """Advance by a sixtieth of a second; return whether the screen may have changed."""
        if self.is_still:
            return False
        self._credit += self.speed
        frames, self._credit = int(self._credit), self._credit % 1
        for _ in range(frames):
            if not self._emulator.is_over:
                self._advance()
                self.bounces.see(self.screen)
        return frames > 0

    def _advance(self) -> None:
        if isinstance(self._emulator, DuelEmulator):
            self._advance_both(self._emulator)
            return
        action, coin = self._hand.choose(self.screen)
        reward = self._emulator.step(action, (0.0, coin))
        self.points[LEFT] += reward < 0
        self.points[RIGHT] += reward > 0

    def _advance_both(self, emulator: DuelEmulator) -> None:
        left = self._directions[LEFT] if self._row is None else emulator.steer(self._row)
        right = self._directions[RIGHT] if self.mode == TWO else self._hand.move(emulator)
        fires = self._serves or emulator.frames_since_point >= SERVE_FRAMES
        emulator.act(left, right, fires=fires, fires_right=fires or self.mode == PLAY)
        self.points = emulator.points
        self._serves &= self._awaits_serve

    def move(self, direction: int, side: int = LEFT) -> None:
        """Set the key held for a side: STAY, UP or DOWN."""
        assert direction in (STAY, UP, DOWN), direction
        self._directions[side] = direction
        if side == LEFT:
            self._row = None

    def aim(self, place: float) -> None:
        """Aim the left paddle at a place of the field, 0 at the top and 1 at the bottom."""
        row = FIRST_ROW + min(max(place, 0.0), 1.0) * (LAST_ROW + 1 - FIRST_ROW)
        self._row = min(max(row, FIRST_ROW + 6), LAST_ROW - 6)

    def serve(self) -> None:
        """Begin the game for a person, or serve if it is time."""
        self._has_begun = True
        self._serves = self._awaits_serve

    @property
    def _awaits_serve(self) -> bool:
        if not isinstance(self._emulator, DuelEmulator):
            return False
        return self._emulator.server in ((LEFT, RIGHT) if self.mode == TWO else (LEFT,))

    @property
    def is_still(self) -> bool:
        """Whether `tick` has nothing to do."""
        return self.phase in (READY, PAUSED, OVER)

    @property
    def phase(self) -> str:
        """READY, PLAYING, SERVE, PAUSED or OVER."""
        if self._emulator.is_over:
            return OVER
        if not self._has_begun:
            return READY
        if self.is_paused:
            return PAUSED
        return SERVE if self._awaits_serve else PLAYING

    @property
    def screen(self) -> NDArray[np.uint8]:
        """[210, 160] uint8 palette indices of the newest frame."""
        return self._emulator.screen

    def frame(self) -> NDArray[np.uint8]:
        """The newest frame in colour, [210, 160, 3] uint8."""
        return self._emulator.frame()

    def describe(self) -> dict[str, Any]:
        """The state of the game, as JSON."""
        about = self.agent.about
        agent = {name: about.get(name) for name in ("update", "estimated_return")}
        return {
            "mode": self.mode,
            "phase": self.phase,
            "points": [int(number) for number in self.points],
            "bounces": [self.bounces.walls, self.bounces.paddles],
            "speed": self.speed,
            "agent": agent | {"strength": name_strength(about)},
        }
