"""Places in a Ray cluster where items are played: an actor on a node, or room for one task.

In either there is a `Crew`, whose workers are threads. Items and results are pickled here, and not
by Ray, so that it is known how much travels.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import os
import pickle
import socket
import threading
import time
from dataclasses import dataclass
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from threadpoolctl import threadpool_limits

from pixelpong.engines import describe_error
from pixelpong.engines.batch import Batch
from pixelpong.engines.threads import ThreadEngine
from pixelpong.machine import collect_versions, describe_machine

RETRIES = 1
"""Times that Ray itself makes a call again whose process died. If it still fails, its items are
given to whichever place is free: the node may be lost."""


@dataclass
class Call:
    """Items under way at a place."""

    batch: Batch
    positions: tuple[int, ...]


class Place:
    """Where items are played, as the driver sees it: asked for, then there, then ready.

    Attributes:
        size: how many workers play there at once.
        node: of an actor, its node's id; a task's is empty.
        max_calls: how many it is given at a time.
        pid: process id of its actor as it was last heard of; 0 until there is room for it.
        is_ready: its workers are made.
        beginning: what it answers before it is ready.
        calls: what it plays, by Ray's reference to the answer; the oldest first.
        asked_until: when it is asked for less, if there is no room for it by then.
        deadline: of its oldest call, or of its start.
    """

    def __init__(self, size: int, node: str, max_calls: int) -> None:
        self.size, self.node, self.max_calls = size, node, max_calls
        self.pid, self.is_ready = 0, False
        self.calls: dict[Any, Call] = {}
        self.asked_until = self.deadline = math.inf
        self.beginning = self.call("describe")

    @property
    def owed(self) -> list[Any]:
        """References to the answers that it owes."""
        return list(self.calls) if self.is_ready else [self.beginning]

    def call(self, method: str, *args: Any) -> Any:
        """Have a method of its `Crew` called; Ray's reference to the answer."""
        raise NotImplementedError

    def end(self) -> None:
        """Give it up, whatever it does."""
        raise NotImplementedError


class ActorPlace(Place):
    """The workers of a node: an actor, which keeps its emulators from call to call.

    Ray replaces it where it dies; if its node is lost, it is lost with it.
    """

    def __init__(self, recipe: bytes, size: int, node: str) -> None:
        """Ask for so many cores of a node; `recipe` is what makes one worker, pickled."""
        self._actor = (
            _as_remote(Crew)
            .options(
                num_cpus=size,
                max_restarts=-1,
                max_task_retries=RETRIES,
                max_concurrency=2,  # its threads go on with the second call during the first's end
                scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
            )
            .remote(recipe, size)
        )
        super().__init__(size, node, max_calls=2)

    def call(self, method: str, *args: Any) -> Any:
        """See `Place.call`."""
        return getattr(self._actor, method).remote(*args)

    def end(self) -> None:
        """See `Place.end`."""
        ray.kill(self._actor)


class TaskPlace(Place):
    """Room for one task at a time: whichever process takes it has a worker of its own.

    Ray does not retry it: a task does not say which process it ran in, so a retry could not be
    counted as a worker that was replaced.
    """

    def __init__(self, recipe: bytes) -> None:
        """Nothing is kept; `recipe` is what makes a worker, pickled."""
        self._recipe = recipe
        super().__init__(1, "", max_calls=1)

    def call(self, method: str, *args: Any) -> Any:
        """See `Place.call`."""
        # Spread, so that the memory traffic of the workers is shared by many nodes.
        task = _as_remote(call_in_task).options(
            num_cpus=1, max_retries=0, scheduling_strategy="SPREAD"
        )
        return task.remote(self._recipe, method, *args)

    def end(self) -> None:
        """See `Place.end`."""
        for ref in self.owed:
            ray.cancel(ref, force=True)


@functools.cache
def _as_remote(what: Any) -> Any:
    return ray.remote(what)


# --- in the workers' processes ----------------------------------------------------------------


class Crew:
    """The workers of a place, as threads of its process."""

    def __init__(self, recipe: bytes, size: int) -> None:
        self._recipe, self._size = recipe, size
        self._engine: ThreadEngine | None = None
        self._making = threading.Lock()

    def describe(self) -> dict[str, Any]:
        """What the driver has to know of the place."""
        return {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "versions": collect_versions(),
            "processor": describe_machine()["processor"],
        }

    def start(self) -> None:
        """Make the workers, unless there are some.

        Raises:
            WorkerError: a worker cannot be made.
        """
        with self._making:
            if self._engine is not None:
                return
            try:
                make_worker = pickle.loads(self._recipe)
                workers = [make_worker() for _ in range(self._size)]
            except Exception as error:
                raise describe_error("the start of the worker", error) from None
            _settle()
            # Without a deadline: the driver has one for the whole place.
            self._engine = ThreadEngine(workers.pop, self._size, math.inf)

    def play(self, params: Any, items: bytes) -> tuple[int, float, bytes]:
        """Play pickled items.

        Returns:
            Where they were played, a process id; how long that took one worker; the results,
            pickled.

        Raises:
            WorkerError: an item raised.
        """
        self.start()  # Ray may have replaced the process
        assert self._engine is not None
        begin = time.perf_counter()
        results = list(self._engine.run(pickle.loads(items), params))
        seconds = (time.perf_counter() - begin) * min(self._size, len(results))
        return os.getpid(), seconds, pickle.dumps(results, protocol=5)


_crews: dict[bytes, Crew] = {}
"""In a process that runs tasks: its crew of one, by its recipe."""


def call_in_task(recipe: bytes, method: str, *args: Any) -> Any:
    """Call a method of this process's own `Crew`."""
    if recipe not in _crews:
        _crews.clear()
        _crews[recipe] = Crew(recipe, 1)
    return getattr(_crews[recipe], method)(*args)


_M_MMAP_THRESHOLD = -3  # of glibc's malloc.h

_OWN_PAGES_BYTES = 1 << 20
"""An array as large as this has pages of its own, which the system gets back with it."""


def _settle() -> None:
    """Use one BLAS thread, and a heap that does not grow; to be called once NumPy is loaded.

    Workers that fight over cores through BLAS threads are the classic way to be slower in
    parallel; environment variables come too late once NumPy is imported.

    glibc learns from the first large array that is freed to take such arrays from its heap.
    Episodes differ in length, so the holes there differ too, and the heap grows by some pages a
    minute for hours. If a threshold is set, it learns nothing. Other C libraries have none.
    """
    threadpool_limits(limits=1)
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _OWN_PAGES_BYTES)
