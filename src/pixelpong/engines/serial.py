"""The serial engine: one worker, in this process. A peer of the others, and their debugger."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pixelpong.engines import ItemWorker, MakeWorker, RunStats, never
from pixelpong.engines.answers import describe_failure, raise_failure
from pixelpong.errors import Interrupted


class SerialEngine:
    """Carries out one item after the other."""

    num_restarts = 0

    def __init__(self, make_worker: MakeWorker, should_stop: Callable[[], bool] = never) -> None:
        self._make_worker = make_worker
        self._should_stop = should_stop
        self._worker: ItemWorker | None = None
        self.last_run = RunStats()

    def run(self, items: Sequence[Any], params: Any) -> Iterator[Any]:
        """See `pixelpong.engines.Engine.run`."""
        if self._worker is None:
            self._worker = self._make_worker()
        for item in items:
            if self._should_stop():
                raise Interrupted
            try:
                result = self._worker.play(item, params)
            except Exception as error:
                raise_failure(describe_failure(item, error))
            yield result

    def close(self) -> None:
        """See `pixelpong.engines.Engine.close`."""
        self._worker = None
