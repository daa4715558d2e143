"""The Ray engine: one actor per node, which plays in threads; or plain tasks, one per core.

The parameters are put into the object store once per run and travel once to each node. A run is cut
into chunks of consecutive items, and its results are used in the order of the items. If an actor or
a task dies or is late, another one takes its place, and its chunk is sent again. So nodes may come
and go in the middle of a run.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import pickle
import socket
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any

# Two settings that Ray reads when it is first imported. With the first, our own Ray listens only at
# the loopback address, as it does by default on desktop systems. With the second, Ray does not
# print a page of advice for every worker that is lost, nor for more workers than it expects.
os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
os.environ.setdefault(
    "RAY_DEDUP_LOGS_SKIP_REGEX",
    "died or was killed|will be retried|marked dead|is terminated|processes have been started",
)

import ray
from ray import exceptions
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from threadpoolctl import threadpool_limits

from pixelpong.config import Config
from pixelpong.engines import Engine, EngineStats, Gather, MakeWorker, naming, never
from pixelpong.engines.ray.cluster import Node
from pixelpong.engines.ray.connection import connected, in_one_line, require_versions
from pixelpong.engines.threads import ThreadEngine
from pixelpong.errors import Interrupted, PixelpongError, WorkerError, number_of, on_one_line, warn
from pixelpong.machine import collect_versions, describe_machine

MAX_LOSSES = 3  # of a chunk, before the run fails
MAX_CHUNK = 64  # items per worker in a chunk; a lost actor loses a chunk
START_SECONDS = 180.0  # for processes to start; and extra time for a slot's first chunk
PLACE_SECONDS = 25.0  # without a free CPU, or with failed starts only, before the run ends
SETTLE_SECONDS = 5.0  # after which it is sure which CPUs of a node others use
RECRUIT_SECONDS = 1.0  # between checks whether the cluster has grown
POLL_SECONDS = 0.1  # between checks for a requested stop

WHEN_LOST = "the last complete update is saved; continue with 'pixelpong resume RUN'"
LARGE = 2**16  # bytes from which on an array is not copied into a pickle


class Actor:
    """Plays chunks of items in threads, in a Ray process."""

    def __init__(self, recipe: bytes, size: int) -> None:
        """Keep the pickled `recipe`: the driver's versions, and the pickled maker of a worker."""
        self._recipe, self._size = recipe, size

    @functools.cached_property
    def _parts(self) -> tuple[ThreadEngine, Gather | None]:
        versions, recipe = pickle.loads(self._recipe)
        require_versions(versions)
        make_worker, gather = pickle.loads(recipe)
        # BLAS threads that compete for cores would make parallel work slower; environment
        # variables come too late once NumPy is imported.
        threadpool_limits(limits=1)
        return ThreadEngine(make_worker, self._size), gather

    def play(self, params: Any, items: bytes) -> list[Any]:
        """Play pickled items; return a description of the process, the pickled results, and their
        large arrays.

        Ray's own pickling takes longer for many small arrays, but copies a large one only once.
        """
        (engine, gather), chunk = self._parts, pickle.loads(items)
        run = engine.run(chunk, params)
        results = gather(chunk, run) if gather else list(run)
        large: list[pickle.PickleBuffer] = []

        def keep_in(array: pickle.PickleBuffer) -> bool:
            is_large = array.raw().nbytes >= LARGE
            large.extend([array] * is_large)
            return not is_large

        content = pickle.dumps(results, protocol=5, buffer_callback=keep_in)
        return [_describe_process(), pickle.PickleBuffer(content), *large]


@functools.cache
def _describe_process() -> tuple[int, str, str]:
    return os.getpid(), socket.gethostname(), describe_machine()["processor"]


# In a process that runs tasks: its own actor with one thread, so that its worker is made only once.
_own_actor = functools.lru_cache(maxsize=1)(functools.partial(Actor, size=1))


