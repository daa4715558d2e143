"""A real server in a thread, and clients that speak to it byte by byte."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from conftest import wait_until
from toys import toy_config

from pixelpong.faces.page import serve
from pixelpong.faces.page.view import id_of
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
        "token": None,
        "opens_browser": False,
        "page": "/",
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
    assert wait_until(lambda: told or ended, 20)
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
    made.settimeout(10)
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


def api(run: RunDirectory, rest: str = "") -> str:
    """A path of a run."""
    return f"/api/runs/{id_of(run.path)}{rest}"


class Events:
    """A viewer of a run: what comes, as it comes; its type, and the number of comments."""

    def __init__(self, url: str, headers: dict[str, str] | None = None) -> None:
        self.received: list[tuple[str, Any]] = []
        self.type, self.num_comments, self.is_over = "", 0, False
        self._client = httpx.Client(timeout=30)
        self._thread = threading.Thread(target=self._read, args=(url, headers or {}), daemon=True)
        self._thread.start()

    def _read(self, url: str, headers: dict[str, str]) -> None:
        name = ""
        with (
            contextlib.suppress(httpx.HTTPError),
            self._client.stream("GET", url, headers=headers) as answer,
        ):
            self.type = answer.headers["content-type"]
            for line in answer.iter_lines():
                self.num_comments += line.startswith(": ")
                if line.startswith("event: "):
                    name = line[7:]
                if line.startswith("data: "):
                    self.received.append((name, json.loads(line[6:])))
        self.is_over = True

    def of(self, name: str) -> list[Any]:
        """The contents of all events of a name."""
        return [content for kind, content in self.received if kind == name]

    def updates(self) -> list[int]:
        """What a page holds that follows what it is told."""
        held: list[int] = []
        for content in self.of("metrics"):
            held = [u for u in held if u <= content["after"]] + content["columns"].get("update", [])
        return held

    def __enter__(self) -> Events:
        assert wait_until(lambda: self.of("summary"))
        return self

    def __exit__(self, *exc: object) -> None:
        self._client.close()
        self._thread.join(5)


def make_trained(path: Path) -> RunDirectory:
    """A run that was trained for a second."""
    config = toy_config("fast", updates=24, hidden=8)
    run = RunDirectory.create(path, config, [].append)
    train(run)
    return run


def make_lines(path: Path, updates: int) -> RunDirectory:
    """A run of which there are lines of metrics alone."""
    run = RunDirectory.create(path, toy_config("fast"), [].append)
    run.metrics.append(*map(metrics_line, range(1, updates + 1)))
    return run


def metrics_line(update: int, **changes: Any) -> dict[str, Any]:
    """A line as a training would append it."""
    timing = {"wall_seconds": 1.5 * update, "steps_per_second": 2000.0}
    line = {"update": update, "steps": 100 * update, "episodes": update, "entropy": 0.5}
    return line | {"estimated_return": None, "timing": timing} | changes
