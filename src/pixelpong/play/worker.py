"""A worker: plays items on its own consoles, and differentiates whole games.

`play` is a pure function of the item and the parameters: it first sets the whole state, so nothing
leaks from one item to the next, and any worker can run any item.
"""

from __future__ import annotations

import dataclasses

from pixelpong import kernels
from pixelpong.config import Config
from pixelpong.items import Item, Params, Result, read_only
from pixelpong.learn.returns import standardize
from pixelpong.play.networks import NETS
from pixelpong.play.player import Player
from pixelpong.play.sums import join
from pixelpong.seeding import make_rng


class Worker:
    """Plays items with the network of one algorithm."""

    def __init__(self, player: Player, gamma: float) -> None:
        """Play with a player; gamma is that of the classic mode's returns."""
        self._player, self._gamma = player, gamma

    def play(self, item: Item, params: Params) -> Result:
        """Play an item; of games to learn from, return the sum of their gradients."""
        if item.games > 1:
            places = range(item.index, item.index + item.games)
            games = (dataclasses.replace(item, index=index, games=1) for index in places)
            return join(self.play(game, params) for game in games)
        result = self._player.play(item, params)
        if item.steps is not None:
            return result
        grads = None
        if item.purpose == "train":
            (played,) = result.sides
            returns = kernels.discounted_returns(played.steps["reward"], self._gamma)
            grads = kernels.episode_gradient(read_only(params)["W2"], played, standardize(returns))
        return dataclasses.replace(result, sides=(), stream=None, grads=grads)


def make_worker(config: Config, opponent: Params | None = None) -> Worker:
    """Make a worker for the algorithm that `config` names, with compiled kernels.

    `opponent` has the parameters of the agent that is met, if any.
    """
    protocol, algorithm = config.protocol, config.algorithm
    # All kernels are compiled in a game of one frame, so that no item has to wait for it.
    short = Player(dataclasses.replace(protocol, max_frames=1), algorithm)
    params = NETS[algorithm].init(make_rng(0, "bench"), 1, config.dtype)
    item = Item("train", 0, 0, 0, steps=1 if algorithm == "ppo" else None)
    Worker(short, config.gamma).play(item, params)
    return Worker(Player(protocol, algorithm, opponent), config.gamma)