def play_in_task(recipe: bytes, params: Any, items: bytes) -> list[Any]:
    """Play as `Actor.play` does, in whichever process Ray chooses."""
    return _own_actor(recipe).play(params, items)


_Actor = ray.remote(Actor)
# Spread, so that many nodes share the memory traffic of the workers.
_task = ray.remote(num_cpus=1, max_retries=0, scheduling_strategy="SPREAD")(play_in_task)


@dataclass(eq=False)
class _Run:
    """The items of one run, waiting and done."""

    items: Sequence[Any]
    params: Any  # Ray's reference to them
    waiting: list[int]
    results: dict[int, Any] = field(default_factory=dict)
    losses: Counter[int] = field(default_factory=Counter)  # by a chunk's first item


@dataclass(eq=False)
class _Slot:
    """An actor, or room for one task at a time, and its current work."""

    size: int  # workers that play there in parallel
    asked_at: float  # when it was requested
    node: str = ""  # id of an actor's node
    actor: Any = None
    pid: int = 0  # 0 until there is room for it; each task may have another one
    has_played: bool = False  # if so, its workers are made
    answer: Any = None  # Ray's reference to the answer of the current call
    run: _Run | None = None  # of that call
    chunk: Sequence[int] = ()  # consecutive items; the first call has none
    deadline: float = math.inf

    def end(self) -> None:
        """Kill it, whatever it is doing."""
        with contextlib.suppress(exceptions.RayError, ValueError):
            if self.actor is None:
                ray.cancel(self.answer, force=True)
            else:
                ray.kill(self.actor)


