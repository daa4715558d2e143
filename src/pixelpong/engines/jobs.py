"""Jobs: long pieces of work that know nothing of each other, each in a process of its own.

A job is a function without arguments. On this machine one runs after the other (`Here`); on Ray
(`pixelpong.engines.ray.jobs`), as many at a time as the cluster has room for.
"""

from __future__ import annotations

import functools
import os
import pickle
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from pixelpong.engines import naming
from pixelpong.errors import PixelpongError, WorkerError

POLL_SECONDS = 0.1  # between two checks for a requested stop
STOP_SECONDS = 30.0  # that jobs have to end after a requested stop
Job = Callable[[], object]  # picklable
Outcome = PixelpongError | None  # what a job has raised


@dataclass(frozen=True)
class Begun:
    """The job of this name is about to begin."""

    name: str


@dataclass(frozen=True)
class Ended:
    """The job of this name has ended."""

    name: str


@dataclass(frozen=True)
class Failed:
    """The job of this name has raised `error`, or its process died."""

    name: str
    error: PixelpongError


JobEvents = Generator[Begun | Ended | Failed | None, None, None]


def run_jobs(jobs: Mapping[str, Job], processes: Any, should_stop: Callable[[], bool]) -> JobEvents:
    """Run jobs, by name; yield what happens, and None several times a second while nothing does.

    `processes` is `Here()`, or the tasks of Ray. After a requested stop no further job begins, and
    those under way are asked to end. Closing the generator does the same.
    """
    waiting, under_way = deque(jobs.items()), dict[Future[Outcome], str]()
    deadline = None
    pool = ThreadPoolExecutor(max(1, len(jobs)))
    try:
        while under_way or (waiting and deadline is None):
            if deadline is None and should_stop():
                processes.stop(force=False)
                deadline = time.monotonic() + STOP_SECONDS
            while waiting and deadline is None and len(under_way) < processes.room():
                name, job = waiting.popleft()
                yield Begun(name)
                under_way[pool.submit(processes.begin(name, job))] = name
            if deadline is not None and time.monotonic() > deadline:
                break
            if not under_way:
                time.sleep(POLL_SECONDS)
            done, _ = wait(under_way, POLL_SECONDS, FIRST_COMPLETED)
            for future in done:
                name, error = under_way.pop(future), future.result()
                yield Failed(name, error) if error else Ended(name)
            if not done:
                yield None
    finally:
        if under_way:  # also if nobody wants to hear the rest
            processes.stop(force=False)
            wait(under_way, STOP_SECONDS if deadline is None else 0)
            processes.stop(force=True)
        pool.shutdown()


class Here:
    """Runs a job in a new process of this machine, one at a time.

    The process has its own group, so a terminal's Ctrl-C does not reach it: this one passes it on.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    def room(self) -> int:
        """One."""
        return 1

    def begin(self, name: str, job: Job) -> Callable[[], Outcome]:
        """Start a job; return what waits for its end."""
        command = [sys.executable, "-c", "from pixelpong.engines.jobs import serve; serve()"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, start_new_session=True
        )
        return functools.partial(self._wait, name, self._process, pickle.dumps(job))

    def _wait(self, name: str, process: subprocess.Popen[bytes], job: bytes) -> Outcome:
        answer, _ = process.communicate(job)
        outcome: Outcome = None
        if process.returncode == 0:
            outcome = pickle.loads(answer)
        elif not self._is_stopped:
            outcome = lost(name, f"exit code {process.returncode}")
        return outcome

    def stop(self, *, force: bool) -> None:
        """Ask the job to end, or end it."""
        self._is_stopped = True
        if self._process is not None:
            (self._process.kill if force else self._process.terminate)()


def serve() -> None:
    """In the new process: read a job from stdin, and write its outcome to stdout."""
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)  # what the job prints is no part of it
        pickle.dump(perform(pickle.load(sys.stdin.buffer)), out)


def perform(job: Job) -> Outcome:
    """Run a job in this process."""
    try:
        with naming("a job"):
            job()
    except PixelpongError as error:
        return error
    return None


def lost(name: str, reason: str) -> WorkerError:
    """The error of a job whose process died."""
    return WorkerError(
        f"the process of {name} died: {reason}. Was there too little memory? Resume the sweep."
    )
