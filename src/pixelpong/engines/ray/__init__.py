"""The Ray engine: one actor per node, which plays in threads; or plain tasks, one per core.

The parameters go into the object store once per run and travel once to each node. A run is cut into
chunks of neighbouring items, and its results are used in the order of the items. If an actor or a
task dies or is late, another one takes its place, and its chunks are sent again. So nodes may come
and go in the middle of a run.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import pickle
import time
import warnings
from collections import Counter, deque
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
from pixelpong.engines.ray.crew import Crew, call_in_task, unpack
from pixelpong.errors import Interrupted, PixelpongError, WorkerError, expected
from pixelpong.machine import collect_versions, describe_machine

MAX_LOSSES = 3  # of a chunk, before the run is given up
MAX_CHUNK = 32  # items per worker in a chunk: a lost actor loses no more than two chunks
START_SECONDS = 180.0  # more for the first chunk of a place, which makes its workers
PLACE_SECONDS = 25.0  # without any place in the cluster before we call it full or gone
RECRUIT_SECONDS = 1.0  # between two checks whether the cluster has grown
POLL_SECONDS = 0.1  # between two checks whether a stop was requested
OTHER_PROCESSOR = "the processor of {} differs from the driver's: the last bits may differ, too"


class _Run:
    """The items of one run: which wait, in chunks of neighbours, and which are done."""

    def __init__(self, items: Sequence[Any], params: Any) -> None:
        """Take the items, and Ray's reference to the params."""
        self.items, self.params = items, params
        self.waiting = deque([range(len(items))])
        self.losses: Counter[int] = Counter()  # by a chunk's first item
        self.results: dict[int, Any] = {}

    def take(self, share: float, size: int) -> range:
        """The next chunk for one that has a share of all workers, `size` of them.

        It is the share of half of what waits, so that all end at the same time, but of a quarter
        of all items at least, since each call has its price.
        """
        first = self.waiting.popleft()
        left = sum(map(len, self.waiting), len(first))
        wanted = math.ceil(max(left / 2, len(self.items) / 4) * share)
        size = min(max(wanted, size), MAX_CHUNK * size)
        if size < len(first):
            self.waiting.appendleft(first[size:])
        return first[:size]


@dataclass
class _Call:
    """A call of a place's `Crew`, under way."""

    run: _Run | None = None  # none if it asks for the place's description
    chunk: range = range(0)
    deadline: float = math.inf


