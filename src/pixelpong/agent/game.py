"""An agent's games: against the built-in opponent, or at one paddle of the two-player game.

As in an evaluation, an agent draws random numbers at each decision: for the action, for the frame
skip, and one per frame that says whether the previous move sticks. So seed and index determine a
game, and no game needs to be recorded.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.file import Agent
from pixelpong.atari.palette import PALETTE
from pixelpong.env.preprocess import mirror
from pixelpong.games.duel import Duel, Move
from pixelpong.games.emulator import Emulator
from pixelpong.items import STAY
from pixelpong.play.networks import GREEDY, Explanation
from pixelpong.seeding import make_rng


@dataclass(frozen=True)
class Moment:
    """The screen at one step of a game, and what the agent does."""

    step: int  #: starting at 0; that of the last moment, after the end, is the number of steps
    screen: NDArray[np.uint8]  #: [210, 160], palette indices
    action: int | None  #: the agent's next action, in Gymnasium's numbers; None after the end
    reward: float  #: of the previous step
    points: tuple[int, int]  #: won by the opponent and by the agent so far
    explanation: Explanation | None  #: if requested

    @property
    def frame(self) -> NDArray[np.uint8]:
        """The screen in colour, [210, 160, 3]."""
        return PALETTE[self.screen]


def play_game(
    agent: Agent, seed: int, index: int = 0, *, is_greedy: bool = True, explains_every: int = 0
) -> Iterator[Moment]:
    """Play a game of an evaluation with this seed, exactly as the evaluation would.

    A game of T steps has T + 1 moments, the last after the end. Every `explains_every` steps, and
    after the end, a moment has an explanation; by default none has.
    """
    controller = Controller(agent, make_rng(seed, "evaluate", 0, index), is_greedy=is_greedy)
    emulator = Emulator(agent.protocol)
    reward, lost, won = 0.0, 0, 0
    for step in itertools.count():
        is_over, screen = emulator.is_over, emulator.screen.copy()
        action, uniforms = controller.decide(screen)
        is_explained = explains_every and (step % explains_every == 0 or is_over)
        explanation = controller.network.explain() if is_explained else None
        yield Moment(step, screen, None if is_over else action, reward, (lost, won), explanation)
        if is_over:
            return
        reward = emulator.step(action, uniforms)
        lost, won = lost + (reward < 0), won + (reward > 0)


class Controller:
    """An agent at a paddle; it decides every few frames, on the newest picture."""

    def __init__(
        self,
        agent: Agent,
        rng: np.random.Generator,
        *,
        is_left: bool = False,
        is_greedy: bool = True,
    ) -> None:
        """Take a side for one game; on the left, the agent sees the field mirrored."""
        self.network, self._protocol, self._rng = agent.make_network(), agent.protocol, rng
        self._is_left, self._is_greedy = is_left, is_greedy
        self._action = STAY
        self._uniforms: list[float] = []  # for the next frames of a step

    def decide(self, screen: NDArray[np.uint8]) -> tuple[int, list[float]]:
        """Return the action, and the numbers for the game's part of the step (`Emulator.step`)."""
        uniform, *uniforms = self._rng.random(2 + self._protocol.max_frame_skip).tolist()
        view = mirror(screen) if self._is_left else screen
        return self.network.act(view, GREEDY if self._is_greedy else uniform), uniforms

    def move(self, game: Duel) -> Move:
        """Return the move in the next frame; it decides anew after as many frames as in training.

        The game must have the agent's `sticky` for its side.
        """
        if not self._uniforms:
            self._action, (uniform, *uniforms) = self.decide(game.screen)
            low, high = self._protocol.frame_skips
            self._uniforms = uniforms[: low + int(uniform * (high - low + 1))]
        return Move(self._action, self._uniforms.pop(0))
