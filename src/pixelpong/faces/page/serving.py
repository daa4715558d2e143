"""Serves the page in threads of this process: for a command until it is stopped, for a notebook.

uvicorn runs `pixelpong.faces.page.server`.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import html
import ipaddress
import os
import socket
import subprocess
import sys
import threading
import urllib.parse
from collections.abc import Callable
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from pixelpong.errors import ConfigError, refusing
from pixelpong.faces.interrupts import is_command
from pixelpong.faces.page import View
from pixelpong.faces.page.connections import Connections, make_exception_handler
from pixelpong.faces.page.game import MAX_MESSAGE
from pixelpong.faces.page.joining import draw_in_text, make_token
from pixelpong.faces.page.library import Library
from pixelpong.faces.page.server import Guard, make_app
from pixelpong.faces.page.threads import start

POLL_SECONDS = 0.1  # time between checks for a stop
END_SECONDS = 5.0  # time limit for the shutdown; later work is left behind
INTERFACE_ADDRESS = 0x8915  # Linux's SIOCGIFADDR


class ServedPage:
    """The page, served by threads of this process until `close` or the end of the process.

    A notebook shows it as a link. It is a context manager, too.
    """

    def __init__(
        self,
        runs_dir: Path,  # need not exist yet
        host: str,  # if other machines can reach this address, requests need a token
        port: int,  # if it is taken, any free port is used; 0 means any port
        view: View | None = None,  # by default the list of runs
        *,
        tell: Callable[[str], None],
    ) -> None:
        """Start to serve, and tell the addresses."""
        self._library = library = Library(runs_dir, view.path if view else None)
        app = make_app(library)
        listening, guard = listen(host, port, app)
        app.state.address = guard.url(host=guard.hosts[-1]) if guard.token else ""
        if port not in (0, guard.port):
            tell(f"port {port} is taken; using {guard.port}")
        page = _fragment(view, library) if view else ""
        self.url = guard.url(page)  #: the address for a browser on this machine
        tell(f"pixelpong is at {self.url}")
        if len(guard.hosts) > 1:
            tell(f"from another machine: {guard.url(page, guard.hosts[1])}")
        if app.state.address and sys.stderr.isatty() and "utf" in sys.stderr.encoding.lower():
            tell(draw_in_text(guard.url(page, guard.hosts[-1])))
        if not (runs_dir.is_dir() or view):
            tell(f"{runs_dir} does not exist yet; runs will be listed as soon as it does")
        self._server = server = _make_server(guard)

        async def run() -> None:
            asyncio.get_running_loop().set_exception_handler(make_exception_handler(tell))
            with listening:
                await server.serve([listening])

        # The server does not run in the main thread, where uvicorn would handle signals.
        self._serving = start(lambda: asyncio.run(run()))

    def open(self) -> None:
        """Open the page in a browser, if this machine has one."""
        _open_browser(self.url)

    def prepare(self) -> None:
        """Begin to load what the first game needs, so that it comes sooner."""
        self._library.prepare()

    @property
    def is_over(self) -> bool:
        """Whether the page is no longer served."""
        return self._serving.done()

    def wait(self, seconds: float) -> None:
        """Wait until the page is no longer served, at most so long."""
        wait([self._serving], seconds)

    def close(self) -> None:
        """Stop serving within a few seconds; a read that hangs is left behind in a daemon thread.

        A page that is closed already stays so.
        """
        self._server.should_exit = True
        _, late = wait([self._serving, start(self._library.close)], END_SECONDS)
        if self._serving not in late:
            self._serving.result()

    def __enter__(self) -> ServedPage:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"the page was at {self.url}" if self.is_over else f"the page is at {self.url}"

    def _repr_html_(self) -> str:
        """Return a link for a notebook."""
        if self.is_over:
            return f"<p>{html.escape(repr(self))}</p>"
        url = html.escape(self.url)
        return f'<p><a href="{url}" target="_blank">{url}</a> until <code>close()</code></p>'


def serve(
    page: ServedPage, *, tell: Callable[[str], None], should_stop: Callable[[], bool]
) -> None:
    """Serve the page until `should_stop`, called ten times a second, returns True; then close it.

    If the process of a command does not end some seconds later, it kills itself.
    """
    tell("press Ctrl-C to stop")
    while not page.is_over and not should_stop():
        page.wait(POLL_SECONDS)
    if is_command():
        _exit_if_stuck(tell)
    page.close()


def _fragment(view: View, library: Library) -> str:
    """Return the end of the page's address, which opens a view."""
    fragment = f"#{view.name}/{urllib.parse.quote(library.id_of(view.path))}/{view.agent}"
    return f"{fragment}?{view.game}" if view.game else fragment


def _make_server(guard: Guard) -> uvicorn.Server:
    connections = Connections(guard)
    config = uvicorn.Config(
        connections,
        http=connections.make_protocol(),
        ws="websockets-sansio",
        ws_per_message_deflate=False,  # frames of the game are already compact
        ws_max_size=MAX_MESSAGE,
        lifespan="off",
        log_config=None,
        log_level="critical",
        server_header=False,
        proxy_headers=False,  # anybody can send such headers
        backlog=64,  # asyncio accepts up to this many at once, even without free descriptors
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)


def _exit_if_stuck(tell: Callable[[str], None]) -> None:
    """Kill this process if it still exists some seconds after it should have ended.

    Python waits for the threads of libraries, and such a thread may hang in a read.
    """

    def end() -> None:
        tell("something hangs, probably a read from a disk; exiting without waiting for it")
        os._exit(1)

    timer = threading.Timer(2 * END_SECONDS, end)
    timer.daemon = True
    timer.start()


def _open_browser(url: str) -> None:
    """Open `url` with the webbrowser module in another process, because it may print or wait."""
    displays = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    if sys.platform.startswith("linux") and not any(map(os.environ.get, displays)):
        return  # the only browser would run in the terminal, over our own output
    command = [sys.executable, "-P", "-m", "webbrowser", url]
    streams: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    settings = streams | {"start_new_session": True}
    threading.Thread(target=subprocess.run, args=(command,), kwargs=settings, daemon=True).start()


def listen(host: str, port: int, app: ASGIApp) -> tuple[socket.socket, Guard]:
    """Listen on an IPv4 address, at `port` or at any free port."""
    failure, advice = f"cannot listen on {host[:60]}:{port}", "choose another --host or --port"
    with refusing(failure, ConfigError, advice):
        addresses = socket.getaddrinfo(host, None, socket.AF_INET)
        address = ipaddress.ip_address(addresses[0][4][0])
        try:
            bound = socket.create_server((str(address), port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            bound = socket.create_server((str(address), 0))
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # otherwise answers take 40 ms
    names: tuple[str, ...] = (host.lower(),)
    if address.is_unspecified:
        names = ("127.0.0.1", _find_own_address())
    token = None if address.is_loopback else make_token()
    return bound, Guard(app, names, bound.getsockname()[1], token)


def _find_own_address() -> str:
    """Find this machine's address on its network, because phones do not find it by its name.

    Linux is asked for the addresses of its interfaces; elsewhere this is the name. Nothing is sent.
    """
    if sys.platform.startswith("linux"):
        import fcntl

        for _, name in socket.if_nameindex():
            request = name.encode()[:15].ljust(40, b"\0")
            with contextlib.suppress(OSError), socket.socket(type=socket.SOCK_DGRAM) as probe:
                answer = fcntl.ioctl(probe, INTERFACE_ADDRESS, request)
                address = ipaddress.ip_address(answer[20:24])
                if not address.is_loopback:
                    return str(address)
    return socket.gethostname().lower()
