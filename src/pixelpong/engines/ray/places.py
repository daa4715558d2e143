"""Places in a Ray cluster where items are played: an actor on a node, or room for one task.

Each has a `Crew`, whose workers are threads. Driver and crew pickle items and results themselves:
that is faster than Ray's way, and tells the number of bytes.
"""

from __future__ import annotations

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
from pixelpong.pickling import dumps

RETRIES = 1
"""Times that Ray itself repeats a call whose process died. If it still fails, its items go to any
free place: the node may be lost."""


@dataclass
class Call:
    """Items being played at a place."""

    batch: Batch
    positions: tuple[int, ...]


class Place:
    """A place in the cluster, as the driver sees it: requested, then there, then ready.

    Attributes:
        size: the number of workers that play there at once.
        node: the id of an actor's node; empty for a task.
        max_calls: the most calls it has at a time.
        pid: the last known process id of its actor; 0 until there is room for it.
        is_ready: whether its workers are made.
        beginning: its answers before it is ready.
        calls: its calls, by Ray's reference to the answer, oldest first.
        asked_until: when to ask for less, if there is no room for it by then.
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
        """Call a method of its `Crew`; return Ray's reference to the answer."""
        raise NotImplementedError

    def end(self) -> None:
        """Give it up, whatever it is doing."""
        raise NotImplementedError

    def leave(self) -> None:
        """Let it go at the end of the engine."""
        self.end()


class ActorPlace(Place):
    """The workers of a node: an actor, which keeps its emulators from call to call.

    Ray replaces it if it dies; if its node is lost, the actor is lost too.
    """

    def __init__(self, recipe: bytes, size: int, node: str) -> None:
        """Ask for `size` cores of a node; `recipe` is the pickled maker of a worker."""
        self._actor = (
            _as_remote(Crew)
            .options(
                num_cpus=size,
                max_restarts=-1,
                max_task_retries=RETRIES,
                max_concurrency=2,  # its threads start the second call while the first ends
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
    """Room for one task at a time; the process that runs it has its own worker.

    Ray does not retry it: a task does not say which process it ran in, so a retry could not be
    counted as a replaced worker.
    """

    def __init__(self, recipe: bytes) -> None:
        """Make a place; `recipe` is the pickled maker of a worker."""
        self._recipe = recipe
        super().__init__(1, "", max_calls=1)

    def call(self, method: str, *args: Any) -> Any:
        """See `Place.call`."""
        # Spread, so that many nodes share the memory traffic of the workers.
        task = _as_remote(call_in_task).options(
            num_cpus=1, max_retries=0, scheduling_strategy="SPREAD"
        )
        return task.remote(self._recipe, method, *args)

    def end(self) -> None:
        """See `Place.end`; only for a task that hangs.

        If a task finishes while it is cancelled, Ray's core ends the driver: between two locks the
        task is neither running nor done, and a check fails (``task_manager.cc``, Ray 2.60).
        """
        for ref in self.owed:
            ray.cancel(ref, force=True)

    def leave(self) -> None:
        """See `Place.leave`: a task that plays finishes soon, and nobody hears it."""


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
        """What the driver needs to know about the place."""
        return {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "versions": collect_versions(),
            "processor": describe_machine()["processor"],
        }

    def start(self) -> None:
        """Make the workers, unless they exist.

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
            # BLAS threads that fight over cores are the classic way to become slower in parallel;
            # environment variables come too late once NumPy is imported.
            threadpool_limits(limits=1)
            self._engine = ThreadEngine(workers.pop, self._size)

    def play(self, params: Any, items: bytes) -> tuple[int, float, pickle.PickleBuffer]:
        """Play pickled items.

        Args:
            params: what to play them with.
            items: a list of items, and the lengths of the parts whose results are gathered.

        Returns:
            The process id; the time it took one worker; the pickled results.

        Raises:
            WorkerError: an item raised.
        """
        self.start()  # Ray may have replaced the process
        assert self._engine is not None
        begin = time.perf_counter()
        chosen, _ = pickle.loads(items)
        played = self._engine.run(chosen, params)
        results = list(played)
        seconds = (time.perf_counter() - begin) * min(self._size, len(results))
        # A buffer is copied once by Ray, plain bytes several times.
        return os.getpid(), seconds, pickle.PickleBuffer(dumps(results))


_crews: dict[bytes, Crew] = {}
"""In a process that runs tasks: its crew of one, by its recipe."""


def call_in_task(recipe: bytes, method: str, *args: Any) -> Any:
    """Call a method of this process's own `Crew`."""
    if recipe not in _crews:
        _crews.clear()
        _crews[recipe] = Crew(recipe, 1)
    return getattr(_crews[recipe], method)(*args)
