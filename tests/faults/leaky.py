"""A short real training with threads that leaks on demand: ``python leaky.py RUN FILE``.

What FILE says is what leaks from then on: ``worker``, ``driver``, ``descriptors`` or ``threads``;
as long as it is empty, nothing does.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import threading
import time
from pathlib import Path

from toys import toy_config

from pixelpong.loop import train
from pixelpong.play.worker import make_worker
from pixelpong.run.directory import RunDirectory

SMALL = {"engine": "threads", "workers": 2, "updates": 1_000_000, "save_every": 50}
LEAKED_BYTES = 100_000
"""At a time; in less than two seconds more than the heap has free already."""

EVERY_SECONDS = 0.05
"""Between two descriptors or threads: a system allows for hundreds, not for thousands."""

_kept: list[object] = []


class LeakyWorker:
    """Plays as the real one, and keeps something of every item when told to."""

    def __init__(self, orders: Path, config) -> None:
        self._orders, self._worker = orders, make_worker(config)
        self._next = 0.0

    def play(self, item, params):
        """Play an item as the real one does."""
        order = self._orders.read_text()
        if order == "worker":
            _kept.append(os.urandom(LEAKED_BYTES))
        elif order in ("descriptors", "threads") and time.monotonic() > self._next:
            self._next = time.monotonic() + EVERY_SECONDS
            if order == "descriptors":
                _kept.append(os.open(os.devnull, os.O_RDONLY))
            else:
                threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        return self._worker.play(item, params)


def main(folder: str, orders: str) -> None:
    """Train until the process is ended."""
    told = Path(orders)

    def display(event: object) -> None:
        if told.read_text() == "driver":
            _kept.append(os.urandom(LEAKED_BYTES))

    run = RunDirectory.create(Path(folder), toy_config("fast", **SMALL))
    importlib.import_module("pixelpong.loop").make_worker = functools.partial(LeakyWorker, told)
    train(run, display)


if __name__ == "__main__":
    main(*sys.argv[1:])
