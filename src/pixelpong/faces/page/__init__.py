"""The page with all runs, served to a browser on this machine; extra ``[web]``.

``pixelpong dashboard``, ``play`` and ``watch`` call `serve`. It reads run directories only.

Covered: address, port, token, browser, beginning and end. What is served: `app`; to whom: `guard`.
"""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import ipaddress
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from pixelpong.errors import ConfigError, expected

if TYPE_CHECKING:
    from pixelpong.faces.page.guard import Door

PORTS_TRIED = 100

MIN_TOKEN = 8
"""Characters of the shortest token."""

MAX_CONNECTIONS = 900
"""At a time; most systems let a process open some 1,000 files."""

SEND_BUFFER = 64 << 10
"""Bytes that the system keeps for a connection that does not read."""

SLOW_SECONDS = 10
"""After which Linux cuts a connection that takes nothing of what waits for it."""


class Address(TypedDict):
    """Where to listen, and who is served.

    Attributes:
        host: address to listen on; another than this machine's own needs a token.
        port: the next free one is taken where it is not free; 0 for any.
        token: secret without which nobody is served; None for none.
    """

    host: str
    port: int
    token: str | None


def serve(
    runs_dir: Path,
    *,
    opens_browser: bool,
    page: str,
    tell: Callable[[str], None],
    should_stop: Callable[[], bool],
    run: Path | None = None,
    checkpoint: str = "best",
    **address: Unpack[Address],
) -> None:
    """Serve the page until told to stop.

    Args:
        runs_dir: folder of runs; it need not be there yet.
        opens_browser: open one, where there is one.
        page: path and fragment to open, ``/``, ``/#play`` or ``/#watch``.
        tell: takes lines for the user.
        should_stop: asked ten times a second.
        run: whose agent plays; None for the package's.
        checkpoint: which of its agents.
        **address: ``host``, ``port`` and ``token``, see `Address`.

    Raises:
        ConfigError: the extra is not installed, or host, port or token cannot be used.
    """
    require_web(draws_charts=page == "/")
    place, port = _listen(**address), address["port"]
    with contextlib.closing(place.socket):
        if place.port != port and port:
            tell(f"port {port} is taken; using {place.port}")
        url = place.url(_fragment(page, run, checkpoint))
        tell(f"pixelpong is at {url}")
        tell("press Ctrl-C to stop")
        if not runs_dir.is_dir() and run is None and page == "/":
            tell(f"there is no {runs_dir} yet; runs are listed as soon as it is there")
        if opens_browser:
            _open_browser(url)
        from pixelpong.faces.page.library import Library
        from pixelpong.faces.page.server import run_server

        library = Library(runs_dir, run)
        run_server(place.socket, place.door, library, MAX_CONNECTIONS, should_stop)


def require_web(*, draws_charts: bool = True) -> None:
    """Refuse to go on if what serves the page is not installed.

    Args:
        draws_charts: whether its charts are to be seen; a game needs none.

    Raises:
        ConfigError: it is not.
    """
    server = ("starlette", "sse_starlette", "uvicorn", "websockets")
    for library in (*server, "plotly") if draws_charts else server:
        if importlib.util.find_spec(library) is None:
            advice = f"pip install 'pixelpong[{'web' if draws_charts else 'play'}]'"
            raise ConfigError(expected(f"{library}, for the page", "none", advice))


@dataclass(frozen=True)
class _Place:
    """Where it listens: the socket, its port, and who is let in."""

    socket: socket.socket
    port: int
    door: Door

    def url(self, page: str) -> str:
        """The address of a page, to be opened in a browser."""
        from urllib.parse import quote

        path, mark, fragment = page.partition("#")
        token = f"?token={quote(self.door.token, safe='')}" if self.door.token else ""
        return f"http://{self.door.hosts[0]}:{self.port}{path}{token}{mark}{fragment}"


def _listen(host: str, port: int, token: str | None) -> _Place:
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
        raise ConfigError(expected("a token, where others can reach the page", "none", advice))
    bound = _bind(family, str(address[0]), port, host)
    return _Place(bound, bound.getsockname()[1], _make_door(host, own, bound, token))


def _make_door(
    host: str,
    own: ipaddress.IPv4Address | ipaddress.IPv6Address,
    bound: socket.socket,
    token: str | None,
) -> Door:
    from pixelpong.faces.page.guard import Door

    names = ["localhost", "127.0.0.1", "[::1]"]
    if own.version == 4:
        names = ["127.0.0.1", "localhost", "[::1]"]
    if own.is_unspecified:
        names.append(socket.gethostname().lower())
    else:
        names = [f"[{own}]" if own.version == 6 else str(own), *names]
        names.append(f"[{host}]" if ":" in host else host.lower())
    hosts = tuple(dict.fromkeys(names))
    return Door(hosts, bound.getsockname()[1], token, is_wide=own.is_unspecified)


def _bind(family: int, address: str, port: int, host: str) -> socket.socket:
    """A socket that listens at the port, or at the next that is free."""
    tried = range(port, min(port + PORTS_TRIED, 65536)) if port else (0,)
    for each in tried:
        # With the protocol named, asyncio sends without delay: 40 ms an answer, else.
        bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            if os.name == "posix":
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
            if hasattr(socket, "TCP_USER_TIMEOUT"):
                milliseconds = int(SLOW_SECONDS * 1000)
                bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
            bound.bind((address, each))
            bound.listen(1024)  # now: of two who could bind, one finds out here
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


def _fragment(page: str, run: Path | None, checkpoint: str) -> str:
    """The page with whose agent plays there."""
    if "#" not in page:
        return page
    from pixelpong.faces.page.library import PACKAGE
    from pixelpong.faces.page.view import id_of

    return f"{page}/{PACKAGE if run is None else id_of(run)}/{checkpoint}"


def _open_browser(url: str) -> None:
    """Have the webbrowser module open `url`, in a process of its own: it may print, or wait."""
    is_headless = sys.platform.startswith("linux") and not any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
    if is_headless:
        return  # what could be opened is a browser of the terminal, over our own words
    command = [sys.executable, "-P", "-m", "webbrowser", url]
    threading.Thread(target=_run_quietly, args=(command,), daemon=True).start()


def _run_quietly(command: list[str]) -> None:
    nothing = subprocess.DEVNULL
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            command,
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
            start_new_session=True,
            timeout=60,
            check=False,
        )
