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
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.file import Agent
from pixelpong.agent.network import GREEDY
from pixelpong.config.protocols import Protocol as GameProtocol
from pixelpong.env import make_emulator
from pixelpong.env.duel import FIRST_ROW, LAST_ROW, LEFT, DuelEmulator
from pixelpong.errors import ConfigError, expected
from pixelpong.items import DOWN, STAY, UP

PLAY, WATCH = "play", "watch"
MODES = (PLAY, WATCH)

SPEEDS = (0.5, 1.0, 2.0)
"""Of the game's own sixty frames a second."""

SERVE_FRAMES = 180
"""After a point, the person's side serves by itself when so many frames have gone by."""

READY, PLAYING, SERVE, PAUSED, OVER = "ready", "playing", "serve", "paused", "over"
"""How a game stands: not begun, the ball flies, the person has to serve, halted, finished."""


class Court(Protocol):
    """Where a game is played, a frame at a time.

    Attributes:
        screen: [210, 160] uint8 palette indices of the newest frame.
    """

    screen: NDArray[np.uint8]

    @property
    def points(self) -> list[int]:
        """Won by the left and by the right side."""

    @property
    def awaits_serve(self) -> bool:
        """Whether the person has to serve."""

    def reset(self) -> None:
        """Start a game."""

    def advance(self, person: Person, action: int, coin: float) -> None:
        """Emulate one frame.

        Args:
            person: what the left side does; of no account where the game itself plays it.
            action: what the agent wants, STAY, UP or DOWN.
            coin: in [0, 1), decides whether its move before sticks for this frame.
        """

    @property
    def is_over(self) -> bool:
        """Whether the game has ended."""

    def frame(self) -> NDArray[np.uint8]:
        """The newest frame in colour, [210, 160, 3] uint8."""


@dataclasses.dataclass
class Person:
    """What the person at the left paddle wants.

    Attributes:
        direction: by key: STAY, UP or DOWN.
        row: by mouse or touch: of the frame, where the paddle's middle is to go; None where the
            keys hold.
        serves: whether to serve when it is time.
    """

    direction: int = STAY
    row: float | None = None
    serves: bool = False


class SoloCourt:
    """The single player's game, against the opponent in it; see `Court`.

    Attributes:
        emulator: of single frames.
    """

    awaits_serve = False

    def __init__(self, protocol: GameProtocol) -> None:
        """Load the game.

        Args:
            protocol: of the agent; its frame skip is the caller's business.
        """
        self.emulator = make_emulator(dataclasses.replace(protocol, frame_skips=(1, 1)))
        self.screen = self.emulator.screen
        self._points = [0, 0]

    @property
    def points(self) -> list[int]:
        """See `Court.points`."""
        return self._points

    def reset(self) -> None:
        """See `Court.reset`."""
        self.emulator.reset()
        self._points = [0, 0]

    def advance(self, person: Person, action: int, coin: float) -> None:
        """See `Court.advance`."""
        reward = self.emulator.step(action, (0.0, coin))
        self._points[0] += reward < 0
        self._points[1] += reward > 0

    @property
    def is_over(self) -> bool:
        """See `Court.is_over`."""
        return self.emulator.is_over

    def frame(self) -> NDArray[np.uint8]:
        """See `Court.frame`."""
        return self.emulator.frame()


class DuelCourt:
    """The game for two; see `Court`."""

    def __init__(self, protocol: GameProtocol) -> None:
        """Load the game.

        Args:
            protocol: of the agent.

        Raises:
            ConfigError: the agent was trained on another game, or the emulator for two is not
                installed.
        """
        if protocol.name == "Catch-v0":
            advice = "choose another run, or watch"
            raise ConfigError(expected("an agent that plays Pong", "one of Catch-v0", advice))
        self._emulator = DuelEmulator()
        self._sticky = protocol.sticky
        self._held = STAY
        self.screen = self._emulator.screen

    def reset(self) -> None:
        """See `Court.reset`."""
        self._emulator.reset()
        self._held = STAY

    def advance(self, person: Person, action: int, coin: float) -> None:
        """See `Court.advance`."""
        if coin >= self._sticky:
            self._held = action
        emulator = self._emulator
        left = person.direction if person.row is None else emulator.steer(person.row)
        is_late = emulator.frames_since_point >= SERVE_FRAMES
        emulator.act(left, self._held, fires=person.serves or is_late)

    @property
    def points(self) -> list[int]:
        """See `Court.points`."""
        return self._emulator.points

    @property
    def is_over(self) -> bool:
        """See `Court.is_over`."""
        return self._emulator.is_over

    @property
    def awaits_serve(self) -> bool:
        """See `Court.awaits_serve`."""
        return self._emulator.server == LEFT

    def frame(self) -> NDArray[np.uint8]:
        """See `Court.frame`."""
        return self._emulator.frame()


