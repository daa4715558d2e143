"""Playing items: whole games or the next steps of streams.

Every step takes one row of uniform numbers from the item's own generator. The first chooses the
action, the second the number of frames; each of the others decides at one frame whether the last
action sticks. In games other than Pong, one more decides how an episode opens. So the result is a
pure function of the item and the parameters, whichever worker plays it.

The opponent is the built-in player or, in the two-player game, a network: the learning one itself
or another agent. There the left side sees the field mirrored, so a network can play either side.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine.compiled import not_covered
from pixelpong.atari.steps.episode import Console
from pixelpong.config.protocols import Protocol
from pixelpong.items import BUILTIN, SELF, Episode, Item, Params, Result
from pixelpong.play.networks import GREEDY, LOOK, NETS, Network
from pixelpong.play.scenes import Scene, find_scene
from pixelpong.seeding import make_rng

_BLOCK = 1024  # number of steps drawn at once for a game of unknown length


class Player:
    """Plays items on its own consoles: in each mode, one for games and one for streams."""

    def __init__(
        self,
        protocol: Protocol,
        algorithm: str,
        opponent: Params | None = None,
        *,
        scene: Scene | None = None,
        life_cost: float = 0.0,
    ) -> None:
        """Play by a protocol with the network that an algorithm trains.

        Args:
            protocol: the rules.
            algorithm: ``"reinforce"`` or ``"ppo"``.
            opponent: the parameters of an opposing agent, if there is one.
            scene: what the networks see; by default what random play shows of the game.
            life_cost: what a lost life costs in the recorded rewards.
        """
        self._protocol, self._opponent = protocol, opponent
        self._scene = scene or find_scene(protocol.game)
        self._network_type, self._life_cost = NETS[algorithm], life_cost
        self._consoles: dict[tuple[int, bool], Console] = {}  # by number of sides, and for streams
        self._networks: list[Network] = []  # the learning network, then the other one

    def play(self, item: Item, params: Params, rng: np.random.Generator | None = None) -> Result:
        """Play an item's first game or the next steps of its streams, which are not changed.

        By default it uses the item's own generator.
        """
        begin = time.perf_counter()
        rng = rng or make_rng(item.seed, item.purpose, item.update, item.index)
        sides = self._seat(item, params)
        learner = sides.index(self._networks[0])
        if item.steps is None:
            streams, episodes, t = self._play_game(item, sides, learner, rng)
            frames = episodes[0].frames
        else:
            streams, episodes, t = self._play_streams(item, sides, learner, rng)
            before = 0 if item.streams is None else int(item.streams["game"]["num_frames"].sum())
            going_on = int(streams["game"]["num_frames"].sum())
            frames = sum(episode.frames for episode in episodes) + going_on - before
        recorded = sides if item.opponent == SELF else [sides[learner]]
        played = tuple(network.played(t) for network in recorded)
        return Result(tuple(episodes), frames, time.perf_counter() - begin, played, streams)

    def _play_game(
        self, item: Item, sides: list[Network], learner: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.void], list[Episode], int]:
        """Play one game to its end, drawing its random numbers a block at a time."""
        console, streams = self._console(item), np.zeros(1, self._scene.stream)
        episodes: list[Episode] = []
        t = end = 0
        while not episodes:
            if t == end:
                uniforms = self._draw(item, rng, 1, _BLOCK, len(sides))
                first, end = t, t + _BLOCK
            t = _play_on(console, sides, streams, uniforms, first, t, learner)
            if not streams["game"]["is_on"][0]:
                episodes.append(self._scene.end(streams[0], item.opponent))
        return streams, episodes, t

    def _play_streams(
        self, item: Item, sides: list[Network], learner: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.void], list[Episode], int]:
        """Play the next steps of streams, and look at the observation after the last one."""
        assert item.steps is not None
        console, episodes = self._console(item), list[Episode]()
        count = 1 if item.streams is None else len(item.streams)
        streams = np.zeros(count, self._scene.stream)
        if item.streams is not None:  # copied as bytes; copying fields takes five times as long
            streams.view(np.uint8)[:] = item.streams.view(np.uint8)
        uniforms = self._draw(item, rng, count, item.steps, len(sides))
        look = np.full((count, 1, uniforms.shape[2]), LOOK)
        uniforms = np.concatenate([uniforms, look], axis=1)
        length, t = item.steps + 1, 0
        while t < count * length:
            t = _play_on(console, sides, streams, uniforms, 0, t, learner)
            number = (t - 1) // length
            if not streams["game"]["is_on"][number]:
                episodes.append(self._scene.end(streams[number], item.opponent))
        return streams, episodes, t

    def _seat(self, item: Item, params: Params) -> list[Network]:
        """Choose the networks that play, right side first; the first of `_networks` is learning."""
        used = [params]
        if item.opponent != BUILTIN:
            other = params if item.opponent == SELF else self._opponent
            assert other is not None, "the worker has no such opponent"
            used.append(other)
        self._networks += [
            self._network_type(self._scene, it, _BLOCK, life_cost=self._life_cost)
            for it in used[len(self._networks) :]
        ]
        sides = self._networks[: len(used)]
        for network, its_params in zip(sides, used, strict=True):
            network.use(its_params)
        # Against another agent, odd streams play the left side.
        is_left = item.opponent not in (BUILTIN, SELF) and item.index % 2 == 1
        return sides[::-1] if is_left else sides

    def _console(self, item: Item) -> Console:
        """Choose the console for an item, with the protocol's rules."""
        num_sides, is_stream = 1 if item.opponent == BUILTIN else 2, item.steps is not None
        if (num_sides, is_stream) not in self._consoles:
            self._consoles[num_sides, is_stream] = self._scene.make_console(
                self._protocol, num_sides, is_endless=is_stream
            )
        return self._consoles[num_sides, is_stream]

    def _draw(
        self, item: Item, rng: np.random.Generator, count: int, steps: int, sides: int
    ) -> NDArray[np.float64]:
        """Draw uniform numbers for steps: for each side, the action's, then the game's."""
        width = sides * (2 + self._protocol.max_frame_skip) + self._scene.num_openings
        uniforms = rng.random((count, steps, width))
        if item.is_greedy:
            uniforms[:, :, 0] = GREEDY
        return uniforms


def _play_on(
    console: Console,
    sides: list[Network],
    streams: NDArray[np.void],
    uniforms: NDArray[np.float64],
    first: int,
    t: int,
    learner: int,
) -> int:
    """Play until the episode ends or the uniforms are used up; see `Network.play_streams`."""
    length, end = uniforms.shape[1], first + uniforms.shape[0] * uniforms.shape[1]
    while t < end:
        for network in sides:
            network.make_room(t)
        t = sides[0].play_streams(console, streams, uniforms, first, t, *sides[1:], learner=learner)
        game = streams["game"][(t - 1 - first) // length]
        if game["fault"]:
            raise not_covered(int(game["fault"]))
        if not game["is_on"]:
            break
    return t
