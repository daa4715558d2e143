"""The items of one run: which wait, which are done, which have failed how often.

A call to another process costs some milliseconds, on cores that workers could use. So short items
travel many at a time. How many follows from how long they took so far, which changes nothing but
the speed: an item is a pure function.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from pixelpong.engines import RunStats
from pixelpong.errors import WorkerError

MAX_ATTEMPTS = 3
"""Calls that an item may be in when its worker is lost; also how many starts in a row may fail."""

LEAST_SECONDS = 0.02
"""A call should take at least about as long: ten times what it costs."""

MOST_SECONDS = 1.0
"""And at most so long: it is what a lost worker loses."""

SHARES = 2
"""Between these two, a call takes one of so many parts of a worker's share of what waits: large
parts first, then smaller ones, so that all workers are done at about the same time."""


class Pace:
    """How long items take, as far as it is known."""

    def __init__(self) -> None:
        self._seconds: float | None = None

    def learn(self, num_items: int, seconds: float) -> None:
        """Take in that this many items took so long."""
        each = seconds / num_items
        self._seconds = each if self._seconds is None else 0.8 * self._seconds + 0.2 * each

    def count(self, seconds: float) -> int:
        """Items that a worker plays in so many seconds, but at least one."""
        if self._seconds is None:
            return 1
        return max(1, round(seconds / max(self._seconds, 1e-6)))


class Batch:
    """The items of one run, and their results by position."""

    def __init__(self, items: Sequence[Any], pace: Pace, stats: RunStats) -> None:
        self.items, self.stats = items, stats
        self.results: dict[int, Any] = {}
        self._idle_since: float | None = None  # when a worker was done and nothing waited
        self._pace = pace
        self._waiting = deque(range(len(items)))
        self._attempts = [0] * len(items)

    @property
    def num_waiting(self) -> int:
        """Items that nobody plays."""
        return len(self._waiting)

    def take(self, size: int, num_workers: int, timeout: float) -> tuple[int, ...]:
        """Positions of the next items for one call, at least one if any waits.

        Args:
            size: workers that share the call.
            num_workers: all workers that what waits is for, these included.
            timeout: deadline of the call, in seconds.
        """
        share = -(-len(self._waiting) * size // num_workers)
        least = size * self._pace.count(min(LEAST_SECONDS, timeout / 10))
        most = size * self._pace.count(min(MOST_SECONDS, timeout / 10))
        count = min(share, most, max(least, share // SHARES))
        return tuple(self._waiting.popleft() for _ in range(count))

    def put(self, positions: Sequence[int], results: Sequence[Any], seconds: float) -> None:
        """Note that items are done, and took one worker so many seconds in all."""
        self.results.update(zip(positions, results, strict=True))
        self._pace.learn(len(positions), seconds)
        now = time.perf_counter()
        if not self._waiting and self._idle_since is None:
            self._idle_since = now
        self.stats.wait_seconds = now - (self._idle_since or now)

    def give_back(self, positions: Sequence[int], reason: str) -> None:
        """Let items wait again, before all others.

        Args:
            positions: which.
            reason: what became of their worker, for the message.

        Raises:
            WorkerError: an item has been in too many calls that failed.
        """
        self.stats.items_again += len(positions)
        self._waiting.extendleft(reversed(positions))
        for position in positions:
            self._attempts[position] += 1
            if self._attempts[position] >= MAX_ATTEMPTS:
                raise WorkerError(
                    f"expected a result for {self.items[position]}, got {MAX_ATTEMPTS} workers "
                    f"that failed, the last one {reason}; run again with --engine serial to see why"
                )
