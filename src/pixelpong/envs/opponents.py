"""Agents that play Pong's left side in an environment."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.choice import open_agent, require_pong
from pixelpong.kernels.records import STREAM, are_streams
from pixelpong.pong.cartridge import DUEL_CODES
from pixelpong.pong.preprocess import mirror
from pixelpong.run.arrays import fingerprint


class AgentOpponents:
    """An agent's networks, one for each game; see `pixelpong.atari.games.opponents`."""

    record = STREAM
    are_sound = staticmethod(are_streams)

    def __init__(self, name: str, size: int) -> None:
        """Load the agent with this name for `size` games."""
        agent = require_pong(open_agent(name)[1], name)
        self._networks = [agent.make_network() for _ in range(size)]
        self.fingerprint = fingerprint(agent.params)

    def decide(
        self,
        frames: NDArray[np.uint8],
        uniforms: NDArray[np.float64],
        records: NDArray[np.void],
        is_on: NDArray[np.bool_],
    ) -> NDArray[np.int64]:
        """Choose the console's actions for the left side, [N], in games in progress."""
        moves = np.zeros(len(is_on), np.int64)
        for i in np.flatnonzero(is_on):
            network = self._networks[i]
            network.stream = records[i : i + 1]
            moves[i] = DUEL_CODES[network.act(mirror(frames[i]), uniforms[i])]
        return moves
