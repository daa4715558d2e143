"""The Ray engine: one actor per node that plays in threads, or plain tasks, one per core.

The parameters are put into the object store once per run and sent once to each node. A run is cut
into chunks of consecutive items, and its results are used in the order of the items. If an actor or
a task dies or is late, another one replaces it and plays its chunk again. So nodes may join and
leave during a run.
"""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

# Ray reads these settings when it is first imported. With the first, a local Ray listens only on
# the loopback address, as it does by default on desktop systems. With the second, it does not pack
# up the current folder for its workers if the command was started by ``uv run``; they have all they
# need. With the third, it does not print a page of advice for every lost worker, nor for more
# workers than it expects.
os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
os.environ.setdefault(
    "RAY_DEDUP_LOGS_SKIP_REGEX",
    "died or was killed|will be retried|marked dead|is terminated|processes have been started",
)

import ray
from ray import exceptions
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from pixelpong.config import Config
from pixelpong.engines import Combine, Engine, MakeWorker, naming, never
from pixelpong.engines.ray.actor import Actor, play_in_task
from pixelpong.engines.ray.cluster import Node
from pixelpong.engines.ray.connection import connected, in_one_line
from pixelpong.errors import Interrupted, PixelpongError, WorkerError, number_of
from pixelpong.machine import collect_versions

MAX_LOSSES = 3  # the run fails after this many losses of a chunk
MAX_CHUNK = 64  # most items per worker in a chunk; a lost actor loses a chunk
START_SECONDS = 180.0  # time limit for processes to start, and extra time for a first chunk
ROOM_SECONDS = 25.0  # time limit for a free CPU or for a start that does not fail
SETTLE_SECONDS = 5.0  # time until Ray certainly knows which CPUs of a node are in use
GROW_SECONDS = 1.0  # time between checks for new nodes
POLL_SECONDS = 0.1  # time between checks for a requested stop

_Actor = ray.remote(Actor)
# Tasks are spread, so that many nodes share the memory traffic of the workers.
_task = ray.remote(num_cpus=1, max_retries=0, scheduling_strategy="SPREAD")(play_in_task)


@dataclass(eq=False)
class _Run:
    """The items of one run: those waiting and those done."""

    items: Sequence[Any]
    params: Any  # Ray's reference to the parameters
    waiting: list[int]  # ascending indices of the items that no slot plays
    # The finished chunks with their results, by first item; combined results are fewer than items.
    done: dict[int, tuple[range, list[Any]]] = field(default_factory=dict)
    losses: Counter[int] = field(default_factory=Counter)  # losses of each chunk, by first item

    def take_chunk(self, most: int) -> range:
        """Take the next consecutive waiting items, at most `most` of them."""
        start = self.waiting[0]
        length = 1
        while length < min(most, len(self.waiting)) and self.waiting[length] == start + length:
            length += 1
        del self.waiting[:length]
        return range(start, start + length)


@dataclass(eq=False)
class _Slot:
    """An actor, or room for one task at a time, and its current call."""

    size: int  # number of workers that play in parallel
    requested_at: float  # time on the monotonic clock
    node: str = ""  # id of an actor's node
    actor: Any = None
    pid: int | None = None  # process id in its last answer; None before the first answer
    has_played: bool = False  # whether its workers have been made
    ref: Any = None  # Ray's reference to the answer of the current call; None if the slot is idle
    run: _Run | None = None  # the run that the current call belongs to
    chunk: range = range(0)  # the items of the current call; the first call has none
    deadline: float = math.inf

    @property
    def is_ready(self) -> bool:
        """Whether its process has started."""
        return self.pid is not None

    def end(self) -> None:
        """Kill its process, whatever it is doing."""
        with contextlib.suppress(exceptions.RayError, ValueError):
            if self.actor is None:
                ray.cancel(self.ref, force=True)
            else:
                ray.kill(self.actor)


