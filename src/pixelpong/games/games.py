"""Games in progress: N rows of one record, and the threads that play them.

The caller writes the orders for the next step into `Games.orders`. The bits of a game depend
neither on the number of games nor on the number of threads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong import kernels
from pixelpong.atari.game import not_covered
from pixelpong.atari.machine import WIDTH
from pixelpong.atari.palette import PALETTES
from pixelpong.env.field import FIELD_SIZE
from pixelpong.env.preprocess import IS_ACTIVE
from pixelpong.games.console import Rules, load_any, make_console, make_start, make_starts
from pixelpong.games.memory import Memory, State
from pixelpong.games.pictures import View, make_shrinking
from pixelpong.games.turns import ONE_THREAD, Play, Turns, Workers
from pixelpong.kernels import stepping
from pixelpong.kernels.opening import MOST_AT_ONCE
from pixelpong.kernels.stepping import (
    AtariView,
    FieldView,
    FrameView,
    NoView,
    Orders,
    Results,
    Thread,
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
        rules: Rules,
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
            rules: the rules of all games.
            view: the observation of all games.
            workers: the threads that play, at most one per game.
            num_uniforms: number of steps per game for which `orders` can hold random numbers.
            autoresets: when the next episode starts after one has ended: `kernels.NEVER` without a
                RESET, `kernels.NEXT_STEP` or `kernels.SAME_STEP`.
            rules_hash: hash of everything, besides its state, on which a game's future depends.
            has_opponents: whether networks, which have a memory, play the left side.
        """
        self._step = kernels.STEPS[view.observation]
        game = load_any(rules.game)  # kept, because its code must stay in memory
        self._game, start = game, _make_start(rules, view)
        self._memory = memory = Memory(
            size,
            game.cartridge.kept_size,
            view,
            rules.max_frames,
            rules_hash,
            has_opponents=has_opponents,
        )
        self.rows, self.states, self.chances = memory.games, memory.states, memory.chances
        self.frames, self.streams = memory.frames, memory.streams
        self._faults = memory.games["fault"]
        self.remembered = memory.streams.copy()  # `streams` after the next step
        width = 2 + rules.frame_skips[1]
        self.orders = Orders(
            moves=np.zeros((size, 2), np.int64),
            seeds=np.zeros(size, np.int64),
            uniforms=np.zeros((size, num_uniforms, rules.num_sides * width)),
            remembered=_as_bytes(self.remembered),
        )
        self._games = stepping.Games(
            memory.games, memory.chances, memory.states, _as_bytes(memory.streams), memory.frames
        )
        count = min(workers.num_threads, size)
        self._threads = [
            _make_thread(memory, rules, view, start, share, count, autoresets=autoresets)
            for share in range(count)
        ]
        self.turns = Turns(workers._replace(num_threads=count), memory)
        shapes = {"atari": memory.stacks.shape[1:], "frame": (view.rows, 3 * WIDTH)}
        self._shape = shapes.get(view.observation, (FIELD_SIZE, FIELD_SIZE))  # in kernels

    def play(self, observations: NDArray[Any], final_observations: NDArray[Any]) -> Results:
        """Carry out the orders, and write the observations and the last ones of ended episodes.

        Args:
            observations: [N, …]; changed.
            final_observations: [N, …] if the next episode starts in the step in which one ends,
                else [0, …]; changed.

        Raises:
            EmulatorError: the cartridge needs something that the console does not support.
        """
        self.turns.play(self._prepare(observations, final_observations))
        return self.receive()

    def send(self, observations: NDArray[Any], final_observations: NDArray[Any]) -> None:
        """Begin to carry out the orders, like `play`; `receive` returns the results."""
        self.turns.send(self._prepare(observations, final_observations))

    def receive(self) -> Results:
        """The results of what was begun last, as `play` returns them."""
        self.turns.settle()
        if np.count_nonzero(self._faults):
            raise not_covered(int(self._faults.max()))
        return self._results

    def _prepare(self, observations: NDArray[Any], final: NDArray[Any]) -> Play:
        """The function that plays a share of the games, and the arrays for the results."""
        size = len(self.rows)
        self._results = Results(
            observations.reshape(-1, *self._shape),
            final.reshape(-1, *self._shape),
            rewards=np.empty(size, np.int32),
            is_over=np.empty(size, np.bool_),
            is_cut=np.empty(size, np.bool_),
            lives=np.empty(size, np.int32),
            total_frames=np.empty(size, np.int32),
            episode_frames=np.empty(size, np.int32),
        )
        # Not a method: a waiting thread holds a reference to its last round, and these games must
        # remain collectable.
        return functools.partial(
            _play_share, self._step, self._games, self.orders, self._threads, self._results
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


def _make_start(rules: Rules, view: View) -> NDArray[np.void]:
    """A machine from which games start, [1] its record, set to draw what the view needs."""
    machine = make_start(rules)
    if view.has_levels:
        machine["shades"] = view.levels
        machine["picture"] = view.levels[0][machine["picture"]]
    return machine


def _make_thread(
    memory: Memory,
    rules: Rules,
    view: View,
    start: NDArray[np.void],
    share: int,
    num_shares: int,
    *,
    autoresets: int,
) -> Thread:
    """Make the data that a thread needs to play its share of the games."""
    size, at = len(memory.games), start.dtype.fields["picture"][1]  # type: ignore[index]
    console = make_console(
        rules, has_pictures=view.has_pictures, takes_two=view.takes_two, start=start
    )
    first, second = (
        machine[at : at + view.rows * WIDTH].reshape(view.rows, WIDTH)
        for machine in console.machines
    )
    observed: Any = NoView()
    if view.observation == "atari":
        observed = _make_atari(memory, view, (first, second))
    elif view.observation == "frame":
        palette = PALETTES[view.palette]
        observed = FrameView(memory.frames, memory.frames.view(np.uint64), palette)
    elif view.observation != "nothing":
        pictures = (first, second) if view.has_pictures else (first[:0], second[:0])
        observed = FieldView(memory.fields, console.field, IS_ACTIVE, pictures)
    num_frames = max(rules.frame_skips[1], MOST_AT_ONCE)
    return Thread(
        console,
        make_starts(rules, start),
        row=np.zeros(rules.num_sides * (2 + num_frames)),
        share=share,
        first=size * share // num_shares,
        last=size * (share + 1) // num_shares,
        autoresets=autoresets,
        pictures=(first, second),
        observed=observed,
    )


def _make_atari(
    memory: Memory, view: View, pictures: tuple[NDArray[np.uint8], NDArray[np.uint8]]
) -> AtariView:
    """Make the arrays for the observation "atari"."""
    shrinking = make_shrinking(view.height, view.width, view.rows)
    first, second = (picture[None] for picture in pictures)
    levels = view.levels[:0]
    if not view.has_levels:
        levels = view.levels
        shape = view.channels, view.rows, WIDTH
        first, second = (kernels.aligned_zeros(*shape, dtype=np.uint8) for _ in range(2))
    return AtariView(
        pictures,
        memory.stacks,
        memory.kept,
        levels,
        planes=(first, second),
        shrink=shrinking.address,
        scratch=kernels.aligned_zeros(shrinking.scratch_size, dtype=np.float32),
        small=kernels.aligned_zeros(view.height, view.width, dtype=np.uint8),
    )


def _play_share(
    step: Callable[..., None],
    games: stepping.Games,
    orders: Orders,
    threads: list[Thread],
    results: Results,
    done: NDArray[np.bool_],
    share: int,
) -> None:
    """Play a share of the games."""
    step(games, orders, threads[share], results, done)
