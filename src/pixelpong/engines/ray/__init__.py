"""The Ray engine: actors, plain tasks, or whole nodes, on this machine or on a cluster.

The driver keeps what it does for an item small: parameters are put into the object store once a
run and travel once to a node; short items go to workers several at a time; a worker has its next
ones at hand while more wait. An actor is never restarted by Ray, whose calls would then run at
most once or twice: here a worker that died or hangs is ended, another is asked for, and its items
run again wherever there is room. So nodes may come and go in the middle of a run.
"""

from __future__ import annotations

import contextlib
import math
import pickle
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ray
from ray import exceptions

from pixelpong.engines import MakeWorker, RunStats, never
from pixelpong.engines.answers import raise_failure
from pixelpong.engines.batch import (
    AHEAD_WHILE,
    MAX_ATTEMPTS,
    START_TIMEOUT,
    Batch,
    Pace,
    raise_failed_starts,
)
from pixelpong.engines.ray.connection import connected, in_one_line
from pixelpong.engines.ray.seats import Seat, ask_for_seats, unpack
from pixelpong.errors import Interrupted, WorkerError, expected
from pixelpong.machine import collect_versions, describe_machine

PLACE_TIMEOUT = 25.0
"""Seconds without any worker that has a place in the cluster, after which it is full or gone."""

RECRUIT_SECONDS = 1.0
"""How often the driver looks whether the cluster has grown."""

POLL_SECONDS = 0.1
"""How often it looks whether a stop was asked for."""

PARCEL_SECONDS = 0.15
"""Items that travel together should take about so long: a call costs 2 ms on both sides."""

NODE_PARCEL_SECONDS = 1.0
"""The same for a node's crew: at the end of each, some of it wait for the last of them."""


class _Call:
    """Items under way at a worker."""

    def __init__(self, ref: Any, batch: Batch, positions: tuple[int, ...]) -> None:
        self.ref = ref
        self.batch = batch
        self.positions = positions


