"""Connections that hold on to the server: half-open ones, and those that do not read.

uvicorn waits for ever for the rest of a request, and for ever for somebody to take an answer. Here
each wait has an end, checked once a second, and there is room for so many connections that those
who wait cannot keep out those who ask.

Covered: deadlines, the number of connections, refusals that the HTTP library makes itself.
Not covered: who may ask at all (`guard`), how far behind a viewer of a run may be (`live`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import struct
import time
from dataclasses import dataclass
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from pixelpong.errors import expected
from pixelpong.faces.page.guard import all_headers

HEAD_SECONDS = 10.0
"""To send the head of a request, and to take any part of an answer."""

GRACE_SECONDS = 1.0
"""A connection this young is not closed to make room: its request may be on the way."""

SWEEP_SECONDS = 1.0

WRITE_AHEAD = 16 << 10
"""Bytes that may wait in this process for a connection, before the sender does."""


_ONCE = (b"host", b"origin", b"upgrade", b"sec-websocket-key", b"sec-websocket-version")
_KEY = re.compile(rb"[A-Za-z0-9+/]{22}==")


@dataclass
class _Record:
    """One connection: who speaks on it, and since when it waits or stands still."""

    protocol: GuardedProtocol
    waiting_since: float
    unsent: int = 0
    moved_at: float = 0.0


class Connections:
    """All connections of one server."""

    def __init__(self, limit: int) -> None:
        """Allow so many at a time."""
        self._limit = limit
        self._records: dict[asyncio.Transport, _Record] = {}

    def __len__(self) -> int:
        return len(self._records)

    def add(self, protocol: GuardedProtocol) -> None:
        """A new one; the oldest that waits makes room where there is none."""
        now = time.monotonic()
        if len(self._records) >= self._limit:
            self._make_room(now)
        if len(self._records) >= self._limit:
            protocol.transport.abort()
            return
        protocol.transport.set_write_buffer_limits(high=WRITE_AHEAD)
        self._records[protocol.transport] = _Record(protocol, now, moved_at=now)

    def remove(self, transport: asyncio.Transport) -> None:
        """One that is closed."""
        self._records.pop(transport, None)

    def note_answered(self, transport: asyncio.Transport) -> None:
        """From here on, this one is waited for again."""
        if transport in self._records:
            self._records[transport].waiting_since = time.monotonic()

    def note_moved(self, transport: asyncio.Transport) -> None:
        """Somebody reads on this one."""
        if transport in self._records:
            self._records[transport].moved_at = time.monotonic()

    def abort(self, client: tuple[str, int] | None) -> None:
        """Close the connection of this address at once, whatever has not been sent."""
        for transport, record in list(self._records.items()):
            if client is not None and record.protocol.client == tuple(client):
                self._end(transport)

    def sweep(self) -> None:
        """Close those whose time is up."""
        now = time.monotonic()
        for transport, record in list(self._records.items()):
            unsent = transport.get_write_buffer_size()
            if not unsent or unsent < record.unsent:
                record.moved_at = now
            record.unsent = unsent
            is_late = record.protocol.is_waiting and now - record.waiting_since > HEAD_SECONDS
            if is_late or now - record.moved_at > HEAD_SECONDS:
                self._end(transport)
            elif transport.is_closing() and not unsent:
                self.remove(transport)

    async def keep_sweeping(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self.sweep()

    def _make_room(self, now: float) -> None:
        waiting = [
            (record.waiting_since, id(transport), transport)
            for transport, record in self._records.items()
            if record.protocol.is_waiting and now - record.waiting_since > GRACE_SECONDS
        ]
        if waiting:
            self._end(min(waiting)[2])

    def _end(self, transport: asyncio.Transport) -> None:
        """Close it at once: the system, too, is to forget what has not been taken."""
        self.remove(transport)
        linger = struct.pack("ii", 1, 0)
        with contextlib.suppress(OSError):
            held = transport.get_extra_info("socket")
            held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        transport.abort()


class GuardedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1, under `Connections`."""

    registry: Connections
    _has_left = False

    @property
    def is_waiting(self) -> bool:
        """Whether there is no request on it that is being answered."""
        is_idle: bool = self.cycle is None or self.cycle.response_complete
        return is_idle and not self._has_left

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        self.registry.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self.registry.remove(self.transport)
        super().connection_lost(exc)

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`."""
        self.registry.note_moved(self.transport)
        super().resume_writing()

    def on_response_complete(self) -> None:
        """Called after each answer."""
        self.registry.note_answered(self.transport)
        super().on_response_complete()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Hand the connection over to the WebSocket's protocol."""
        self._has_left = True
        super().handle_websocket_upgrade(event)

    def _should_upgrade(self) -> bool:
        """Only a whole handshake goes there; anything else is an ordinary request."""
        headers = dict(self.headers)
        names = [name for name, _ in self.headers if name in _ONCE]
        return (
            self._get_upgrade() == b"websocket"
            and self._should_upgrade_to_ws()
            and self.scope["method"] == "GET"
            and self.scope["http_version"] == "1.1"
            and headers.get(b"sec-websocket-version") == b"13"
            and _KEY.fullmatch(headers.get(b"sec-websocket-key", b"")) is not None
            and len(names) == len(set(names))
        )

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, with the headers of all answers."""
        text = expected("an HTTP request", "something else", "use a browser")
        body = json.dumps({"error": text}).encode()
        headers: list[tuple[bytes, bytes]] = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
            (b"cache-control", b"no-store"),
            *all_headers(),
        ]
        events: list[Any] = [
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ]
        with contextlib.suppress(h11.LocalProtocolError):  # in the middle of another answer
            self.transport.write(b"".join(self.conn.send(event) or b"" for event in events))
        self.transport.close()


def make_protocol(registry: Connections) -> type[GuardedProtocol]:
    """The protocol of one server, whose connections `registry` keeps."""
    return type("Protocol", (GuardedProtocol,), {"registry": registry})
