"""Jobs: long pieces of work that know nothing of each other, each in a process of its own.

A job is a picklable function without arguments. Here they run one after the other;
`pixelpong.engines.ray.jobs` runs as many at a time as a cluster has room for. Both yield the same
events.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

from pixelpong.engines import describe_error
from pixelpong.errors import PixelpongError, WorkerError, on_one_line

POLL_SECONDS = 0.1  # between two checks for a requested stop
STOP_SECONDS = 30.0  # that jobs have to end after a requested stop
Jobs = Mapping[str, Callable[[], Any]]  # by name


@dataclass(frozen=True)
class Begun:
    """The job of this name is about to begin."""

    name: str


@dataclass(frozen=True)
class Ended:
    """The job of this name has returned `result`."""

    name: str
    result: Any


@dataclass(frozen=True)
class Failed:
    """The job of this name has raised `error`, or its process died."""

    name: str
    error: PixelpongError


# What happens, in its order; None several times a second while nothing does. After a requested
# stop, no further job begins, and those under way are asked by SIGINT or SIGTERM to end; what they
# still return is yielded.
JobEvents = Generator[Begun | Ended | Failed | None, None, None]


def run_one_by_one(jobs: Jobs, should_stop: Callable[[], bool]) -> JobEvents:
    """Run jobs one after the other, each in a new process."""
    for name, job in jobs.items():
        if should_stop():
            return
        yield Begun(name)
        answer, died = yield from _run_apart(pickle.dumps(job), should_stop)
        if answer is not None:
            yield event_of(name, *pickle.loads(answer))
        elif not should_stop():
            yield lost(name, died)


def event_of(name: str, result: Any, error: PixelpongError | None) -> Ended | Failed:
    """The event of what `perform` has returned."""
    return Ended(name, result) if error is None else Failed(name, error)


def lost(name: str, reason: str) -> Failed:
    """The event of a job whose process died."""
    text = f"the process of {name} died: {reason}. Was there too little memory? Resume the sweep."
    return Failed(name, WorkerError(text))


def perform(job: bytes) -> tuple[Any, PixelpongError | None]:
    """Run a pickled job here: what it returned, or what it raised as one of our errors."""
    try:
        return pickle.loads(job)(), None
    except Exception as error:
        return None, describe_error("a job", error)


def _run_apart(
    job: bytes, should_stop: Callable[[], bool]
) -> Generator[None, None, tuple[bytes | None, str]]:
    """Run a pickled job in a new process: its pickled answer, or why there is none.

    It has its own process group, so a terminal's Ctrl-C does not reach a job while it begins: this
    process passes it on.
    """
    command = [sys.executable, "-c", "from pixelpong.engines.jobs import serve; serve()"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
    ) as process:
        try:
            is_told, words = False, [job]  # may be said only once
            while True:
                timeout = STOP_SECONDS if is_told else POLL_SECONDS
                with contextlib.suppress(subprocess.TimeoutExpired):
                    out, err = process.communicate(words.pop() if words else None, timeout)
                    break
                if is_told:
                    process.kill()
                elif should_stop():
                    is_told = True
                    process.terminate()
                yield None
        finally:  # also if nobody wants to hear the rest
            if process.poll() is None:
                process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.communicate(timeout=STOP_SECONDS)
                process.kill()
    said = err.decode(errors="replace").strip().splitlines()[-1:]
    died = " ".join([f"exit code {process.returncode}", *said])
    return (out if process.returncode == 0 else None), on_one_line(died)


def serve() -> None:
    """In the new process: read a job from stdin, and write what came of it to stdout."""
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)  # what the job prints is no part of its answer
        pickle.dump(perform(sys.stdin.buffer.read()), out)
