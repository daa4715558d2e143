"""Messages between two of our own processes over a socket pair, with a deadline on every wait."""

from __future__ import annotations

import pickle
import socket
import struct
import time
from typing import Any

_HEADER = struct.Struct("<Q")


class Channel:
    """One end of a socket pair. Pickle is safe here: both ends are ours, nothing is from disk."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end

    def fileno(self) -> int:
        """For `multiprocessing.connection.wait`."""
        return self._socket.fileno()

    def send(self, message: bytes, timeout: float | None = None) -> None:
        """Send a pickled message whole.

        Raises:
            TimeoutError: the other end did not take it in `timeout` seconds.
            OSError: the other end is gone.
        """
        self._socket.settimeout(timeout)
        self._socket.sendall(_HEADER.pack(len(message)))
        self._socket.sendall(message)

    def receive(self, timeout: float | None = None) -> Any:
        """Wait for one message and return it.

        Raises:
            TimeoutError: it was not whole after `timeout` seconds.
            EOFError: the other end is gone.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        (size,) = _HEADER.unpack(self._receive_exactly(_HEADER.size, deadline))
        return pickle.loads(self._receive_exactly(size, deadline))

    def close(self) -> None:
        """Close this end; the other one reads the end of the stream."""
        self._socket.close()

    def _receive_exactly(self, size: int, deadline: float | None) -> bytearray:
        buffer = bytearray(size)
        view, filled = memoryview(buffer), 0
        while filled < size:
            if deadline is not None:
                self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
            else:
                self._socket.settimeout(None)
            count = self._socket.recv_into(view[filled:])
            if count == 0:
                raise EOFError
            filled += count
        return buffer


def encode(message: Any) -> bytes:
    """A message as bytes; encode once what goes to many."""
    return pickle.dumps(message, protocol=5)
