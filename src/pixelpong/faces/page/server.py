"""uvicorn behind our guard; it prints nothing and ends within a second or two."""

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


class _Server(uvicorn.Server):
    """A server that leaves signals to its caller."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture no signals."""
        yield


def run_server(
    listening: socket.socket, door: Door, library: Library, should_stop: Callable[[], bool]
) -> None:
    """Serve until `should_stop` returns True; then end all requests."""
    asyncio.run(_serve(listening, door, library, should_stop))


async def _serve(
    listening: socket.socket, door: Door, library: Library, should_stop: Callable[[], bool]
) -> None:
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    site = Site(library)
    config = uvicorn.Config(
        Guard(site.make_app(), door),
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
    server = _Server(config)
    serving = asyncio.create_task(server.serve([listening]))
    while not serving.done() and not should_stop():
        await asyncio.wait([serving], timeout=ASK_SECONDS)
    server.should_exit = True
    site.close()
    await serving
