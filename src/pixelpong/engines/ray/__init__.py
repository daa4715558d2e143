"""The Ray engine: one actor per node, which plays in threads; or plain tasks, one per core.

Parameters go into the object store once per run and travel once to each node. A run's items are
handed out in chunks, and their results are kept by item and used in the order of the items. If an
actor or a task dies or is late, another one takes its place, and its chunks are handed out again.
So nodes may come and go in the middle of a run.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import pickle
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

# Two settings that Ray reads when it is first imported. Our own Ray listens only at the loopback
# address, as it does by default on systems that are not servers. And Ray does not print a page of
# advice for every worker that is lost, nor for more workers than it expects.
os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
os.environ.setdefault(
    "RAY_DEDUP_LOGS_SKIP_REGEX",
    "died or was killed|will be retried|marked dead|is terminated|processes have been started",
)

import ray
from ray import exceptions
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from pixelpong.engines import EngineStats, MakeWorker, never
from pixelpong.engines.ray.connection import connected, in_one_line
from pixelpong.engines.ray.crew import Crew, call_in_task
from pixelpong.errors import Interrupted, PixelpongError, WorkerError, expected
from pixelpong.machine import collect_versions, describe_machine

MAX_ATTEMPTS = 3  # lost calls that an item may be in
MAX_CHUNK = 8  # items per worker in a call: a lost actor loses no more than two such calls
START_SECONDS = 180.0  # more for the first call of a place, which makes its workers
PLACE_SECONDS = 25.0  # without any place in the cluster before we call it full or gone
RECRUIT_SECONDS = 1.0  # between two checks whether the cluster has grown
POLL_SECONDS = 0.1  # between two checks whether a stop was requested
OTHER_PROCESSOR = "the processor of {} differs from the driver's: the last bits may differ, too"


@dataclass
class _Place:
    """An actor, or room for one task at a time, as the driver sees it."""

    size: int  # workers that play there at once
    node: str  # of an actor, its id; empty for a task
    call: Callable[..., Any]  # calls a method of its `Crew`; returns Ray's reference to the answer
    end: Callable[[], None]  # gives it up, whatever it is doing
    hello: Any  # the reference to its description
    pid: int = 0  # 0 until there is room for it; each task may have another one
    calls: dict[Any, tuple[_Round, list[int]]] = field(default_factory=dict)  # oldest first
    deadline: float = math.inf  # of its calls
    has_played: bool = False  # so its workers are made

    @property
    def owed(self) -> list[Any]:
        """References to the answers that it owes."""
        return list(self.calls) if self.pid else [self.hello]


@dataclass
class _Round:
    """The items of one run: which wait, which are done, and how often each was lost."""

    items: Sequence[Any]
    params: Any  # Ray's reference
    waiting: deque[int]
    attempts: list[int]
    results: dict[int, Any] = field(default_factory=dict)


class RayEngine:
    """Plays items in Ray's workers."""

    def __init__(
        self,
        make_worker: MakeWorker,
        num_workers: int | None,
        item_timeout: float,
        should_stop: Callable[[], bool] = never,
        address: str | None = None,
        mode: str = "actors",
    ) -> None:
        """Connect, and ask for workers; they get ready while the driver continues.

        By default there is one worker per core of the whole cluster, and more if it grows. The mode
        is ``"actors"``, one per node with threads, or ``"tasks"``, one per core. `item_timeout` is
        the seconds that one item may take; `address` is as in `connected`.
        """
        self._has_actors = mode == "actors"
        self._recipe = pickle.dumps(make_worker)
        self._num_workers, self._item_timeout = num_workers, item_timeout
        self._should_stop = should_stop
        self._places: list[_Place] = []
        self._next_recruiting = self._placed_at = 0.0
        self._items_again = self._restarts = 0
        self._last_failure = ""
        self._versions, self._processor = collect_versions(), describe_machine()["processor"]
        self._exit = contextlib.ExitStack()
        self._exit.enter_context(connected(address, num_workers))
        self._recruit()

    @property
    def stats(self) -> EngineStats:
        """The workers that have a place now, and what was lost since the start."""
        workers = sum(place.size for place in self._places if place.pid)
        return EngineStats(max(1, workers), self._items_again, self._restarts)

    @property
    def worker_pids(self) -> list[int]:
        """Process ids of the actors, each on its own machine."""
        return [place.pid for place in self._places if place.pid]

    def run(self, items: Sequence[Any], params: Any) -> Generator[Any, None, None]:
        """The result of each item, in the order of the items."""
        current = _Round(items, _put(params), deque(range(len(items))), [0] * len(items))
        self._placed_at = time.monotonic()
        self._hand_out(current)
        for position in range(len(items)):
            while position not in current.results:
                if self._should_stop():
                    raise Interrupted
                self._recruit()
                self._hear(current)
                self._replace_late(current)
                self._refuse_to_wait_for_room()
                self._hand_out(current)
            yield current.results.pop(position)

    def close(self) -> None:
        """End the actors and the connection."""
        places, self._places = self._places, []
        for place in places:
            # A task ends soon, and nobody hears it. If one finishes while it is cancelled, Ray's
            # core ends the driver: between two locks it is neither running nor done, and a check
            # fails (``task_manager.cc``, Ray 2.60).
            if place.node:
                _end(place)
        self._exit.close()

    # --- places ---

    def _recruit(self) -> None:
        """Ask for as many workers as there should be; nodes may have come or gone."""
        now = time.monotonic()
        if now < self._next_recruiting:
            return
        self._next_recruiting = now + RECRUIT_SECONDS
        if not self._has_actors:
            wanted = self._num_workers or int(ray.cluster_resources().get("CPU", 0))
            self._places += [self._task() for _ in range(wanted - len(self._places))]
            return
        missing = (self._num_workers or math.inf) - sum(place.size for place in self._places)
        taken = {place.node for place in self._places}
        for node in ray.nodes():
            size = int(min(node["Resources"].get("CPU", 0), missing))
            if node["Alive"] and node["NodeID"] not in taken and size > 0:
                self._places.append(self._actor(size, node["NodeID"]))
                missing -= size

    def _actor(self, size: int, node: str) -> _Place:
        strategy = NodeAffinitySchedulingStrategy(node, soft=False)
        # Two calls at a time: its threads start the second one while the first one ends.
        options = {"num_cpus": size, "max_concurrency": 2, "scheduling_strategy": strategy}
        actor = _as_remote(Crew).options(**options).remote(self._recipe, size)

        def call(method: str, *args: Any) -> Any:
            return getattr(actor, method).remote(*args)

        end = functools.partial(ray.kill, actor)
        return _Place(size, node, call, end, call("describe", self._versions))

    def _task(self) -> _Place:
        # Spread, so that many nodes share the memory traffic of the workers.
        options = {"num_cpus": 1, "max_retries": 0, "scheduling_strategy": "SPREAD"}
        call = functools.partial(_as_remote(call_in_task).options(**options).remote, self._recipe)

        def end() -> None:
            for ref in place.owed:
                ray.cancel(ref, force=True)

        place = _Place(1, "", call, end, call("describe", self._versions))
        return place

    def _replace_late(self, current: _Round) -> None:
        now = time.monotonic()
        for place in list(self._places):
            if now > place.deadline:
                self._lose(place, current, "did not answer before its deadline")

    def _lose(self, place: _Place, current: _Round, reason: str) -> None:
        """End a place, put its items back in front, and ask for another place at once."""
        self._places.remove(place)
        _end(place)
        self._last_failure = reason
        if place.pid:
            self._restarts += 1
            self._next_recruiting = 0.0
        lost = [it for owner, chunk in place.calls.values() if owner is current for it in chunk]
        self._items_again += len(lost)
        current.waiting.extendleft(reversed(lost))
        for position in lost:
            current.attempts[position] += 1
            if current.attempts[position] == MAX_ATTEMPTS:
                raise WorkerError(
                    f"expected a result for {current.items[position]}, got {MAX_ATTEMPTS} workers "
                    f"that failed, the last one {reason}; run again with --engine serial to see why"
                )

    def _refuse_to_wait_for_room(self) -> None:
        """Raise an error if the cluster has had no room for a single worker for too long."""
        now = time.monotonic()
        if any(place.pid for place in self._places):
            self._placed_at, self._last_failure = now, ""
        elif now - self._placed_at > PLACE_SECONDS:
            free = int(ray.available_resources().get("CPU", 0))
            total = int(ray.cluster_resources().get("CPU", 0))
            what = f"room for a worker within {PLACE_SECONDS:.0f} s"
            got = self._last_failure or f"{free} free of {total} CPUs in the cluster"
            advice = "wait for its other jobs, add nodes or give fewer --workers, then resume"
            raise WorkerError(expected(what, got, advice))

    # --- calls ---

    def _hand_out(self, current: _Round) -> None:
        """Give each place a call with its share of half of what waits; each actor a second one."""
        all_workers = sum(place.size for place in self._places)
        for num_calls in range(1 + self._has_actors):
            for place in self._places:
                if place.pid and current.waiting and len(place.calls) == num_calls:
                    share = math.ceil(len(current.waiting) * place.size / all_workers / 2)
                    share = min(max(share, place.size), MAX_CHUNK * place.size)
                    count = min(share, len(current.waiting))
                    chunk = [current.waiting.popleft() for _ in range(count)]
                    items = pickle.dumps([current.items[it] for it in chunk], protocol=5)
                    place.calls[place.call("play", current.params, items)] = current, chunk
                    self._set_deadline(place)

    def _set_deadline(self, place: _Place) -> None:
        num_items = sum(len(chunk) for _, chunk in place.calls.values())
        seconds = self._item_timeout * math.ceil(num_items / place.size)
        seconds += 0.0 if place.has_played else START_SECONDS
        place.deadline = time.monotonic() + seconds if place.calls else math.inf

    def _hear(self, current: _Round) -> None:
        """Take the next answer, or wait for a moment."""
        owed = {ref: place for place in self._places for ref in place.owed}
        if not owed:  # the next recruiting is near
            time.sleep(POLL_SECONDS)
            return
        for ref in ray.wait(list(owed), num_returns=1, timeout=POLL_SECONDS)[0]:
            place = owed[ref]
            owner, chunk = place.calls.get(ref, (current, []))
            try:
                answer = ray.get(ref)
            except exceptions.RayTaskError as error:
                if owner is current:  # else it belongs to a run that was given up
                    own = error.cause if isinstance(error.cause, PixelpongError) else None
                    raise own or WorkerError(in_one_line(error)) from error
                answer = None
            except exceptions.RayError as error:
                self._lose(place, current, in_one_line(error))
                continue
            if not place.pid:
                place.pid = answer["pid"]
                if answer["processor"] != self._processor:
                    warnings.warn(OTHER_PROCESSOR.format(answer["host"]), stacklevel=2)
                continue
            del place.calls[ref]
            place.has_played = True
            self._set_deadline(place)
            if owner is current:
                current.results.update(zip(chunk, pickle.loads(answer), strict=True))


@functools.cache
def _as_remote(what: Any) -> Any:
    return ray.remote(what)


def _end(place: _Place) -> None:
    with contextlib.suppress(exceptions.RayError, ValueError):
        place.end()


def _put(params: Any) -> Any:
    """Put the params where every worker can read them in place, one copy per node."""
    try:
        return ray.put(params)
    except (exceptions.ObjectStoreFullError, exceptions.OutOfDiskError) as error:
        what = "room for the parameters in Ray's object store"
        advice = "give it more with 'ray start --object-store-memory', or fewer --hidden"
        raise WorkerError(expected(what, in_one_line(error), advice)) from error
