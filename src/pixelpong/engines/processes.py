"""The process engine: one process a worker, on this machine, over pipes of its own.

`multiprocessing.Pool` never returns a killed worker's task and `ProcessPoolExecutor` loses all
that is pending. Here every wait has a deadline; a worker that died or hangs is replaced and its
item runs again, which is harmless because an item is a pure function.

Workers are spawned, not forked: forking a process with BLAS threads can deadlock. They end when
their pipe does, and on Linux also by a signal from the kernel, so none outlives the driver.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import multiprocessing
import os
import pickle
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import connection, resource_tracker
from typing import Any

from pixelpong.engines import MakeWorker, RunStats, never
from pixelpong.engines.answers import describe_failure, play_items, raise_failure
from pixelpong.engines.batch import (
    AHEAD_WHILE,
    MAX_ATTEMPTS,
    START_TIMEOUT,
    Batch,
    Pace,
    raise_failed_starts,
)
from pixelpong.engines.board import Board, Notice
from pixelpong.engines.channel import POLL_SECONDS, Channel, encode
from pixelpong.engines.worker_process import settle
from pixelpong.errors import Interrupted, WorkerError, expected

PARCEL_SECONDS = 0.05
"""Items that travel together should take about so long: a message costs 0.2 ms on both sides."""


class _Run:
    """A batch, and where its params are found."""

    def __init__(self, batch: Batch, notice: Notice) -> None:
        self.batch = batch
        self.params = encode(("params", notice))


class _Member:
    """One worker process as the driver sees it."""

    def __init__(self, recipe: bytes, board: Board, should_stop: Callable[[], bool]) -> None:
        ours, theirs = socket.socketpair()
        context = multiprocessing.get_context("spawn")
        self.process = context.Process(target=_serve, args=(theirs, board, recipe), daemon=True)
        try:
            with _interrupts_blocked(), _main_left_out(recipe):
                self.process.start()
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        self.channel = Channel(ours, should_stop)
        self.is_ready = False
        # What it has been given, by number: of which run, and which positions. It plays the first
        # of these. An answer names its number, so that one that comes twice can do no harm.
        self.given: dict[int, tuple[_Run, tuple[int, ...]]] = {}
        self._numbers = itertools.count()
        self.informed: _Run | None = None  # whose params it holds
        self.deadline = time.monotonic() + START_TIMEOUT

    def is_waited_for(self) -> bool:
        """Whether it owes an answer: a result, or the word that it is ready."""
        return bool(self.given) or not self.is_ready

    def give(self, run: _Run, positions: tuple[int, ...], timeout: float) -> None:
        """Hand over items, after the run's params where it does not have them yet."""
        if not self.given:
            self.deadline = time.monotonic() + timeout
        number = next(self._numbers)
        self.given[number] = run, positions
        if self.informed is not run:
            self.channel.send(run.params, timeout)
            self.informed = run
        content = number, [run.batch.items[position] for position in positions]
        run.batch.stats.bytes_sent += self.channel.send(encode(("play", content)), timeout)

    def is_playing_for(self, run: _Run) -> bool:
        """Whether what it plays belongs to `run`, and not to one that was given up."""
        return next((of is run for of, _ in self.given.values()), False)

    def end(self) -> int | None:
        """End the process, whatever it does; return its exit code."""
        self.channel.close()
        if self.is_waited_for():
            self.process.kill()
        self.process.join(timeout=2.0)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join(timeout=2.0)
        exit_code = self.process.exitcode
        with contextlib.suppress(ValueError):  # still not dead: the kernel has it in hand
            self.process.close()
        return exit_code


