"""What a worker answers, in whatever process it plays: results, or what went wrong with which item.

Pickled from worker to driver. Only declared errors travel as themselves; of others, what they say.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

from pixelpong.engines import ItemWorker
from pixelpong.errors import PixelpongError, WorkerError

Answer = tuple[str, Any]
""""result" with the results and the seconds they took, or "error" with a `Failure`."""

Failure = tuple[PixelpongError | None, str, str]
"""A declared error, the line for any other, and its traceback."""


def play_items(worker: ItemWorker, items: Sequence[Any], params: Any) -> Answer:
    """Play items one after the other, until one fails."""
    begin, results = time.perf_counter(), []
    for item in items:
        try:
            results.append(worker.play(item, params))
        except Exception as error:
            return "error", describe_failure(item, error)
    return "result", (results, time.perf_counter() - begin)


def describe_failure(item: Any, error: Exception) -> Failure:
    """What an item's worker raised, to be sent home.

    Args:
        item: what was played, or in words what was done.
        error: what was raised there.
    """
    message = (
        f"expected a result for {item}, got {type(error).__name__}: {error}; "
        "run again with --engine serial --debug to see where"
    )
    declared = error if isinstance(error, PixelpongError) else None
    return declared, message, "".join(traceback.format_exception(error))


def raise_failure(failure: Failure) -> NoReturn:
    """Raise at home what was raised there."""
    declared, message, details = failure
    raise declared or WorkerError(message, details)