class RayEngine(Engine):
    """Plays items in Ray's workers, by default one per core of the whole cluster."""

    def __init__(
        self,
        make_worker: MakeWorker,
        config: Config,
        should_stop: Callable[[], bool] = never,
        combine: Combine | None = None,
        when_lost: str = "",
    ) -> None:
        """Connect to the cluster; the workers are made when they first play."""
        self._config, self._should_stop = config, should_stop
        self._recipe: Any = pickle.dumps((collect_versions(), pickle.dumps((make_worker, combine))))
        self._free: dict[str, tuple[int, float]] = {}  # free CPUs of each node, and since when
        self._slots: list[_Slot] = []
        self._next_growth = 0.0  # time of the next check for new nodes
        self._failure = ""  # reason for the last loss, while no slot is ready
        self._waits_for, self._waits_since = "", 0.0  # what it waits for while no slot is ready
        self._exit = contextlib.ExitStack()
        connection = connected(config.ray_address, config.workers, when_lost)
        self._cluster = self._exit.enter_context(connection)
        if config.ray_mode == "tasks":  # each call sends the recipe, which may contain an opponent
            self._recipe = ray.put(self._recipe)

    @property
    def worker_pids(self) -> list[int]:
        """Process ids of the actors, each on its own machine."""
        return [slot.pid for slot in self._slots if slot.pid is not None]

    def run(self, items: Sequence[Any], params: Any) -> Generator[Any, None, None]:
        """Play the items and yield their results, in order."""
        self._cluster.wait_until_sure()
        with naming("Sending the parameters to Ray's object store"):
            run = _Run(items, ray.put(params), list(range(len(items))))
        self._waits_for = ""
        self._dispatch(run)
        position = 0
        while position < len(items):
            while position not in run.done:
                if self._should_stop():
                    raise Interrupted
                self._cluster.check()
                self._add_workers()
                self._poll(run)
                self._dispatch(run)
            chunk, results = run.done.pop(position)
            yield from results
            position = chunk.stop

    def close(self) -> None:
        """End the actors and the connection."""
        slots, self._slots = self._slots, []
        for slot in slots:
            # Tasks are not cancelled. They end soon, and their answers are ignored. If one finishes
            # while it is being cancelled, Ray's core ends the driver: between two locks the task is
            # neither running nor done, and a check fails (``task_manager.cc``, Ray 2.60).
            if slot.actor is not None:
                slot.end()
        self._exit.close()

    def _add_workers(self) -> None:
        """Request missing workers, because nodes may have joined or left."""
        now = time.monotonic()
        if now < self._next_growth:
            return
        self._next_growth = now + (GROW_SECONDS if self._slots else POLL_SECONDS)
        nodes = self._cluster.nodes()
        self._drop_unplaced(nodes, now)
        missing = self._config.workers or sum(node.cpus for node in nodes)
        missing -= sum(slot.size for slot in self._slots)
        # Ray learns late which CPUs are free, so slots that are requested but not ready may be
        # counted twice for a second. The remaining CPUs are then used a little later.
        requested = Counter[str]()
        for slot in self._slots:
            requested[slot.node] += 0 if slot.is_ready else slot.size
        if self._config.ray_mode == "tasks":
            free = sum(node.free for node in nodes) - requested[""]
            new = [_Slot(1, now) for _ in range(min(missing, free))]
        else:
            new = self._make_actors(nodes, requested, missing)
        for slot in new:
            self._send(slot, None, [])
        self._slots += new

    def _make_actors(
        self, nodes: Sequence[Node], requested: Counter[str], missing: int
    ) -> list[_Slot]:
        """Make an actor on each node with free CPUs; other jobs may use the rest of the node."""
        new = []
        for node in nodes:
            free = node.free - requested[node.name]
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
        """Whether a node has had this many free CPUs for a while; other jobs may just be ending."""
        now = time.monotonic()
        before, since = self._free.get(node, (-1, now))
        if free != before:
            self._free[node] = free, now
        return free == before and now - since > SETTLE_SECONDS

    def _drop_unplaced(self, nodes: Sequence[Node], now: float) -> None:
        """End actors that could not be placed because another job was faster."""
        used = {node.name: node.cpus - node.free for node in nodes}
        requested = Counter[str]()
        for slot in self._slots:
            requested[slot.node] += slot.size
        for slot in list(self._slots):
            is_waiting = (
                slot.node and not slot.is_ready and now - slot.requested_at > SETTLE_SECONDS
            )
            if is_waiting and used.get(slot.node, 0) < requested[slot.node]:
                self._slots.remove(slot)
                slot.end()

    def _send(self, slot: _Slot, params: Any, items: Sequence[Any]) -> None:
        """Make a slot play items."""
        pickled = pickle.dumps(items, protocol=5)
        if slot.actor is None:
            slot.ref = _task.remote(self._recipe, params, pickled)
        else:
            slot.ref = slot.actor.play_chunk.remote(params, pickled)

    def _dispatch(self, run: _Run) -> None:
        """Give each idle slot a chunk: a quarter of its share, or all if there is only one slot."""
        workers = sum(slot.size for slot in self._slots)
        parts = 4 if len(self._slots) > 1 else 1
        for slot in self._slots:
            if slot.is_ready and run.waiting and slot.ref is None:
                share = math.ceil(len(run.items) / workers / parts)
                slot.run, slot.chunk = run, run.take_chunk(slot.size * min(share, MAX_CHUNK))
                seconds = self._config.worker_timeout * math.ceil(len(slot.chunk) / slot.size)
                seconds += 0.0 if slot.has_played else START_SECONDS
                slot.deadline = time.monotonic() + seconds
                self._send(slot, run.params, [run.items[index] for index in slot.chunk])

    def _poll(self, run: _Run) -> None:
        """Collect the next answers or wait a moment; drop slots that failed or are late."""
        pending = {slot.ref: slot for slot in self._slots if slot.ref is not None}
        if not pending:  # workers will be requested again soon
            time.sleep(POLL_SECONDS)
        for ref in self._wait(list(pending)) if pending else ():
            self._collect(run, pending[ref])
        now = time.monotonic()
        for slot in [slot for slot in self._slots if now > slot.deadline]:
            self._drop(run, slot, "did not answer before its deadline")
        if workers := sum(slot.size for slot in self._slots if slot.is_ready):
            self.stats = replace(self.stats, workers=workers)
            self._waits_for = self._failure = ""
        else:
            self._limit_wait(now)

    def _wait(self, refs: list[Any]) -> list[Any]:
        """Wait a moment, and return the references that have answers."""
        try:
            return ray.wait(refs, timeout=POLL_SECONDS)[0]
        except OSError:  # "broken pipe", because Ray on this machine has just died
            self._cluster.check()
            raise

    def _limit_wait(self, now: float) -> None:
        """Raise a `WorkerError` if no slot has been ready for too long."""
        reason = "room"
        if self._failure:
            reason = "a start"
        elif self._slots:
            reason = "processes"
        if reason != self._waits_for:
            self._waits_for, self._waits_since = reason, now
        limit = START_SECONDS if reason == "processes" else ROOM_SECONDS
        if now - self._waits_since <= limit:
            return
        advice = "wait for its other jobs, add nodes or lower --workers, then resume"
        if reason == "a start":
            why = self._failure
            advice = "free memory and CPUs on its nodes or lower --workers, then resume"
        elif reason == "processes":
            requested = number_of(sum(slot.size for slot in self._slots), "CPU")
            why = f"processes for {requested} were requested and are still starting"
            advice = "see whether the nodes are overloaded or their disk is slow, then resume"
        else:
            nodes = self._cluster.nodes()
            free, total = sum(node.free for node in nodes), sum(node.cpus for node in nodes)
            why = f"{free} of {total} CPUs in the cluster are free"
        raise WorkerError(f"No worker started within {limit:.0f} s: {why}; {advice}")

    def _collect(self, run: _Run, slot: _Slot) -> None:
        """Take the answer of a slot."""
        try:
            pid, content, *large = ray.get(slot.ref)
        except exceptions.RayTaskError as error:
            if slot.run is run or not slot.is_ready:  # otherwise it belongs to an abandoned run
                if isinstance(error.cause, PixelpongError):
                    raise error.cause from error
                raise WorkerError(in_one_line(error)) from error
        except exceptions.RayError as error:
            self._drop(run, slot, in_one_line(error))
            return
        else:
            slot.pid = pid
            if slot.run is run:
                # Large arrays stay in Ray's memory and are read-only.
                results = pickle.loads(content, buffers=large)
                run.done[slot.chunk.start] = slot.chunk, results
        slot.has_played = bool(slot.chunk)
        slot.ref, slot.deadline = None, math.inf

    def _drop(self, run: _Run, slot: _Slot, reason: str) -> None:
        """End a slot, put its chunk back at the front, and request another slot at once."""
        self._slots.remove(slot)
        slot.end()
        self._failure = reason
        if not slot.is_ready:
            return
        self._next_growth = 0.0
        lost = slot.chunk if slot.run is run else range(0)
        self.stats = replace(
            self.stats,
            items_again=self.stats.items_again + len(lost),
            restarts=self.stats.restarts + 1,
        )
        if not lost:
            return
        run.waiting = sorted([*lost, *run.waiting])
        run.losses[lost.start] += 1
        if run.losses[lost.start] == MAX_LOSSES:
            what = f"{run.items[lost.start]} failed {MAX_LOSSES} times, the last time: {reason}"
            raise WorkerError(f"{what}; run again with --engine serial to see why")
