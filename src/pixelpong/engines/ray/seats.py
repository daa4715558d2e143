"""Where workers sit in the cluster: each in an actor, where tasks are run, or a node together.

All answer with bytes: pickled here and not by Ray, what fails in a worker is told by ourselves,
and how much travels is known. Large arrays stay beside the pickle, and are read where Ray put them.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import os
import pickle
import socket
import time
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import ray
from threadpoolctl import threadpool_limits

from pixelpong.engines import ItemWorker
from pixelpong.engines.answers import Answer, describe_failure, play_items
from pixelpong.engines.threads import ThreadEngine
from pixelpong.machine import collect_versions, describe_machine

# Spread, so that the memory traffic of the workers is shared by as many nodes as can be.
_OPTIONS = {"num_cpus": 1, "scheduling_strategy": "SPREAD"}


class Seat(Protocol):
    """Workers as the driver reaches them; what Ray will answer is not known yet.

    Attributes:
        size: how many workers play here at once.
        timeout: of one call, in seconds.
    """

    size: int
    timeout: float

    def place(self) -> Any:
        """Ask for room in the cluster; the answer is `describe_place`, once there is some."""

    def start(self) -> Any:
        """Make the workers."""

    def play(self, params: Any, items: bytes) -> Any:
        """Play pickled items; the answer is a packed `Answer`."""

    def end(self, late: Any) -> None:
        """Give it up; `late` is what it should have answered by now, or None."""


class ActorSeat:
    """A worker as an actor: it keeps its emulator from one call to the next."""

    def __init__(self, recipe: bytes, item_timeout: float, size: int = 1) -> None:
        """Ask for an actor with so many cores; `recipe` is what makes its worker, pickled."""
        self.size, self.timeout = size, item_timeout
        self._recipe = recipe
        self._informed: Any = None  # the params it has been given
        options = {**_OPTIONS, "num_cpus": size, "max_restarts": 0}
        self._actor = _as_remote(_Actor).options(**options).remote()

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


class NodeSeat(ActorSeat):
    """A node's workers as one actor, which shares what it is given among threads of its own.

    However many workers play there, the driver has one call to make and one answer to unpack.
    """

    def __init__(self, recipe: bytes, item_timeout: float, size: int) -> None:
        """Ask for an actor with so many cores; `recipe` is what makes one worker, pickled."""
        super().__init__(pickle.dumps(functools.partial(_Crew, recipe, size)), item_timeout, size)


class TaskSeat:
    """Room for one task at a time: whichever process takes it has a worker of its own."""

    size = 1

    def __init__(self, recipe: bytes, item_timeout: float) -> None:
        """Nothing is asked for yet; `recipe` is what makes a worker, pickled."""
        self.timeout = item_timeout
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


def ask_for_seats(
    mode: str, recipe: bytes, item_timeout: float, num_workers: int | None, seats: Sequence[Seat]
) -> list[Seat]:
    """The seats that are to be had beside those that there are: nodes may have come or gone.

    Args:
        mode: ``"actors"``, ``"tasks"`` or ``"nodes"``.
        recipe: what makes one worker, pickled.
        item_timeout: deadline of one item, in seconds.
        num_workers: how many there should be in all; by default one a core.
        seats: those that there are, or have been asked for.
    """
    taken = [seat.size for seat in seats]
    if mode == "nodes":
        cores = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
        wanted = sum(cores) if num_workers is None else num_workers
        asked = list[Seat]()
        for size in (Counter(cores) - Counter(taken)).elements():
            size = min(size, wanted - sum(taken))
            if size > 0:
                asked.append(NodeSeat(recipe, item_timeout, size))
                taken.append(size)
        return asked
    wanted = num_workers or max(1, int(ray.cluster_resources().get("CPU", 0)))
    kind = {"actors": ActorSeat, "tasks": TaskSeat}[mode]
    return [kind(recipe, item_timeout) for _ in range(wanted - sum(taken))]


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


class _Crew:
    """The workers of a node: threads of one process, which the driver replaces as a whole."""

    def __init__(self, recipe: bytes, size: int) -> None:
        self._size = size
        make_worker = pickle.loads(recipe)
        workers = [make_worker() for _ in range(size)]
        # Without a deadline: the driver has one for the whole actor.
        self._engine = ThreadEngine(workers.pop, size, math.inf)

    def play_items(self, items: Sequence[Any], params: Any) -> Answer:
        """As `pixelpong.engines.answers.play_items`, many at a time."""
        begin = time.perf_counter()
        try:
            results = list(self._engine.run(items, params))
        except Exception as error:
            return "error", describe_failure(f"{len(items)} items", error)
        seconds = (time.perf_counter() - begin) * min(self._size, len(items))
        return "result", (results, seconds)


class _Actor:
    """One worker or a node's crew, and what it is asked to play."""

    def __init__(self) -> None:
        self._worker: ItemWorker | _Crew | None = None
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


def _make(recipe: bytes) -> tuple[Any, Answer]:
    """Make a worker, and settle its process."""
    try:
        worker = pickle.loads(recipe)()
    except Exception as error:
        return None, ("error", describe_failure("the start of the worker", error))
    _settle()
    return worker, ("ready", None)


_M_MMAP_THRESHOLD = -3  # of glibc's malloc.h

_OWN_PAGES_BYTES = 1 << 20
"""An array as large as this has pages of its own, which the system gets back with it."""


def _settle() -> None:
    """One BLAS thread, and a heap that does not grow; to be called once NumPy is loaded.

    Workers fighting over cores through BLAS threads is the classic way to be slower in parallel;
    environment variables come too late once NumPy is imported.

    glibc learns from the first large array that is freed to take such arrays from its heap; as
    episodes differ in length, the holes there differ too, and the heap grows by some pages a
    minute for hours. Where a threshold is set, it learns nothing. Other C libraries have none.
    """
    threadpool_limits(limits=1)
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _OWN_PAGES_BYTES)


def _play(worker: ItemWorker | _Crew, params: Any, items: bytes) -> Packed:
    if isinstance(worker, _Crew):
        return pack(worker.play_items(pickle.loads(items), params))
    return pack(play_items(worker, pickle.loads(items), params))
