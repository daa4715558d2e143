"""An evaluation game frame by frame, and a second game with the same opening for somebody else.

`AgentFrames` plays the game of `pixelpong.agent.game.play_game`, whose kernel plays whole steps.
After each step, a console of its own plays the frames of that step again, with the same action and
the same random numbers. So every frame is seen, and the score is that of the evaluation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.file import Agent
from pixelpong.agent.game import EvaluationGame
from pixelpong.atari.games.games import Games
from pixelpong.atari.games.rules import Rules
from pixelpong.atari.games.views import NOTHING, View
from pixelpong.atari.machine.cartridges import cartridge
from pixelpong.config.protocols import Protocol
from pixelpong.seeding import make_rng

_EMPTY = np.zeros((1, 0, 0), np.uint8)  # the observation


class FramedGame:
    """A game of any cartridge for one player, frame by frame."""

    def __init__(self, protocol: Protocol, beginning: EvaluationGame, sticky: float) -> None:
        """Continue from an evaluation game's state, which is copied.

        Args:
            protocol: its frame limit is kept.
            beginning: the evaluation game; it does not change.
            sticky: the probability that a frame keeps the previous action.
        """
        self._facts = facts = cartridge(protocol.game)
        rules = Rules(facts, 1, 1, protocol.max_frames, (sticky, sticky))
        view = View(NOTHING, keeps_frames=True, rows=facts.rows, palette=facts.palette)
        self._games = Games(1, rules, view)
        game, console = beginning.state
        self._games.rows[0] = game
        self._games.states[0] = console[: self._games.states.shape[1]]
        self._games.frames[0] = beginning.screen

    def play(self, action: int, uniform: float = 0.0) -> None:
        """Emulate one frame with an action in ALE's numbers.

        If `uniform` is less than `sticky`, the previous action is kept.

        Raises:
            EmulatorError: the cartridge needs something that the console does not support.
        """
        orders = self._games.orders
        orders.moves[0] = self._facts.code_of(action)
        orders.uniforms[0, 0, 2] = uniform
        self._games.step(_EMPTY, _EMPTY)

    @property
    def screen(self) -> NDArray[np.uint8]:
        """The newest frame, [rows, 160] palette indices, overwritten at every frame."""
        screen: NDArray[np.uint8] = self._games.frames[0]
        return screen

    @property
    def score(self) -> int:
        """The undiscounted sum of the rewards so far."""
        won, lost = self._games.rows["points"][0].tolist()
        return int(won - lost)

    @property
    def is_over(self) -> bool:
        """Whether the episode has ended, by the game's end or by the frame limit."""
        return not self._games.rows["is_on"][0]


class AgentFrames:
    """An agent that plays an evaluation game, frame by frame; `game` is what it has played."""

    def __init__(self, agent: Agent, seed: int, index: int = 0) -> None:
        """Begin the game that `play_game` plays with these numbers."""
        self._protocol = protocol = agent.protocol
        self._actions = agent.scene.actions
        rng = make_rng(seed, "evaluate", 0, index)
        self._steps = EvaluationGame(agent.make_network(), protocol, rng, protocol.plays_greedy)
        self.game = FramedGame(protocol, self._steps, protocol.sticky)
        # What another player plays from the same opening; nothing sticks.
        self.other = FramedGame(protocol, self._steps, 0.0)
        self._action, self._uniforms = 0, list[float]()  # the remaining frames of the step

    def advance(self) -> None:
        """Play one frame, unless the game is over; the agent decides when a step begins."""
        if self.game.is_over:
            return
        if not self._uniforms:
            _, uniform, *uniforms = self._steps.row[0, 0].tolist()
            low, high = self._protocol.frame_skips
            self._uniforms = uniforms[: low + int(uniform * (high - low + 1))]
            self._action = self._actions[self._steps.step()]
        self.game.play(self._action, self._uniforms.pop(0))
