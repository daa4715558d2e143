"""A worker: plays items on its own consoles, and differentiates whole games.

`play` is a pure function of the item and the parameters: it first sets the whole state, so nothing
leaks from one item to the next, and any worker can run any item.
"""

from __future__ import annotations

import dataclasses

from pixelpong import kernels
from pixelpong.config import Config
from pixelpong.config.protocols import Protocol
from pixelpong.env.features import NUM_INPUTS
from pixelpong.items import Item, Params, Result, read_only
from pixelpong.learn import gated, network
from pixelpong.learn.returns import standardize
from pixelpong.play.player import Player
from pixelpong.play.sums import GradientSum
from pixelpong.seeding import make_rng


class Worker:
    """Plays items with the network of one algorithm."""

    def __init__(self, protocol: Protocol, algorithm: str, gamma: float) -> None:
        """Play by a protocol; gamma is that of the classic mode's returns."""
        self._player, self._gamma = Player(protocol, algorithm), gamma

    def play(self, item: Item, params: Params) -> Result:
        """Play an item; of games to learn from, return the sum of their gradients."""
        params = read_only(params)
        if item.games == 1:
            return self._play_one(item, params)
        total = GradientSum(len(params["W2"]), params["W2"].dtype.name)
        results = []
        for index in range(item.index, item.index + item.games):
            results.append(self._play_one(dataclasses.replace(item, index=index, games=1), params))
            assert results[-1].grads is not None
            total.add(results[-1].grads)
        return Result(
            tuple(episode for each in results for episode in each.episodes),
            sum(each.frames for each in results),
            sum(each.seconds for each in results),
            grads=total.take(),
        )

    def _play_one(self, item: Item, params: Params) -> Result:
        result = self._player.play(item, params)
        if item.steps is not None:
            return result
        grads = None
        if item.purpose == "train":
            (played,) = result.sides
            returns = kernels.discounted_returns(played.steps["reward"], self._gamma)
            grads = kernels.episode_gradient(params["W2"], played, standardize(returns))
        return dataclasses.replace(result, sides=(), grads=grads)


def make_worker(config: Config) -> Worker:
    """Make a worker for the algorithm that `config` names, with compiled kernels."""
    protocol, algorithm = config.environment.protocol, config.learning.algorithm
    # All kernels are compiled in a game of one frame, so that no item has to wait for it.
    short = dataclasses.replace(protocol, max_frames=1)
    rng, dtype = make_rng(0, "bench"), config.network.dtype
    if algorithm == "ppo":
        params = gated.init_params(rng, NUM_INPUTS, hidden=1, dtype=dtype)
        item = Item("train", 0, 0, 0, steps=1)
    else:
        params, item = network.init_params(rng, hidden=1, dtype=dtype), Item("train", 0, 0, 0)
    Worker(short, algorithm, config.learning.gamma)._play_one(item, read_only(params))
    return Worker(protocol, algorithm, config.learning.gamma)
