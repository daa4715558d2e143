"""The items of one run: which wait, which are done, which have failed how often.

Every message to a worker costs its driver some tenths of a millisecond, on a core that a worker
could use. So short items travel several at a time; how many follows from how long they took so
far, which changes nothing but the speed: an item is a pure function.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Any, NoReturn

from pixelpong.engines import RunStats
from pixelpong.errors import WorkerError, expected

MAX_ATTEMPTS = 3
"""Workers that an item may cost before it is given up; so many starts in a row may fail."""

START_TIMEOUT = 180.0
"""Seconds a worker may take until it is ready; the first one on a machine compiles."""

AHEAD_WHILE = 3
"""A worker is given its next items early while more items a worker than this wait."""

SHARES = 2
"""Items that travel together are at most one of so many shares of a worker in what waits: large
parcels first, then smaller ones, so that all workers are done at about the same time."""


class Pace:
    """How long items take, as far as is known by now, and so how many should travel together."""

    def __init__(self, parcel_seconds: float) -> None:
        """Items that travel together should take `parcel_seconds`, about."""
        self._parcel_seconds = self._seconds = parcel_seconds

    def learn(self, num_items: int, seconds: float) -> None:
        """So many items took so long."""
        self._seconds += 0.2 * (seconds / num_items - self._seconds)

    def count(self, timeout: float) -> int:
        """Items that should travel together; all of them have to be done before the timeout."""
        return max(1, round(min(self._parcel_seconds, timeout / 10) / max(self._seconds, 1e-6)))


class Batch:
    """The items of one run, and their results by position."""

    def __init__(self, items: Sequence[Any], pace: Pace) -> None:
        self.items = items
        self.results: dict[int, Any] = {}
        self.stats = RunStats()
        self._idle_since: float | None = None  # when a worker was done and nothing waited
        self._pace = pace
        self._waiting = deque(range(len(items)))
        self._attempts = [0] * len(items)

    @property
    def num_waiting(self) -> int:
        """Items that nobody plays."""
        return len(self._waiting)

    def take(self, num_workers: int, timeout: float) -> tuple[int, ...]:
        """Positions of the next items for one worker, at least one.

        Args:
            num_workers: who shares what waits.
            timeout: deadline of what is taken, in seconds.
        """
        if self._attempts[self._waiting[0]]:
            return (self._waiting.popleft(),)  # alone: if it fails again, it was this one
        fair = len(self._waiting) // (SHARES * num_workers)
        count = max(1, min(self._pace.count(timeout), fair))
        return tuple(self._waiting.popleft() for _ in range(count))

    def take_share(self, size: int, num_workers: int, timeout: float) -> tuple[int, ...]:
        """Positions of the next items for workers that share them among themselves.

        Args:
            size: how many these are.
            num_workers: who shares what waits, and has not had its share yet.
            timeout: deadline of what one of them plays, in seconds.
        """
        fair = -(-len(self._waiting) * size // num_workers)
        count = min(self._pace.count(timeout) * size, fair)
        return tuple(self._waiting.popleft() for _ in range(count))

    def put(self, positions: Sequence[int], results: Sequence[Any], seconds: float) -> None:
        """Items are done, after so many seconds."""
        self.results.update(zip(positions, results, strict=True))
        self._pace.learn(len(positions), seconds)
        now = time.perf_counter()
        if not self._waiting and self._idle_since is None:
            self._idle_since = now
        self.stats.wait_seconds = now - (self._idle_since or now)

    def give_back(self, positions: Sequence[int], num_played: int, reason: str) -> None:
        """Items are not done and wait again, before all others.

        Args:
            positions: which.
            num_played: how many of them, from the first on, may have been at fault.
            reason: what became of their worker, for the message.

        Raises:
            WorkerError: an item has cost too many workers.
        """
        self.stats.items_again += len(positions)
        for position in positions[:num_played]:
            self._attempts[position] += 1
            if self._attempts[position] >= MAX_ATTEMPTS:
                raise WorkerError(
                    f"expected a result for {self.items[position]}, got {MAX_ATTEMPTS} workers "
                    f"that failed, the last one {reason}; run again with --engine serial to see why"
                )
        self._waiting.extendleft(reversed(positions))


def raise_failed_starts(reason: str, advice: str) -> NoReturn:
    """Raise that no worker can be started.

    Args:
        reason: what became of the last one.
        advice: what to do.
    """
    got = f"{MAX_ATTEMPTS} in a row that failed, the last one {reason}"
    raise WorkerError(expected("a worker to start", got, advice))
