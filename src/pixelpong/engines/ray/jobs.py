"""Jobs on Ray: each is a task with some cores, as many at a time as the cluster has room for.

Ray itself starts a task again whose process or node died (``max_retries``).
"""

from __future__ import annotations

import contextlib
import pickle
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import ray
from ray import exceptions

from pixelpong.engines.jobs import (
    POLL_SECONDS,
    STOP_SECONDS,
    Begun,
    Ended,
    Failed,
    JobEvents,
    Jobs,
    event_of,
    lost,
    perform,
)
from pixelpong.engines.ray.connection import connected, in_one_line, require_versions
from pixelpong.errors import PixelpongError, WorkerError, expected
from pixelpong.machine import collect_versions, count_cores

RETRIES = 3  # of a task whose process or node died
LOOK_SECONDS = 1.0  # between two checks whether the cluster has grown


def run_on_ray(
    jobs: Jobs, cores: int, address: str | None, should_stop: Callable[[], bool]
) -> JobEvents:
    """Run jobs as Ray's tasks, each with this many cores."""
    with connected(address, max(cores, count_cores())):
        _refuse_small_nodes(cores)
        yield from _Tasks(jobs, cores).run(should_stop)


class _Tasks:
    """The jobs that wait, and those that were given to Ray."""

    def __init__(self, jobs: Jobs, cores: int) -> None:
        self._waiting = deque(jobs.items())
        self._under_way: dict[Any, str] = {}
        self._cores = cores
        self._task = ray.remote(_perform).options(
            num_cpus=cores, max_retries=RETRIES, scheduling_strategy="SPREAD"
        )
        self._versions = collect_versions()
        self._room, self._next_look = 0, 0.0

    def run(self, should_stop: Callable[[], bool]) -> JobEvents:
        """Run them all."""
        try:
            while (self._waiting or self._under_way) and not should_stop():
                while self._waiting and len(self._under_way) < self._find_room():
                    name, job = self._waiting.popleft()
                    yield Begun(name)
                    ref = self._task.remote(self._versions, pickle.dumps(job))
                    self._under_way[ref] = name
                yield from self._hear()
            deadline = self._cancel()
            while self._under_way and time.monotonic() < deadline:
                yield from self._hear()
        except BaseException:  # or nobody wants to hear the rest
            deadline = self._cancel()
            while self._under_way and time.monotonic() < deadline:
                done, _ = ray.wait(list(self._under_way), num_returns=1, timeout=POLL_SECONDS)
                for ref in done:
                    del self._under_way[ref]
            raise

    def _find_room(self) -> int:
        """How many tasks the whole cluster can run at a time."""
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + LOOK_SECONDS
            self._room = sum(cpus // self._cores for cpus in _cpus_of_nodes())
        return self._room

    def _hear(self) -> JobEvents:
        if not self._under_way:
            time.sleep(POLL_SECONDS)
            yield None
            return
        done, _ = ray.wait(list(self._under_way), num_returns=1, timeout=POLL_SECONDS)
        if not done:
            yield None
        for ref in done:
            name = self._under_way.pop(ref)
            with contextlib.suppress(exceptions.TaskCancelledError):  # it had not begun
                yield self._event_of(name, ref)

    def _event_of(self, name: str, ref: Any) -> Ended | Failed:
        try:
            return event_of(name, *ray.get(ref))
        except exceptions.TaskCancelledError:
            raise
        except exceptions.RayTaskError as error:
            if isinstance(error.cause, PixelpongError):
                raise error.cause from None  # of the node, not of the job
            return Failed(name, WorkerError(in_one_line(error)))
        except exceptions.RayError as error:
            return lost(name, in_one_line(error))

    def _cancel(self) -> float:
        """Have SIGINT raised in every task; return the time by which they must have ended."""
        for ref in self._under_way:
            with contextlib.suppress(exceptions.RayError, ValueError):
                ray.cancel(ref)
        return time.monotonic() + STOP_SECONDS


def _cpus_of_nodes() -> list[int]:
    return [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]


def _refuse_small_nodes(cores: int) -> None:
    largest = max(_cpus_of_nodes(), default=0)
    if largest < cores:
        what = f"a node with {cores} CPUs for each training"
        advice = "give fewer --threads-each"
        raise WorkerError(expected(what, f"{largest} on the largest", advice))


def _perform(versions: dict[str, str], job: bytes) -> tuple[Any, PixelpongError | None]:
    """In a worker's process: refuse versions other than the driver's, or do the job."""
    require_versions(versions)
    return perform(job)
