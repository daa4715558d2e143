"""Stand-ins for tests: workers that misbehave in every way.

Module-level classes, because worker processes import them by name; so this file imports little.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Sequence
from pathlib import Path

from waiting import wait_until


class EchoWorker:
    """Returns what it was given, and raises at the item "bad"."""

    def play(self, item, params):
        if item == "bad":
            raise ValueError("the item was bad")
        return item, params


class MeetingWorker:
    """Marks each item that it begins by a file in a folder, and waits there for another's.

    An item is (its name, the name of the file to wait for, or none); the folder is the params.
    """

    def play(self, item, params):
        name, wanted = item
        Path(params, name).touch()
        wait_until(lambda: not wanted or Path(params, wanted).exists())
        return name


class OnceWorker:
    """The real worker, but at named items its process dies or hangs.

    It does so once: a file in a folder marks, across processes, that it has happened.
    """

    def __init__(self, number: int, names: Sequence[str], folder: Path, *config: object):
        from pixelpong.play.worker import make_worker

        self._number, self._names, self._folder = number, names, folder
        self._worker = make_worker(*config)

    def play(self, item, params):
        name = f"{item.update}-{item.index}"
        if name in self._names and not (self._folder / name).exists():
            (self._folder / name).touch()
            os.kill(os.getpid(), self._number)
        return self._worker.play(item, params)


class DeadlyWorker:
    """Dies at every item."""

    def play(self, item, params):
        os.kill(os.getpid(), signal.SIGKILL)


def pid_at_work(run: Path) -> int:
    """The process that trains in a run directory; 0 if there is none."""
    with contextlib.suppress(OSError, ValueError):
        pid = int((run / "run.lock").read_text())
        lines = (run / "metrics.jsonl").read_bytes().count(b"\n")
        return pid if lines > 2 and Path(f"/proc/{pid}").exists() else 0
    return 0
