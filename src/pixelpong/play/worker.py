"""A worker: plays items on its own consoles, and differentiates whole games.

The result is a pure function of the item and the parameters: a worker first sets the whole state,
so nothing leaks from one item to the next, and any worker can play any item.

Float addition is not associative. So the gradients of a batch are added in groups of consecutive
episodes: first the episodes of each group, in order, then the groups. In a large batch, an item is
a whole group, and only its sum is returned. In a smaller batch, an item is one episode, and the
learner adds up the groups. Both do the same additions.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

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
from pixelpong.kernels.reinforce import add_rows, discounted_returns, episode_gradient
from pixelpong.learn.returns import standardize
from pixelpong.play.networks import NETS
from pixelpong.play.player import Player
from pixelpong.play.scenes import Scene, find_scene
from pixelpong.seeding import make_rng

GROUP_SIZE = 20  # episodes; the last group of a batch may be smaller
# In a batch with at least this many episodes, the items are whole groups: 15 or more, which the
# workers share.
LARGE_BATCH = 300


def games_per_item(batch_size: int) -> int:
    """Return the number of episodes per item, which depends on the batch but not on the workers."""
    return GROUP_SIZE if batch_size >= LARGE_BATCH else 1


def groups_of(results: Iterable[Result]) -> Iterator[list[Result]]:
    """Split results, each of one or more consecutive games, into groups."""
    group: list[Result] = []
    num_games = 0
    for result in results:
        group.append(result)
        num_games += len(result.episodes)
        if num_games == GROUP_SIZE:
            yield group
            group, num_games = [], 0
    if group:
        yield group


def join(results: Iterable[Result]) -> Result:
    """Join the results of games into one, adding their gradients one after the other."""
    remaining = iter(results)
    first, second = next(remaining), next(remaining, None)
    if second is None:
        return first
    assert first.grads is not None
    episodes: list[Episode] = []
    frames, seconds = 0, 0.0
    W2 = np.zeros_like(first.grads.W2)
    W1, has_gradient = np.zeros((NUM_PIXELS, len(W2)), W2.dtype), np.zeros(NUM_PIXELS, np.bool_)
    for result in itertools.chain((first, second), remaining):
        assert result.grads is not None
        episodes += result.episodes
        frames, seconds = frames + result.frames, seconds + result.seconds
        has_gradient[result.grads.rows] = True
        add_rows(W1, result.grads.rows, result.grads.W1)
        W2 += result.grads.W2
    rows = np.flatnonzero(has_gradient).astype(np.uint16)
    return Result(tuple(episodes), frames, seconds, grads=SparseGrads(rows, W1[rows], W2))


def combine(items: Sequence[Item], results: Iterable[Result]) -> list[Result]:
    """Join the results of consecutive games if they start a group; leave other results unchanged.

    A Ray process does this before it answers, to send one gradient instead of one per game. A sum
    that starts inside a group would add games in a different order from the learner.
    """
    combined: list[Result] = []
    remaining = iter(results)
    for _, neighbours in itertools.groupby(items, lambda item: item.index // GROUP_SIZE):
        first, *others = neighbours
        played = itertools.islice(remaining, 1 + len(others))
        has_grads = first.purpose == "train" and first.steps is None
        if has_grads and first.index % GROUP_SIZE == 0:
            combined.append(join(played))
        else:
            combined += played
    return combined


class Worker:
    """Plays items with the network of one algorithm."""

    def __init__(self, player: Player, gamma: float) -> None:
        """Use a player; `gamma` is the discount of the classic mode's returns."""
        self._player, self._gamma = player, gamma

    def play(self, item: Item, params: Params) -> Result:
        """Play an item; for games to learn from, return the sum of their gradients."""
        if item.games > 1:
            assert item.purpose == "train", "only gradients are added up"
            indices = range(item.index, item.index + item.games)
            games = (dataclasses.replace(item, index=index, games=1) for index in indices)
            return join(self.play(game, params) for game in games)
        result = self._player.play(item, params)
        if item.steps is not None:
            return result
        grads = None
        if item.purpose == "train":
            (played,) = result.sides
            returns = discounted_returns(played.steps["reward"], self._gamma)
            grads = episode_gradient(read_only(params)["W2"], played, standardize(returns))
        return dataclasses.replace(result, sides=(), streams=None, grads=grads)


def make_worker(
    config: Config, opponent: Params | None = None, scene: Scene | None = None
) -> Worker:
    """Make a worker for the algorithm that `config` names, with compiled kernels.

    `opponent` holds the parameters of an opposing agent, if there is one; `scene` is as in
    `Player`.
    """
    scene = scene or find_scene(config.game)
    protocol, algorithm, life_cost = config.protocol, config.algorithm, config.life_cost
    # Games of one frame compile all kernels, so that no item has to wait for the compiler. The
    # kernel for two networks in a game is compiled separately.
    short = Player(dataclasses.replace(protocol, max_frames=1), algorithm, scene=scene)
    params = NETS[algorithm].init(scene, make_rng(0, "bench"), 1, config.dtype)
    has_two_networks = algorithm == "ppo" and config.opponent != BUILTIN
    for against in (BUILTIN, SELF) if has_two_networks else (BUILTIN,):
        item = Item("train", 0, 0, 0, steps=1 if algorithm == "ppo" else None, opponent=against)
        Worker(short, config.gamma).play(item, params)
    player = Player(protocol, algorithm, opponent, scene=scene, life_cost=life_cost)
    return Worker(player, config.gamma)
