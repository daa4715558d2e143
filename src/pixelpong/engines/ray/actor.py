"""What runs in Ray's processes: the workers of an actor, or the one of a task."""

from __future__ import annotations

import functools
import os
import pickle
import socket
from collections.abc import Sequence
from typing import Any

from threadpoolctl import threadpool_limits

from pixelpong.engines.ray.connection import require_versions
from pixelpong.engines.threads import ThreadEngine
from pixelpong.machine import describe_machine

LARGE = 2**16  # bytes of an array from which on it is not copied into a pickle


class Actor:
    """Plays chunks of items in threads of its process."""

    def __init__(self, recipe: bytes, size: int) -> None:
        """`recipe` is pickled: the driver's versions, and the pickled maker of a worker."""
        self._recipe, self._size = recipe, size

    @functools.cached_property
    def _engine(self) -> ThreadEngine:
        versions, recipe = pickle.loads(self._recipe)
        require_versions(versions)
        make_worker = pickle.loads(recipe)
        # BLAS threads that fight over cores are the classic way to become slower in parallel;
        # environment variables come too late once NumPy is imported.
        threadpool_limits(limits=1)
        return ThreadEngine(make_worker, self._size)

    def begin(self) -> tuple[int, str, str]:
        """An actor's first call: refuse other versions; return process id, host and processor."""
        assert self._engine
        return os.getpid(), socket.gethostname(), describe_machine()["processor"]

    def play(self, params: Any, items: bytes) -> list[pickle.PickleBuffer]:
        """Play pickled items; return their packed results.

        Driver and actor pickle these themselves, which is faster than Ray's way.
        """
        return pack(list(self._engine.run(pickle.loads(items), params)))


def pack(results: Any) -> list[pickle.PickleBuffer]:
    """Pickle results: a pickle, and its large arrays. Ray copies a buffer only once."""
    large: list[pickle.PickleBuffer] = []

    def keep_in(array: pickle.PickleBuffer) -> bool:
        is_large = array.raw().nbytes >= LARGE
        large.extend([array] * is_large)
        return not is_large

    content = pickle.dumps(results, protocol=5, buffer_callback=keep_in)
    return [pickle.PickleBuffer(content), *large]


def unpack(answer: Sequence[Any]) -> Any:
    """Undo `pack`; large arrays stay where Ray has them, and cannot be written to."""
    return pickle.loads(answer[0], buffers=answer[1:])


# Of a process that runs tasks: its actor of one thread, whose worker is made only once.
_own_actor = functools.lru_cache(maxsize=1)(functools.partial(Actor, size=1))


def call_in_task(recipe: bytes, method: str, *args: Any) -> Any:
    """Call a method of this process's own `Actor`."""
    return getattr(_own_actor(recipe), method)(*args)
