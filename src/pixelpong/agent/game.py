"""An agent's games: against the built-in opponent, or at one paddle of the two-player game.

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
from pixelpong.atari.machine.palette import PALETTE
from pixelpong.items import STAY
from pixelpong.play.networks import GREEDY, Explanation
from pixelpong.pong.duel import Duel, Move
from pixelpong.pong.emulator import Emulator
from pixelpong.pong.preprocess import mirror
from pixelpong.seeding import make_rng


@dataclass(frozen=True)
class Moment:
    """The screen at one step of a game and the agent's action."""

    step: int  #: counted from 0; in the last moment, after the end, it is the number of steps
    screen: NDArray[np.uint8]  #: [210, 160], palette indices
    action: int | None  #: the agent's next action, in Gymnasium's numbers; None after the end
    reward: float  #: reward of the previous step
    points: tuple[int, int]  #: points that the opponent and the agent have won so far
    explanation: Explanation | None  #: None unless it was requested

    @property
    def frame(self) -> NDArray[np.uint8]:
        """The screen in colour, [210, 160, 3]."""
        return PALETTE[self.screen]


def play_game(
    agent: Agent,
    seed: int,
    index: int = 0,
    *,
    is_greedy: bool = True,
    explains_every: int = 0,
    explains_before: float = math.inf,
) -> Iterator[Moment]:
    """Play a game of an evaluation with this seed, exactly as the evaluation would.

    A game of T steps has T + 1 moments; the last one is after the end. Every `explains_every` steps
    and after the end, the moment has an explanation; 0 means no explanations. From the step
    `explains_before` on there are none.
    """
    controller = Controller(agent, make_rng(seed, "evaluate", 0, index), is_greedy=is_greedy)
    emulator = Emulator(agent.protocol)
    reward, lost, won = 0.0, 0, 0
    for step in itertools.count():
        is_over, screen = emulator.is_over, emulator.screen.copy()
        action, uniforms = controller.decide(screen)
        is_due = explains_every and (step % explains_every == 0 or is_over)
        is_explained = is_due and step < explains_before
        explanation = controller.network.explain() if is_explained else None
        yield Moment(step, screen, None if is_over else action, reward, (lost, won), explanation)
        if is_over:
            return
        reward = emulator.step(action, uniforms)
        lost, won = lost + (reward < 0), won + (reward > 0)


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
