"""Accidents at an exact place of a training, however slow the machine is.

Here, or in a process of its own: ``python accidents.py ACCIDENT MODULE:NAME WHEN WORDS…`` is
``pixelpong WORDS…`` with an accident that is `planted`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import os
import runpy
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

from processes import processes_with


@contextlib.contextmanager
def planted(place: str, when: int | str, accident: Callable[..., object]) -> Iterator[None]:
    """While inside, an accident happens just before a call of ``module:name``.

    Before its n-th call, or before each with this text in its arguments. To raise an error, it is a
    `Mock` with that side effect.
    """
    module, _, name = place.partition(":")
    *owners, name = name.split(".")
    owner = functools.reduce(getattr, owners, importlib.import_module(module))
    real, calls = getattr(owner, name), itertools.count(1)

    def call(*args, **kwargs):
        number = next(calls)
        if number == when or (isinstance(when, str) and when in str(args)):
            accident()
        return real(*args, **kwargs)

    with patch.object(owner, name, call):
        yield


def press_ctrl_c(times: int = 1) -> None:
    """Interrupt all processes of the terminal."""
    for _ in range(times):
        os.killpg(0, signal.SIGINT)


HELD: list[bytes] = []


def run_out_of_memory() -> None:
    """From now on, the system has no more memory for this process."""
    import resource  # Windows has none

    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (in_use, resource.RLIM_INFINITY))
    with contextlib.suppress(MemoryError):  # what is free within the process, in large pieces
        while True:
            HELD.append(bytes(1 << 18))


def kill_ray() -> None:
    """Kill the daemon of the Ray that this process has started."""
    ours = processes_with(f"pixelpong.ray-{os.getpid()}-")
    (raylet,) = ours & processes_with("raylet/raylet\0")
    os.kill(raylet, signal.SIGKILL)


ACCIDENTS = {
    "none": lambda: None,
    "SIGKILL": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "SIGSTOP": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "SIGTERM": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "SIGINT": press_ctrl_c,
    "SIGINT twice": lambda: press_ctrl_c(times=2),
    "memory": run_out_of_memory,
    "raylet": kill_ray,
}

if __name__ == "__main__":
    _, what, where, when, *sys.argv[1:] = sys.argv
    with planted(where, int(when) if when.isdecimal() else when, ACCIDENTS[what]):
        runpy.run_module("pixelpong", run_name="__main__", alter_sys=True)