def _make_court(protocol: GameProtocol, mode: str) -> Court:
    return DuelCourt(protocol) if mode == PLAY else SoloCourt(protocol)


class Game:
    """A game, and who plays it.

    Attributes:
        agent: the right side.
        mode: PLAY or WATCH.
        speed: one of `SPEEDS`.
        is_paused: whether time stands still.
    """

    def __init__(
        self, agent: Agent, mode: str, rng: np.random.Generator, court: Court | None = None
    ) -> None:
        """Load the emulator and make ready; takes a tenth of a second and more.

        Args:
            agent: plays the right side.
            mode: PLAY or WATCH.
            rng: draws the agent's coins.
            court: where it is played, if not where the mode says.

        Raises:
            ConfigError: the agent cannot be played with, or a library is not installed.
            EmulatorError: the emulator or its game is not installed.
        """
        assert mode in MODES, mode
        self.mode, self.speed, self._rng = mode, 1.0, rng
        self._court = court or _make_court(agent.protocol, mode)
        self._person = Person()
        self.seat(agent)

    def seat(self, agent: Agent) -> None:
        """Let another agent of the same game play, and start anew.

        Raises:
            ConfigError: it was trained on another game.
        """
        known = getattr(self, "agent", agent).protocol.name == "Catch-v0"
        if known != (agent.protocol.name == "Catch-v0"):
            got = f"one of {agent.protocol.name}"
            raise ConfigError(expected("an agent of the same game", got, "choose another"))
        self.agent, self._policy = agent, agent.make_network()
        self._policy.act(self._court.screen)  # now, and not while the clock runs: it may compile
        self.restart()

    def restart(self) -> None:
        """A new game, 0 to 0; the person's one begins with the serve."""
        self._court.reset()
        self._policy.reset()
        self._coins: list[float] = []
        self._action, self._credit, self.is_paused = STAY, 0.0, False
        self._person.serves, self._has_begun = False, self.mode == WATCH

    def tick(self) -> bool:
        """A sixtieth of a second goes by; whether anything may have changed on the screen."""
        if self.is_still:
            return False
        self._credit += self.speed
        frames, self._credit = int(self._credit), self._credit % 1
        for _ in range(frames):
            if not self._court.is_over:
                self._advance()
        return frames > 0

    def _advance(self) -> None:
        if not self._coins:
            self._decide()
        self._court.advance(self._person, self._action, self._coins.pop(0))
        if not self._court.awaits_serve:
            self._person.serves = False

    def _decide(self) -> None:
        """The numbers are drawn as in an evaluation: the action's, the frame skip's, the coins."""
        low, high = self.agent.protocol.frame_skips
        draws = self._rng.random(2 + high).tolist()
        self._action = self._policy.act(self._court.screen, GREEDY)
        self._coins = draws[2 : 2 + low + int(draws[1] * (high - low + 1))]

    def move(self, direction: int) -> None:
        """A key is held, or let go: STAY, UP or DOWN."""
        assert direction in (STAY, UP, DOWN), direction
        self._person.direction, self._person.row = direction, None

    def aim(self, place: float) -> None:
        """Mouse or finger points at a place of the field, 0 at the top and 1 at the bottom."""
        row = FIRST_ROW + min(max(place, 0.0), 1.0) * (LAST_ROW + 1 - FIRST_ROW)
        self._person.row = min(max(row, FIRST_ROW + 6), LAST_ROW - 6)

    def serve(self) -> None:
        """The person begins the game, or serves where it is time."""
        self._has_begun = True
        self._person.serves = self._court.awaits_serve

    @property
    def is_still(self) -> bool:
        """Whether `tick` has nothing to do."""
        return self.phase in (READY, PAUSED, OVER)

    @property
    def phase(self) -> str:
        """READY, PLAYING, SERVE, PAUSED or OVER."""
        if self._court.is_over:
            return OVER
        if not self._has_begun:
            return READY
        if self.is_paused:
            return PAUSED
        return SERVE if self._court.awaits_serve else PLAYING

    @property
    def screen(self) -> NDArray[np.uint8]:
        """[210, 160] uint8 palette indices of the newest frame."""
        return self._court.screen

    def frame(self) -> NDArray[np.uint8]:
        """The newest frame in colour, [210, 160, 3] uint8."""
        return self._court.frame()

    def describe(self) -> dict[str, Any]:
        """How it stands, as JSON holds it."""
        about = self.agent.about
        return {
            "mode": self.mode,
            "phase": self.phase,
            "points": [int(number) for number in self._court.points],
            "speed": self.speed,
            "agent": {name: about.get(name) for name in ("update", "estimated_return")},
        }
