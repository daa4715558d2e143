"""A world of its own time, in which everything that happens is drawn from one seed."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable

ITEM_TIMEOUT = 2.0  # deadline of an item, in seconds of the simulated world

PATIENCE = 36_000.0
"""Seconds of the simulated world after which an engine is stuck: ten times the longest schedule."""


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
        self.compile_seconds = 0.0  # that it takes longer for the first items that it plays

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
