"""Runs trained in separate processes, one after the other on this machine or as Ray tasks.

Each process runs ``pixelpong resume RUN`` and leaves its result only in the run directory.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pixelpong.engines import has_ray, require_ray
from pixelpong.errors import ConfigError, PixelpongError
from pixelpong.machine import count_cores
from pixelpong.run.record import Record

POLL_SECONDS = 0.1  # time between checks of the running jobs
STOP_SECONDS = 30.0  # time for the jobs to end after a requested stop


class JobEvent(NamedTuple):
    """A run starts training or has ended."""

    run: Path
    result: str | None  # a line about the result; None at the start


def run_jobs(
    runs: Iterable[Path], trainer: Any, should_stop: Callable[[], bool]
) -> Iterator[JobEvent]:
    """Train runs with `open_trainer`, as many at once as fit.

    After a requested stop, or if the generator is closed, the running jobs are asked to end.
    """
    waiting, jobs = deque(runs), dict[Path, Any]()
    try:
        while (waiting or jobs) and not should_stop():
            while waiting and len(jobs) < trainer.capacity():
                run = waiting.popleft()
                yield JobEvent(run, None)
                jobs[run] = trainer.start(run)
            time.sleep(POLL_SECONDS)
            for run, job in list(jobs.items()):
                if (error := trainer.find_error(job)) is not None:
                    del jobs[run]
                    yield JobEvent(run, f"failed: {error}" if error else Record.read(run).summary)
    finally:
        remaining = list(jobs.values())
        for job in remaining:
            trainer.stop(job, force=False)
        deadline = time.monotonic() + STOP_SECONDS
        while remaining and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
            remaining = [job for job in remaining if not _has_ended(trainer, job)]
        for job in remaining:
            trainer.stop(job, force=True)


def _has_ended(trainer: Any, job: Any) -> bool:
    """Whether a job has ended, or the cluster is lost."""
    try:
        return trainer.find_error(job) is not None
    except PixelpongError:
        return True


@contextlib.contextmanager
def open_trainer(
    resume: Callable[..., object],
    engine: str | None = None,
    address: str | None = None,
    threads: int | None = None,
) -> Iterator[Any]:
    """Open a trainer for runs: a Ray cluster, or this machine, one run after the other.

    Args:
        resume: `pixelpong.resume`, for Ray's tasks.
        engine: ``"ray"`` or ``"serial"``; by default Ray if it is installed.
        address: address of a running Ray cluster whose nodes all see the runs; implies Ray.
        threads: number of threads per run; by default 1 with Ray, otherwise one per core.
    """
    if engine == "serial" and address is not None:
        raise ConfigError("--ray-address needs --engine ray, not serial.")
    if engine == "serial" or (engine is None and address is None and not has_ray()):
        yield LocalTrainer(threads or count_cores())
        return
    require_ray()
    from pixelpong.engines.ray.jobs import connected_trainer

    with connected_trainer(resume, threads or 1, address) as trainer:
        yield trainer


class LocalTrainer:
    """Trains in a new process of this machine, one run at a time."""

    def __init__(self, threads: int) -> None:
        self._options = f"--quiet --engine threads --workers {threads}".split()

    def capacity(self) -> int:
        """Return 1, because runs are trained one after the other."""
        return 1

    def start(self, run: Path) -> subprocess.Popen[bytes]:
        """Start training a run."""
        command = [sys.executable, "-m", "pixelpong", "resume", str(run), *self._options]
        self._messages = tempfile.TemporaryFile()  # noqa: SIM115 - a full pipe would block it
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=self._messages)

    def find_error(self, process: subprocess.Popen[bytes]) -> str | None:
        """Return the error that ended training, "" if there was none, or None while it runs."""
        code = process.poll()
        if code is None:
            return None
        with self._messages as messages:
            messages.seek(0)
            lines = messages.read().decode(errors="replace").splitlines()
        if not code:
            return ""
        return lines[-1].removeprefix("pixelpong: error: ") if lines else f"exit code {code}"

    def stop(self, process: subprocess.Popen[bytes], *, force: bool) -> None:
        """Ask the process to end, or kill it if `force` is set."""
        if force:
            process.kill()
        else:
            process.terminate()
