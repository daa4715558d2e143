"""A worker that sleeps instead of playing, and answers with what others have played.

So that the driver is the limit, not the emulator: 64 of these take next to no time of a core. It
loads no emulator.
"""

from __future__ import annotations

import itertools
import os
import pickle
import time
from collections.abc import Iterable, Sequence
from typing import Any

from pixelpong.play.sums import gather


class SleepingWorker:
    """Takes its time, then gives one result after the other, whatever the item."""

    def __init__(self, results: Sequence[bytes], seconds: float) -> None:
        """Answer with one of the pickled `results` after so many seconds."""
        # Each worker begins at another: equal results that travel together would be packed as one.
        start = os.getpid() % len(results)
        self._results = itertools.cycle([*results[start:], *results[:start]])
        self._seconds = seconds

    def play(self, item: Any, params: Any) -> Any:
        """Sleep; neither item nor params matter."""
        time.sleep(self._seconds)
        return pickle.loads(next(self._results))  # anew: of one that is there, only a word travels

    def gather(self, results: Iterable[Any]) -> list[Any]:
        """Add up the gradients of a group, as a real worker does."""
        return gather(results)
