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
from pixelpong.config.protocols import Protocol
from pixelpong.env.cartridge import SERVE
from pixelpong.env.duel import MAX_FRAMES, MODE
from pixelpong.env.native import NativeConsole, not_covered
from pixelpong.items import BUILTIN, SELF, Episode, Item, Params, Result
from pixelpong.play.networks import GREEDY, LOOK, NETS, Compiled, Network, start_episode
from pixelpong.seeding import make_rng

_BLOCK = 1024  # steps whose uniform numbers are drawn at once, for a game of unknown length


class Player:
    """Plays items, always on the same consoles: for each mode one for games, one for streams."""

    def __init__(self, protocol: Protocol, algorithm: str, opponent: Params | None = None) -> None:
        """Play by a protocol, with the network that an algorithm trains.

        `opponent` has the parameters of an opposing agent, if any.
        """
        self._protocol, self._kind, self._opponent = protocol, NETS[algorithm], opponent
        self._games: dict[tuple[int, bool], tuple[NativeConsole, Compiled]] = {}
        self._networks: list[Network] = []  # the learning one, the other one

    def play(self, item: Item, params: Params, rng: np.random.Generator | None = None) -> Result:
        """Play an item's first game, or the next steps of its stream, which is not changed.

        The generator is the item's own by default.
        """
        begin = time.perf_counter()
        rng = rng or make_rng(item.seed, item.purpose, item.update, item.index)
        own, sides = self._seat(item, params)
        console, game = self._game(item)
        stream = np.zeros(1, kernels.STREAM)
        if item.stream is not None:  # copied as bytes; field by field takes five times as long
            stream.view(np.uint8)[:] = item.stream.view(np.uint8)
        console.set_state(stream["console"])
        memory, frames = stream["memory"][0], -int(stream["memory"]["num_frames"][0])
        episodes: list[Episode] = []
        first = t = counted = 0
        draws = np.zeros((0, 1))
        # A stream has one more step, for the value of the observation after the last one.
        while t <= item.steps if item.steps is not None else not episodes:
            if not memory["is_on"]:
                start_episode(stream)
                console.reset()
                for each in sides:
                    each.forget()
            if t == first + len(draws):
                first, draws = t, self._draw(item, rng, len(sides))
            for each in sides:
                each.make_room(t)
            t = sides[0].play(game, stream, draws[t - first :], t, *sides[1:])
            if memory["fault"]:
                raise not_covered(-int(memory["fault"]))
            if not memory["is_on"]:
                _count(stream, own, counted, t)
                episodes.append(_end(stream, item.opponent))
                counted, frames = t, frames + episodes[-1].frames
        if item.steps is not None:
            _count(stream, own, counted, item.steps)
            stream["console"], frames = console.get_state(), frames + int(memory["num_frames"])
        learned = sides if item.opponent == SELF else [own]
        played = tuple(each.played(t if item.steps is None else item.steps, t) for each in learned)
        return Result(tuple(episodes), frames, time.perf_counter() - begin, played, stream)

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

    def _game(self, item: Item) -> tuple[NativeConsole, Compiled]:
        """Return the console for an item's game, and the record that the kernels need."""
        mode, is_stream = 0 if item.opponent == BUILTIN else MODE, item.steps is not None
        if (mode, is_stream) not in self._games:
            console, rules = NativeConsole(mode), self._protocol
            # After 18 minutes the cartridge stops the game and cycles colours: nothing to learn.
            most = min(rules.max_frames, MAX_FRAMES) if is_stream else rules.max_frames
            record = np.zeros(1, kernels.GAME)
            actions = kernels.unshared(rules.max_frame_skip, dtype=np.uint8)
            record[0] = (
                console.address, console.machine.ctypes.data, actions.ctypes.data,
                *rules.frame_skips, most, rules.sticky, SERVE if mode else 0,
            )  # fmt: skip
            self._games[mode, is_stream] = console, (record, actions, console.machine["field"][0])
        return self._games[mode, is_stream]

    def _draw(self, item: Item, rng: np.random.Generator, sides: int) -> NDArray[np.float64]:
        """Draw a row of uniform numbers per step: for each side the action's, then the game's.

        The last row of a stream is for an observation alone (`LOOK`).
        """
        width = sides * (2 + self._protocol.max_frame_skip)
        if item.steps is None:
            draws = rng.random((_BLOCK, width))
            draws[:, 0] = GREEDY if item.is_greedy else draws[:, 0]
            return draws
        draws = np.full((item.steps + 1, width), LOOK)
        rng.random(out=draws[:-1])
        return draws


def _count(stream: NDArray[np.void], own: Network, first: int, last: int) -> None:
    """Add the newest recorded steps of the learning network to a stream's statistics."""
    steps, tally = own.steps[first:last], stream[0]
    (places,) = steps["reward"].nonzero()
    new = slice(int(tally["points"]), int(tally["points"]) + len(places))
    tally["ends"][new] = tally["memory"]["steps"] - len(steps) + places
    tally["rewards"][new] = steps["reward"][places]
    tally["points"] += len(places)
    tally["entropy"] += np.add.reduce(steps["entropy"])
    tally["ups"] += np.count_nonzero(steps["action"] == own.up)


def _end(stream: NDArray[np.void], opponent: str) -> Episode:
    """The episode that has just ended."""
    tally = stream[0]
    ends, rewards = (tuple(tally[name][: tally["points"]].tolist()) for name in ("ends", "rewards"))
    return Episode(
        int(tally["memory"]["steps"]),
        int(tally["memory"]["num_frames"]),
        float(tally["entropy"]),
        int(tally["ups"]),
        ends,
        rewards,
        opponent,
    )
