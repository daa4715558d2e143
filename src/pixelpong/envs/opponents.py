"""Agents that play Pong's left side in an environment."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.choice import open_agent
from pixelpong.atari.envs.actions import DUEL_ACTIONS
from pixelpong.atari.games.games import Games
from pixelpong.items import BUILTIN, SELF
from pixelpong.pong.preprocess import mirror
from pixelpong.run.arrays import fingerprint


class Opponents:
    """An agent's networks, one for each game; none if no agent opposes."""

    def __init__(self, name: str, size: int) -> None:
        """Load the agent with this name for `size` games."""
        agent = None if name in (BUILTIN, SELF) else open_agent(name)[1]
        self._networks = [agent.make_network() for _ in range(size)] if agent else []
        self.fingerprint = fingerprint(agent.params) if agent else name

    def __bool__(self) -> bool:
        return bool(self._networks)

    def sit_down(self, games: Games) -> None:
        """Let the networks remember in the memory of the games."""
        for i, network in enumerate(self._networks):
            network.stream = games.remembered[i : i + 1]

    def decide(self, games: Games, is_on: NDArray[np.bool_]) -> None:
        """Write the moves of the left side in the games in progress."""
        uniforms = games.orders.uniforms
        if self._networks:
            games.remembered[:] = games.streams
        for i, network in enumerate(self._networks):
            if is_on[i]:
                row = games.rows["steps"][i] % uniforms.shape[1]
                uniform = uniforms[i, row, uniforms.shape[2] // 2]
                action = network.act(mirror(games.frames[i]), uniform)
                games.orders.moves[i, 1] = DUEL_ACTIONS[action]
