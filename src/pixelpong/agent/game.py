"""An agent's games: those of an evaluation, or at one paddle of Pong's two-player game.

As in an evaluation, an agent draws random numbers at each decision: for the action, for the frame
skip, and one per frame that decides whether the previous move sticks. So the seed and the index
determine a game, and no game needs to be recorded.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.file import Agent
from pixelpong.atari.machine.cartridges import cartridge
from pixelpong.atari.machine.compiled import not_covered
from pixelpong.atari.machine.palette import PALETTES
from pixelpong.atari.machine.record import DRAW_PICTURE, MACHINE, WIDTH
from pixelpong.atari.steps.episode import no_console
from pixelpong.config.protocols import Protocol
from pixelpong.items import STAY
from pixelpong.play.networks import GREEDY, LOOK, Explanation, Network
from pixelpong.pong.duel import Duel, Move
from pixelpong.pong.preprocess import mirror
from pixelpong.seeding import make_rng

_PICTURE_AT = MACHINE.fields["picture"][1]  # type: ignore[index]


@dataclass(frozen=True)
class Moment:
    """The screen at one step of a game and the agent's action."""

    step: int  #: counted from 0; in the last moment, after the end, it is the number of steps
    screen: NDArray[np.uint8]  #: [210, 160], palette indices; some games have more rows
    action: int | None  #: the agent's next action, in Gymnasium's numbers; None after the end
    reward: float  #: reward of the previous step
    points: tuple[int, int]  #: points lost and won so far; in Pong the opponent's and the agent's
    explanation: Explanation | None  #: None unless it was requested
    lives: int | None = None  #: None in a game without lives
    palette: str = "NTSC"  #: or PAL, see `pixelpong.atari.machine.palette`

    @property
    def score(self) -> int:
        """The return so far."""
        lost, won = self.points
        return won - lost

    @property
    def frame(self) -> NDArray[np.uint8]:
        """The screen in colour, [210, 160, 3]."""
        return PALETTES[self.palette][self.screen]


def play_game(
    agent: Agent,
    seed: int,
    index: int = 0,
    *,
    is_greedy: bool | None = None,
    explains_every: int = 0,
    explains_before: float = math.inf,
) -> Iterator[Moment]:
    """Play a game of an evaluation with this seed, exactly as the evaluation would.

    A game of T steps has T + 1 moments; the last one is after the end. Every `explains_every` steps
    and after the end, the moment has an explanation; 0 means no explanations. From the step
    `explains_before` on there are none. By default, `is_greedy` is as in evaluations.
    """
    network, protocol = agent.make_network(), agent.protocol
    palette = cartridge(protocol.game).palette
    is_greedy = protocol.plays_greedy if is_greedy is None else is_greedy
    game = EvaluationGame(network, protocol, make_rng(seed, "evaluate", 0, index), is_greedy)
    for step in itertools.count():
        screen, reward, points, lives = game.screen.copy(), game.reward, game.points, game.lives
        is_over = game.is_over
        if explains_every and step < explains_before:
            network.see(screen)
        action = None
        if is_over:
            game.look_after_end()
        else:
            action = game.step()
        is_due = explains_every and (step % explains_every == 0 or is_over)
        explanation = network.explain() if is_due and step < explains_before else None
        yield Moment(step, screen, action, reward, points, explanation, lives, palette)
        if is_over:
            return


class EvaluationGame:
    """A game that a network's own kernel plays one step at a time, with a picture of each."""

    def __init__(
        self, network: Network, protocol: Protocol, rng: np.random.Generator, is_greedy: bool
    ) -> None:
        """Begin the game; each step takes the next row of random numbers, as in `Player`."""
        scene, facts = network.scene, cartridge(protocol.game)
        self._network, self._rng, self._is_greedy = network, rng, is_greedy
        self._width = 2 + protocol.max_frame_skip + scene.num_openings
        self._console = scene.make_console(protocol, 1, is_endless=False)
        self._console.rules["draws"] |= DRAW_PICTURE  # besides what the network sees
        picture = self._console.machines[0][_PICTURE_AT:][: facts.rows * WIDTH]
        self.screen = picture.reshape(facts.rows, WIDTH)  # changes at every step
        self.row = self._draw()  # [1, 1, ·], the random numbers of the next step
        look = self.row.copy()
        look[..., 0] = LOOK
        self._advance(look)
        stream = network.stream[0]
        self._has_lives = "lives" in (stream.dtype.names or ()) and stream["lives"] > 0

    def _draw(self) -> NDArray[np.float64]:
        row = self._rng.random((1, 1, self._width))
        if self._is_greedy:
            row[..., 0] = GREEDY
        return row

    def _advance(self, row: NDArray[np.float64]) -> None:
        self._network.play_streams(self._console, self._network.stream, row, 0, 0)
        if fault := self._game["fault"]:
            raise not_covered(int(fault))

    @property
    def _game(self) -> np.void:
        game: np.void = self._network.stream["game"][0]
        return game

    @property
    def state(self) -> tuple[np.void, NDArray[np.uint8]]:
        """The game's counts, a `GAME`, and the state of its console, [·] uint8."""
        console: NDArray[np.uint8] = self._network.stream["console"][0]
        return self._game, console

    @property
    def is_over(self) -> bool:
        """Whether the episode has ended."""
        return not self._game["is_on"]

    @property
    def reward(self) -> float:
        """The reward of the last step."""
        return float(self._game["reward"])

    @property
    def points(self) -> tuple[int, int]:
        """The points that were lost and won."""
        won, lost = self._game["points"].tolist()
        return lost, won

    @property
    def lives(self) -> int | None:
        """The lives that are left; None if the game has none."""
        return int(self._network.stream["lives"][0]) if self._has_lives else None

    def step(self) -> int:
        """Decide, play a step, and return the action."""
        self._advance(self.row)
        self.row = self._draw()
        return self._network.last_action

    def look_after_end(self) -> None:
        """Ask the network about the last picture; nothing is played."""
        self._game["is_on"] = 1
        row, nowhere = np.full((1, 1, self._width), GREEDY), no_console(self._console.drawn)
        self._network.play_streams(nowhere, self._network.stream, row, 0, 0)


class Controller:
    """An agent at one paddle, which decides every few frames from the newest picture."""

    def __init__(
        self,
        agent: Agent,
        rng: np.random.Generator,
        *,
        is_left: bool = False,
        is_greedy: bool = True,
    ) -> None:
        """Play one side of a game; on the left, the agent sees the field mirrored."""
        self.network, self._protocol, self._rng = agent.make_network(), agent.protocol, rng
        self._is_left, self._is_greedy = is_left, is_greedy
        self._action = STAY
        self._uniforms: list[float] = []  # random numbers for the remaining frames of a step

    def decide(self, screen: NDArray[np.uint8]) -> tuple[int, list[float]]:
        """Return the action and the random numbers for the game (`Emulator.step`)."""
        uniform, *uniforms = self._rng.random(2 + self._protocol.max_frame_skip).tolist()
        view = mirror(screen) if self._is_left else screen
        return self.network.act(view, GREEDY if self._is_greedy else uniform), uniforms

    def move(self, game: Duel) -> Move:
        """Return the move in the next frame; the agent decides as often as in training.

        The game must have the agent's `sticky` for its side.
        """
        if not self._uniforms:
            self._action, (uniform, *uniforms) = self.decide(game.screen)
            low, high = self._protocol.frame_skips
            self._uniforms = uniforms[: low + int(uniform * (high - low + 1))]
        return Move(self._action, self._uniforms.pop(0))
