"""Runs trained on Ray as tasks with a number of cores each, as many at once as fit.

If a task's process or node dies, Ray itself starts it again (``max_retries``).
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ray
from ray import exceptions

from pixelpong.engines.ray.cluster import Cluster
from pixelpong.engines.ray.connection import connected, in_one_line, require_versions
from pixelpong.errors import WorkerError, as_argument
from pixelpong.machine import collect_versions, count_cores

RETRIES = 3  # retries of a task whose process or node died
Resume = Callable[..., object]


class NotSharedError(WorkerError):
    """A node cannot see the folder that holds the runs."""


@contextlib.contextmanager
def connected_trainer(resume: Resume, cores: int, address: str | None) -> Iterator[RayTrainer]:
    """Connect to a cluster; raise an error if none of its nodes has enough cores."""
    with connected(address, max(cores, count_cores())) as cluster:
        largest = max((node.cpus for node in cluster.nodes()), default=0)
        if largest < cores:
            needs = f"{cores} CPUs on one node, but the largest node has {largest}"
            raise WorkerError(f"Each run needs {needs}; lower --threads-each.")
        yield RayTrainer(resume, cores, cluster)


class RayTrainer:
    """Trains each run in a Ray task with a fixed number of cores."""

    def __init__(self, resume: Resume, cores: int, cluster: Cluster) -> None:
        self._resume, self._cores, self._cluster = resume, cores, cluster
        self._task = ray.remote(_perform).options(
            num_cpus=cores, max_retries=RETRIES, scheduling_strategy="SPREAD"
        )

    def capacity(self) -> int:
        """Return how many tasks the whole cluster can run at a time."""
        return sum(node.cpus // self._cores for node in self._cluster.nodes())

    def start(self, run: Path) -> Any:
        """Start training a run of a sweep."""
        again = f"continue with 'pixelpong sweep {as_argument(run.parent)}'"
        self._cluster.advice = f"everything saved is still there; {again}"
        return self._task.remote(collect_versions(), self._resume, run.absolute(), self._cores)

    def find_error(self, ref: Any) -> str | None:
        """Return the error that ended training, "" if there was none, or None while it runs."""
        self._cluster.check()
        if not ray.wait([ref], timeout=0)[0]:
            return None
        try:
            ray.get(ref)
        except exceptions.RayError as error:
            cause = getattr(error, "cause", error)
            if isinstance(cause, NotSharedError):  # every run on that node would fail
                raise cause from None
            return in_one_line(cause)
        return ""

    def stop(self, ref: Any, *, force: bool) -> None:
        """Raise SIGINT in the task, or kill the task if `force` is set."""
        with contextlib.suppress(exceptions.RayError, ValueError):
            ray.cancel(ref, force=force)


def _perform(versions: dict[str, str], resume: Resume, run: Path, cores: int) -> None:
    """Train in a Ray process, unless its versions differ from the driver's."""
    require_versions(versions)
    if not run.is_dir():
        what = f"The node {socket.gethostname()} cannot see {run}"
        raise NotSharedError(f"{what}: give --out a folder that all nodes share.")
    resume(run, quiet=True, engine="threads", workers=cores)
