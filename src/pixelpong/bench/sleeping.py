"""A worker that sleeps instead of playing, and answers with what was once played.

So that the driver is the limit, not the emulator: 64 of these take next to no time of a core. It
loads neither kernels nor emulator.
"""

from __future__ import annotations

import pickle
import time
from typing import Any


class SleepingWorker:
    """Takes its time, then gives the same result for every item."""

    def __init__(self, result: bytes, seconds: float) -> None:
        """Answer with the pickled `result` after so many seconds."""
        self._result = result
        self._seconds = seconds

    def play(self, item: Any, params: Any) -> Any:
        """Sleep; neither item nor params matter."""
        time.sleep(self._seconds)
        return pickle.loads(self._result)  # anew: of one that is there already, only a word travels
