"""The Ray engine: one actor per node, which plays in threads; or plain tasks.

The driver does little per item. Parameters go into the object store once per run and travel once to
each node; a call takes many short items; results are kept by item and used in the order of the
items. Lost items are played again, wherever there is room: Ray restarts an actor that dies and
calls it again; this engine replaces one that hangs or whose node is lost, and asks new nodes for an
actor. So nodes may come and go in the middle of a run.
"""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import time
import warnings
from collections.abc import Callable, Generator, Sequence
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

from pixelpong.engines import MakeWorker, Results, RunStats, never
from pixelpong.engines.batch import MAX_ATTEMPTS, Batch, Pace
from pixelpong.engines.ray.connection import connected, in_one_line
from pixelpong.engines.ray.places import ActorPlace, Call, Place, TaskPlace
from pixelpong.errors import Interrupted, PixelpongError, WorkerError, expected
from pixelpong.machine import collect_versions, describe_machine
from pixelpong.pickling import dumps

PLACE_TIMEOUT = 25.0
"""Seconds without any place in the cluster before we call it full or gone."""

WHOLE_NODE_TIMEOUT = 8.0
"""Seconds before a node without room for an actor is asked for half as many cores."""

RECRUIT_SECONDS = 1.0
"""Seconds between two checks whether the cluster has grown."""

START_TIMEOUT = 180.0
"""Seconds a worker may take to become ready; the first one on a machine compiles."""

POLL_SECONDS = 0.1
"""Seconds between two checks whether a stop was requested."""


