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
Resume = Callable[..., object]


@contextlib.contextmanager
def connected_tasks(resume: Resume, cores: int, address: str | None) -> Iterator[Tasks]:
    """Connect, and refuse a cluster without a node of so many cores."""
    with connected(address, max(cores, count_cores())):
        largest = max(_cpus_of_nodes(), default=0)
        if largest < cores:
            what = f"a node with {cores} CPUs for each training"
            advice = "give fewer --threads-each"
            raise WorkerError(expected(what, f"{largest} on the largest", advice))
        yield Tasks(resume, cores)


class Tasks:
    """Trains each run in a task with this many cores."""

    def __init__(self, resume: Resume, cores: int) -> None:
        self._resume, self._cores = resume, cores
        self._task = ray.remote(_perform).options(
            num_cpus=cores, max_retries=RETRIES, scheduling_strategy="SPREAD"
        )

    def room(self) -> int:
        """How many tasks the whole cluster can run at a time."""
        return sum(cpus // self._cores for cpus in _cpus_of_nodes())

    def begin(self, run: Path) -> Any:
        """Start a training."""
        return self._task.remote(collect_versions(), self._resume, run.absolute(), self._cores)

    def find_error(self, ref: Any) -> str | None:
        """What ended the training, "" if that was no error; None while it is under way."""
        if not ray.wait([ref], timeout=0)[0]:
            return None
        try:
            ray.get(ref)
        except exceptions.RayError as error:
            return in_one_line(getattr(error, "cause", error))
        return ""

    def stop(self, ref: Any, *, force: bool) -> None:
        """Have SIGINT raised in the task, or end it."""
        with contextlib.suppress(exceptions.RayError, ValueError):
            ray.cancel(ref, force=force)


def _cpus_of_nodes() -> list[int]:
    return [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]


def _perform(versions: dict[str, str], resume: Resume, run: Path, cores: int) -> None:
    """In a worker's process: refuse versions other than the driver's, or train."""
    require_versions(versions)
    resume(run, quiet=True, engine="threads", workers=cores)
