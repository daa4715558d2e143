"""The Ray engine: actors, or plain tasks, on this machine or on a cluster. The only file with Ray.

The driver keeps what it does for an item small: parameters are put into the object store once a
run and travel once to a node; items go to workers several at a time; a worker has its next ones
at hand while more wait. An actor is never restarted by Ray, which would run calls at most once or
twice and say little of it: here a worker that died or hangs is ended, another is asked for, and
its items run again wherever there is room. So nodes may come and go in the middle of a run.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import pickle
import secrets
import shutil
import signal
import socket
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import ray
from ray import exceptions
from threadpoolctl import threadpool_limits

from pixelpong.engines import ItemWorker, MakeWorker, never
from pixelpong.engines.answers import Answer, describe_failure, play_items, raise_failure
from pixelpong.engines.batch import MAX_ATTEMPTS, Batch, Pace, raise_failed_starts
from pixelpong.errors import ConfigError, Interrupted, WorkerError, expected
from pixelpong.machine import collect_versions, count_cores, describe_machine

START_TIMEOUT = 180.0
"""Seconds a worker may take from its place in the cluster until it is ready; the first compiles."""

PLACE_TIMEOUT = 25.0
"""Seconds without any worker that has a place in the cluster, after which it is full or gone."""

CONNECT_TIMEOUT = 5.0
"""Seconds until somebody at the cluster's address takes the connection."""

RECRUIT_SECONDS = 1.0
"""How often the driver looks whether the cluster has grown."""

POLL_SECONDS = 0.1
"""How often it looks whether a stop was asked for."""

AHEAD_WHILE = 3
"""A worker is given its next items early while more items a worker than this wait."""

STORE_BYTES = 512 * 2**20
"""Object store of a Ray of our own: room for the parameters of several updates."""

_FOLDER = "pixelpong-ray"


class _Player:
    """What an actor runs: one worker, and what it is asked to play."""

    def __init__(self) -> None:
        self._worker: ItemWorker | None = None

    def place(self) -> dict[str, Any]:
        return _describe_place()

    def start(self, recipe: bytes) -> Answer:
        self._worker, answer = _make(recipe)
        return answer

    def play(self, params: Any, items: Sequence[Any]) -> Answer:
        assert self._worker is not None
        return play_items(self._worker, items, params)


class _ActorSeat:
    """A worker as an actor: it keeps its emulator from one call to the next."""

    def __init__(self, recipe: bytes) -> None:
        self._recipe = recipe
        # Spread, so that the memory traffic of first layers is shared by as many nodes as can be.
        options = {"num_cpus": 1, "max_restarts": 0, "scheduling_strategy": "SPREAD"}
        self._actor = _as_remote(_Player).options(**options).remote()

    def place(self) -> Any:
        return self._actor.place.remote()

    def start(self) -> Any:
        return self._actor.start.remote(self._recipe)

    def play(self, params: Any, items: Sequence[Any]) -> Any:
        return self._actor.play.remote(params, items)

    def end(self, late: Any) -> None:
        ray.kill(self._actor)


class _TaskSeat:
    """A worker as room for one task: whichever process takes it has an emulator of its own."""

    def __init__(self, recipe: bytes) -> None:
        self._recipe = recipe

    def place(self) -> Any:
        return self._call(_describe_place)

    def start(self) -> Any:
        return self._call(_start_in_task, self._recipe)

    def play(self, params: Any, items: Sequence[Any]) -> Any:
        return self._call(_play_in_task, self._recipe, params, items)

    def end(self, late: Any) -> None:
        # Not what may still be done in time: Ray 2.60 ends the driver where a task is done
        # while it is being cancelled ("tried to complete task that was not pending").
        if late is not None:
            ray.cancel(late, force=True)

    def _call(self, function: Callable[..., Any], *args: Any) -> Any:
        options = {"num_cpus": 1, "max_retries": 0, "scheduling_strategy": "SPREAD"}
        return _as_remote(function).options(**options).remote(*args)