class RayEngine:
    """Carries out items in Ray's workers."""

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

        Args:
            make_worker: makes one worker; picklable.
            num_workers: by default one per core of the whole cluster, and more if it grows.
            item_timeout: deadline of one item, in seconds.
            should_stop: called several times a second while waiting.
            address: of a running cluster, ``"auto"`` or ``"HOST:PORT"``. Without one here or in
                the variable RAY_ADDRESS, the engine starts its own Ray.
            mode: ``"actors"``, one per node with threads, or ``"tasks"``, one per core.

        Raises:
            ConfigError: nothing answers at the address.
            WorkerError: Ray does not start.
        """
        self._mode = mode
        self._recipe = pickle.dumps(make_worker)
        self._num_workers = num_workers
        self._item_timeout = item_timeout
        self._should_stop = should_stop
        self._pace = Pace()
        self._places: list[Place] = []
        self._sizes: dict[str, int] = {}  # of nodes with less room than cores
        self._held: set[str] = set()  # nodes that had room for an actor
        self._next_recruiting = 0.0
        self._placed_at = math.inf  # when there was last a place, or a run began without one
        self._failed_starts = 0
        self.num_restarts = 0
        self._versions, self._processor = collect_versions(), describe_machine()["processor"]
        self._exit = contextlib.ExitStack()
        self._exit.enter_context(connected(address, num_workers))
        self._recruit()

    @property
    def worker_pids(self) -> list[int]:
        """Process ids of the actors, each on its own machine; tasks share theirs."""
        return [place.pid for place in self._places if place.pid]

    def run(self, items: Sequence[Any], params: Any) -> Results:
        """See `pixelpong.engines.Engine.run`."""
        stats = RunStats()
        return Results(self._play(Batch(items, self._pace, stats), params), stats)

    def close(self) -> None:
        """See `pixelpong.engines.Engine.close`."""
        places, self._places = self._places, []
        for place in places:
            with contextlib.suppress(exceptions.RayError, ValueError):
                place.leave()
        self._exit.close()

    def _play(self, batch: Batch, params: Any) -> Generator[Any, None, None]:
        shared, self._placed_at = _put(params), time.monotonic()
        nodes = {place.node for place in self._places if place.pid}
        batch.stats.params_bytes = _size_of(params) * max(1, len(nodes))
        for position in range(len(batch.items)):
            while position not in batch.results:
                if self._should_stop():
                    raise Interrupted
                self._recruit()
                self._hand_out(batch, shared)
                self._hear(batch)
                self._replace_late(batch)
                self._refuse_to_wait_for_room()
                self._hand_out(batch, shared)
                batch.stats.restarts = self.num_restarts
            yield batch.results.pop(position)

    # --- places ---

    def _recruit(self) -> None:
        """Ask for as many workers as there should be; nodes may have come or gone."""
        now = time.monotonic()
        if now < self._next_recruiting:
            return
        self._next_recruiting = now + RECRUIT_SECONDS
        if self._mode == "tasks":
            wanted = self._num_workers or max(1, int(ray.cluster_resources().get("CPU", 0)))
            missing = wanted - len(self._places)
            self._places += [TaskPlace(self._recipe) for _ in range(missing)]
            return
        for place in list(self._places):
            if not place.pid and place.size > 1 and now > place.asked_until:
                self._sizes[place.node] = place.size // 2
                self._places.remove(place)
                self._end(place)
        taken = {place.node for place in self._places}
        left = (self._num_workers or math.inf) - sum(place.size for place in self._places)
        sizes: dict[str, int] = {}
        for node in ray.nodes():
            name, cores = node["NodeID"], int(node["Resources"].get("CPU", 0))
            size = int(min(self._sizes.get(name, cores), left))
            if node["Alive"] and name not in taken and size > 0:
                sizes[name] = size
                left -= size
        if sizes:
            self._ask(sizes)

    def _ask(self, sizes: dict[str, int]) -> None:
        """Ask each node for its number of cores, with a deadline: other jobs may use some."""
        has_room = ray.available_resources().get("CPU", 0) >= sum(sizes.values())
        for node, size in sizes.items():
            place = ActorPlace(self._recipe, size, node)
            if not has_room and node not in self._held:
                place.asked_until = time.monotonic() + WHOLE_NODE_TIMEOUT
            self._places.append(place)

    def _replace_late(self, batch: Batch) -> None:
        now = time.monotonic()
        for place in list(self._places):
            if now > place.deadline:
                self._lose(place, batch, "did not answer before its deadline")

    def _lose(self, place: Place, batch: Batch, reason: str) -> None:
        """End a place, put its items back, and ask for another place at once."""
        self._places.remove(place)
        self._end(place)
        if place.is_ready:
            self.num_restarts += 1
            self._next_recruiting = 0.0
            for call in place.calls.values():
                if call.batch is batch:
                    batch.give_back(call.positions, reason)
            return
        # While others work, a node on which no worker can start is no reason to stop.
        self._failed_starts += 1
        if self._failed_starts >= MAX_ATTEMPTS and not any(each.is_ready for each in self._places):
            got = f"{MAX_ATTEMPTS} in a row that failed, the last one {reason}"
            advice = "see Ray's logs, or use --engine serial"
            raise WorkerError(expected("a worker to start", got, advice))

    def _end(self, place: Place) -> None:
        with contextlib.suppress(exceptions.RayError, ValueError):
            place.end()

    def _refuse_to_wait_for_room(self) -> None:
        """Raise an error if the cluster has had no room for a single worker for too long."""
        now = time.monotonic()
        if any(place.pid for place in self._places):
            self._placed_at = now
        elif now - self._placed_at > PLACE_TIMEOUT:
            free = int(ray.available_resources().get("CPU", 0))
            total = int(ray.cluster_resources().get("CPU", 0))
            what = f"room for a worker within {PLACE_TIMEOUT:.0f} s"
            got = f"{free} free of {total} CPUs in the cluster"
            advice = "wait for its other jobs, add nodes or give fewer --workers, then resume"
            raise WorkerError(expected(what, got, advice))

    # --- calls ---

    def _hand_out(self, batch: Batch, shared: Any) -> None:
        ready = [place for place in self._places if place.is_ready]
        num_workers = sum(place.size for place in ready)
        batch.stats.workers = max(batch.stats.workers, num_workers)
        for num_calls in range(max((place.max_calls for place in ready), default=0)):
            unserved = num_workers
            for place in ready:
                if batch.num_waiting and len(place.calls) == num_calls < place.max_calls:
                    self._give(place, batch, shared, unserved)
                unserved -= place.size

    def _give(self, place: Place, batch: Batch, shared: Any, unserved: int) -> None:
        positions = batch.take(place.size, unserved, self._item_timeout)
        chosen = [batch.items[position] for position in positions]
        items = dumps((chosen, batch.parts_of(positions)))
        batch.stats.bytes_sent += len(items)
        if not place.calls:
            place.deadline = time.monotonic() + self._item_timeout
        place.calls[place.call("play", shared, items)] = Call(batch, positions)

    def _hear(self, batch: Batch) -> None:
        owed = {ref: place for place in self._places for ref in place.owed}
        if not owed:  # the next recruiting is near
            time.sleep(POLL_SECONDS)
            return
        nearest = min(place.deadline for place in owed.values())
        timeout = max(0.0, min(POLL_SECONDS, nearest - time.monotonic()))
        done, _ = ray.wait(list(owed), num_returns=1, timeout=timeout)
        if done and len(owed) > 1:  # and everything else that has arrived by now
            done, _ = ray.wait(list(owed), num_returns=len(owed), timeout=0)
        for ref in done:
            if owed[ref] in self._places:  # else it has just been given up
                self._hear_one(owed[ref], ref, batch)

    def _hear_one(self, place: Place, ref: Any, batch: Batch) -> None:
        call = place.calls.get(ref)
        try:
            answer = ray.get(ref)
        except exceptions.RayTaskError as error:
            if call is not None and call.batch is not batch:
                self._note_done(place, ref)
                return
            if isinstance(error.cause, PixelpongError):
                raise error.cause from None
            raise WorkerError(in_one_line(error)) from error
        except exceptions.RayError as error:
            self._lose(place, batch, in_one_line(error))
            return
        if call is not None:
            self._take_results(place, call, answer, batch)
            self._note_done(place, ref)
        elif not place.pid:
            self._begin(place, answer)
        else:
            place.is_ready, place.deadline, self._failed_starts = True, math.inf, 0

    def _begin(self, place: Place, description: dict[str, Any]) -> None:
        """Make the workers at a place that has got room."""
        self._refuse_other_versions(description)
        place.pid, place.beginning = description["pid"], place.call("start")
        place.deadline = time.monotonic() + START_TIMEOUT
        self._held.add(place.node)

    def _take_results(
        self, place: Place, call: Call, answer: tuple[int, float, Any], batch: Batch
    ) -> None:
        pid, seconds, results = answer
        if place.node and pid != place.pid:  # Ray has replaced the actor's process
            place.pid = pid
            self.num_restarts += 1
            again = [len(each.positions) for each in place.calls.values() if each.batch is batch]
            batch.stats.items_again += sum(again)
        if call.batch is batch:  # else it belongs to a run that was given up
            batch.stats.bytes_received += memoryview(results).nbytes
            batch.put(call.positions, pickle.loads(results), seconds)

    def _note_done(self, place: Place, ref: Any) -> None:
        is_oldest = ref == next(iter(place.calls))
        del place.calls[ref]
        if is_oldest:
            place.deadline = time.monotonic() + self._item_timeout if place.calls else math.inf

    def _refuse_other_versions(self, place: dict[str, Any]) -> None:
        """Refuse a node with other versions, which may return other bits or fail."""
        theirs = place["versions"]
        other = [name for name, version in self._versions.items() if theirs.get(name) != version]
        if other:
            wanted = ", ".join(f"{name} {self._versions[name]}" for name in other)
            got = ", ".join(f"{name} {theirs.get(name)}" for name in other)
            advice = f"install the same versions on {place['host']}"
            raise WorkerError(expected(f"{wanted} on every node", got, advice))
        if place["processor"] != self._processor:
            warnings.warn(
                f"the processor of {place['host']} differs from the driver's: the result may "
                "differ in its last bits from that of one machine",
                stacklevel=2,
            )


def _put(params: Any) -> Any:
    """Put the params where every worker can read them in place, one copy per node."""
    try:
        return ray.put(params)
    except (exceptions.ObjectStoreFullError, exceptions.OutOfDiskError) as error:
        what = "room for the parameters in Ray's object store"
        advice = "give it more with 'ray start --object-store-memory', or fewer --hidden"
        raise WorkerError(expected(what, in_one_line(error), advice)) from error


def _size_of(params: Any) -> int:
    buffers: list[pickle.PickleBuffer] = []  # views, not copies
    data = pickle.dumps(params, protocol=5, buffer_callback=buffers.append)
    return len(data) + sum(buffer.raw().nbytes for buffer in buffers)
