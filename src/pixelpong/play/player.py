"""Playing items: whole games, and the next steps of streams.

Every step takes one row of uniform numbers from the item's own generator: the first chooses the
action, the second the number of frames, the others decide at each frame whether the held action
sticks. So what is played is a pure function of item and parameters, whichever worker plays it.

The opponent is the built-in player, or a network in the two-player game: the learning one itself,
or another agent. There the left side sees the field mirrored, so a network can play either side.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from pixelpong import kernels
from pixelpong.atari.game import not_covered
from pixelpong.config.protocols import Protocol
from pixelpong.env.cartridge import SERVE
from pixelpong.env.duel import MAX_FRAMES, MODE
from pixelpong.env.native import load_game, start_of
from pixelpong.items import BUILTIN, SELF, Episode, Item, Params, Result
from pixelpong.play.networks import GREEDY, LOOK, NETS, Compiled, Network
from pixelpong.seeding import make_rng

_BLOCK = 1024  # steps whose uniform numbers are drawn at once, for a game of unknown length


class Player:
    """Plays items, always on the same machines: for each mode one for games, one for streams."""

    def __init__(self, protocol: Protocol, algorithm: str, opponent: Params | None = None) -> None:
        """Play by a protocol, with the network that an algorithm trains.

        `opponent` has the parameters of an opposing agent, if any.
        """
        self._protocol, self._kind, self._opponent = protocol, NETS[algorithm], opponent
        self._games: dict[tuple[int, bool], Compiled] = {}
        self._networks: list[Network] = []  # the learning one, the other one

    def play(self, item: Item, params: Params, rng: np.random.Generator | None = None) -> Result:
        """Play an item's first game, or the next steps of its streams, which are not changed.

        The generator is the item's own by default.
        """
        begin = time.perf_counter()
        rng = rng or make_rng(item.seed, item.purpose, item.update, item.index)
        own, sides = self._seat(item, params)
        side = sides.index(own)
        count = 1 if item.streams is None else len(item.streams)
        streams = np.zeros(count, kernels.STREAM)
        if item.streams is not None:  # copied as bytes; field by field takes five times as long
            streams.view(np.uint8)[:] = item.streams.view(np.uint8)
        memory, game = streams["memory"], self._game(item)
        frames, episodes = -int(memory["num_frames"].sum()), list[Episode]()
        first = t = 0
        draws = self._draw(item, rng, count, len(sides))
        end = draws.shape[0] * draws.shape[1]
        # A stream has one more step, for the value of the observation after the last one.
        while t < end if item.steps is not None else not episodes:
            if t == end:
                first, draws = t, self._draw(item, rng, count, len(sides))
                end += draws.shape[1]
            for each in sides:
                each.make_room(t)
            t = sides[0].play(game, streams, draws, first, t, *sides[1:], own=side)
            number = (t - 1 - first) // draws.shape[1]
            if memory["fault"][number]:
                raise not_covered(int(memory["fault"][number]))
            if not memory["is_on"][number]:
                episodes.append(_end(streams[number], item.opponent))
                frames += episodes[-1].frames
        if item.steps is not None:
            frames += int(memory["num_frames"].sum())
        learned = sides if item.opponent == SELF else [own]
        played = tuple(each.played(t) for each in learned)
        return Result(tuple(episodes), frames, time.perf_counter() - begin, played, streams)

    def _seat(self, item: Item, params: Params) -> tuple[Network, list[Network]]:
        """Return the learning network, and all networks that play, the right side's first."""
        used = [params]
        if item.opponent != BUILTIN:
            other = params if item.opponent == SELF else self._opponent
            assert other is not None, "the worker has no such opponent"
            used.append(other)
        self._networks += [self._kind(each, _BLOCK) for each in used[len(self._networks) :]]
        sides = self._networks[: len(used)]
        for network, theirs in zip(sides, used, strict=True):
            network.use(theirs)
        # Against another agent, odd streams play the left side.
        is_left = item.opponent not in (BUILTIN, SELF) and item.index % 2 == 1
        return sides[0], sides[::-1] if is_left else sides

    def _game(self, item: Item) -> Compiled:
        """The game of an item in the kernels' form."""
        mode, is_stream = 0 if item.opponent == BUILTIN else MODE, item.steps is not None
        if (mode, is_stream) not in self._games:
            game, rules = load_game(), self._protocol
            start = start_of(game, mode)
            # After 18 minutes the cartridge stops the game and cycles colours: nothing to learn.
            most = min(rules.max_frames, MAX_FRAMES) if is_stream else rules.max_frames
            record, machine = np.zeros(1, kernels.GAME), start.copy()
            actions = kernels.unshared(rules.max_frame_skip, dtype=np.uint8)
            record[0] = (
                game.address, machine.ctypes.data, actions.ctypes.data,
                *rules.frame_skips, most, rules.sticky, SERVE if mode else 0,
            )  # fmt: skip
            machines = machine.view(np.uint8), start.view(np.uint8)
            self._games[mode, is_stream] = record, actions, machine["field"][0], *machines
        return self._games[mode, is_stream]

    def _draw(
        self, item: Item, rng: np.random.Generator, count: int, sides: int
    ) -> NDArray[np.float64]:
        """Draw uniform numbers per step: for each side the action's, then the game's.

        The last step of a stream is for an observation alone (`LOOK`).
        """
        width = sides * (2 + self._protocol.max_frame_skip)
        drawn = rng.random((count, item.steps or _BLOCK, width))
        if item.is_greedy:
            drawn[:, :, 0] = GREEDY
        if item.steps is None:
            return drawn
        look = np.full((count, 1, width), LOOK)
        return np.concatenate([drawn, look], axis=1)


def _end(stream: np.void, opponent: str) -> Episode:
    """The episode that has just ended."""
    tally, memory = stream["tally"], stream["memory"]
    ends, rewards = (tuple(tally[name][: tally["points"]].tolist()) for name in ("ends", "rewards"))
    return Episode(
        int(memory["steps"]),
        int(memory["num_frames"]),
        float(tally["entropy"]),
        int(tally["ups"]),
        ends,
        rewards,
        opponent,
    )