class _Member:
    """A seat as the driver sees it. It asks for a place, starts, and is then ready."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        self.place: dict[str, Any] | None = None
        self.is_ready = False
        self.calls: deque[_Call] = deque()
        self.deadline = math.inf  # where there is no room, it waits for some
        self._beginning: Any = seat.place()  # what it answers before it is ready

    @property
    def owed(self) -> Any:
        """What it owes an answer to, or None; of its calls the first: it plays them in order."""
        if not self.is_ready:
            return self._beginning
        return self.calls[0].ref if self.calls else None

    def begin(self, place: dict[str, Any]) -> None:
        """It has a place: make the worker there."""
        self.place = place
        self._beginning = self.seat.start()
        self.deadline = time.monotonic() + START_TIMEOUT

    def give(self, params: Any, batch: Batch, positions: tuple[int, ...]) -> None:
        """Hand over items."""
        if not self.calls:
            self.deadline = time.monotonic() + self.seat.timeout
        items = pickle.dumps([batch.items[position] for position in positions], protocol=5)
        batch.stats.bytes_sent += len(items)
        self.calls.append(_Call(self.seat.play(params, items), batch, positions))


class RayEngine:
    """Carries out items in Ray's workers, as many at a time as there are."""

    def __init__(
        self,
        make_worker: MakeWorker,
        num_workers: int | None,
        item_timeout: float,
        should_stop: Callable[[], bool] = never,
        address: str | None = None,
        mode: str = "actors",
    ) -> None:
        """Connect, and ask for workers; they make themselves ready while the driver goes on.

        Args:
            make_worker: makes one worker; picklable.
            num_workers: how many; by default one a core of the whole cluster, and more when
                it grows.
            item_timeout: deadline of one item, in seconds.
            should_stop: asked several times a second while waiting.
            address: of a running cluster, ``"auto"`` or ``"HOST:PORT"``. Where it is not given,
                neither here nor in the variable RAY_ADDRESS, a Ray of our own is started.
            mode: ``"actors"``, ``"tasks"`` or ``"nodes"``, one actor for all workers of a node.

        Raises:
            ConfigError: nobody answers at the address.
            WorkerError: Ray does not start.
        """
        self._mode = mode
        self._recipe = pickle.dumps(make_worker)
        self._num_workers = num_workers
        self._item_timeout = item_timeout
        self._should_stop = should_stop
        self._failed_starts = 0
        self._pace = Pace(NODE_PARCEL_SECONDS if mode == "nodes" else PARCEL_SECONDS)
        self.num_restarts = 0
        self.last_run = RunStats()
        self._members: list[_Member] = []
        self._next_recruiting = 0.0
        self._placed_at = math.inf  # when a worker had a place last, or a run began without any
        self._versions, self._processor = collect_versions(), describe_machine()["processor"]
        self._exit = contextlib.ExitStack()
        self._exit.enter_context(connected(address, num_workers))
        self._recruit()

    @property
    def worker_pids(self) -> list[int]:
        """Process ids of the actors, each on its own machine; tasks share theirs."""
        return [member.place["pid"] for member in self._members if member.place]

    def run(self, items: Sequence[Any], params: Any) -> Iterator[Any]:
        """See `pixelpong.engines.Engine.run`."""
        batch, shared = Batch(items, self._pace), _put(params)
        self.last_run, self._placed_at = batch.stats, time.monotonic()
        nodes = {member.place["node"] for member in self._members if member.place}
        batch.stats.params_bytes = _size_of(params) * max(1, len(nodes))
        for position in range(len(items)):
            while position not in batch.results:
                if self._should_stop():
                    raise Interrupted
                self._recruit()
                self._hand_out(batch, shared)
                self._hear(batch)
                self._replace_late(batch)
                self._refuse_to_wait_for_room()
                self._hand_out(batch, shared)
            yield batch.results.pop(position)

    def close(self) -> None:
        """See `pixelpong.engines.Engine.close`."""
        members, self._members = self._members, []
        for member in members:
            self._end(member, late=None)
        self._exit.close()

    def _recruit(self) -> None:
        """Ask for as many workers as there should be, now that nodes may have come or gone."""
        if time.monotonic() < self._next_recruiting:
            return
        self._next_recruiting = time.monotonic() + RECRUIT_SECONDS
        seats = [member.seat for member in self._members]
        news = ask_for_seats(self._mode, self._recipe, self._item_timeout, self._num_workers, seats)
        self._members += map(_Member, news)

    def _hand_out(self, batch: Batch, shared: Any) -> None:
        ready = [member for member in self._members if member.is_ready]
        num_workers = sum(member.seat.size for member in ready)
        batch.stats.workers = max(batch.stats.workers, num_workers)
        rounds = [0]
        if batch.num_waiting > AHEAD_WHILE * num_workers:
            rounds.append(1)
        for num_calls in rounds:
            unserved = num_workers
            for member in ready:
                if batch.num_waiting and len(member.calls) == num_calls:
                    if self._mode == "nodes":
                        size = member.seat.size
                        positions = batch.take_share(size, unserved, self._item_timeout)
                        unserved -= size
                    else:
                        positions = batch.take(num_workers, self._item_timeout)
                    member.give(shared, batch, positions)

    def _hear(self, batch: Batch) -> None:
        owed = {member.owed: member for member in self._members if member.owed is not None}
        if not owed:  # the next recruiting is near
            time.sleep(POLL_SECONDS)
            return
        nearest = min(member.deadline for member in owed.values())
        timeout = max(0.0, min(POLL_SECONDS, nearest - time.monotonic()))
        done, _ = ray.wait(list(owed), num_returns=1, timeout=timeout)
        if done and len(owed) > 1:  # and whatever else is there by now
            done, _ = ray.wait(list(owed), num_returns=len(owed), timeout=0)
        for ref in done:
            self._hear_one(owed[ref], ref, batch)

    def _hear_one(self, member: _Member, ref: Any, batch: Batch) -> None:
        try:
            answer = ray.get(ref)
        except exceptions.RayError as error:
            self._replace(member, batch, in_one_line(error))
            return
        if member.place is None:
            self._refuse_other_versions(answer)
            member.begin(answer)
            return
        (kind, content), size = unpack(answer)
        if not member.is_ready:
            if kind == "error":
                raise_failure(content)
            member.is_ready, self._failed_starts = True, 0
            member.deadline = math.inf
            return
        call = member.calls.popleft()
        member.deadline = time.monotonic() + member.seat.timeout if member.calls else math.inf
        if call.batch is not batch:
            return  # of a run that was given up
        if kind == "error":
            raise_failure(content)
        batch.stats.bytes_received += size
        batch.put(call.positions, *content)

    def _replace_late(self, batch: Batch) -> None:
        now = time.monotonic()
        for member in list(self._members):
            if now > member.deadline:
                self._replace(member, batch, "did not answer before its deadline", member.owed)

    def _replace(self, member: _Member, batch: Batch, reason: str, late: Any = None) -> None:
        """End a worker, let its items run again, and ask for another at once."""
        self._members.remove(member)
        self._end(member, late)
        calls = [call for call in member.calls if call.batch is batch]
        is_playing = bool(calls) and calls[0] is member.calls[0]
        num_played = len(calls[0].positions) if is_playing else 0
        batch.give_back([each for call in calls for each in call.positions], num_played, reason)
        if member.is_ready:
            self.num_restarts += 1
            self._next_recruiting = 0.0
            return
        # While others work, a node on which none can start is no reason to end.
        self._failed_starts += 1
        if self._failed_starts >= MAX_ATTEMPTS and not any(m.is_ready for m in self._members):
            raise_failed_starts(reason, "see Ray's logs, or use --engine serial")

    def _end(self, member: _Member, late: Any) -> None:
        with contextlib.suppress(exceptions.RayError, ValueError):
            member.seat.end(late)

    def _refuse_to_wait_for_room(self) -> None:
        """A cluster without room for a single worker is an answer, not something to wait for."""
        now = time.monotonic()
        if any(member.place for member in self._members):
            self._placed_at = now
        elif now - self._placed_at > PLACE_TIMEOUT:
            free = int(ray.available_resources().get("CPU", 0))
            total = int(ray.cluster_resources().get("CPU", 0))
            what = f"room for a worker within {PLACE_TIMEOUT:.0f} s"
            got = f"{free} free of {total} CPUs in the cluster"
            advice = "wait for its other jobs or add nodes, then resume"
            raise WorkerError(expected(what, got, advice))

    def _refuse_other_versions(self, place: dict[str, Any]) -> None:
        """Other versions there would give other bits, or none at all."""
        theirs = place["versions"]
        other = [name for name, version in self._versions.items() if theirs.get(name) != version]
        if other:
            wanted = ", ".join(f"{name} {self._versions[name]}" for name in other)
            got = ", ".join(f"{name} {theirs.get(name)}" for name in other)
            advice = f"install the same versions on {place['host']}"
            raise WorkerError(expected(f"{wanted} on every node", got, advice))
        if place["processor"] != self._processor:
            warnings.warn(
                f"the processor of {place['host']} is another than the driver's: the result may "
                "differ in its last bits from that of one machine",
                stacklevel=2,
            )


def _put(params: Any) -> Any:
    """Put the params where every worker can read them in place, one copy a node."""
    try:
        return ray.put(params)
    except (exceptions.ObjectStoreFullError, exceptions.OutOfDiskError) as error:
        what = "room for the parameters in Ray's object store"
        advice = "give it more with 'ray start --object-store-memory', or fewer --hidden"
        raise WorkerError(expected(what, in_one_line(error), advice)) from error


def _size_of(params: Any) -> int:
    buffers: list[pickle.PickleBuffer] = []  # not copied, only looked at
    data = pickle.dumps(params, protocol=5, buffer_callback=buffers.append)
    return len(data) + sum(buffer.raw().nbytes for buffer in buffers)
