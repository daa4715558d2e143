"""uvicorn behind our guard; it prints nothing and ends within a second."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator

import uvicorn

from pixelpong.faces.page.address import Door
from pixelpong.faces.page.app import Site
from pixelpong.faces.page.guard import Guard
from pixelpong.faces.page.library import Library

ASK_SECONDS = 0.1

END_SECONDS = 0.5

MAX_CONNECTIONS = 900
"""Connections at a time; most systems let a process open about 1,000 files."""

HEAD_LIMIT = 16 << 10
"""Size limit of a request's head, in bytes."""

MESSAGE_LIMIT = 4 << 10
"""Size limit of a player's message, in bytes; that of a key has about ten."""


class _Server(uvicorn.Server):
    """A server that leaves signals to its caller."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def run_server(
    listening: socket.socket,
    door: Door,
    library: Library,
    should_stop: Callable[[], bool],
) -> None:
    """Serve until `should_stop` returns True; then end all requests."""
    asyncio.run(_serve(listening, door, library, should_stop))


async def _serve(
    listening: socket.socket,
    door: Door,
    library: Library,
    should_stop: Callable[[], bool],
) -> None:
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    site = Site(library)
    config = uvicorn.Config(
        Guard(site.make_app(), door),
        http="h11",
        ws="websockets-sansio",
        ws_max_size=MESSAGE_LIMIT,
        ws_per_message_deflate=False,  # frames of the game are packed already
        lifespan="off",
        loop="asyncio",
        log_config=None,
        access_log=False,
        log_level="critical",
        server_header=False,
        proxy_headers=False,  # there is no proxy
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=END_SECONDS,  # type: ignore[arg-type]
        h11_max_incomplete_event_size=HEAD_LIMIT,
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve([listening]))
    while not serving.done() and not should_stop():
        await asyncio.wait([serving], timeout=ASK_SECONDS)
    server.should_exit = True
    await site.close()
    await serving
