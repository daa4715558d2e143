"""The page's address, and the host names it accepts.

Covered: address, port, token. Not covered: who is let in (`guard`).
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import hmac
import ipaddress
import os
import socket
import struct
import sys
from dataclasses import dataclass
from typing import TypedDict
from urllib.parse import quote

from pixelpong.errors import ConfigError, expected

PORTS_TRIED = 100

MIN_TOKEN = 8
"""Characters of the shortest token."""

SEND_BUFFER = 64 << 10
"""Bytes that the system buffers for a connection that does not read."""

SLOW_SECONDS = 10.0
"""Seconds before Linux cuts a connection that accepts none of the waiting data."""


_SIOCGIFADDR = 0x8915
"""Asks Linux for the address of a network interface."""


class Address(TypedDict):
    """Where to listen, and who is served.

    Attributes:
        host: address to listen on; one that other machines can reach needs a token.
        port: the next free one is used if it is taken; 0 for any.
        token: secret that every visitor must know; None for none.
    """

    host: str
    port: int
    token: str | None


@dataclass(frozen=True)
class Door:
    """The names and the port of the server, and the token it requires.

    Attributes:
        hosts: lower-case names and addresses, IPv6 ones in brackets.
        port: that it listens on.
        token: secret that every visitor must know; None if there is none.
        is_wide: whether it listens on all addresses of this machine, so that the address of a
            connection is one of its names too.
    """

    hosts: tuple[str, ...]
    port: int
    token: str | None = None
    is_wide: bool = False

    def url(self, page: str, host: str = "") -> str:
        """The address of a page, for a browser on this machine or, by `host`, on another."""
        path, mark, fragment = page.partition("#")
        token = f"?token={quote(self.token, safe='')}" if self.token else ""
        return f"http://{host or self.hosts[0]}:{self.port}{path}{token}{mark}{fragment}"

    def names(self, server: str) -> set[str]:
        """The Host headers allowed on a connection to the address `server`."""
        hosts = set(self.hosts)
        if self.is_wide:
            hosts.add(f"[{server}]" if ":" in server else server)
        names = {f"{host}:{self.port}" for host in hosts}
        return names | hosts if self.port == 80 else names

    @property
    def cookie(self) -> tuple[str, str]:
        """Name and value of the cookie that a visitor gets for the token: not the token itself."""
        assert self.token is not None
        digest = hmac.new(self.token.encode(), b"pixelpong cookie", hashlib.sha256)
        return f"pixelpong-{self.port}", digest.hexdigest()


def listen(host: str, port: int, token: str | None) -> tuple[socket.socket, Door]:
    """Listen at an `Address`.

    Raises:
        ConfigError: it cannot be used.
    """
    if token is not None and (len(token) < MIN_TOKEN or not token.isprintable()):
        got = f"{len(token)} characters" if token.isprintable() else "others"
        raise ConfigError(
            expected(
                f"a --token of at least {MIN_TOKEN} printable characters", got, "make it longer"
            )
        )
    if not 0 <= port < 65536:
        raise ConfigError(expected("a --port from 0 to 65535", port, "leave it out"))
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise ConfigError(
            expected("a --host of this machine", repr(host), "leave it out")
        ) from error
    family, _, _, _, address = found[0]
    own = ipaddress.ip_address(str(address[0]).partition("%")[0])
    if not own.is_loopback and token is None:
        advice = "give --token TEXT, or leave --host out"
        raise ConfigError(expected("a token if others can reach the page", "none", advice))
    bound = _bind(family, str(address[0]), port, host)
    return bound, Door(_name(host, own), bound.getsockname()[1], token, own.is_unspecified)


def find_own_addresses() -> list[str]:
    """The IPv4 addresses by which other machines may reach this one; nobody is asked."""
    if not sys.platform.startswith("linux"):
        with contextlib.suppress(OSError):
            return [it for it in socket.gethostbyname_ex(socket.gethostname())[2] if _is_wide(it)]
        return []
    import fcntl

    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # one that has no address
                asked = struct.pack("256s", name.encode()[:15])
                answer = fcntl.ioctl(any_socket, _SIOCGIFADDR, asked)
                found.append(socket.inet_ntoa(answer[20:24]))
    return list(filter(_is_wide, found))


def _is_wide(address: str) -> bool:
    return not ipaddress.ip_address(address).is_loopback


def _name(host: str, own: ipaddress.IPv4Address | ipaddress.IPv6Address) -> tuple[str, ...]:
    """The names of a server that listens on `host`; the first is shown."""
    names = ["127.0.0.1", "localhost", "[::1]"]
    if own.is_unspecified:
        names = [*names[own.version == 6 :], *names, socket.gethostname().lower()]
    else:
        names = [f"[{own}]" if own.version == 6 else str(own), *names]
        names.append(f"[{host}]" if ":" in host else host.lower())
    return tuple(dict.fromkeys(names))


def _bind(family: int, address: str, port: int, host: str) -> socket.socket:
    """A socket that listens at the port, or at the next free one."""
    tried = range(port, min(port + PORTS_TRIED, 65536)) if port else (0,)
    for each in tried:
        # With the protocol named, asyncio sends without delay; otherwise an answer takes 40 ms.
        bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            if os.name == "posix":
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
            if hasattr(socket, "TCP_USER_TIMEOUT"):
                milliseconds = int(SLOW_SECONDS * 1000)
                bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
            bound.bind((address, each))
            bound.listen(1024)  # at once: if two processes could bind, one fails here
            return bound
        except OSError as error:
            bound.close()
            if error.errno == errno.EADDRINUSE:
                continue
            got = error.strerror or str(error)
            advice = "choose another --host or --port"
            raise ConfigError(expected(f"to listen on {host}:{each}", got, advice)) from error
    raise ConfigError(
        expected(f"a free port from {port} on", f"{len(tried)} taken ones", "choose another --port")
    )
