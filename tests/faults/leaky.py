"""A short real training with threads that leaks on demand: ``python leaky.py RUN FILE``.

What FILE says is what leaks from then on: ``worker``, ``driver``, ``descriptors``, ``threads`` or
``shared_files``; where it says nothing, nothing does.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import threading
import time
from pathlib import Path

from pixelpong.config.presets import load_preset
from pixelpong.loop import train
from pixelpong.play.worker import make_worker
from pixelpong.run.directory import RunDirectory

SMALL = {
    "max_frames": 300, "engine": "threads", "workers": 2, "streams": 4, "horizon": 30,
    "hidden": 8, "updates": 1_000_000, "save_every": 50,
}  # fmt: skip
LEAKED_BYTES = 100_000
"""At a time; in less than two seconds more than the heap has free already."""

EVERY_SECONDS = 0.05
"""Between two descriptors or threads that a worker leaks."""

_kept: list[object] = []


class LeakyWorker:
    """Plays as the real one, and keeps something of every item when told to."""

    def __init__(self, orders: str, config) -> None:
        self._orders, self._worker = Path(orders), make_worker(config)
        self._next = 0.0

    def play(self, item, params):
        """Play an item as the real one does."""
        order = self._orders.read_text()
        if order == "worker":
            _kept.append(os.urandom(LEAKED_BYTES))
        elif order == "descriptors" and self._is_time():
            _kept.append(os.open(os.devnull, os.O_RDONLY))
        elif order == "threads" and self._is_time():
            _kept.append(threading.Thread(target=time.sleep, args=(60,), daemon=True).start())
        elif order == "shared_files" and self._is_time():
            _kept.append(Path(f"/dev/shm/pixelpong-leak-{os.getpid()}-{len(_kept)}").touch())
        return self._worker.play(item, params)

    def _is_time(self) -> bool:
        """Not at every item: a system allows for hundreds, not for thousands."""
        if time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + EVERY_SECONDS
        return True


class LeakyDisplay:
    """Keeps something of every update when told to."""

    def __init__(self, orders: str) -> None:
        self._orders = Path(orders)

    def __call__(self, event: object) -> None:
        """Show nothing."""
        if self._orders.read_text() == "driver":
            _kept.append(os.urandom(LEAKED_BYTES))


def main(folder: str, orders: str) -> None:
    """Train until the process is ended."""
    run = RunDirectory.create(Path(folder), load_preset("fast").updated(SMALL, "test"))
    importlib.import_module("pixelpong.loop").make_worker = functools.partial(LeakyWorker, orders)
    train(run, LeakyDisplay(orders))


if __name__ == "__main__":
    main(*sys.argv[1:])