_SEATS: dict[str, Callable[[bytes], _ActorSeat | _TaskSeat]] = {
    "actors": _ActorSeat,
    "tasks": _TaskSeat,
}


class _Call:
    """Items under way at a worker."""

    def __init__(self, ref: Any, batch: Batch, positions: tuple[int, ...]) -> None:
        self.ref = ref
        self.batch = batch
        self.positions = positions


class _Member:
    """One worker as the driver sees it. It asks for a place, starts, and is then ready."""

    def __init__(self, seat: _ActorSeat | _TaskSeat) -> None:
        self.seat = seat
        self.is_placed = self.is_ready = False
        self.pid = 0  # where it has a place
        self.beginning: Any = seat.place()  # what it answers before it is ready
        self.calls: deque[_Call] = deque()
        self.deadline = float("inf")  # where there is no room, it waits for some

    @property
    def refs(self) -> list[Any]:
        """What it owes an answer to; of items, only the first: it plays them in order."""
        return [self.calls[0].ref] if self.calls else [] if self.is_ready else [self.beginning]

    def begin(self, pid: int) -> None:
        """It has a place: make the worker there."""
        self.is_placed, self.pid = True, pid
        self.beginning = self.seat.start()
        self.deadline = time.monotonic() + START_TIMEOUT

    def give(self, params: Any, batch: Batch, positions: tuple[int, ...], timeout: float) -> None:
        """Hand over items."""
        if not self.calls:
            self.deadline = time.monotonic() + timeout
        items = [batch.items[position] for position in positions]
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
            num_workers: how many; one a core of the whole cluster where not given, and more when
                it grows.
            item_timeout: deadline of one item, in seconds.
            should_stop: asked several times a second while waiting.
            address: of a running cluster, ``"auto"`` or ``"HOST:PORT"``. Where it is not given,
                neither here nor in the variable RAY_ADDRESS, a Ray of our own is started.
            mode: ``"actors"`` or ``"tasks"``.

        Raises:
            ConfigError: nobody answers at the address.
            WorkerError: Ray does not start.
        """
        self._seat = _SEATS[mode]
        # Pickled here and not by Ray: then what fails in the worker is told by ourselves.
        self._recipe = pickle.dumps(make_worker)
        self._num_workers = num_workers
        self._item_timeout = item_timeout
        self._should_stop = should_stop
        self._failed_starts = 0
        self._pace = Pace()
        self.num_restarts = 0
        self._members: list[_Member] = []
        self._next_recruiting = 0.0
        self._placed_at = time.monotonic()
        self._versions, self._processor = collect_versions(), describe_machine()["processor"]
        self._exit = contextlib.ExitStack()
        self._exit.enter_context(connected(address, num_workers))
        self._recruit()

    @property
    def worker_pids(self) -> list[int]:
        """Process ids of the actors, each on its own machine; tasks share theirs."""
        return [member.pid for member in self._members if member.is_placed]

    def run(self, items: Sequence[Any], params: Any) -> Iterator[Any]:
        """See `pixelpong.engines.Engine.run`."""
        batch, shared = Batch(items, self._pace), _put(params)
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
        wanted = self._num_workers or max(1, int(ray.cluster_resources().get("CPU", 0)))
        for _ in range(wanted - len(self._members)):
            self._members.append(_Member(self._seat(self._recipe)))

    def _hand_out(self, batch: Batch, shared: Any) -> None:
        ready = [member for member in self._members if member.is_ready]
        self._hand_out_to([member for member in ready if not member.calls], batch, shared)
        if batch.num_waiting > AHEAD_WHILE * len(ready):
            self._hand_out_to([m for m in ready if len(m.calls) == 1], batch, shared)

    def _hand_out_to(self, members: list[_Member], batch: Batch, shared: Any) -> None:
        for member in members:
            if batch.num_waiting:
                positions = batch.take(len(members), self._item_timeout)
                member.give(shared, batch, positions, self._item_timeout)

    def _hear(self, batch: Batch) -> None:
        owed = {ref: member for member in self._members for ref in member.refs}
        nearest = min((m.deadline for m in owed.values()), default=0.0) - time.monotonic()
        timeout = max(0.0, min(POLL_SECONDS, nearest))
        done, _ = ray.wait(list(owed), num_returns=1, timeout=timeout)
        if done and len(owed) > 1:  # and whatever else is there by now
            done, _ = ray.wait(list(owed), num_returns=len(owed), timeout=0)
        for ref in done:
            self._hear_one(owed[ref], ref, batch)

    def _hear_one(self, member: _Member, ref: Any, batch: Batch) -> None:
        try:
            answer = ray.get(ref)
        except exceptions.RayError as error:
            self._replace(member, batch, _in_one_line(error))
            return
        if not member.is_placed:
            self._refuse_other_versions(answer)
            member.begin(answer["pid"])
            return
        kind, content = answer
        if not member.is_ready:
            if kind == "error":
                raise_failure(content)
            member.is_ready, self._failed_starts = True, 0
            member.deadline = float("inf")
            return
        call = member.calls.popleft()
        waits = bool(member.calls)
        member.deadline = time.monotonic() + self._item_timeout if waits else float("inf")
        if call.batch is not batch:
            return  # of a run that was given up
        if kind == "error":
            raise_failure(content)
        batch.put(call.positions, *content)

    def _replace_late(self, batch: Batch) -> None:
        now = time.monotonic()
        for member in list(self._members):
            if now > member.deadline:
                late = member.refs[0]
                self._replace(member, batch, "did not answer before its deadline", late)

    def _replace(self, member: _Member, batch: Batch, reason: str, late: Any = None) -> None:
        """End a worker, let its items run again, and ask for another at once."""
        self._members.remove(member)
        self._end(member, late)
        calls = [call for call in member.calls if call.batch is batch]
        is_playing = bool(calls) and calls[0] is member.calls[0]
        num_played = len(calls[0].positions) if is_playing else 0
        batch.give_back([each for call in calls for each in call.positions], num_played, reason)
        self._failed_starts += not member.is_ready
        # While others work, a node on which none can start is no reason to end.
        if self._failed_starts >= MAX_ATTEMPTS and not any(m.is_ready for m in self._members):
            raise_failed_starts(reason, "see Ray's logs, or use --engine serial")
        if member.is_ready:
            self.num_restarts += 1
            self._next_recruiting = 0.0

    def _end(self, member: _Member, late: Any) -> None:
        """End a worker; `late` is what it should have answered by now."""
        with contextlib.suppress(exceptions.RayError, ValueError):
            member.seat.end(late)

    def _refuse_to_wait_for_room(self) -> None:
        """A cluster without room for a single worker is an answer, not something to wait for."""
        if any(member.is_placed for member in self._members):
            self._placed_at = time.monotonic()
        elif time.monotonic() - self._placed_at > PLACE_TIMEOUT:
            free = int(ray.available_resources().get("CPU", 0))
            total = int(ray.cluster_resources().get("CPU", 0))
            raise WorkerError(
                expected(
                    f"room for a worker within {PLACE_TIMEOUT:.0f} s",
                    f"{free} free of {total} CPUs in the cluster",
                    "wait for its other jobs or add nodes, then resume",
                )
            )

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


# --- in the workers ---------------------------------------------------------------------------


def _describe_place() -> dict[str, Any]:
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "versions": collect_versions(),
        "processor": describe_machine()["processor"],
    }


def _make(recipe: bytes) -> tuple[ItemWorker | None, Answer]:
    """Make a worker, one BLAS thread beside it: Ray's environment variables come too late."""
    try:
        worker = pickle.loads(recipe)()
    except Exception as error:
        return None, ("error", describe_failure("the start of the worker", error))
    threadpool_limits(limits=1)
    return worker, ("ready", None)


