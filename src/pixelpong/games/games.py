"""Games in progress: N rows of one record, and the threads that play them.

The caller writes the orders for the next step into `Games.orders`. The bits of a game depend
neither on the number of games nor on the number of threads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong import kernels
from pixelpong.atari.game import not_covered
from pixelpong.atari.machine import WIDTH
from pixelpong.env.field import FIELD_SIZE
from pixelpong.games.console import Rules, load_any
from pixelpong.games.memory import Memory, State
from pixelpong.games.parts import make_parts
from pixelpong.games.pictures import View
from pixelpong.games.turns import ONE_THREAD, Play, Turns, Workers
from pixelpong.kernels import stepping
from pixelpong.kernels.stepping import Orders, Part, Results


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
        autoresets: int = kernels.NEVER,
        rules_hash: bytes = bytes(32),
        has_opponents: bool = False,
    ) -> None:
        """Make games without starting an episode.

        Args:
            size: N.
            rules: the rules of all games; or of each, which differ only in what follows from the
                cartridge.
            view: the observation of all games, with the most rows of any of their pictures.
            workers: the threads that play, at most one per game.
            num_uniforms: number of steps per game for which `orders` can hold random numbers.
            autoresets: when the next episode starts after one has ended: `kernels.NEVER` without a
                RESET, `kernels.NEXT_STEP` or `kernels.SAME_STEP`.
            rules_hash: hash of everything, besides its state, on which a game's future depends.
            has_opponents: whether networks, which have a memory, play the left side.
        """
        self._step = kernels.STEPS[view.observation]
        each = (rules,) * size if isinstance(rules, Rules) else tuple(rules)
        # Kept, because their code must stay in memory.
        self._cartridges = [load_any(name) for name in dict.fromkeys(it.game for it in each)]
        common = each[0]
        self._memory = memory = Memory(
            size,
            max(game.cartridge.kept_size for game in self._cartridges),
            view,
            common.max_frames,
            rules_hash,
            has_opponents=has_opponents,
        )
        self.rows, self.states, self.chances = memory.games, memory.states, memory.chances
        self.frames, self.streams = memory.frames, memory.streams
        self._faults = memory.games["fault"]
        self.remembered = memory.streams.copy()  # `streams` after the next step
        width = 2 + common.frame_skips[1]
        self.orders = Orders(
            moves=np.zeros((size, 2), np.int64),
            seeds=np.zeros(size, np.int64),
            uniforms=np.zeros((size, num_uniforms, common.num_sides * width)),
            remembered=_as_bytes(self.remembered),
        )
        self._games = stepping.Games(
            memory.games, memory.chances, memory.states, _as_bytes(memory.streams), memory.frames
        )
        count = min(workers.num_threads, size)
        self._parts = make_parts(memory, each, view, count, autoresets=autoresets)
        num_parts = sum(map(len, self._parts))
        self.turns = Turns(workers._replace(num_threads=count), memory, num_parts)
        field = FIELD_SIZE, FIELD_SIZE
        self._shape = {  # in kernels
            "atari": memory.stacks.shape[1:], "frame": (view.rows, 3 * WIDTH),
            "field": field, "pixels": field, "nothing": field,
        }[view.observation]  # fmt: skip

    def play(self, observations: NDArray[Any], final_observations: NDArray[Any]) -> Results:
        """Carry out the orders. Write the observations and, for ended episodes, the final ones.

        Args:
            observations: [N, …]; changed.
            final_observations: [N, …] if the next episode starts in the step in which one ends,
                else [0, …]; changed.

        Raises:
            EmulatorError: the cartridge needs something that the console does not support.
        """
        self.begin(observations, final_observations)
        return self.receive()

    def begin(self, observations: NDArray[Any], final_observations: NDArray[Any]) -> None:
        """Carry out the orders, like `play`; `receive` returns the results."""
        self.turns.play(self._prepare(observations, final_observations))

    def send(self, observations: NDArray[Any], final_observations: NDArray[Any]) -> None:
        """Begin to carry out the orders, like `play`; `receive` returns the results."""
        self.turns.send(self._prepare(observations, final_observations))

    def receive(self) -> Results:
        """The results of what was begun last, as `play` returns them."""
        self.turns.settle()
        if np.count_nonzero(self._faults):  # of games that did not play, they are known
            faults = self._faults[self.orders.moves[:, 0] >= kernels.RESET]
            if faults.any():
                raise not_covered(int(faults.max()))
        return self._results

    def _prepare(self, observations: NDArray[Any], final: NDArray[Any]) -> Play:
        """The function that plays a share of the games, and the arrays for the results."""
        size = len(self.rows)
        self._results = Results(
            observations.reshape(-1, *self._shape),
            final.reshape(-1, *self._shape),
            numbers=np.empty((4, size), np.int32),
            ends=np.empty((2, size), np.bool_),
        )
        # Not a method: a waiting thread holds a reference to its last round, and these games must
        # remain collectable.
        return functools.partial(
            _play_share, self._step, self._games, self.orders, self._parts, self._results
        )

    def clone(self) -> State:
        """The state on which the future of all games depends: copies of some arrays [N, …]."""
        return tuple(array.copy() for array in self._memory.arrays())

    def restore(self, state: State) -> None:
        """Continue from a state of these games, or of the same number of games with the same rules.

        Raises:
            ConfigError: the state does not fit these games; nothing has changed.
        """
        self.turns.restore(self._memory.read(state))


def _as_bytes(records: NDArray[np.void]) -> NDArray[np.uint8]:
    """The bytes, [N, ·], of N records."""
    return records.view(np.uint8).reshape(len(records), records.itemsize)


def _play_share(
    step: Callable[..., None],
    games: stepping.Games,
    orders: Orders,
    parts: list[list[Part]],
    results: Results,
    done: NDArray[np.bool_],
    share: int,
) -> None:
    """Play a thread's share of the games, one cartridge after the other."""
    for part in parts[share]:
        step(games, orders, part, results, done)
