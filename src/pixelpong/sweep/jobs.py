"""Trainings, each in a process of its own: one after the other here, or as Ray's tasks.

Each is ``pixelpong resume RUN``, and what it has reached is in its run directory alone.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from pixelpong.engines import has_ray, require_ray
from pixelpong.errors import ConfigError
from pixelpong.machine import count_cores
from pixelpong.run.record import Record

POLL_SECONDS = 0.1  # between two looks at what is under way
STOP_SECONDS = 30.0  # that trainings have to end after a requested stop


def run_jobs(
    runs: Iterable[Path], place: Any, should_stop: Callable[[], bool]
) -> Iterator[tuple[Path, str]]:
    """Train runs at a place of `open_place`, as many at a time as it has room for.

    Yields a run and what has happened to it. After a requested stop, or if the generator is closed,
    those under way are asked to end.
    """
    waiting, under_way = deque(runs), dict[Path, Any]()
    try:
        while (waiting or under_way) and not should_stop():
            while waiting and len(under_way) < place.room():
                run = waiting.popleft()
                yield run, "begins"
                under_way[run] = place.begin(run)
            time.sleep(POLL_SECONDS)
            for run, job in list(under_way.items()):
                error = place.find_error(job)
                if error is not None:
                    del under_way[run]
                    yield run, f"failed: {error}" if error else Record.read(run).verdict
    finally:
        left = list(under_way.values())
        for job in left:
            place.stop(job, force=False)
        deadline = time.monotonic() + STOP_SECONDS
        while left and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
            left = [job for job in left if place.find_error(job) is None]
        for job in left:
            place.stop(job, force=True)


@contextlib.contextmanager
def open_place(
    resume: Callable[..., object],
    engine: str | None = None,
    address: str | None = None,
    threads: int | None = None,
) -> Iterator[Any]:
    """Where trainings run: on Ray, or one after the other here.

    Args:
        resume: `pixelpong.resume`, for Ray's tasks.
        engine: ``"ray"`` or ``"serial"``; by default Ray if it is installed.
        address: of a running Ray cluster whose nodes all see the runs; it asks for Ray.
        threads: of each training; by default 1 with Ray, otherwise one per core.
    """
    if engine == "serial" and address is not None:
        raise ConfigError("--ray-address needs --engine ray: leave one of them out.")
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
        """One."""
        return 1

    def begin(self, run: Path) -> subprocess.Popen[str]:
        """Start a training."""
        command = [sys.executable, "-m", "pixelpong", "resume", str(run), *self._options]
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        return subprocess.Popen(command, stdout=nothing, stderr=pipe, text=True)

    def find_error(self, process: subprocess.Popen[str]) -> str | None:
        """What ended the training, "" if that was no error; None while it is under way."""
        code = process.poll()
        if code is None:
            return None
        *_, last = process.communicate()[1].splitlines() or [f"exit code {code}"]
        return last.removeprefix("pixelpong: error: ") if code else ""

    def stop(self, process: subprocess.Popen[str], *, force: bool) -> None:
        """Ask the training to end, or end it."""
        (process.kill if force else process.terminate)()
