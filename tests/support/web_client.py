"""The page's server in a thread, or its application alone, and runs to be served."""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from urllib.parse import unquote

import httpx
from toys import toy_config
from waiting import wait_until

from pixelpong.faces.page.serving import ServedPage, serve
from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory

OWN = "127.0.0.1:8080"


@contextlib.contextmanager
def serving(runs_dir, **options):
    """`serve` in a thread, on a free port, until the block ends: its address, folder and words."""
    stop, told = threading.Event(), []
    settings = {"host": "127.0.0.1", "port": 0} | options
    page = ServedPage(runs_dir, **settings, tell=told.append)
    with ThreadPoolExecutor(1) as pool:
        server = pool.submit(serve, page, tell=told.append, should_stop=stop.is_set)
        wait_until(lambda: server.done() or any("Ctrl-C" in line for line in told))
        try:
            if not server.done():
                url, port = re.search(r"(http://[^/]+:(\d+))/", " ".join(told)).groups()
                yield SimpleNamespace(url=url, port=int(port), told=told, runs=runs_dir, page=page)
        finally:
            stop.set()
            server.result()


def ask_app(app, path, *headers, host=OWN, method="GET", kind="http") -> httpx.Response:
    """What an ASGI application answers to a request, or to a WebSocket, without a connection.

    Each byte of the path and of the headers arrives as it is.
    """
    target, _, query = path.partition("?")
    pairs = [("host", host), *headers]
    scope = {
        "type": kind, "method": method, "path": unquote(target), "raw_path": target.encode(),
        "query_string": query.encode(), "headers": [(a.encode(), b.encode()) for a, b in pairs],
        "server": ("127.0.0.1", 8080), "client": ("127.0.0.1", 1), "scheme": "http",
        "root_path": "", "http_version": "1.1", "extensions": {"websocket.http.response": {}},
    }  # fmt: skip
    asked = iter([{"type": "http.request" if kind == "http" else "websocket.connect"}])
    sent = []

    async def receive():
        return next(asked, None) or await asyncio.Future()  # then nothing, for ever

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    body = b"".join(message.get("body", b"") for message in sent)
    status, headers = sent[0].get("status", 101), sent[0].get("headers", [])
    return httpx.Response(status, headers=headers, content=body)


def make_trained(path, preset="fast", **changes) -> RunDirectory:
    """A run that was trained for a second."""
    run = RunDirectory.create(path, toy_config(preset, **changes))
    train(run)
    return run
