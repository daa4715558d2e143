"""Trainings in processes of their own: one after the other on this machine, or as Ray tasks.

Each is ``pixelpong resume RUN``, and its result is only in its run directory.
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
from typing import Any

from pixelpong.engines import has_ray, require_ray
from pixelpong.errors import ConfigError, PixelpongError
from pixelpong.machine import count_cores
from pixelpong.run.record import Record

BEGINS = "begins"  # what happens to a run first
POLL_SECONDS = 0.1  # between checks of the running trainings
STOP_SECONDS = 30.0  # how long trainings may take to end after a requested stop


def run_jobs(
    runs: Iterable[Path], place: Any, should_stop: Callable[[], bool]
) -> Iterator[tuple[Path, str]]:
    """Train runs at a place of `open_place`, as many at a time as it has room for.

    Yields a run and what happened to it. After a requested stop, or if the generator is closed, the
    running trainings are asked to end.
    """
    waiting, under_way = deque(runs), dict[Path, Any]()
    try:
        while (waiting or under_way) and not should_stop():
            while waiting and len(under_way) < place.room():
                run = waiting.popleft()
                yield run, BEGINS
                under_way[run] = place.begin(run)
            time.sleep(POLL_SECONDS)
            for run, job in list(under_way.items()):
                if (error := place.find_error(job)) is not None:
                    del under_way[run]
                    yield run, f"failed: {error}" if error else Record.read(run).summary
    finally:
        left = list(under_way.values())
        for job in left:
            place.stop(job, force=False)
        deadline = time.monotonic() + STOP_SECONDS
        while left and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
            left = [job for job in left if not _has_ended(place, job)]
        for job in left:
            place.stop(job, force=True)


def _has_ended(place: Any, job: Any) -> bool:
    """Whether a training is over; also if the cluster is."""
    try:
        return place.find_error(job) is not None
    except PixelpongError:
        return True


@contextlib.contextmanager
def open_place(
    resume: Callable[..., object],
    engine: str | None = None,
    address: str | None = None,
    threads: int | None = None,
) -> Iterator[Any]:
    """Open a place for trainings: Ray, or this machine, one after the other.

    Args:
        resume: `pixelpong.resume`, for Ray's tasks.
        engine: ``"ray"`` or ``"serial"``; by default Ray if it is installed.
        address: of a running Ray cluster whose nodes all see the runs; implies Ray.
        threads: of each training; by default 1 with Ray, otherwise one per core.
    """
    if engine == "serial" and address is not None:
        raise ConfigError("--ray-address needs --engine ray, not serial.")
    if engine == "serial" or (engine is None and address is None and not has_ray()):
        yield Here(threads or count_cores())
        return
    require_ray()
    from pixelpong.engines.ray.jobs import connected_tasks

    with connected_tasks(resume, threads or 1, address) as tasks:
        yield tasks


class Here:
    """Trains in a new process of this machine, one at a time."""

    def __init__(self, threads: int) -> None:
        self._options = f"--quiet --engine threads --workers {threads}".split()

    def room(self) -> int:
        """The number of trainings at a time: one."""
        return 1

    def begin(self, run: Path) -> subprocess.Popen[bytes]:
        """Start a training."""
        command = [sys.executable, "-m", "pixelpong", "resume", str(run), *self._options]
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - a pipe would fill, and block it
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=self._said)

    def find_error(self, process: subprocess.Popen[bytes]) -> str | None:
        """The error that ended the training, "" if there was none; None while it runs."""
        if (code := process.poll()) is None:
            return None
        with self._said as said:
            said.seek(0)
            *_, last = said.read().decode(errors="replace").splitlines() or [f"exit code {code}"]
        return last.removeprefix("pixelpong: error: ") if code else ""

    def stop(self, process: subprocess.Popen[bytes], *, force: bool) -> None:
        """Ask the training to end, or with `force` kill it."""
        (process.kill if force else process.terminate)()
