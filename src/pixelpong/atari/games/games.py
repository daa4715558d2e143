"""Games in progress: N rows of one record, and the threads that play them.

The caller writes the orders for the next step into `Games.orders`. The bits of a game depend
neither on the number of games nor on the number of threads.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.games.memory import Memory, State
from pixelpong.atari.games.opponents import Opponents
from pixelpong.atari.games.parts import make_parts
from pixelpong.atari.games.rules import Rules, open_cartridge
from pixelpong.atari.games.turns import ONE_THREAD, Turns, Workers
from pixelpong.atari.games.views import View
from pixelpong.atari.machine.compiled import not_covered
from pixelpong.atari.steps import stepping
from pixelpong.atari.steps.compiling import Entry
from pixelpong.atari.steps.stepping import (
    FAULT,
    NEVER,
    RAM_SIZE,
    Orders,
    Part,
    Results,
)


class Games:
    """N games that compiled code starts and plays step by step.

    Attributes:
        rows: [N] `GAME`.
        states: [N, ·] uint8, the states of their consoles.
        chances: [N] `CHANCE`.
        frames: [N, rows, 160], palette indices of the newest frames if they are kept, else [0, …].
        orders: the `Orders` for the next step.
        turns: makes calls from several threads take turns; each call has its full effect or none.
    """

    def __init__(
        self,
        size: int,
        rules: Rules | Sequence[Rules],
        view: View,
        *,
        workers: Workers = ONE_THREAD,
        num_uniforms: int = 1,
        autoresets: int = NEVER,
        rules_hashes: Sequence[bytes] = (),
        opponents: Opponents | None = None,
    ) -> None:
        """Make games without starting an episode.

        Args:
            size: N.
            rules: the rules of all games; or of each, which differ only in the cartridge, the
                game on it, and what follows from them.
            view: the observation of all games, with the most rows of any of their pictures.
            workers: the threads that play, at most one per game.
            num_uniforms: number of steps per game for which `orders` can hold random numbers.
            autoresets: when the next episode starts after one has ended: `NEVER` without a
                RESET, `NEXT_STEP` or `SAME_STEP`.
            rules_hashes: of each game, a hash of everything, besides its state, on which its future
                depends; 32 bytes. Without them, all games have the same.
            opponents: those who play the second side, if the orders do not say its moves.
        """
        each = (rules,) * size if isinstance(rules, Rules) else tuple(rules)
        # Kept, because their code must stay in memory.
        self._cartridges = [open_cartridge(facts) for facts in {it.cartridge: 0 for it in each}]
        common = each[0]
        self._memory = memory = Memory(
            size,
            max(game.cartridge.kept_size for game in self._cartridges),
            view,
            common.max_frames,
            rules_hashes or [bytes(32)] * size,
            opponents,
        )
        self.rows, self.states, self.chances = memory.games, memory.states, memory.chances
        self.frames, self._opponents = memory.frames, opponents
        self._remembered = memory.remembered.copy()  # after the next step
        width = 2 + common.most_frames
        self.orders = Orders(
            moves=np.zeros((size, 2), np.int64),
            counts=np.zeros(size, np.int64),
            seeds=np.zeros(size, np.int64),
            slots=np.arange(size),
            uniforms=np.zeros((size, num_uniforms, common.num_sides * width)),
            remembered=_as_bytes(self._remembered),
        )
        self._games = stepping.Rows(
            memory.games,
            memory.chances,
            memory.states,
            _as_bytes(memory.remembered),
            memory.frames,
        )
        count = min(workers.num_threads, size)
        self._parts = make_parts(memory, each, view, count, autoresets=autoresets)
        # One for each part, so that nothing depends on the types of another part's arrays.
        self._steps = [[Entry(view.observation.step) for _ in share] for share in self._parts]
        num_parts = sum(map(len, self._parts))
        self.turns = Turns(workers._replace(num_threads=count), memory, num_parts)
        self._shape, self._shows_ram = view.kernel_shape, view.shows_ram

    def step(self, observations: NDArray[Any], final_observations: NDArray[Any]) -> Results:
        """Carry out the orders. Write the observations and, for ended episodes, the final ones.

        Args:
            observations: [N, …]; changed.
            final_observations: [N, …] if the next episode starts in the step in which one ends,
                else [0, …]; changed.

        Raises:
            EmulatorError: the cartridge needs something that the console does not support.
        """
        results = self.make_results(observations, final_observations)
        self.begin(results)
        raise_faults(results.numbers)
        return results

    def make_results(self, observations: NDArray[Any], final: NDArray[Any]) -> Results:
        """Make the results of a step of B ≤ N games with these arrays; see `step`."""
        size = len(observations) or len(self.rows)
        numbers, ends = np.empty((8, size), np.int32), np.empty((3, size), np.bool_)
        rams = np.empty((size if self._shows_ram else 0, RAM_SIZE), np.uint8)
        return Results(observations, final, numbers, ends, rams)

    def begin(self, results: Results, noted: Any = None, *, is_sent: bool = False) -> None:
        """Carry out the orders, or let other threads begin to if they are sent; see `Turns`."""
        shaped = Results(
            results.observations.reshape(len(results.observations), *self._shape),
            results.final_observations.reshape(len(results.final_observations), *self._shape),
            *results[2:],
        )
        # Not a method: a waiting thread holds a reference to its last round, and these games must
        # remain collectable.
        play = functools.partial(
            _play_share, self._steps, self._games, self.orders, self._parts, shaped
        )
        self.turns.begin(play, noted, is_sent=is_sent)

    def let_opponents_decide(self) -> None:
        """Write the moves of the opponents, if there are any, into the orders."""
        if self._opponents is None:
            return
        uniforms, which = self.orders.uniforms, np.arange(len(self.rows))
        index = self.rows["steps"] % uniforms.shape[1]
        self._remembered[:] = self._memory.remembered
        self.orders.moves[:, 1] = self._opponents.decide(
            self.frames,
            uniforms[which, index, uniforms.shape[2] // 2],
            self._remembered,
            self.rows["is_on"] != 0,
        )

    def clone(self) -> State:
        """Copy the state on which the future of all games depends: arrays [N, …]."""
        return tuple(array.copy() for array in self._memory.arrays())

    def restore(
        self,
        state: Any,
        noted: Any = None,
        *,
        which: NDArray[np.integer[Any]] | None = None,
        include_rng: bool = True,
    ) -> None:
        """Continue from a state of games with the same rules: all, or `which` are listed, [K].

        Without the generators, each game keeps its own.

        Raises:
            ConfigError: the state does not fit these games; nothing has changed.
        """
        restored = self._memory.read(state, which, include_rng=include_rng)
        self.turns.restore(restored, noted)


def raise_faults(numbers: NDArray[np.int32]) -> None:
    """Raise an error if a game met something that the console does not support.

    `numbers` are those of `Results`, of all games or of some.
    """
    if np.count_nonzero(numbers[FAULT]):
        raise not_covered(int(numbers[FAULT].max()))


def _as_bytes(records: NDArray[Any]) -> NDArray[np.uint8]:
    """View N records as bytes, [N, ·]."""
    return records.view(np.uint8).reshape(len(records), records.itemsize)


def _play_share(
    steps: list[list[Entry]],
    games: stepping.Rows,
    orders: Orders,
    parts: list[list[Part]],
    results: Results,
    done: NDArray[np.bool_],
    share: int,
) -> None:
    """Play a thread's share of the games, one cartridge after the other."""
    for step, part in zip(steps[share], parts[share], strict=True):
        step(games, orders, part, results, done)
