"""An agent at a paddle: decisions and moves frame by frame, exactly as in training.

It decides every few frames, on the newest picture, and its moves stick. It draws as in an
evaluation: for the action, for the frame skip, and a coin for each frame.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.file import Agent
from pixelpong.env.duel import DuelEmulator
from pixelpong.env.preprocess import mirror
from pixelpong.items import STAY
from pixelpong.play.networks import GREEDY


class Hand:
    """An agent in a game; `looks` says whether it needs the picture of the next frame."""

    def __init__(
        self,
        agent: Agent,
        rng: np.random.Generator,
        *,
        is_left: bool = False,
        is_greedy: bool = True,
    ) -> None:
        """Take a side; on the left, the agent sees the field mirrored."""
        self.network, self._protocol, self._rng = agent.make_network(), agent.protocol, rng
        self._is_left, self._is_greedy = is_left, is_greedy
        self.start_episode()

    def start_episode(self) -> None:
        """Forget the episode before."""
        self.network.reset()
        self._coins: list[float] = []
        self._action = self._held = STAY
        self.looks = True

    def choose(self, screen: NDArray[np.uint8]) -> tuple[int, float]:
        """The action for the next frame, and the coin that says whether the move before sticks.

        `screen` has the palette indices [210, 160] of the newest frame, and is not changed.
        """
        if not self._coins:
            low, high = self._protocol.frame_skips
            draws = self._rng.random(2 + high).tolist()
            view = mirror(screen) if self._is_left else screen
            self._action = self.network.act(view, GREEDY if self._is_greedy else draws[0])
            self._coins = draws[2 : 2 + low + int(draws[1] * (high - low + 1))]
        coin = self._coins.pop(0)
        self.looks = not self._coins
        return self._action, coin

    def move(self, game: DuelEmulator) -> int:
        """The move in the next frame: STAY, UP or DOWN."""
        action, coin = self.choose(game.screen)
        if coin >= self._protocol.sticky:
            self._held = action
        return self._held
