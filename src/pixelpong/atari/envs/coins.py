"""Our own coins: what sticks, and how many frames a step has, as in `pixelpong.evaluate`.

Game i has the seed S + i, whose k-th episode has generator k. ale-py's coins need no Python, see
`atari.steps.twister`.
"""

from __future__ import annotations

import numpy as np

from pixelpong.atari.games.games import Games
from pixelpong.seeding import make_rng

BLOCK = 128  # number of steps for which a game's random numbers are drawn at once


class Coins:
    """The random numbers of games, drawn when they are needed."""

    def __init__(self, games: Games) -> None:
        self._rows, self._uniforms = games.rows, games.orders.uniforms
        self._drawn = np.full((len(games.rows), 3), -1)  # seed, episode and block of the current

    def draw(self) -> None:
        """Draw for the games that have used up theirs."""
        rows, uniforms = self._rows, self._uniforms
        wanted = np.stack([rows["seed"], rows["episode"], rows["steps"] // BLOCK], axis=1)
        is_on = (wanted != self._drawn).any(axis=1) & (rows["is_on"] > 0)
        for i in np.flatnonzero(is_on):
            seed, episode, block = wanted[i].tolist()
            rng = make_rng(seed, "evaluate", 0, episode)
            rng.bit_generator.advance(block * uniforms[i].size)  # type: ignore[attr-defined]
            self._drawn[i] = -1
            rng.random(out=uniforms[i])
            self._drawn[i] = wanted[i]
