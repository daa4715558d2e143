"""Trainings, each in a process of its own: one after the other here, or as Ray's tasks.

What a training has reached is in its run directory alone, so a process answers with the error that
ended it, or with nothing.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from pixelpong.engines import has_ray, naming, require_ray
from pixelpong.errors import ConfigError, PixelpongError
from pixelpong.interrupts import stop_on_signals
from pixelpong.loop import train
from pixelpong.machine import count_cores
from pixelpong.run.directory import RunDirectory
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
    engine: str | None = None, address: str | None = None, threads: int | None = None
) -> Iterator[Any]:
    """Where trainings run: on Ray, or one after the other here.

    Args:
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

    with connected_tasks(train_run, threads or 1, address) as tasks:
        yield tasks


class Here:
    """Trains in a new process of this machine, one at a time.

    The process has its own group, so a terminal's Ctrl-C does not reach it: this one passes it on.
    """

    def __init__(self, threads: int) -> None:
        self._threads = str(threads)

    def room(self) -> int:
        """One."""
        return 1

    def begin(self, run: Path) -> subprocess.Popen[str]:
        """Start a training."""
        return subprocess.Popen(
            [sys.executable, "-m", "pixelpong.sweep.jobs", str(run), self._threads],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
        )  # fmt: skip

    def find_error(self, process: subprocess.Popen[str]) -> str | None:
        """What ended the training, "" if that was no error; None while it is under way."""
        code = process.poll()
        if code is None:
            return None
        answer = process.communicate()[0].strip()
        return f"its process died: exit code {code}; too little memory?" if code else answer

    def stop(self, process: subprocess.Popen[str], *, force: bool) -> None:
        """Ask the training to end, or end it."""
        if force:
            process.kill()
            process.communicate()
        else:
            process.terminate()


def train_run(run: Path, threads: int, began: float | None = None) -> str:
    """Train a run to its end, in a process of its own; return the error that ended it, or "".

    It stops and saves if SIGINT or SIGTERM comes, or if the parent process is gone.
    """
    parent = os.getppid()
    try:
        with naming("a training"), stop_on_signals() as asked, threadpool_limits(threads):
            found = RunDirectory(run)
            found.warn_of_other_machine()
            config = found.config.updated({"engine": "threads", "workers": threads}, "sweep")
            train(found.with_config(config), None, lambda: asked() or os.getppid() != parent, began)
    except PixelpongError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    print(train_run(Path(sys.argv[1]), int(sys.argv[2]), time.monotonic() - time.process_time()))
