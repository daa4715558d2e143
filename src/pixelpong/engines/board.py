"""A notice board: the driver writes the params once, and all its workers read them in place.

It is memory without a name, shared through a file descriptor: when the last process that holds
it ends, however it ends, it is gone. Without it, every update would send megabytes to each worker.
"""

from __future__ import annotations

import mmap
import os
import pickle
import tempfile
from multiprocessing import reduction
from typing import Any

_ALIGNMENT = 64  # of a cache line, so that vector instructions find their data as they like it

Notice = tuple[bytes, list[tuple[int, int]]]
"""A pickle without its large buffers, and where on the board each of them begins and ends."""


class Board:
    """Shared memory that grows with what is written to it."""

    def __init__(self, descriptor: int | None = None) -> None:
        """Make a board, or open the one behind a file descriptor of this process."""
        self._descriptor = _make_file() if descriptor is None else descriptor
        self._map: mmap.mmap | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _open, (reduction.DupFd(self._descriptor),)

    def write(self, content: Any) -> Notice:
        """Replace what is written there; everybody who reads has to be done with it.

        Args:
            content: anything picklable; large arrays in it go to the board itself.

        Raises:
            OSError: there is not enough memory.
        """
        buffers: list[pickle.PickleBuffer] = []
        data = pickle.dumps(content, protocol=5, buffer_callback=buffers.append)
        spans, end = [], 0
        views = [buffer.raw() for buffer in buffers]
        for view in views:
            begin = -(-end // _ALIGNMENT) * _ALIGNMENT
            end = begin + view.nbytes
            spans.append((begin, end))
        if end:
            space = self._space(end)
            for (begin, stop), view in zip(spans, views, strict=True):
                space[begin:stop] = view
        return data, spans

    def read(self, notice: Notice) -> Any:
        """What was written; its arrays are the board's own memory, good until the next writing."""
        data, spans = notice
        if not spans:
            return pickle.loads(data)
        space = memoryview(self._space(spans[-1][1]))
        return pickle.loads(data, buffers=[space[begin:end] for begin, end in spans])

    @staticmethod
    def size_of(notice: Notice) -> int:
        """Bytes of what was written."""
        data, spans = notice
        return len(data) + sum(end - begin for begin, end in spans)

    def close(self) -> None:
        """Let go of it; closing twice is harmless."""
        self._map = None  # unmapped once nobody holds an array on it
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _space(self, size: int) -> mmap.mmap:
        if self._map is None or len(self._map) < size:
            if os.fstat(self._descriptor).st_size < size:
                os.ftruncate(self._descriptor, size)
            self._map = mmap.mmap(self._descriptor, os.fstat(self._descriptor).st_size)
        return self._map


def _make_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("pixelpong")
    with tempfile.TemporaryFile() as file:  # removed from its folder as soon as it is made
        return os.dup(file.fileno())


def _open(handle: Any) -> Board:
    return Board(handle.detach())
