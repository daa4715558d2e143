"""A worker: plays items on its own consoles, and differentiates whole games.

`play` is a pure function of the item and the parameters: it first sets the whole state, so nothing
leaks from one item to the next, and any worker can run any item.

Float addition is not associative. So the gradients of a batch are added in groups of consecutive
episodes: first the episodes of each group, in order, then the groups. In a large batch, an item is
a whole group, and only its sum is returned; in a smaller one, an item is one episode, and the
learner adds up the groups. Both do the same additions.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from pixelpong import kernels
from pixelpong.config import Config
from pixelpong.items import (
    BUILTIN,
    NUM_PIXELS,
    SELF,
    Episode,
    Item,
    Params,
    Result,
    SparseGrads,
    read_only,
)
from pixelpong.learn.returns import standardize
from pixelpong.play.networks import NETS
from pixelpong.play.player import Player
from pixelpong.seeding import make_rng

GROUP_SIZE = 20  # episodes; the last group of a batch may be smaller
# Episodes from which on an item is a whole group, so that there are at least 15 to share.
LARGE_BATCH = 300


def games_per_item(batch_size: int) -> int:
    """The number of episodes per item, which depends on the batch alone, not on the workers."""
    return GROUP_SIZE if batch_size >= LARGE_BATCH else 1


def join(results: Iterable[Result]) -> Result:
    """Join results of games into one; their gradients are added one after the other."""
    left = ((each, each.grads) for each in results if each.grads)  # `gather` empties some
    first, second = next(left), next(left, None)
    if second is None:
        return first[0]
    episodes: list[Episode] = []
    frames, seconds, W2 = 0, 0.0, np.zeros_like(first[1].W2)
    W1, has_gradient = np.zeros((NUM_PIXELS, len(W2)), W2.dtype), np.zeros(NUM_PIXELS, np.bool_)
    for each, grads in itertools.chain((first, second), left):
        episodes += each.episodes
        frames, seconds = frames + each.frames, seconds + each.seconds
        has_gradient[grads.rows] = True
        kernels.add_rows(W1, grads.rows, grads.W1)
        W2 += grads.W2
    rows = np.flatnonzero(has_gradient).astype(np.uint16)
    return Result(tuple(episodes), frames, seconds, grads=SparseGrads(rows, W1[rows], W2))


def gather(items: Sequence[Item], results: Iterable[Result]) -> list[Result]:
    """Add up consecutive games that begin a group into the first; the other results become empty.

    A Ray process does so before it answers, so that one gradient travels instead of one per game.
    """
    found: list[Result] = []
    left = iter(results)
    for number, neighbours in itertools.groupby(items, lambda item: item.index // GROUP_SIZE):
        group = list(neighbours)
        played = itertools.islice(left, len(group))
        has_grads = group[0].purpose == "train" and not group[0].steps
        begins = [item.index - number * GROUP_SIZE for item in group] == [*range(len(group))]
        if has_grads and begins and len(group) > 1:
            found += [join(played)] + [Result((), 0, 0.0)] * (len(group) - 1)
        else:
            found += played
    return found


class Worker:
    """Plays items with the network of one algorithm."""

    def __init__(self, player: Player, gamma: float) -> None:
        """Play with a player; gamma is the discount of the classic mode's returns."""
        self._player, self._gamma = player, gamma

    def play(self, item: Item, params: Params) -> Result:
        """Play an item; for games to learn from, return the sum of their gradients."""
        if item.games > 1:
            assert item.purpose == "train", "only gradients are added up"
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
        return dataclasses.replace(result, sides=(), streams=None, grads=grads)


def make_worker(config: Config, opponent: Params | None = None) -> Worker:
    """Make a worker for the algorithm that `config` names, with compiled kernels.

    `opponent` has the parameters of an opposing agent, if any.
    """
    protocol, algorithm = config.protocol, config.algorithm
    # Compile all kernels in games of one frame, so that no item has to wait for that; those for two
    # networks are others than those for one.
    short = Player(dataclasses.replace(protocol, max_frames=1), algorithm)
    params = NETS[algorithm].init(make_rng(0, "bench"), 1, config.dtype)
    steps = 1 if algorithm == "ppo" else None
    for other in (BUILTIN,) if config.opponent == BUILTIN or steps is None else (BUILTIN, SELF):
        item = Item("train", 0, 0, 0, steps=steps, opponent=other)
        Worker(short, config.gamma).play(item, params)
    return Worker(Player(protocol, algorithm, opponent), config.gamma)
