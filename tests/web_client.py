"""The page's server in a thread, or its application alone, and clients of both."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from conftest import wait_until
from toys import toy_config

from pixelpong.faces.page.server import serve
from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory

KEY = "dGhlIHNhbXBsZSBub25jZQ=="


@dataclass
class Served:
    """Where a server listens, and what it said."""

    port: int
    told: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextlib.contextmanager
def serving(runs_dir: Path, **options: Any) -> Iterator[Served]:
    """`serve` in a thread, on a free port, until the block ends."""
    stop, told, ended = threading.Event(), [], []
    settings = {
        "host": "127.0.0.1",
        "port": 0,
        "opens_browser": False,
        "tell": told.append,
        "should_stop": stop.is_set,
    }

    def work() -> None:
        try:
            serve(runs_dir, **settings | options)
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert wait_until(lambda: ended or any("http://" in line for line in told), 20)
    if ended:
        raise ended[0]
    address = next(line for line in told if "http://" in line).split("http://")[1]
    port = int(address.split("/")[0].rpartition(":")[2])
    assert wait_until(lambda: _answers(port), 20)
    try:
        yield Served(port, told)
    finally:
        stop.set()
        thread.join(10)
        assert not thread.is_alive()
        assert not ended, ended


def _answers(port: int) -> bool:
    try:
        return get(port, "/static/none").status in (401, 403, 404)
    except OSError:
        return False


@dataclass
class Answer:
    """What came back: status 0 if nothing did."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def head(method: str, target: str, host: str | None, *more: str) -> bytes:
    """The head of a request."""
    lines = [f"{method} {target} HTTP/1.1", *([] if host is None else [f"Host: {host}"])]
    return "\r\n".join([*lines, *more, "", ""]).encode("latin-1")


def get(port: int, target: str, *more: str, method: str = "GET") -> Answer:
    """A proper request."""
    request = head(method, target, f"127.0.0.1:{port}", "Connection: close", *more)
    return ask(port, request, method)


def handshake(port: int, host: str | None, *more: str, target: str = "/game") -> bytes:
    """The head that asks for a WebSocket."""
    return head(
        "GET", target, host, "Connection: Upgrade", "Upgrade: websocket",
        "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {KEY}", *more,
    )  # fmt: skip


def connect(port: int, receive_buffer: int | None = None) -> socket.socket:
    """A connection on which nothing has been said."""
    made = socket.socket()
    if receive_buffer:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    made.settimeout(60)
    made.connect(("127.0.0.1", port))
    return made


def ask(port: int, request: bytes, method: str = "GET") -> Answer:
    """Send these bytes, and read one answer."""
    with connect(port) as made:
        made.sendall(request)
        return read_answer(made, method)


def read_answer(made: socket.socket, method: str = "GET") -> Answer:
    """The next answer on a connection; no body if its length is not said."""
    response = http.client.HTTPResponse(made, method=method)
    try:
        response.begin()
        headers = {name.lower(): value for name, value in response.getheaders()}
        body = response.read() if "content-length" in headers else b""
    except http.client.HTTPException:
        return Answer(0, {}, b"")
    return Answer(response.status, headers, body)


def ask_app(
    app: Any,
    path: str,
    host: str,
    *headers: tuple[str, str],
    method: str = "GET",
    kind: str = "http",
) -> Answer:
    """What an ASGI application answers to a request, or to a WebSocket, without a connection."""
    target, _, query = path.partition("?")
    pairs = [("host", host), *headers]
    scope = {
        "type": kind, "method": method, "path": unquote(target), "raw_path": target.encode(),
        "query_string": query.encode(), "headers": [(a.encode(), b.encode()) for a, b in pairs],
        "server": ("127.0.0.1", 8080), "client": ("127.0.0.1", 1), "scheme": "http",
        "root_path": "", "http_version": "1.1", "extensions": {"websocket.http.response": {}},
    }  # fmt: skip
    sent: list[dict[str, Any]] = []

    asked = iter([{"type": "http.request" if kind == "http" else "websocket.connect"}])

    async def receive() -> dict[str, Any]:
        return next(asked, None) or await asyncio.Future()  # then nothing, for ever

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    first = sent[0]
    found = {a.decode().lower(): b.decode() for a, b in first.get("headers", [])}
    body = b"".join(message.get("body", b"") for message in sent)
    return Answer(first.get("status", 101), found, body)


def api(run: RunDirectory, rest: str = "") -> str:
    """A path of a run."""
    return f"/api/runs/{run.path.name}{rest}"


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
