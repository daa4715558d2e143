"""The items of one run: which wait, which are done, and how often each has failed.

A call to another process costs some milliseconds, on cores that workers could use. So a call takes
many short items. Their number follows from how long items took so far; it changes only the speed,
because an item is a pure function.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from pixelpong.engines import RunStats
from pixelpong.errors import WorkerError

MAX_ATTEMPTS = 3
"""Lost calls that an item may be in; also, failed starts allowed in a row."""

LEAST_SECONDS = 0.02
"""The least that a call should take, about: ten times its cost."""

MOST_SECONDS = 1.0
"""The most that a call should take: a lost worker loses that much."""

SHARES = 2
"""Between these two, a call takes this fraction of a worker's share of the waiting items: large
calls first, then smaller ones, so that all workers finish at about the same time."""


class Pace:
    """An estimate of how long items take."""

    def __init__(self) -> None:
        self._seconds: float | None = None

    def learn(self, num_items: int, seconds: float) -> None:
        """Learn that this many items took this long."""
        each = seconds / num_items
        self._seconds = each if self._seconds is None else 0.8 * self._seconds + 0.2 * each

    def count(self, seconds: float) -> int:
        """The number of items a worker plays in this time, at least one."""
        if self._seconds is None:
            return 1
        return max(1, round(seconds / max(self._seconds, 1e-6)))


class Batch:
    """The items of one run, and their results by position."""

    def __init__(
        self, items: Sequence[Any], pace: Pace, stats: RunStats, group_size: int = 1
    ) -> None:
        self._group_size = group_size
        self.items, self.stats = items, stats
        self.results: dict[int, Any] = {}
        self._idle_since: float | None = None  # when the first worker had nothing left to do
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
            num_workers: all workers for the waiting items, including these.
            timeout: deadline of the call, in seconds.
        """
        share = -(-len(self._waiting) * size // num_workers)
        least = size * self._pace.count(min(LEAST_SECONDS, timeout / 10))
        most = size * self._pace.count(min(MOST_SECONDS, timeout / 10))
        # One place alone need not be done at the same time as another.
        wanted = share if size >= num_workers else max(least, share // SHARES)
        count = self._end_with_group(min(share, most, wanted))
        return tuple(self._waiting.popleft() for _ in range(count))

    def parts_of(self, positions: Sequence[int]) -> list[int]:
        """Lengths of the parts of a call: of whole groups, and 1 of an item that is alone."""
        parts, begin = [], 0
        while begin < len(positions):
            first = positions[begin]
            size = min(self._group_size, len(self.items) - first)
            group = tuple(range(first, first + size))
            is_whole = first % self._group_size == 0
            if not is_whole or tuple(positions[begin : begin + size]) != group:
                size = 1
            parts.append(size)
            begin += size
        return parts

    def _end_with_group(self, count: int) -> int:
        """Nearly as many of the waiting items, so that the last of them ends a group."""
        if count < self._group_size // 2 or self._group_size == 1:
            return count
        beyond = (self._waiting[count - 1] + 1) % self._group_size
        if 2 * beyond < self._group_size and beyond < count:
            return count - beyond
        return min(count + (-beyond) % self._group_size, len(self._waiting))

    def put(self, positions: Sequence[int], results: Sequence[Any], seconds: float) -> None:
        """Record that items are done, and took one worker `seconds` in all."""
        self.results.update(zip(positions, results, strict=True))
        self._pace.learn(len(positions), seconds)
        now = time.perf_counter()
        if not self._waiting and self._idle_since is None:
            self._idle_since = now
        self.stats.wait_seconds = now - (self._idle_since or now)

    def give_back(self, positions: Sequence[int], reason: str) -> None:
        """Put items back, in front of all others.

        Args:
            positions: of the items.
            reason: what happened to their worker, for the message.

        Raises:
            WorkerError: an item has been in too many failed calls.
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
