"""A run's time, over all its sessions and without the breaks between them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator


class Stopwatch:
    """Counts seconds, and those of evaluations also separately."""

    def __init__(self, began: float, total: float = 0.0, evaluations: float = 0.0) -> None:
        """Start at the time `began` on the monotonic clock, with the seconds counted before."""
        self._last_read = began
        self._total, self._evaluations = total, evaluations

    def read(self) -> float:
        """Return the total until now; if the clock jumps back, no time has passed."""
        now = time.monotonic()
        self._total += max(0.0, now - self._last_read)
        self._last_read = now
        return self._total

    @property
    def evaluations(self) -> float:
        """The seconds of the evaluations that are over."""
        return self._evaluations

    @contextlib.contextmanager
    def evaluating(self) -> Iterator[None]:
        """Context manager that counts its time as an evaluation's, even if it fails."""
        start = self.read()
        try:
            yield
        finally:
            self._evaluations += self.read() - start
