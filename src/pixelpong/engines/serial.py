"""The serial engine: one worker, in this process. A peer of the others, and their debugger."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pixelpong.engines import ItemWorker, MakeWorker, never
from pixelpong.errors import Interrupted, PixelpongError, WorkerError


class SerialEngine:
    """Carries out one item after the other."""

    num_restarts = 0

    def __init__(self, make_worker: MakeWorker, should_stop: Callable[[], bool] = never) -> None:
        self._make_worker = make_worker
        self._should_stop = should_stop
        self._worker: ItemWorker | None = None

    def run(self, items: Sequence[Any], params: Any) -> Iterator[Any]:
        """See `pixelpong.engines.Engine.run`."""
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
                raise WorkerError(describe_failure(item, error), traceback.format_exc()) from error
            yield result

    def close(self) -> None:
        """See `pixelpong.engines.Engine.close`."""
        self._worker = None


def describe_failure(item: Any, error: BaseException) -> str:
    """The one line for an item whose worker raised."""
    return (
        f"expected a result for {item}, got {type(error).__name__}: {error}; "
        "run again with --engine serial --debug to see where"
    )
