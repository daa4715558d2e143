"""Who is served, and where: the address, the checks of each request, uvicorn behind them.

Every web page that a person visits can reach a server on that person's machine. So a request must
name this server as its host (a foreign name that points here is refused), a page of another origin
is refused, and no other page can frame, embed or read an answer. If other machines can reach the
server, every request needs a token instead of a known host.
"""

from __future__ import annotations

import errno
import hmac
import ipaddress
import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass

import uvicorn
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pixelpong.errors import ConfigError
from pixelpong.faces.page.app import make_app
from pixelpong.faces.page.jobs import Reels
from pixelpong.faces.page.library import Library

PORTS_TRIED = 100
ASK_SECONDS = 0.1
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}


@dataclass(frozen=True)
class Door:
    """The names and the port of the server, and the token it requires."""

    hosts: tuple[str, ...]  # in lower case; the first is shown
    port: int
    token: str | None = None  # a secret; None if only this machine can reach the server

    def url(self, page: str, host: str = "") -> str:
        """The address of a page, for a browser on this machine or, by `host`, on another."""
        path, mark, fragment = page.partition("#")
        token = f"?token={self.token}" if self.token else ""
        return f"http://{host or self.hosts[0]}:{self.port}{path}{token}{mark}{fragment}"


def listen(host: str, port: int) -> tuple[socket.socket, Door]:
    """Listen on an IPv4 address, at `port` or the next free one; 0 is any."""
    if not 0 <= port < 65536:
        raise ConfigError(f"--port must be from 0 to 65535, not {port}.")
    try:
        found = socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"--host: {host[:60]!r} is no address of this machine.") from error
    own = ipaddress.ip_address(found[0][4][0])
    bound = _bind(str(own), port)
    names = ["127.0.0.1", "localhost"]
    if own.is_unspecified:
        names.append(socket.gethostname().lower())
    elif not own.is_loopback:
        names = [host.lower()]
    token = None if own.is_loopback else os.urandom(16).hex()
    return bound, Door(tuple(names), bound.getsockname()[1], token)


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
            if error.errno != errno.EADDRINUSE:
                text = f"Cannot listen on {address}:{each}: {error.strerror or error}."
                raise ConfigError(f"{text} Choose another --host or --port.") from error
    last = port + PORTS_TRIED - 1
    raise ConfigError(f"The ports from {port} to {last} are all taken; give another --port.")


class Guard:
    """An ASGI application that passes on to `app` only what `door` allows."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app, self._door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, token = HTTPConnection(scope), self._door.token
        cookie = f"pixelpong-{self._door.port}"
        shows_token = _is_same(request.query_params.get("token"), token)

        async def send_with_headers(message: Message) -> None:
            if message["type"].endswith((".response.start", "websocket.accept")):
                headers = MutableHeaders(raw=list(message.get("headers", [])))
                headers.update(HEADERS)
                headers.setdefault("cache-control", "no-cache" if "etag" in headers else "no-store")
                if shows_token:
                    value = f"{cookie}={token}; HttpOnly; SameSite=Strict; Path=/"
                    headers.append("set-cookie", value)
                message["headers"] = headers.raw
            await send(message)

        app = self._find_refusal(request)
        if not (
            app or token is None or shows_token or _is_same(request.cookies.get(cookie), token)
        ):
            app = _refuse(401, "Open the address with the token that was printed at the start.")
        await (app or self._app)(scope, receive, send_with_headers)

    def _find_refusal(self, request: HTTPConnection) -> ASGIApp | None:
        """The refusal of a request that is not meant for us."""
        headers, door = request.headers, self._door
        hosts = [host.lower() for host in headers.getlist("host")]
        names = {f"{name}:{door.port}" for name in door.hosts}
        if door.port == 80:
            names.update(door.hosts)
        if len(hosts) != 1 or (door.token is None and hosts[0] not in names):
            return _refuse(403, f"This is not its name: open http://{door.hosts[0]}:{door.port}/")
        origins = [origin.lower() for origin in headers.getlist("origin")]
        is_socket = request.scope["type"] == "websocket"
        if (origins or is_socket) and origins != [f"http://{hosts[0]}"]:
            return _refuse(403, "Only pages of this server are answered.")
        return None


def _refuse(status: int, text: str) -> JSONResponse:
    return JSONResponse({"problem": text}, status)


def _is_same(got: str | None, wanted: str | None) -> bool:
    """Compare in a time that does not reveal how much is right."""
    if got is None or wanted is None:
        return False
    return hmac.compare_digest(got.encode(errors="replace"), wanted.encode())


def run_server(
    listening: socket.socket, door: Door, library: Library, should_stop: Callable[[], bool]
) -> None:
    """Serve until `should_stop` returns True; then end all requests, within a second or two."""
    reels = Reels()
    config = uvicorn.Config(
        Guard(make_app(library, reels), door),
        http="h11",
        ws="websockets-sansio",
        ws_per_message_deflate=False,  # frames of the game are packed already
        lifespan="off",
        loop="asyncio",
        log_config=None,
        access_log=False,
        log_level="critical",
        server_header=False,
        proxy_headers=False,  # there is no proxy
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    with ThreadPoolExecutor(1) as pool:  # in the main thread it would capture signals
        serving = pool.submit(server.run, [listening])
        while not serving.done() and not should_stop():
            wait([serving], ASK_SECONDS)
        server.should_exit = True
        reels.close()
        serving.result()
