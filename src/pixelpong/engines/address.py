"""The address of a Ray cluster, tried without Ray.

Importing Ray takes seconds, and where no Ray answers it tries for minutes, or for ever.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from pathlib import Path

from pixelpong.errors import ConfigError, expected, refusing

LOCAL = "local"  # the address of a Ray of our own
CONNECT_SECONDS = 5.0  # to accept the connection and to send something
_FRAME_BYTES = 9  # the head of an HTTP/2 frame
_SETTINGS = 4  # the type of frame that a server sends first (RFC 9113, 3.4)


def find_cluster(given: str | None) -> str:
    """The cluster to use, ``HOST:PORT``, once it has answered; `LOCAL` for a Ray of our own.

    The address is `given`, or that of the variable RAY_ADDRESS. ``auto`` stands for the cluster
    that was last started or joined on this machine.
    """
    variable = os.environ.get("RAY_ADDRESS") or None
    address, name, advice = given, "--ray-address", "or leave --ray-address out"
    if not given or (given == "auto" and variable):  # as Ray does it
        address, name, advice = variable, "RAY_ADDRESS", "or unset RAY_ADDRESS"
    if address in (None, LOCAL):
        return LOCAL
    shown = f"{address}, the value of RAY_ADDRESS" if name == "RAY_ADDRESS" else address
    if address == "auto":
        file = _address_file()
        try:
            address = file.read_text("utf-8").strip()
        except OSError:
            return "auto"  # Ray looks for its processes, and reports at once if there are none
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
    """The host and the port of an address; an IPv6 address may stand in brackets."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigError(expected(f"{name} to be auto or HOST:PORT", address, "see --help"))
    return host, int(port)


def connect(host: str, port: int, seconds: float) -> socket.socket:
    """Connect to a server of Ray's; an `OSError` if none answers in time."""
    deadline, start = time.monotonic() + seconds, b""
    end = socket.create_connection((host, port), seconds)
    with contextlib.ExitStack() as on_error:
        on_error.push(end)
        while len(start) < _FRAME_BYTES and not _uses_tls():
            end.settimeout(max(deadline - time.monotonic(), 0.001))
            part = end.recv(_FRAME_BYTES - len(start))
            if not part:
                raise ConnectionResetError("the connection was closed")
            start += part
        if start and start[3] != _SETTINGS:
            raise OSError("another program answers there, not Ray")
        end.setblocking(False)
        on_error.pop_all()
    return end


def is_closed(end: socket.socket) -> bool:
    """Whether the process at the other end of a connection has closed it, or has died."""
    try:
        while end.recv(4096):
            pass  # pings and the like
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def _uses_tls() -> bool:
    """Whether the client speaks first, as Ray reads it."""
    return os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true")


def _address_file() -> Path:
    """Where ``ray start`` writes the address of the cluster (Ray 2.60)."""
    above = os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp"
    return Path(above, "ray", "ray_current_cluster")
