"""The serial engine: one worker, in this process. Use it to debug, and to check the others."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from pixelpong.engines import ItemWorker, MakeWorker, Results, RunStats, describe_error, never
from pixelpong.errors import Interrupted, PixelpongError


class SerialEngine:
    """Carries out one item after the other."""

    def __init__(self, make_worker: MakeWorker, should_stop: Callable[[], bool] = never) -> None:
        self._make_worker = make_worker
        self._should_stop = should_stop
        self._worker: ItemWorker | None = None

    def run(self, items: Sequence[Any], params: Any) -> Results:
        """See `pixelpong.engines.Engine.run`."""
        return Results(self._play(items, params), RunStats())

    def close(self) -> None:
        """See `pixelpong.engines.Engine.close`."""
        self._worker = None

    def _play(self, items: Sequence[Any], params: Any) -> Generator[Any, None, None]:
        if self._worker is None:
            self._worker = self._make_worker()
        for item in items:
            if self._should_stop():
                raise Interrupted
            try:
                result = self._worker.play(item, params)
            except PixelpongError:
                raise
            except Exception as error:
                raise describe_error(item, error) from error
            yield result