@dataclass(eq=False)
class _Place:
    """An actor, or room for one task at a time, as the driver sees it."""

    size: int  # workers that play there at once
    node: str = ""  # of an actor, its id
    actor: Any = None
    calls: dict[Any, _Call] = field(default_factory=dict)  # by Ray's reference to the answer
    pid: int = 0  # 0 until there is room for it; each task may have another one
    has_played: bool = False  # so its workers are made

    def end(self) -> None:
        """Give it up, whatever it is doing."""
        with contextlib.suppress(exceptions.RayError, ValueError):
            if self.actor is not None:
                ray.kill(self.actor)
                return
            for ref in self.calls:
                ray.cancel(ref, force=True)


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
        self._recipe: Any = pickle.dumps(make_worker)
        self._num_workers, self._item_timeout = num_workers, item_timeout
        self._should_stop = should_stop
        self._places: list[_Place] = []
        self._next_recruiting = self._placed_at = 0.0
        self._items_again = self._restarts = 0
        self._last_failure = ""
        self._versions, self._processor = collect_versions(), describe_machine()["processor"]
        self._exit = contextlib.ExitStack()
        self._exit.enter_context(connected(address, num_workers))
        if not self._has_actors:  # each call has the recipe, which may hold an agent to meet
            self._recipe = ray.put(self._recipe)
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
        try:
            run = _Run(items, ray.put(params))
        except (exceptions.ObjectStoreFullError, exceptions.OutOfDiskError) as error:
            what = "room for the parameters in Ray's object store"
            advice = "give it more with 'ray start --object-store-memory', or fewer --hidden"
            raise WorkerError(expected(what, in_one_line(error), advice)) from error
        self._placed_at = time.monotonic()
        self._hand_out(run)
        for position in range(len(items)):
            while position not in run.results:
                if self._should_stop():
                    raise Interrupted
                self._recruit()
                self._hear(run)
                self._hand_out(run)
            yield run.results.pop(position)

    def close(self) -> None:
        """End the actors and the connection."""
        places, self._places = self._places, []
        for place in places:
            # A task ends soon, and nobody hears it. If one finishes while it is cancelled, Ray's
            # core ends the driver: between two locks it is neither running nor done, and a check
            # fails (``task_manager.cc``, Ray 2.60).
            if place.actor is not None:
                place.end()
        self._exit.close()

    def _recruit(self) -> None:
        """Ask for as many workers as there should be; nodes may have come or gone."""
        now = time.monotonic()
        if now < self._next_recruiting:
            return
        self._next_recruiting = now + RECRUIT_SECONDS
        nodes = {it["NodeID"]: it["Resources"].get("CPU", 0) for it in ray.nodes() if it["Alive"]}
        size = sum(place.size for place in self._places)
        if not self._has_actors:
            wanted = self._num_workers or int(sum(nodes.values()))
            new = [_Place(1) for _ in range(wanted - size)]
        else:
            new = self._make_actors(nodes, (self._num_workers or math.inf) - size)
        for place in new:
            self._places.append(place)
            self._call(place, _Call(), "describe", self._versions)

    def _make_actors(self, nodes: dict[str, float], missing: float) -> list[_Place]:
        """An actor on each node without one, until no worker is missing."""
        new = []
        taken = {place.node for place in self._places}
        for node, cores in nodes.items():
            if node not in taken and (size := int(min(cores, missing))) > 0:
                # Two calls at a time: its threads start the second one while the first one ends.
                there = NodeAffinitySchedulingStrategy(node, soft=False)
                make = _as_remote(Crew, num_cpus=size, max_concurrency=2, scheduling_strategy=there)
                new.append(_Place(size, node, make(self._recipe, size)))
                missing -= size
        return new

    def _call(self, place: _Place, call: _Call, method: str, *args: Any) -> None:
        """Call a method of a place's `Crew`."""
        if place.actor is not None:
            ref = getattr(place.actor, method).remote(*args)
        else:  # spread, so that many nodes share the memory traffic of the workers
            ref = _as_remote(call_in_task, num_cpus=1, max_retries=0, scheduling_strategy="SPREAD")(
                self._recipe, method, *args
            )
        place.calls[ref] = call

    def _hand_out(self, run: _Run) -> None:
        """Give each place a chunk, and each actor a second one."""
        all_workers = sum(place.size for place in self._places)
        for num_calls in range(1 + self._has_actors):
            for place in self._places:
                if place.pid and run.waiting and len(place.calls) == num_calls:
                    chunk = run.take(place.size / all_workers, place.size)
                    owed = len(chunk) + sum(len(call.chunk) for call in place.calls.values())
                    seconds = self._item_timeout * math.ceil(owed / place.size)
                    seconds += 0.0 if place.has_played else START_SECONDS
                    call = _Call(run, chunk, time.monotonic() + seconds)
                    items = pickle.dumps(run.items[chunk.start : chunk.stop], protocol=5)
                    self._call(place, call, "play", run.params, items)

    def _hear(self, run: _Run) -> None:
        """Take the next answer, or wait for a moment; give up places that failed or are late."""
        owed = {ref: place for place in self._places for ref in place.calls}
        if not owed:  # the next recruiting is near
            time.sleep(POLL_SECONDS)
        for ref in ray.wait(list(owed), num_returns=1, timeout=POLL_SECONDS)[0] if owed else ():
            try:
                self._take(run, owed[ref], ref)
            except exceptions.RayError as error:
                self._lose(run, owed[ref], in_one_line(error))
        now = time.monotonic()
        for place in list(self._places):
            if any(now > call.deadline for call in place.calls.values()):
                self._lose(run, place, "did not answer before its deadline")
        if any(place.pid for place in self._places):
            self._placed_at, self._last_failure = now, ""
        elif now - self._placed_at > PLACE_SECONDS:
            free = int(ray.available_resources().get("CPU", 0))
            total = int(ray.cluster_resources().get("CPU", 0))
            what = f"room for a worker within {PLACE_SECONDS:.0f} s"
            got = self._last_failure or f"{free} free of {total} CPUs in the cluster"
            advice = "wait for its other jobs, add nodes or give fewer --workers, then resume"
            raise WorkerError(expected(what, got, advice))

    def _take(self, run: _Run, place: _Place, ref: Any) -> None:
        """Take the answer of a place."""
        call = place.calls[ref]
        try:
            answer = ray.get(ref)
        except exceptions.RayTaskError as error:
            if call.run in (None, run):  # else of a run that was given up
                own = error.cause if isinstance(error.cause, PixelpongError) else None
                raise own or WorkerError(in_one_line(error)) from error
        else:
            if call.run is None:
                place.pid = answer["pid"]
                if answer["processor"] != self._processor:
                    warnings.warn(OTHER_PROCESSOR.format(answer["host"]), stacklevel=2)
            elif call.run is run:
                run.results.update(zip(call.chunk, unpack(answer), strict=True))
        place.has_played = call.run is not None
        del place.calls[ref]

    def _lose(self, run: _Run, place: _Place, reason: str) -> None:
        """End a place, put its chunks back in front, and ask for another place at once."""
        self._places.remove(place)
        place.end()
        self._last_failure = reason
        if place.pid:
            self._restarts += 1
            self._next_recruiting = 0.0
        lost = [call.chunk for call in place.calls.values() if call.run is run]
        run.waiting.extendleft(reversed(lost))
        self._items_again += sum(map(len, lost))
        for first in (chunk.start for chunk in lost):
            run.losses[first] += 1
            if run.losses[first] == MAX_LOSSES:
                got = f"{MAX_LOSSES} workers that failed, the last one {reason}"
                advice = "run again with --engine serial to see why"
                raise WorkerError(expected(f"a result for {run.items[first]}", got, advice))


@functools.cache
def _as_remote(what: Any, **options: Any) -> Callable[..., Any]:
    """What makes an actor of a class, or calls a function in a task."""
    return ray.remote(what).options(**options).remote
