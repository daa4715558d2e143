"""The clock, the accidents and the worker of the world that `simulation` lets Ray live in."""

from __future__ import annotations

import dataclasses
import functools
import heapq
import itertools
import pickle
import random
import zlib
from collections.abc import Callable
from typing import Any

from toys import toy_config

from pixelpong.play.worker import make_worker

ITEM_TIMEOUT = 2.0  # deadline of an item, in seconds of the simulated world

PATIENCE = 36_000.0
"""Seconds of the simulated world after which an engine is stuck: ten times the longest schedule."""

CONFIGS = {
    "classic": toy_config("classic", hidden=1, batch_size=12),
    "fast": toy_config(
        "fast", hidden=1, num_envs=12, num_steps=8, num_minibatches=2, update_epochs=1
    ),
}
"""A small training of short games in each mode."""


class World:
    """The clock, what is to happen, and the dice."""

    def __init__(self, seed: int, *, is_quiet: bool = False) -> None:
        self.rng = random.Random(seed)
        self.story: list[str] = []
        self._now = self._played = 0.0
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        # Some worlds are quiet, some are hell; what goes wrong most differs from one to another.
        self._rate = 0.0 if is_quiet else self.rng.choice((0.0, 0.02, 0.1, 0.3))
        self._weights = {kind: self.rng.random() ** 2 for kind in ACCIDENTS}
        self._slowness = 0.3 if is_quiet else self.rng.choice((0.001, 0.02, 0.3))
        self.start_seconds = 0.0  # that a process of Ray's takes to start

    # --- the module `time`, as the engines use it ---

    def monotonic(self) -> float:
        self._now += 1e-6  # it takes a microsecond to look at it, as anywhere
        return self._now

    def perf_counter(self) -> float:
        """Seconds that workers have played; they play at an instant and say that it took long."""
        return self._played

    def sleep(self, seconds: float) -> None:
        self.wait_for(lambda: False, seconds)

    # --- what happens ---

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (self._now + seconds, next(self._numbers), action))

    def wait_for(self, is_there: Callable[[], bool], timeout: float) -> None:
        """Let things happen until something is there, or the time is up."""
        assert self._now < PATIENCE, "nothing goes on any more"
        deadline = self._now + timeout
        while not is_there() and self._agenda and self._agenda[0][0] <= deadline:
            moment, _, action = heapq.heappop(self._agenda)
            self._now = max(self._now, moment)
            action()
        if not is_there():
            self._now = max(self._now, deadline)

    def lapse(self) -> None:
        """A worker has played an item: mostly for about as long, now and then for too long."""
        if self.happens(0.1):
            self._played += self.rng.uniform(0.5, 1.5) * ITEM_TIMEOUT
        else:
            self._played += self._slowness * self.rng.lognormvariate(0.0, 0.5)

    def happens(self, factor: float = 1.0) -> bool:
        return self.rng.random() < factor * self._rate

    def draw_accident(self) -> str:
        """What goes wrong while some items are played; mostly nothing."""
        if not self.happens():
            return "none"
        kinds, weights = zip(*self._weights.items(), strict=True)
        (kind,) = self.rng.choices(kinds, weights)
        return kind

    def tell(self, what: str) -> None:
        self.story.append(f"{self._now:.6f} {what}")


ACCIDENTS = ("dies", "dies after it", "hangs", "dropped", "delayed")
"""What may become of a worker and its answer."""


class RecordedWorker:
    """The real worker of a mode; what it has played before is not played anew.

    A result is found by the item and by every bit of the parameters it was asked to play with.
    """

    def __init__(self, mode: str) -> None:
        self._worker = make_worker(CONFIGS[mode])
        self._results: dict[tuple[bytes, int], Any] = {}
        self.world: World | None = None

    def play(self, item: Any, params: Any) -> Any:
        seal = 0
        for name in sorted(params):
            seal = zlib.crc32(params[name], seal)
        key = pickle.dumps(item, protocol=5), seal
        if key not in self._results:  # without the wall times: the same whenever it was played
            result = self._worker.play(item, params)
            self._results[key] = dataclasses.replace(result, seconds=0.0)
        if self.world is not None:
            self.world.lapse()
        return self._results[key]


@functools.cache
def recorded_worker(mode: str) -> RecordedWorker:
    """The one recorded worker of a mode; a function of the module, so that it can be pickled."""
    return RecordedWorker(mode)
