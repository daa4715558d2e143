"""Jobs on Ray: each is a task with some cores, as many at a time as the cluster has room for.

Ray itself starts a task again whose process or node died (``max_retries``).
"""

from __future__ import annotations

import contextlib
import functools
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import ray
from ray import exceptions

from pixelpong.engines.jobs import Job, Outcome, lost, perform
from pixelpong.engines.ray.connection import connected, in_one_line, require_versions
from pixelpong.errors import PixelpongError, WorkerError, expected
from pixelpong.machine import collect_versions, count_cores

RETRIES = 3  # of a task whose process or node died


@contextlib.contextmanager
def connected_tasks(cores: int, address: str | None) -> Iterator[Tasks]:
    """Connect, and refuse a cluster without a node of so many cores."""
    with connected(address, max(cores, count_cores())):
        largest = max(_cpus_of_nodes(), default=0)
        if largest < cores:
            what = f"a node with {cores} CPUs for each training"
            advice = "give fewer --threads-each"
            raise WorkerError(expected(what, f"{largest} on the largest", advice))
        yield Tasks(cores)


class Tasks:
    """Runs each job as a task with this many cores."""

    def __init__(self, cores: int) -> None:
        self._cores, self._refs = cores, list[Any]()
        self._task = ray.remote(_perform).options(
            num_cpus=cores, max_retries=RETRIES, scheduling_strategy="SPREAD"
        )

    def room(self) -> int:
        """How many tasks the whole cluster can run at a time."""
        return sum(cpus // self._cores for cpus in _cpus_of_nodes())

    def begin(self, name: str, job: Job) -> Callable[[], Outcome]:
        """Start a job; return what waits for its end."""
        self._refs.append(self._task.remote(collect_versions(), pickle.dumps(job)))
        return functools.partial(self._wait, name, self._refs[-1])

    def _wait(self, name: str, ref: Any) -> Outcome:
        try:
            outcome: Outcome = ray.get(ref)
        except exceptions.TaskCancelledError:
            return None  # it had not begun
        except exceptions.RayTaskError as error:
            if isinstance(error.cause, PixelpongError):
                raise error.cause from None  # of the node, not of the job
            return WorkerError(in_one_line(error))
        except exceptions.RayError as error:
            return lost(name, in_one_line(error))
        return outcome

    def stop(self, *, force: bool) -> None:
        """Have SIGINT raised in every task, or end it."""
        for ref in self._refs:
            with contextlib.suppress(exceptions.RayError, ValueError):
                ray.cancel(ref, force=force)


def _cpus_of_nodes() -> list[int]:
    return [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]


def _perform(versions: dict[str, str], job: bytes) -> Outcome:
    """In a worker's process: refuse versions other than the driver's, or do the job."""
    require_versions(versions)
    return perform(pickle.loads(job))
