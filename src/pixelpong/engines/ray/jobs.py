"""Trainings on Ray: each is a task with some cores, as many at a time as the cluster has room for.

Ray itself starts a task again whose process or node died (``max_retries``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ray
from ray import exceptions

from pixelpong.engines.ray.connection import connected, in_one_line, require_versions
from pixelpong.errors import WorkerError, expected
from pixelpong.machine import collect_versions, count_cores

RETRIES = 3  # of a task whose process or node died
TrainRun = Callable[[Path, int], str]  # returns the error that ended it, or ""


@contextlib.contextmanager
def connected_tasks(train_run: TrainRun, cores: int, address: str | None) -> Iterator[Tasks]:
    """Connect, and refuse a cluster without a node of so many cores."""
    with connected(address, max(cores, count_cores())):
        largest = max(_cpus_of_nodes(), default=0)
        if largest < cores:
            what = f"a node with {cores} CPUs for each training"
            advice = "give fewer --threads-each"
            raise WorkerError(expected(what, f"{largest} on the largest", advice))
        yield Tasks(train_run, cores)


class Tasks:
    """Trains each run in a task with this many cores."""

    def __init__(self, train_run: TrainRun, cores: int) -> None:
        self._train_run, self._cores = train_run, cores
        self._task = ray.remote(_perform).options(
            num_cpus=cores, max_retries=RETRIES, scheduling_strategy="SPREAD"
        )

    def room(self) -> int:
        """How many tasks the whole cluster can run at a time."""
        return sum(cpus // self._cores for cpus in _cpus_of_nodes())

    def begin(self, run: Path) -> Any:
        """Start a training."""
        return self._task.remote(collect_versions(), self._train_run, run.absolute(), self._cores)

    def find_error(self, ref: Any) -> str | None:
        """What ended the training, "" if that was no error; None while it is under way."""
        if not ray.wait([ref], timeout=0)[0]:
            return None
        try:
            error: str = ray.get(ref)
        except exceptions.RayTaskError as raised:
            return in_one_line(raised.cause)
        except exceptions.RayError as raised:
            return f"its process died: {in_one_line(raised)}"
        return error

    def stop(self, ref: Any, *, force: bool) -> None:
        """Have SIGINT raised in the task, or end it."""
        with contextlib.suppress(exceptions.RayError, ValueError):
            ray.cancel(ref, force=force)


def _cpus_of_nodes() -> list[int]:
    return [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]


def _perform(versions: dict[str, str], train_run: TrainRun, run: Path, cores: int) -> str:
    """In a worker's process: refuse versions other than the driver's, or train."""
    require_versions(versions)
    return train_run(run, cores)