_made: dict[bytes, ItemWorker] = {}
"""In a process that runs tasks: its worker, by the recipe."""


def _start_in_task(recipe: bytes) -> Answer:
    if recipe in _made:
        return "ready", None
    worker, answer = _make(recipe)
    _made.clear()
    if worker is not None:
        _made[recipe] = worker
    return answer


def _play_in_task(recipe: bytes, params: Any, items: Sequence[Any]) -> Answer:
    kind, content = _start_in_task(recipe)
    return play_items(_made[recipe], items, params) if kind == "ready" else (kind, content)


# --- the connection ---------------------------------------------------------------------------


@functools.cache
def _as_remote(what: Callable[..., Any]) -> Any:
    return ray.remote(what)


def _put(params: Any) -> Any:
    """Put the params where every worker can read them in place, one copy a node."""
    try:
        return ray.put(params)
    except (exceptions.ObjectStoreFullError, exceptions.OutOfDiskError) as error:
        what, got = "room for the parameters in Ray's object store", _in_one_line(error)
        advice = "give it more with 'ray start --object-store-memory', or fewer --hidden"
        raise WorkerError(expected(what, got, advice)) from error


@contextlib.contextmanager
def connected(address: str | None, num_workers: int | None) -> Iterator[None]:
    """Be connected to a cluster, and where one is started for it, end it.

    Args:
        address: as in `RayEngine`. Where this process is connected already, it stays so.
        num_workers: cores of a Ray of our own; this machine's where not given.

    Raises:
        ConfigError: nobody answers at the address.
        WorkerError: Ray does not start.
    """
    if ray.is_initialized():  # in a notebook, or in a program that uses Ray itself
        yield
        return
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    advice = "see it with 'ray status' on its head node"
    with contextlib.ExitStack() as stack:
        if address == "local":
            advice = "see Ray's message with --debug, or use --engine processes"
            options |= {
                "num_cpus": num_workers or count_cores(),
                "include_dashboard": False,
                "object_store_memory": STORE_BYTES,
                "_temp_dir": str(stack.enter_context(_folder())),
            }
        else:
            _refuse_silence(address)
        stack.callback(ray.shutdown)
        try:
            with _own_signals():
                ray.init(address=address, **options)
        except Exception as error:
            got = _in_one_line(error)
            raise WorkerError(expected(f"a Ray cluster at {address}", got, advice)) from error
        yield


