"""Stand-ins for tests: workers that misbehave in every way, and a recorder of calls.

Module-level classes, because worker processes import them by name.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np  # imported here, as a real worker does: before the engine limits the threads
from threadpoolctl import threadpool_info


class EchoWorker:
    """Returns what it was given, slowly where the item says so: an item is (number, seconds)."""

    def play(self, item, params):
        number, seconds = item
        time.sleep(seconds)
        return number, params, (os.getpid(), threading.get_ident())


class MeetingWorker:
    """Marks each item that it begins by a file in a folder, and waits there for another's.

    An item is (its name, the name of the file to wait for, or none); the folder is the params.
    """

    def play(self, item, params):
        name, wanted = item
        Path(params, name).touch()
        while wanted and not Path(params, wanted).exists():
            time.sleep(0.01)
        return name


class RaisingWorker:
    """Raises at the item "bad"."""

    def play(self, item, params):
        if item == "bad":
            raise ValueError("the item was bad")
        return item


class UnstartableWorker:
    """Dies while it is being made."""

    def __init__(self):
        os._exit(3)


class UnmakeableWorker:
    """Raises while it is being made."""

    def __init__(self):
        raise ValueError("no wood")


class OnceWorker:
    """Misbehaves the first time it is asked for an item that names a file, then behaves.

    The file marks, across processes, that it has happened.
    """

    def __init__(self, how: str):
        self._how = how

    def play(self, item, params):
        number, mark = item
        if mark and self._is_first_time(Path(mark)):
            signal_number = {"die": signal.SIGKILL, "hang": signal.SIGSTOP}[self._how]
            os.kill(os.getpid(), signal_number)
        return number

    @staticmethod
    def _is_first_time(mark: Path) -> bool:
        try:
            mark.touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


class DeadlyWorker:
    """Dies at every item."""

    def play(self, item, params):
        os.kill(os.getpid(), signal.SIGKILL)


class ThreadCountWorker:
    """Tells how many threads each BLAS library in its process uses, and the signals it blocks."""

    def play(self, item, params):
        np.ones((2, 2)) @ np.ones((2, 2))
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, set())
        return [each["num_threads"] for each in threadpool_info()], signal.SIGINT in blocked


class HoleWorker:
    """Leaves holes of 32 MB in the heap."""

    def play(self, item, params):
        large = np.ones(1 << 20)
        del large  # from now on, glibc takes arrays of up to this size from its heap
        *_, self.kept = [np.ones(1 << 17) for _ in range(32)]


class Tape:
    """Writes down the order of calls to the parts of a training."""

    def __init__(self):
        self.calls: list[str] = []

    def wrap(self, owner, name: str, label: str, monkeypatch):
        """Record every call of ``owner.name`` as `label`, and make it."""
        original = getattr(owner, name)

        def recorded(*args, **kwargs):
            self.calls.append(label)
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, recorded)


def pid_at_work(run: Path) -> int:
    """The process that trains in a run directory; 0 if there is none."""
    with contextlib.suppress(OSError, ValueError):
        pid = int((run / "run.lock").read_text())
        lines = (run / "metrics.jsonl").read_bytes().count(b"\n")
        return pid if lines > 2 and Path(f"/proc/{pid}").exists() else 0
    return 0
