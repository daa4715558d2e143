"""Where a worker sits in the cluster: in an actor of its own, or wherever a task is run.

Both answer with bytes: pickled here and not by Ray, what fails in a worker is told by ourselves,
and how much travels is known. Large arrays stay beside the pickle, and are read where Ray put them.
"""

from __future__ import annotations

import functools
import os
import pickle
import socket
import zlib
from collections.abc import Callable
from typing import Any, Protocol

import ray

from pixelpong.engines import ItemWorker
from pixelpong.engines.answers import Answer, describe_failure, play_items
from pixelpong.engines.worker_process import settle
from pixelpong.machine import collect_versions, describe_machine

# Spread, so that the memory traffic of the workers is shared by as many nodes as can be.
_OPTIONS = {"num_cpus": 1, "scheduling_strategy": "SPREAD"}


class Seat(Protocol):
    """A worker as the driver reaches it; all but `end` give what Ray will answer, not yet known."""

    def place(self) -> Any:
        """Ask for room in the cluster; the answer is `describe_place`, once there is some."""

    def start(self) -> Any:
        """Make the worker."""

    def play(self, params: Any, items: bytes) -> Any:
        """Play pickled items; the answer is a packed `Answer`."""

    def end(self, late: Any) -> None:
        """Give it up; `late` is what it should have answered by now, or None."""


class ActorSeat:
    """A worker as an actor: it keeps its emulator from one call to the next."""

    def __init__(self, recipe: bytes) -> None:
        """Ask for an actor; `recipe` is what makes its worker, pickled."""
        self._recipe = recipe
        self._informed: Any = None  # the params it has been given
        self._actor = _as_remote(_Actor).options(max_restarts=0, **_OPTIONS).remote()

    def place(self) -> Any:
        """See `Seat.place`."""
        return self._actor.place.remote()

    def start(self) -> Any:
        """See `Seat.start`."""
        return self._actor.start.remote(self._recipe)

    def play(self, params: Any, items: bytes) -> Any:
        """See `Seat.play`."""
        # With the first call, and not with every one: for each argument in the object store,
        # Ray's node is asked before the call can start. A call of its own would cost the driver
        # as much as the items do.
        news = () if params is self._informed else (params,)
        self._informed = params
        return self._actor.play.remote(params.hex(), items, *news)

    def end(self, late: Any) -> None:
        """See `Seat.end`."""
        ray.kill(self._actor)


class TaskSeat:
    """Room for one task at a time: whichever process takes it has a worker of its own."""

    def __init__(self, recipe: bytes) -> None:
        """Nothing is asked for yet; `recipe` is what makes a worker, pickled."""
        self._recipe = recipe

    def place(self) -> Any:
        """See `Seat.place`."""
        return self._call(describe_place)

    def start(self) -> Any:
        """See `Seat.start`."""
        return self._call(_start_in_task, self._recipe)

    def play(self, params: Any, items: bytes) -> Any:
        """See `Seat.play`."""
        return self._call(_play_in_task, self._recipe, params, items)

    def end(self, late: Any) -> None:
        """See `Seat.end`."""
        # Not what may still be done in time: Ray 2.60 ends the driver where a task is done
        # while it is being cancelled ("tried to complete task that was not pending").
        if late is not None:
            ray.cancel(late, force=True)

    def _call(self, function: Callable[..., Any], *args: Any) -> Any:
        return _as_remote(function).options(max_retries=0, **_OPTIONS).remote(*args)


Packed = tuple[bytes, list[Any]]
"""A compressed pickle, and the large buffers that it leaves out."""

LARGE_BYTES = 32_768
"""Smaller buffers are copied into the pickle: each one beside it has a price of its own."""

_LEVEL = 1
"""Of zlib: 0.1 ms for the 20 kB of a segment, of which a third is left out; more costs more."""


def pack(content: Any) -> Packed:
    """Pickle for a journey; `unpack` on the other side."""
    large: list[pickle.PickleBuffer] = []

    def keep(buffer: pickle.PickleBuffer) -> bool:
        is_small = buffer.raw().nbytes < LARGE_BYTES
        if not is_small:
            large.append(buffer)
        return is_small

    return zlib.compress(pickle.dumps(content, protocol=5, buffer_callback=keep), _LEVEL), large


def unpack(packed: Packed) -> tuple[Any, int]:
    """What was packed, and its size in bytes; large arrays are read only, where Ray has them."""
    data, large = packed
    size = len(data) + sum(memoryview(buffer).nbytes for buffer in large)
    return pickle.loads(zlib.decompress(data), buffers=large), size


SEATS: dict[str, Callable[[bytes], Seat]] = {"actors": ActorSeat, "tasks": TaskSeat}


@functools.cache
def _as_remote(what: Callable[..., Any]) -> Any:
    return ray.remote(what)


# --- in the workers' processes ----------------------------------------------------------------


def describe_place() -> dict[str, Any]:
    """What the driver has to know of the place a worker got."""
    return {
        "host": socket.gethostname(),
        "node": ray.get_runtime_context().get_node_id(),
        "pid": os.getpid(),
        "versions": collect_versions(),
        "processor": describe_machine()["processor"],
    }


class _Actor:
    """One worker, and what it is asked to play."""

    def __init__(self) -> None:
        self._worker: ItemWorker | None = None
        self._params: tuple[str, Any] = ("none", None)

    def place(self) -> dict[str, Any]:
        """See `Seat.place`."""
        return describe_place()

    def start(self, recipe: bytes) -> Packed:
        """See `Seat.start`."""
        self._worker, answer = _make(recipe)
        return pack(answer)

    def play(self, name: str, items: bytes, *news: Any) -> Packed:
        """See `Seat.play`; with the params of this name, which are sent once."""
        if news:
            self._params = name, news[0]
        assert self._worker is not None
        assert name == self._params[0], "the params did not come"
        return _play(self._worker, self._params[1], items)


_made: dict[bytes, ItemWorker] = {}
"""In a process that runs tasks: its worker, by its recipe."""


def _start_in_task(recipe: bytes) -> Packed:
    return pack(_find_or_make(recipe))


def _play_in_task(recipe: bytes, params: Any, items: bytes) -> Packed:
    kind, content = _find_or_make(recipe)
    if kind == "error":
        return pack((kind, content))
    return _play(_made[recipe], params, items)


def _find_or_make(recipe: bytes) -> Answer:
    if recipe in _made:
        return "ready", None
    worker, answer = _make(recipe)
    _made.clear()
    if worker is not None:
        _made[recipe] = worker
    return answer


def _make(recipe: bytes) -> tuple[ItemWorker | None, Answer]:
    """Make a worker, and settle its process."""
    try:
        worker = pickle.loads(recipe)()
    except Exception as error:
        return None, ("error", describe_failure("the start of the worker", error))
    settle()
    return worker, ("ready", None)


def _play(worker: ItemWorker, params: Any, items: bytes) -> Packed:
    return pack(play_items(worker, pickle.loads(items), params))
