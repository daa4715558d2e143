"""The serial engine: one worker, in this process. Use it to debug, and to check the others."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from pixelpong.engines import EngineStats, ItemWorker, MakeWorker, naming, never
from pixelpong.errors import Interrupted


class SerialEngine:
    """Plays one item after the other."""

    stats = EngineStats()

    def __init__(self, make_worker: MakeWorker, should_stop: Callable[[], bool] = never) -> None:
        self._make_worker, self._should_stop = make_worker, should_stop
        self._worker: ItemWorker | None = None

    def run(self, items: Sequence[Any], params: Any) -> Generator[Any, None, None]:
        """Play one item after the other."""
        self._worker = self._worker or self._make_worker()
        for item in items:
            if self._should_stop():
                raise Interrupted
            with naming(item):
                result = self._worker.play(item, params)
            yield result

    def close(self) -> None:
        """Drop the worker."""
        self._worker = None
