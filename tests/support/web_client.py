"""The page's server in a thread, or its application alone, and runs to be served."""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx
from toys import toy_config

from pixelpong.faces.page.server import serve
from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory

OWN = "127.0.0.1:8080"


@dataclass
class Served:
    """The address of a server, and what it said."""

    url: str
    told: list[str]

    @property
    def port(self) -> int:
        return urlsplit(self.url).port


@contextlib.contextmanager
def serving(runs_dir: Path, **options: Any) -> Iterator[Served]:
    """`serve` in a thread, on a free port, until the block ends."""
    stop, begun, told = threading.Event(), threading.Event(), []

    def tell(line: str) -> None:
        told.append(line)
        if "Ctrl-C" in line:  # it listens
            begun.set()

    settings = {"host": "127.0.0.1", "port": 0, "opens_browser": False}
    settings |= {"tell": tell, "should_stop": stop.is_set}
    with ThreadPoolExecutor(1) as pool:
        server = pool.submit(serve, runs_dir, **settings | options)
        server.add_done_callback(lambda _: begun.set())
        begun.wait()
        try:
            if not server.done():
                yield Served(re.search(r"http://[^/]+", " ".join(told))[0], told)
        finally:
            stop.set()
            server.result()


def ask_app(
    app: Any,
    path: str,
    *headers: tuple[str, str],
    host: str = OWN,
    method: str = "GET",
    kind: str = "http",
) -> httpx.Response:
    """What an ASGI application answers to a request, or to a WebSocket, without a connection."""
    target, _, query = path.partition("?")
    pairs = [("host", host), *headers]
    scope = {
        "type": kind, "method": method, "path": unquote(target), "raw_path": target.encode(),
        "query_string": query.encode(), "headers": [(a.encode(), b.encode()) for a, b in pairs],
        "server": ("127.0.0.1", 8080), "client": ("127.0.0.1", 1), "scheme": "http",
        "root_path": "", "http_version": "1.1", "extensions": {"websocket.http.response": {}},
    }  # fmt: skip
    asked = iter([{"type": "http.request" if kind == "http" else "websocket.connect"}])
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return next(asked, None) or await asyncio.Future()  # then nothing, for ever

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    body = b"".join(message.get("body", b"") for message in sent)
    return httpx.Response(
        sent[0].get("status", 101), headers=sent[0].get("headers", []), content=body
    )


def make_trained(path: Path, preset: str = "fast", **changes: Any) -> RunDirectory:
    """A run that was trained for a second."""
    run = RunDirectory.create(path, toy_config(preset, **{"updates": 6} | changes))
    train(run)
    return run


def make_lines(path: Path, updates: int, **changes: Any) -> RunDirectory:
    """A run of which there are lines of metrics alone."""
    run = RunDirectory.create(path, toy_config("fast", **changes))
    run.metrics.append(*map(metrics_line, range(1, updates + 1)))
    return run


def metrics_line(update: int, **changes: Any) -> dict[str, Any]:
    """A line as a training would append it."""
    timing = {"wall_seconds": 1.5 * update, "steps_per_second": 2000.0}
    line = {"update": update, "steps": 100 * update, "episodes": update, "entropy": 0.5}
    return line | {"estimated_return": None, "timing": timing} | changes