def _refuse_silence(address: str) -> None:
    """Ray would wait minutes for a cluster that is not there."""
    if address == "auto":
        return  # it looks for one on this machine, and says at once when there is none
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "/" in host:
        raise ConfigError(expected("--ray-address auto or HOST:PORT", address, "see --help"))
    try:
        socket.create_connection((host, int(port)), CONNECT_TIMEOUT).close()
    except (OSError, OverflowError) as error:
        advice = "start one with 'ray start --head', or leave --ray-address out"
        raise ConfigError(expected(f"a Ray cluster at {address}", error, advice)) from error


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Ray takes SIGTERM for itself; the driver has its own way to stop."""
    try:
        before = signal.getsignal(signal.SIGTERM)
        yield
        signal.signal(signal.SIGTERM, before)
    except ValueError:  # not in the main thread, where nobody can take it
        pass


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A folder for the files of our own Ray, gone afterwards.

    A driver that is killed leaves its folder behind; the next one removes it.
    """
    above = Path(tempfile.gettempdir())
    if len(str(above)) > 20:  # a socket's path has room for 107 letters, and Ray adds 70
        above = Path("/tmp")
    for left in above.glob(f"{_FOLDER}-*"):
        pid = left.name.split("-")[2]
        if pid.isdecimal() and not Path(f"/proc/{pid}").exists():
            shutil.rmtree(left, ignore_errors=True)
    # The secret of our own processes would else be written to the home folder.
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    folder = Path(tempfile.mkdtemp(prefix=f"{_FOLDER}-{os.getpid()}-", dir=above))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _in_one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}"
