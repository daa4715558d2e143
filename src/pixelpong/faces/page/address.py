"""The page's address, port and token, and the host names it accepts."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
from dataclasses import dataclass

from pixelpong.errors import ConfigError, expected

PORTS_TRIED = 100


@dataclass(frozen=True)
class Door:
    """The names and the port of the server, and the token it requires."""

    hosts: tuple[str, ...]  # in lower case; the first is shown
    port: int
    token: str | None = None  # a secret; None if only this machine can reach the server
    is_wide: bool = False  # listens on every address of this machine; each is a name too

    def url(self, page: str, host: str = "") -> str:
        """The address of a page, for a browser on this machine or, by `host`, on another."""
        path, mark, fragment = page.partition("#")
        token = f"?token={self.token}" if self.token else ""
        return f"http://{host or self.hosts[0]}:{self.port}{path}{token}{mark}{fragment}"

    def names(self, server: str) -> set[str]:
        """The Host headers allowed on a connection to the address `server`."""
        hosts = {*self.hosts, server} if self.is_wide else set(self.hosts)
        names = {f"{host}:{self.port}" for host in hosts}
        return names | hosts if self.port == 80 else names


def listen(host: str, port: int) -> tuple[socket.socket, Door]:
    """Listen on an IPv4 address, at `port` or the next free one; 0 is any."""
    if not 0 <= port < 65536:
        raise ConfigError(expected("a --port from 0 to 65535", port, "leave it out"))
    try:
        found = socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ConfigError(
            expected("a --host of this machine", repr(host), "leave it out")
        ) from error
    own = ipaddress.ip_address(found[0][4][0])
    bound = _bind(str(own), port)
    names = ["127.0.0.1", "localhost"]
    if own.is_unspecified:
        names.append(socket.gethostname().lower())
    elif not own.is_loopback:
        names = [host.lower(), str(own)]
    token = None if own.is_loopback else os.urandom(16).hex()
    return bound, Door(
        tuple(dict.fromkeys(names)), bound.getsockname()[1], token, own.is_unspecified
    )


def _bind(address: str, port: int) -> socket.socket:
    """A socket that listens at the port, or at the next free one."""
    for each in range(port, min(port + PORTS_TRIED, 65536)) if port else (0,):
        # With the protocol named, asyncio sends without delay; otherwise an answer takes 40 ms.
        bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((address, each))
            bound.listen()  # at once: if two processes could bind, one fails here
            return bound
        except OSError as error:
            bound.close()
            if error.errno == errno.EADDRINUSE:
                continue
            got = error.strerror or str(error)
            advice = "choose another --host or --port"
            raise ConfigError(expected(f"to listen on {address}:{each}", got, advice)) from error
    last = port + PORTS_TRIED - 1
    raise ConfigError(f"The ports from {port} to {last} are all taken; give another --port.")