class RayEngine(Engine):
    """Plays items in Ray's workers, one per core of the whole cluster, or as many as configured."""

    def __init__(
        self,
        make_worker: MakeWorker,
        config: Config,
        should_stop: Callable[[], bool] = never,
        gather: Gather | None = None,
    ) -> None:
        """Connect. The workers are made when they first play."""
        self._config, self._should_stop = config, should_stop
        self._recipe: Any = pickle.dumps((collect_versions(), pickle.dumps((make_worker, gather))))
        self._processor = describe_machine()["processor"]
        self._free: dict[str, tuple[int, float]] = {}  # CPUs of a node, and since when
        self._other_hosts = set[str]()  # with another processor
        self._slots: list[_Slot] = []
        self._next_recruiting = 0.0
        self._failure = ""  # the reason of the last loss, while no slot is ready
        self._waits_for, self._waits_since = "", 0.0  # what, while no slot is ready
        self._exit = contextlib.ExitStack()
        connection = connected(config.ray_address, config.workers, WHEN_LOST)
        self._cluster = self._exit.enter_context(connection)
        if config.ray_mode == "tasks":  # each call sends the recipe, which may hold an opponent
            self._recipe = ray.put(self._recipe)

    @property
    def worker_pids(self) -> list[int]:
        """Process ids of the actors, each on its own machine."""
        return [slot.pid for slot in self._slots if slot.pid]

    def run(self, items: Sequence[Any], params: Any) -> Generator[Any, None, None]:
        """Play the items and yield their results, in order."""
        self._cluster.wait_until_sure()
        with naming("Sending the parameters to Ray's object store"):
            run = _Run(items, ray.put(params), list(range(len(items))))
        self._waits_for = ""
        self._hand_out(run)
        for position in range(len(items)):
            while position not in run.results:
                if self._should_stop():
                    raise Interrupted
                self._cluster.check()
                self._recruit()
                self._hear(run)
                self._hand_out(run)
            yield run.results.pop(position)

    def close(self) -> None:
        """End the actors and the connection."""
        slots, self._slots = self._slots, []
        for slot in slots:
            # Tasks are not cancelled: they end soon, unheard. If one finishes while it is being
            # cancelled, Ray's core ends the driver: between two locks the task is neither running
            # nor done, and a check fails (``task_manager.cc``, Ray 2.60).
            if slot.actor is not None:
                slot.end()
        self._exit.close()

    def _recruit(self) -> None:
        """Request the workers that are missing, as nodes may have come or gone."""
        now = time.monotonic()
        if now < self._next_recruiting:
            return
        self._next_recruiting = now + (RECRUIT_SECONDS if self._slots else POLL_SECONDS)
        nodes = self._cluster.nodes()
        self._give_up_unplaced(nodes, now)
        missing = self._config.workers or sum(node.cpus for node in nodes)
        missing -= sum(slot.size for slot in self._slots)
        # What is asked for and not there yet may be counted twice, for a second: Ray knows late
        # what is free. Then the rest is used a little later.
        asked = Counter[str]()
        for slot in self._slots:
            asked[slot.node] += 0 if slot.pid else slot.size
        if self._config.ray_mode == "tasks":
            free = sum(node.free for node in nodes) - asked[""]
            new = [_Slot(1, now) for _ in range(min(missing, free))]
        else:
            new = self._make_actors(nodes, asked, missing)
        for slot in new:
            self._send(slot, None, [])
        self._slots += new

    def _make_actors(self, nodes: Sequence[Node], asked: Counter[str], missing: int) -> list[_Slot]:
        """An actor on each node that has free CPUs; other jobs may use the rest of the node."""
        new = []
        for node in nodes:
            free = node.free - asked[node.name]
            size = min(node.cpus, missing)
            if size > free:
                size = free if self._is_settled(node.name, free) else 0
            if size > 0:
                there = NodeAffinitySchedulingStrategy(node.name, soft=False)
                make = _Actor.options(num_cpus=size, scheduling_strategy=there).remote
                actor = make(self._recipe, size)
                new.append(_Slot(size, time.monotonic(), node.name, actor))
                missing -= size
        return new

    def _is_settled(self, node: str, free: int) -> bool:
        """Whether a node has had so many free CPUs for a while: others may just be ending."""
        now = time.monotonic()
        before, since = self._free.get(node, (-1, now))
        if free != before:
            self._free[node] = free, now
        return free == before and now - since > SETTLE_SECONDS

    def _give_up_unplaced(self, nodes: Sequence[Node], now: float) -> None:
        """End actors for which there was no room after all: another job was faster."""
        used = {node.name: node.cpus - node.free for node in nodes}
        ours = Counter[str]()
        for slot in self._slots:
            ours[slot.node] += slot.size
        for slot in list(self._slots):
            is_waiting = slot.node and not slot.pid and now - slot.asked_at > SETTLE_SECONDS
            if is_waiting and used.get(slot.node, 0) < ours[slot.node]:
                self._slots.remove(slot)
                slot.end()

    def _send(self, slot: _Slot, params: Any, items: Sequence[Any]) -> None:
        """Have a slot play items."""
        pickled = pickle.dumps(items, protocol=5)
        if slot.actor is None:
            slot.answer = _task.remote(self._recipe, params, pickled)
        else:
            slot.answer = slot.actor.play.remote(params, pickled)

    def _hand_out(self, run: _Run) -> None:
        """Give each idle slot a chunk: a quarter of its share, or all if there is no other slot."""
        workers = sum(slot.size for slot in self._slots)
        parts = 4 if len(self._slots) > 1 else 1
        for slot in self._slots:
            if slot.pid and run.waiting and slot.answer is None:
                share = math.ceil(len(run.items) / workers / parts)
                length = slot.size * min(share, MAX_CHUNK)
                slot.run, slot.chunk = run, run.waiting[:length]
                run.waiting = run.waiting[length:]
                seconds = self._config.worker_timeout * math.ceil(len(slot.chunk) / slot.size)
                seconds += 0.0 if slot.has_played else START_SECONDS
                slot.deadline = time.monotonic() + seconds
                self._send(slot, run.params, [run.items[place] for place in slot.chunk])

    def _hear(self, run: _Run) -> None:
        """Take the next answers, or wait a moment; drop slots that failed or are late."""
        owed = {slot.answer: slot for slot in self._slots if slot.answer is not None}
        if not owed:  # workers will be requested again soon
            time.sleep(POLL_SECONDS)
        for ref in self._wait(list(owed)) if owed else ():
            self._take(run, owed[ref])
        now = time.monotonic()
        for slot in [slot for slot in self._slots if now > slot.deadline]:
            self._lose(run, slot, "did not answer before its deadline")
        if workers := sum(slot.size for slot in self._slots if slot.pid):
            self.stats = replace(self.stats, workers=workers)
            self._waits_for = self._failure = ""
        else:
            self._require_hope(now)

    def _wait(self, refs: list[Any]) -> list[Any]:
        """Those that are answered, after a moment."""
        try:
            return ray.wait(refs, timeout=POLL_SECONDS)[0]
        except OSError:  # "broken pipe": the Ray of this machine has just gone
            self._cluster.check()
            raise

    def _require_hope(self, now: float) -> None:
        """Raise a `WorkerError` if there has been no ready slot for too long."""
        reason = "a start" if self._failure else "processes" if self._slots else "room"
        if reason != self._waits_for:
            self._waits_for, self._waits_since = reason, now
        limit = START_SECONDS if reason == "processes" else PLACE_SECONDS
        if now - self._waits_since <= limit:
            return
        nodes = self._cluster.nodes()
        free, total = (sum(getattr(node, name) for node in nodes) for name in ("free", "cpus"))
        why = f"{free} of {total} CPUs in the cluster are free"
        advice = "wait for its other jobs, add nodes or give fewer --workers, then resume"
        if reason == "a start":
            why = self._failure
        elif reason == "processes":
            asked = number_of(sum(slot.size for slot in self._slots), "CPU")
            why = f"processes for {asked} were requested and are still starting"
            advice = "see whether the nodes are overloaded or their disk is slow, then resume"
        raise WorkerError(f"No worker started within {limit:.0f} s: {why}; {advice}")

    def _take(self, run: _Run, slot: _Slot) -> None:
        """Take the answer of a slot."""
        try:
            (slot.pid, host, processor), *packed = ray.get(slot.answer)
        except exceptions.RayTaskError as error:
            if slot.run is run or not slot.pid:  # otherwise it is of a run that was dropped
                own = error.cause if isinstance(error.cause, PixelpongError) else None
                raise own or WorkerError(in_one_line(error)) from error
        except exceptions.RayError as error:
            self._lose(run, slot, in_one_line(error))
            return
        else:
            if processor != self._processor and host not in self._other_hosts:
                self._other_hosts.add(host)
                reason = "differs from the driver's: the last bits of results may differ too"
                warn(on_one_line(f"the processor of {host} {reason}"))
            if slot.run is run:
                # Large arrays stay in Ray's memory and are read-only.
                results = pickle.loads(packed[0], buffers=packed[1:])
                run.results.update(zip(slot.chunk, results, strict=True))
        slot.has_played = bool(slot.chunk)
        slot.answer, slot.deadline = None, math.inf

    def _lose(self, run: _Run, slot: _Slot, reason: str) -> None:
        """End a slot, return its chunk to the front, and request another slot at once."""
        self._slots.remove(slot)
        slot.end()
        self._failure = reason
        if not slot.pid:
            return
        self._next_recruiting = 0.0
        again = slot.chunk if slot.run is run else ()
        run.waiting = sorted([*again, *run.waiting])
        workers, items_again, restarts = astuple(self.stats)
        self.stats = EngineStats(workers, items_again + len(again), restarts + 1)
        run.losses.update(again[:1])
        if again and run.losses[again[0]] == MAX_LOSSES:
            what = f"{run.items[again[0]]} failed {MAX_LOSSES} times, the last time: {reason}"
            raise WorkerError(f"{what}; run again with --engine serial to see why")