class ProcessEngine:
    """Carries out items in worker processes, as many at a time as there are workers."""

    def __init__(
        self,
        make_worker: MakeWorker,
        num_workers: int,
        item_timeout: float,
        should_stop: Callable[[], bool] = never,
    ) -> None:
        """Start the workers; they make themselves ready while the driver goes on.

        Args:
            make_worker: makes one worker; picklable.
            num_workers: processes.
            item_timeout: deadline of one item, in seconds.
            should_stop: asked several times a second while waiting.
        """
        # Pickled here, so that a new process can look after its end before the long imports.
        self._recipe = pickle.dumps(make_worker)
        self._item_timeout = item_timeout
        self._should_stop = should_stop
        self._failed_starts = 0
        self._pace = Pace(PARCEL_SECONDS)
        self.num_restarts = 0
        self.last_run = RunStats()
        self._members: list[_Member] = []
        self._board = Board()
        try:
            for _ in range(num_workers):
                self._members.append(_Member(self._recipe, self._board, should_stop))
        except OSError as error:
            got = f"{len(self._members)} and then: {error.strerror}"
            self.close()
            raise WorkerError(
                expected(f"to start {num_workers} workers", got, "give fewer --workers")
            ) from error

    @property
    def worker_pids(self) -> list[int]:
        """Process ids of the workers."""
        return [member.process.pid for member in self._members if member.process.pid]

    def run(self, items: Sequence[Any], params: Any) -> Iterator[Any]:
        """See `pixelpong.engines.Engine.run`."""
        batch = Batch(items, self._pace)
        self.last_run = batch.stats
        notice = self._board.write(params)
        run = _Run(batch, notice)
        batch.stats.workers = len(self._members)
        batch.stats.params_bytes = self._board.size_of(notice)
        for position in range(len(items)):
            while position not in batch.results:
                if self._should_stop():
                    raise Interrupted
                self._hand_out(run)
                self._hear(run)
                self._replace_late(run)
                self._hand_out(run)
            yield batch.results.pop(position)

    def close(self) -> None:
        """See `pixelpong.engines.Engine.close`."""
        members, self._members = self._members, []
        for member in members:
            member.channel.close()
        for member in members:
            member.end()
        self._board.close()

    def _hand_out(self, run: _Run) -> None:
        self._hand_out_to([m for m in self._members if not m.is_waited_for()], run)
        # While many items wait, each worker has its next one at hand, and need not wait for it;
        # at the end, one that is kept by a slow worker would be missed by a quick one.
        if run.batch.num_waiting > AHEAD_WHILE * len(self._members):
            ready = [m for m in self._members if m.is_ready and len(m.given) == 1]
            self._hand_out_to(ready, run)

    def _hand_out_to(self, members: list[_Member], run: _Run) -> None:
        for member in members:
            if run.batch.num_waiting:
                positions = run.batch.take(len(self._members), self._item_timeout)
                try:
                    member.give(run, positions, self._item_timeout)
                except OSError as error:  # TimeoutError is one
                    self._replace(member, run, f"did not take an item ({error})")

    def _hear(self, run: _Run) -> None:
        waited_for = [member for member in self._members if member.is_waited_for()]
        nearest = min(member.deadline for member in waited_for) - time.monotonic()
        ready = connection.wait(
            [member.channel for member in waited_for],  # type: ignore[misc]
            timeout=max(0.0, min(POLL_SECONDS, nearest)),
        )
        for member in waited_for:
            if member.channel in ready:
                self._hear_one(member, run)

    def _hear_one(self, member: _Member, run: _Run) -> None:
        try:
            remaining = max(member.deadline - time.monotonic(), 0.001)
            (number, (kind, content)), size = member.channel.receive_sized(remaining)
        except TimeoutError:
            self._replace(member, run, "stopped in the middle of a result")
            return
        except (EOFError, OSError):
            self._replace(member, run, "died")
            return
        if kind == "ready":
            member.is_ready, self._failed_starts = True, 0
            return
        if number is None:
            raise_failure(content)  # it could not be made
        if number not in member.given:
            return  # it has said so before
        of, positions = member.given.pop(number)
        member.deadline = time.monotonic() + self._item_timeout
        if of is not run:
            return  # it comes from one that was given up
        if kind == "error":
            raise_failure(content)
        run.batch.stats.bytes_received += size
        run.batch.put(positions, *content)

    def _replace_late(self, run: _Run) -> None:
        now = time.monotonic()
        for member in list(self._members):
            if member.is_waited_for() and now > member.deadline:
                self._replace(member, run, "did not answer before its deadline")

    def _replace(self, member: _Member, run: _Run, reason: str) -> None:
        """End a worker, start another in its place, and let its items run again."""
        was_ready, has_items = member.is_ready, member.is_playing_for(run)
        given = [positions for of, positions in member.given.values() if of is run]
        exit_code = member.end()
        self._members.remove(member)
        reason += f" (exit code {exit_code})"
        num_played = len(given[0]) if has_items else 0
        run.batch.give_back([each for positions in given for each in positions], num_played, reason)
        if not was_ready:
            self._failed_starts += 1
            if self._failed_starts >= MAX_ATTEMPTS:
                advice = "in a script, call pixelpong below if __name__ == '__main__', or use "
                raise_failed_starts(reason, advice + "--engine serial")
        self.num_restarts += 1
        self._members.append(_Member(self._recipe, self._board, self._should_stop))


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Let a process be started that never gets Ctrl-C: the driver decides when workers end.

    A blocked signal stays blocked in the child, even while Python is starting there.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Started first, because starting it unblocks signals behind our back.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _main_left_out(recipe: bytes) -> Iterator[None]:
    """Let a process be started that does not import the script which starts it.

    It would run the script again, which trains again where ``if __name__ == "__main__"`` is
    missing; and a worker needs nothing of it, but for one that is defined there.
    """
    main = vars(sys.modules["__main__"])
    hidden = {} if b"__main__" in recipe else {"__file__": None, "__spec__": None}
    before = {name: main[name] for name in hidden if name in main}
    main.update(hidden)
    try:
        yield
    finally:
        main.update(before)
        for name in hidden.keys() - before.keys():
            del main[name]


def _serve(end: socket.socket, board: Board, recipe: bytes) -> None:
    """The worker process: make a worker, then play item after item until the pipe ends."""
    _die_with_parent()
    channel = Channel(end)
    try:
        worker, params = pickle.loads(recipe)(), None
        settle()
        channel.send(encode((None, ("ready", None))))
        while True:
            kind, content = channel.receive()
            if kind == "params":
                params = board.read(content)
                continue
            number, items = content
            channel.send(encode((number, play_items(worker, items, params))))
    except (EOFError, ConnectionError):
        return
    except Exception as error:
        with contextlib.suppress(OSError):
            failure = describe_failure("the start of the worker", error)
            channel.send(encode((None, ("error", failure))))


def _die_with_parent() -> None:
    """On Linux, have the kernel end this process when its parent ends, even in mid-item."""
    if sys.platform != "linux":
        return
    parent = multiprocessing.parent_process()
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if parent is None or os.getppid() != parent.pid:  # it had ended before that
        os._exit(1)
