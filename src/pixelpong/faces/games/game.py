"""A game of Pong with an agent, picture by picture: against a person, or against the game itself.

Sixty times a second `Game.tick` is called and emulates what is due, one frame at speed 1. The agent
plays the right side exactly as in training: it looks every `frame_skip` frames, its policy sees the
same pixels and keeps the same memory, its moves stick with the protocol's probability, and it takes
the most probable action. A person's moves never stick. Watching, the game is bit for bit the one
that `Agent.play_episode` plays with the same generator.

Covered: whose move it is, points, serve, pause, speed, another agent, the end at 21.
Not covered: clocks and the web (`pixelpong.faces.games.socket`).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.file import Agent
from pixelpong.agent.network import GREEDY
from pixelpong.env import make_emulator
from pixelpong.env.duel import FIRST_ROW, LAST_ROW, LEFT, RIGHT, DuelEmulator
from pixelpong.env.pong import Emulator
from pixelpong.errors import ConfigError, expected
from pixelpong.items import DOWN, STAY, UP

PLAY, WATCH = "play", "watch"
MODES = (PLAY, WATCH)

SPEEDS = (0.5, 1.0, 2.0)
"""Of the game's own sixty frames a second."""

SERVE_FRAMES = 180
"""After a point, the person's side serves by itself when this many frames have gone by."""

TOY = "Catch-v0"
"""The game that two cannot play."""

READY, PLAYING, SERVE, PAUSED, OVER = "ready", "playing", "serve", "paused", "over"
"""How a game stands: not begun, the ball flies, the person has to serve, halted, finished."""


class Game:
    """A game, and who plays it.

    Attributes:
        agent: the right side.
        mode: PLAY or WATCH.
        speed: one of `SPEEDS`.
        is_paused: whether time stands still.
        points: won by the left and by the right side.
    """

    def __init__(self, agent: Agent, mode: str, rng: np.random.Generator) -> None:
        """Load the emulator and make ready; takes a tenth of a second and more.

        Args:
            agent: plays the right side.
            mode: PLAY or WATCH.
            rng: draws the agent's coins.

        Raises:
            ConfigError: the agent cannot be played with.
            EmulatorError: the emulator or its game is not installed.
        """
        assert mode in MODES, mode
        if mode == PLAY and agent.protocol.name == TOY:
            advice = "choose another run, or watch"
            raise ConfigError(expected("an agent that plays Pong", f"one of {TOY}", advice))
        self.mode, self.speed, self._rng = mode, 1.0, rng
        self._emulator: Emulator | DuelEmulator = (
            DuelEmulator()
            if mode == PLAY
            else make_emulator(dataclasses.replace(agent.protocol, frame_skips=(1, 1)))
        )
        self._direction = STAY
        self._row: float | None = None  # where the mouse points; None if the keys hold
        self.seat(agent)

    def seat(self, agent: Agent) -> None:
        """Let another agent of the same game play, and start anew.

        Raises:
            ConfigError: it was trained on another game.
        """
        known = getattr(self, "agent", agent).protocol.name == TOY
        if known != (agent.protocol.name == TOY):
            got = f"one of {agent.protocol.name}"
            raise ConfigError(expected("an agent of the same game", got, "choose another"))
        self.agent, self._policy = agent, agent.make_network()
        self._policy.act(self.screen)  # now, and not while the clock runs: it may compile
        self.restart()

    def restart(self) -> None:
        """A new game, 0 to 0; against a person it begins with the serve."""
        self._emulator.reset()
        self._policy.reset()
        self.points = [0, 0]
        self._coins: list[float] = []
        self._action = self._held = STAY
        self._credit, self.is_paused = 0.0, False
        self._serves, self._has_begun = False, self.mode == WATCH

    def tick(self) -> bool:
        """A sixtieth of a second goes by; whether anything may have changed on the screen."""
        if self.is_still:
            return False
        self._credit += self.speed
        frames, self._credit = int(self._credit), self._credit % 1
        for _ in range(frames):
            if not self._emulator.is_over:
                self._advance()
        return frames > 0

    def _advance(self) -> None:
        if not self._coins:
            self._decide()
        coin = self._coins.pop(0)
        if isinstance(self._emulator, DuelEmulator):
            self._advance_both(self._emulator, coin)
        else:
            reward = self._emulator.step(self._action, (0.0, coin))
            self.points[LEFT] += reward < 0
            self.points[RIGHT] += reward > 0

    def _advance_both(self, emulator: DuelEmulator, coin: float) -> None:
        if coin >= self.agent.protocol.sticky:
            self._held = self._action
        left = self._direction if self._row is None else emulator.steer(self._row)
        is_late = emulator.frames_since_point >= SERVE_FRAMES
        emulator.act(left, self._held, fires=self._serves or is_late)
        self.points = emulator.points
        self._serves &= self._awaits_serve

    def _decide(self) -> None:
        """The numbers are drawn as in an evaluation: the action's, the frame skip's, the coins."""
        low, high = self.agent.protocol.frame_skips
        draws = self._rng.random(2 + high).tolist()
        self._action = self._policy.act(self.screen, GREEDY)
        self._coins = draws[2 : 2 + low + int(draws[1] * (high - low + 1))]

    def move(self, direction: int) -> None:
        """A key is held, or let go: STAY, UP or DOWN."""
        assert direction in (STAY, UP, DOWN), direction
        self._direction, self._row = direction, None

    def aim(self, place: float) -> None:
        """Mouse or finger points at a place of the field, 0 at the top and 1 at the bottom."""
        row = FIRST_ROW + min(max(place, 0.0), 1.0) * (LAST_ROW + 1 - FIRST_ROW)
        self._row = min(max(row, FIRST_ROW + 6), LAST_ROW - 6)

    def serve(self) -> None:
        """The person begins the game, or serves if it is time."""
        self._has_begun = True
        self._serves = self._awaits_serve

    @property
    def _awaits_serve(self) -> bool:
        return isinstance(self._emulator, DuelEmulator) and self._emulator.server == LEFT

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
        """How it stands, as JSON holds it."""
        about = self.agent.about
        return {
            "mode": self.mode,
            "phase": self.phase,
            "points": [int(number) for number in self.points],
            "speed": self.speed,
            "agent": {name: about.get(name) for name in ("update", "estimated_return")},
        }
