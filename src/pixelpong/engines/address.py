"""The address of a Ray cluster, checked without Ray.

Importing Ray takes seconds. If nothing answers at the address, Ray tries for minutes or for ever.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from pathlib import Path

from pixelpong.errors import MAX_GOT, ConfigError, refusing

LOCAL = "local"  # stands for a Ray cluster that this process starts
CONNECT_SECONDS = 5.0  # time limit for the server to accept the connection and send something
_FRAME_BYTES = 9  # size of an HTTP/2 frame's header
_SETTINGS = 4  # type of the frame that a server sends first (RFC 9113, 3.4)


def find_cluster(given: str | None) -> str:
    """Return the address ``HOST:PORT`` of a cluster that answers, or `LOCAL` to start Ray here.

    The address is `given` or the value of RAY_ADDRESS. ``auto`` means the cluster that this machine
    started or joined last.
    """
    variable = os.environ.get("RAY_ADDRESS") or None
    address, name, advice = given, "--ray-address", "or leave --ray-address out"
    if not given or (given == "auto" and variable):  # as in Ray
        address, name, advice = variable, "RAY_ADDRESS", "or unset RAY_ADDRESS"
    if address in (None, LOCAL):
        return LOCAL
    shown = f"{address}, the value of RAY_ADDRESS" if name == "RAY_ADDRESS" else address
    if address == "auto":
        file = _address_file()
        try:
            address = file.read_text("utf-8").strip()
        except OSError:
            return "auto"  # Ray searches for its processes and fails at once if there are none
        shown = f"{address}, which {file} names"
    host, port = split_address(address, name)
    with refusing(
        f"cannot connect to a Ray cluster at {shown}",
        ConfigError,
        f"start one with 'ray start --head', {advice}",
    ):
        connect(host, port, CONNECT_SECONDS).close()
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def split_address(address: str, name: str) -> tuple[str, int]:
    """Split an address into host and port; an IPv6 address may be in brackets."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigError(f"{name} must be auto or HOST:PORT, not {address[:MAX_GOT]}")
    return host, int(port)


def connect(host: str, port: int, seconds: float) -> socket.socket:
    """Connect to one of Ray's servers; raise an `OSError` if none answers in time."""
    deadline, header = time.monotonic() + seconds, b""
    connection = socket.create_connection((host, port), seconds)
    with contextlib.ExitStack() as on_error:
        on_error.push(connection)
        while len(header) < _FRAME_BYTES and not _uses_tls():
            connection.settimeout(max(deadline - time.monotonic(), 0.001))
            part = connection.recv(_FRAME_BYTES - len(header))
            if not part:
                raise ConnectionResetError("the connection was closed")
            header += part
        if header and header[3] != _SETTINGS:
            raise OSError("another program answers there, not Ray")
        connection.setblocking(False)
        on_error.pop_all()
    return connection


def is_closed(connection: socket.socket) -> bool:
    """Whether the process at the other end of a connection has closed it or died."""
    try:
        while connection.recv(4096):
            pass  # pings and the like
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def _uses_tls() -> bool:
    """Whether Ray uses TLS, in which the client speaks first."""
    return os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true")


def _address_file() -> Path:
    """Return the file to which ``ray start`` writes the address of the cluster (Ray 2.60)."""
    parent = os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp"
    return Path(parent, "ray", "ray_current_cluster")
