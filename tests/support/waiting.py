"""Waiting for what happens, however slow the machine is, but not for ever.

Nothing else in the tests waits without an end: `test_architecture` refuses it.
"""

from __future__ import annotations

import inspect
import os
import textwrap
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from subprocess import Popen
from threading import Thread
from time import monotonic, sleep
from typing import Any

PATIENCE = 120.0  # seconds on a machine whose cores suffice for all that runs there
MOST_SHARED = 4.0  # how many times as long on one whose cores do not


def wait_until(
    condition: Callable[[], Any],
    seconds: float = PATIENCE,
    meanwhile: Callable[[], object] = lambda: sleep(0.01),
) -> Any:
    """Wait until `condition` comes true, and return what it gives; fail with its source in time."""
    left, last = seconds, monotonic()
    while not (found := condition()):
        meanwhile()
        now = monotonic()
        left, last = left - (now - last) / count_shares(), now
        if left < 0:
            raise AssertionError(f"after {seconds:g} s this was still not so:\n{show(condition)}")
    return found


def exit_code(process: Popen[Any], seconds: float = PATIENCE) -> int:
    """The exit code of a process, once it has ended."""
    wait_until(lambda: process.poll() is not None, seconds)
    return process.returncode


def join(*workers: Thread | BaseProcess) -> None:
    """Wait until all these threads and processes have ended."""
    wait_until(lambda: not any(worker.is_alive() for worker in workers))


def pause(seconds: float) -> None:
    """Give what must not happen the time to happen.

    On a slow machine it may not happen in time, and a test that is wrong then passes; never may one
    that is right fail for it.
    """
    sleep(seconds)


def count_shares() -> float:
    """Into how many parts a core is divided now; 1 if there is one for all that runs."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return min(max(load / (os.cpu_count() or 1), 1.0), MOST_SHARED)


def show(condition: Callable[[], Any]) -> str:
    """The source of a condition, and the values that it looks at."""
    if not inspect.isfunction(condition):
        return repr(condition)
    try:
        source = textwrap.dedent(inspect.getsource(condition)).strip()
    except OSError:
        source = repr(condition)
    known = inspect.getclosurevars(condition).nonlocals.items()
    return "\n".join([source, *(f"{name} = {value!r:.300}" for name, value in known)])
