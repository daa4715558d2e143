"""A worker: plays items on its own consoles, and differentiates whole games.

`play` is a pure function of the item and the parameters: it first sets the whole state, so nothing
leaks from one item to the next, and any worker can run any item.

Float addition does not associate. So the gradients of a batch are added up in groups of consecutive
episodes: first the episodes of each group, in their order, then the groups. In a large batch, an
item is a whole group, and only its sum comes home; in a smaller one, an item is one episode, and
the learner adds up the groups. Both make the same additions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np

from pixelpong import kernels
from pixelpong.config import Config
from pixelpong.items import NUM_PIXELS, Episode, Item, Params, Result, SparseGrads, read_only
from pixelpong.learn.returns import standardize
from pixelpong.play.networks import NETS
from pixelpong.play.player import Player
from pixelpong.seeding import make_rng

GROUP_SIZE = 20  # episodes; the last group of a batch may be smaller
# Episodes from which on an item is a whole group: then there are 15 of them or more to share.
LARGE_BATCH = 300


def games_per_item(batch_size: int) -> int:
    """How many episodes an item has; it follows from the batch alone, not from the workers."""
    return GROUP_SIZE if batch_size >= LARGE_BATCH else 1


def join(results: Iterable[Result]) -> Result:
    """One or more results of games as one; their gradients are added one after the other."""
    episodes: list[Episode] = []
    frames, seconds, W1, W2 = 0, 0.0, np.zeros(0), np.zeros(0)
    has_gradient = np.zeros(NUM_PIXELS, np.bool_)
    for each in results:
        assert each.grads is not None
        if not episodes:
            W2 = np.zeros_like(each.grads.W2)
            W1 = np.zeros((NUM_PIXELS, len(W2)), W2.dtype)
        episodes += each.episodes
        frames, seconds = frames + each.frames, seconds + each.seconds
        has_gradient[each.grads.rows] = True
        kernels.add_rows(W1, each.grads.rows, each.grads.W1)
        W2 += each.grads.W2
    rows = np.flatnonzero(has_gradient).astype(np.uint16)
    return Result(tuple(episodes), frames, seconds, grads=SparseGrads(rows, W1[rows], W2))


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
