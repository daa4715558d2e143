"""Messages between two of our own processes over a socket pair, with a deadline on every wait."""

from __future__ import annotations

import math
import pickle
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from pixelpong.engines import never
from pixelpong.errors import Interrupted

_HEADER = struct.Struct("<Q")

POLL_SECONDS = 0.1
"""How often somebody who waits looks whether a stop was asked for."""


class Channel:
    """One end of a socket pair. Pickle is safe here: both ends are ours, nothing is from disk."""

    def __init__(self, end: socket.socket, should_stop: Callable[[], bool] = never) -> None:
        """Use `end`; while waiting, `should_stop` is asked several times a second."""
        self._socket = end
        self._should_stop = should_stop

    def fileno(self) -> int:
        """For `multiprocessing.connection.wait`."""
        return self._socket.fileno()

    def send(self, message: bytes, timeout: float = math.inf) -> int:
        """Send a pickled message whole; return its size.

        Raises:
            TimeoutError: the other end did not take it in `timeout` seconds.
            OSError: the other end is gone.
            Interrupted: a stop was asked for.
        """
        deadline = time.monotonic() + timeout
        # In one piece: a header of its own would wake the reader twice.
        view = memoryview(_HEADER.pack(len(message)) + message)
        while view:
            view = view[self._retry(self._socket.send, view, deadline) :]
        return len(message)

    def receive(self, timeout: float = math.inf) -> Any:
        """Wait for one message and return it; see `receive_sized`."""
        return self.receive_sized(timeout)[0]

    def receive_sized(self, timeout: float = math.inf) -> tuple[Any, int]:
        """Wait for one message and return it with its size in bytes.

        Raises:
            TimeoutError: it was not whole after `timeout` seconds.
            EOFError: the other end is gone.
            Interrupted: a stop was asked for.
        """
        deadline = time.monotonic() + timeout
        (size,) = _HEADER.unpack(self._receive_exactly(_HEADER.size, deadline))
        return pickle.loads(self._receive_exactly(size, deadline)), size

    def close(self) -> None:
        """Close this end; the other one reads the end of the stream."""
        self._socket.close()

    def _receive_exactly(self, size: int, deadline: float) -> bytearray:
        buffer = bytearray(size)
        view = memoryview(buffer)
        while view:
            count = self._retry(self._socket.recv_into, view, deadline)
            if count == 0:
                raise EOFError
            view = view[count:]
        return buffer

    def _retry(self, call: Callable[[memoryview], int], view: memoryview, deadline: float) -> int:
        """Make a call that may have to wait, in slices of `POLL_SECONDS`."""
        self._socket.settimeout(POLL_SECONDS)
        while True:
            try:
                return call(view)
            except TimeoutError:
                if time.monotonic() > deadline:
                    raise
                if self._should_stop():
                    raise Interrupted from None


def encode(message: Any) -> bytes:
    """A message as bytes; encode once what goes to many."""
    return pickle.dumps(message, protocol=5)
