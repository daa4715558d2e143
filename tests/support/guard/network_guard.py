"""Keeps a Python process from reaching beyond this machine, and tells on it.

Every connection to an address that is not loopback and every look-up of a name that is not local
raises, before anything is sent, and is written down: what swallows the exception fails its test
all the same. `sitecustomize` beside this file does it in every process that a test starts. One
that a test gives a PYTHONPATH without this folder is refused.

Covered: Python's own sockets. Not covered: what native code opens by itself; `test_network`
looks at that from outside.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import Any

LOG = "PIXELPONG_NETWORK_LOG"  # environment variable: the file in which each attempt gets a line

_CONNECTIONS = {"socket.connect": 1, "socket.sendto": 1, "socket.sendmsg": 1}
"""Events about an address, and the place of the address in them."""

_LOOKUPS = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")

_is_installed = False


class NetworkUseError(RuntimeError):
    """Something reached, or asked, beyond this machine."""


def install() -> None:
    """Watch this process from now on; there is no way back."""
    global _is_installed
    if not _is_installed:
        _is_installed = True
        sys.addaudithook(_watch)


def _watch(event: str, args: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen" and not _is_guarded(args[3]):
        _tell("a process without the guard")
        raise NetworkUseError("expected the guard's folder on PYTHONPATH; keep what is there")
    where = None
    if event in _CONNECTIONS:
        address = args[_CONNECTIONS[event]]
        # Else it is a path, or None where it is connected already.
        where = address[0] if isinstance(address, tuple) else None
    elif event in _LOOKUPS:
        is_asked = event != "socket.getaddrinfo" or not _is_number(args[0])
        where = args[0] if is_asked else None  # an address is not looked up
    elif event == "socket.getnameinfo":
        where = args[0][0]
    if where is not None and not is_local(where):
        _tell(f"{event} {where!r}")
        raise NetworkUseError(f"expected nothing to leave this machine, got {event} {where!r}")


def _is_guarded(environment: Any) -> bool:
    """Whether a process that starts finds this guard; one without `LOG` is let go on purpose."""
    if environment is None or LOG not in environment:
        return True
    return str(Path(__file__).parent) in environment.get("PYTHONPATH", "").split(os.pathsep)


def is_local(host: str | bytes) -> bool:
    """Whether a name or an address is this machine's own, without asking anybody.

    >>> [is_local(each) for each in ("127.8.0.1", "::1", "", "localhost")]
    [True, True, True, True]
    >>> [is_local(each) for each in ("8.8.8.8", "::ffff:8.8.8.8", "localhost.example", "::2")]
    [False, False, False, False]
    """
    import ipaddress
    import socket

    name = host.decode("ascii", "replace") if isinstance(host, bytes | bytearray) else str(host)
    if name.lower() in ("", "localhost", "ip6-localhost", socket.gethostname().lower()):
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


def _is_number(host: Any) -> bool:
    import ipaddress

    try:
        ipaddress.ip_address(host.decode() if isinstance(host, bytes) else host)
    except ValueError:
        return False
    return True


def _tell(what: str) -> None:
    path = os.environ.get(LOG)
    if not path:
        return
    frames = [f"{each.filename}:{each.lineno}" for each in traceback.extract_stack()[-6:-2]]
    test = os.environ.get("PYTEST_CURRENT_TEST", "no test")
    line = f"{what} in process {os.getpid()}, {' < '.join(reversed(frames))} ({test})\n"
    with open(path, "a") as file:
        file.write(line)
