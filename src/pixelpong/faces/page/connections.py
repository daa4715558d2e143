"""Handles connections that keep the server waiting or exceed the system's resources.

uvicorn closes a connection that is silent between two requests, but not one that never sends the
end of a request or never reads its answer. Here each step has a deadline, after which the
connection is aborted. uvicorn only has to report when a connection starts and ends.
"""

from __future__ import annotations

import asyncio
import errno
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0  # time limit for a request's head, from the connection or the last answer
SEND_SECONDS = 30.0  # time limit for the other side to read most of the sent data
MAX_WAITING = 64  # most connections without a request; a new one replaces the oldest
SILENT_SECONDS = 60.0  # time between two lines about missing resources

_NO_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


@dataclass
class _Connection:
    transport: asyncio.Transport
    num_requests: int = 0  # number of requests that are being answered
    deadline: asyncio.TimerHandle | None = None  # the deadline for the head of the next request


class Connections:
    """An ASGI application that passes everything on to `app` and aborts stalled connections."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._known: dict[Any, _Connection] = {}  # by the client's address, oldest first

    def make_protocol(self) -> type[asyncio.Protocol]:
        """Make the class for uvicorn's option `http`."""
        begin, end = self._begin, self._end

        class ReportingProtocol(H11Protocol):
            def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
                self._client = begin(transport)
                super().connection_made(transport)

            def connection_lost(self, exc: Exception | None) -> None:
                end(self._client)
                super().connection_lost(exc)

        return ReportingProtocol

    def _begin(self, transport: asyncio.Transport) -> Any:
        waiting = [client for client, it in self._known.items() if it.num_requests == 0]
        if len(waiting) >= MAX_WAITING:
            self._abort(waiting[0])
        client = transport.get_extra_info("peername")
        self._end(client)  # an unnoticed earlier connection, such as a refused WebSocket
        self._known[client] = _Connection(transport)
        self._await_head(client)
        return client

    def _end(self, client: Any) -> None:
        connection = self._known.pop(client, None)
        if connection is not None and connection.deadline is not None:
            connection.deadline.cancel()

    def _abort(self, client: Any) -> None:
        transport = self._known[client].transport
        self._end(client)
        transport.abort()

    def _await_head(self, client: Any) -> None:
        loop = asyncio.get_running_loop()
        self._known[client].deadline = loop.call_later(HEAD_SECONDS, self._abort, client)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102
        client = tuple(scope["client"])
        connection = self._known[client]
        connection.num_requests += 1
        if connection.deadline:
            connection.deadline.cancel()

        async def send_in_time(message: Message) -> None:
            try:
                async with asyncio.timeout(SEND_SECONDS):
                    await send(message)
            except TimeoutError:
                connection.transport.abort()
                raise ConnectionAbortedError("the other side does not read its answer") from None

        try:
            await self._app(scope, receive, send_in_time)
        finally:
            connection.num_requests -= 1
            if scope["type"] == "websocket":  # the HTTP protocol is not notified of its end
                self._end(client)
            elif connection.num_requests == 0 and self._known.get(client) is connection:
                self._await_head(client)


def make_exception_handler(
    tell: Callable[[str], None],
) -> Callable[[asyncio.AbstractEventLoop, dict[str, Any]], None]:
    """Make a handler for the event loop that prints a line if no connection can be accepted."""
    last_told = -math.inf

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        nonlocal last_told
        error = context.get("exception")
        if not (isinstance(error, OSError) and error.errno in _NO_RESOURCES):
            loop.default_exception_handler(context)
        elif loop.time() >= last_told + SILENT_SECONDS:
            last_told = loop.time()
            tell(f"cannot accept a connection ({error.strerror}); the page will try again")

    return handle
