"""The page's routes: static files from a fixed table, and runs as JSON.

Covered: routes, what they answer, static files. Not covered: who is served (`guard`).
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import importlib.resources
import importlib.util
import json
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from pixelpong.agent.file import SHIPPED
from pixelpong.agent.health import DeadUnits
from pixelpong.errors import PixelpongError, expected
from pixelpong.faces.page.connections import Connections
from pixelpong.faces.page.guard import Refusal
from pixelpong.faces.page.library import PACKAGE, Library, View, load_package
from pixelpong.faces.page.live import Hub, Stream, encode_json
from pixelpong.faces.page.reels import ReelMaker

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}

PLOTLY = "plotly.min.js"
"""Of the package plotly; the others are ours."""

DEAD_SECONDS = 120.0
"""Between two counts of dead units: each takes a second of a core that a training may use."""

_PIECE = 32 << 10
_SMALL = 1000


class Answer(Response):
    """A whole answer, sent in pieces: a connection that does not read holds no more than one."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer as an ASGI application."""
        body = bytes(self.body)
        headers = {"type": "http.response.start", "status": self.status_code}
        await send(headers | {"headers": self.raw_headers})
        while len(body) > _PIECE and scope["method"] != "HEAD":
            piece, body = body[:_PIECE], body[_PIECE:]
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": body, "more_body": False})


def answer_json(request: Request, content: Any, status: int = 200) -> Answer:
    """`content` as JSON, compressed where that helps and the browser takes it."""
    return answer_packed(request, gzip_if_large(encode_json(content)), status)


def gzip_if_large(content: bytes) -> bytes:
    """Compressed, but for what is small: gzip's first bytes tell."""
    return gzip.compress(content, 5, mtime=0) if len(content) > _SMALL else content


def answer_packed(
    request: Request, content: bytes, status: int = 200, kind: str = "application/json"
) -> Answer:
    """`content`, which may be gzipped, as the browser takes it."""
    headers = {"vary": "Accept-Encoding"}
    if content[:2] == b"\x1f\x8b":
        if _takes_gzip(request):
            headers["content-encoding"] = "gzip"
        else:
            content = gzip.decompress(content)
    return Answer(content, status, headers, kind)


def _takes_gzip(request: Request) -> bool:
    for part in request.headers.get("accept-encoding", "").lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() == "gzip":
            return not re.fullmatch(r"\s*q=0(\.0*)?\s*", weight)
    return False


def list_static() -> set[str]:
    """The names of the page's files, as they are in the package."""
    try:
        folder = importlib.resources.files("pixelpong.faces.page").joinpath("static")
        found = {file.name for file in folder.iterdir() if Path(file.name).suffix in TYPES}
    except OSError:
        found = set()
    return {PLOTLY, "index.html"} | found


class Static:
    """The files of the page, each read once, compressed once, known by its hash."""

    def __init__(self) -> None:
        """Read nothing yet but the table of names."""
        self._names = list_static()
        self._files: dict[str, tuple[bytes, str]] = {}
        self._lock = asyncio.Lock()

    async def answer(self, request: Request, name: str) -> Response:
        """A file of the table.

        Raises:
            Refusal: there is none of this name.
        """
        if name not in self._names:
            raise Refusal(404, expected("a file of the page", "another", "open /"))
        async with self._lock:
            if name not in self._files:
                content = await asyncio.to_thread(_read_static, name)
                self._files[name] = content, f'"{hashlib.sha256(content).hexdigest()[:20]}"'
        content, tag = self._files[name]
        headers = {"etag": tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        kind = TYPES[Path(name).suffix]
        answer = await asyncio.to_thread(answer_packed, request, content, 200, kind)
        answer.headers.update(headers)
        return answer


def _read_static(name: str) -> bytes:
    try:
        if name == PLOTLY:
            found = importlib.util.find_spec("plotly")
            folders = found and found.submodule_search_locations
            folder = Path(folders[0] if folders else "")
            content = (folder / "package_data" / PLOTLY).read_bytes()
        else:
            package = importlib.resources.files("pixelpong.faces.page")
            content = package.joinpath("static", name).read_bytes()
    except OSError as error:
        advice = "reinstall pixelpong"
        raise Refusal(404, expected(f"{name} in the package", "none", advice)) from error
    return gzip_if_large(content)


class Site:
    """What the routes need, and the routes."""

    def __init__(self, library: Library, connections: Connections) -> None:
        """Serve `library`; call it within a running event loop."""
        self._library, self._static, self._reels = library, Static(), ReelMaker()
        self.hub = Hub(connections.abort, self._consider_dead_units)
        self._counting: set[asyncio.Task[None]] = set()
        self._counted: dict[str, tuple[float, int]] = {}

    def make_app(self) -> Starlette:
        """The application, which `guard` has yet to guard."""
        run = "/api/runs/{run}"
        routes = [
            Route("/", self._index),
            Route("/static/{name}", self._file),
            Route("/api/runs", self._list),
            Route(run, self._describe),
            Route(run + "/metrics", self._metrics),
            Route(run + "/events", self._events),
            Route(run + "/reels/replay/{number}", self._replay_reel),
            Route(run + "/reels/agent/{number}", self._agent_reel),
            Route(run + "/weights/{number}", self._weights),
            WebSocketRoute("/game", self._game),
        ]
        handlers: dict[Any, Callable[[Request, Any], Awaitable[Response]]] = {
            Refusal: _answer_refusal,
            PixelpongError: _answer_error,
            HTTPException: _answer_unknown,
        }
        app = Starlette(routes=routes, exception_handlers=handlers)
        app.router.redirect_slashes = False
        return app

    async def close(self) -> None:
        """End what is under way."""
        self.hub.close()
        for task in self._counting:
            task.cancel()
        await self._reels.close()

    async def _index(self, request: Request) -> Response:
        return await self._static.answer(request, "index.html")

    async def _file(self, request: Request) -> Response:
        return await self._static.answer(request, request.path_params["name"])

    async def _list(self, request: Request) -> Response:
        runs = await asyncio.to_thread(self._library.list)
        return await asyncio.to_thread(answer_json, request, {"runs": runs})

    async def _describe(self, request: Request) -> Response:
        if request.path_params["run"] == PACKAGE:
            return answer_json(request, await asyncio.to_thread(_describe_package))
        view = await self._view(request)
        self._consider_dead_units(view)
        return await asyncio.to_thread(lambda: answer_json(request, view.tell_all()))

    async def _metrics(self, request: Request) -> Response:
        after = _read_after(request)
        view = await self._view(request)
        return await asyncio.to_thread(
            lambda: answer_json(request, {"columns": view.columns(after)})
        )

    async def _events(self, request: Request) -> Stream:
        after = _read_after(request)
        return self.hub.open(await self._view(request), after)

    async def _replay_reel(self, request: Request) -> Response:
        number, view = _read_number(request), await self._view(request)
        line = view.find_replay(number)
        agents = [agent["update"] for agent in await asyncio.to_thread(view.agents)]
        nearest = min(agents, key=lambda update: abs(update - line["update"] + 1), default=None)
        key = (view.path, "replay", number, line["update"], line["actions"], nearest)
        return await self._pack(request, key, view.path, "replay", number)

    async def _agent_reel(self, request: Request) -> Response:
        number = _read_number(request)
        if request.path_params["run"] == PACKAGE:
            await _require_package(number)
            return await self._pack(request, (PACKAGE, "agent"), None, "agent", 0)
        return await self._pack_agent(request, "agent", number)

    async def _weights(self, request: Request) -> Response:
        number = _read_number(request)
        if request.path_params["run"] == PACKAGE:
            await _require_package(number)
            return await self._pack(request, (PACKAGE, "weights"), None, "weights", 0)
        return await self._pack_agent(request, "weights", number)

    async def _pack_agent(self, request: Request, job: str, number: int) -> Response:
        view = await self._view(request)
        agents = await asyncio.to_thread(view.agents)
        known = [agent for agent in agents if agent["update"] == number]
        if not known:
            raise Refusal(404, expected("an agent of the list", number, "choose one of it"))
        is_rounded, steps = known[0]["is_rounded"], known[0]["steps"]
        key = (view.path, job, number, is_rounded, steps, view.state)
        return await self._pack(request, key, view.path, job, number)

    async def _pack(
        self, request: Request, key: tuple[Any, ...], path: Path | None, job: str, number: int
    ) -> Response:
        if request.method == "HEAD":
            return Answer(b"", 200, media_type="application/json")
        content = await self._reels.get(key, path, job, number)
        return await asyncio.to_thread(answer_packed, request, content)

    async def _game(self, websocket: WebSocket) -> None:
        from pixelpong.faces.games.socket import play_socket

        await play_socket(websocket, self._library)

    async def _view(self, request: Request) -> View:
        return await asyncio.to_thread(self._library.view, request.path_params["run"])

    def _consider_dead_units(self, view: View) -> None:
        """Have them counted where there is a newer agent, but not all the time."""
        begun, newest_then = self._counted.get(view.id, (-DEAD_SECONDS, -1))
        newest = max((agent["update"] for agent in view.agents()), default=0)
        if newest in (0, newest_then) or time.monotonic() - begun < DEAD_SECONDS:
            return
        self._counted[view.id] = (time.monotonic(), newest)
        task = asyncio.create_task(self._count_dead_units(view, newest))
        self._counting.add(task)
        task.add_done_callback(self._counting.discard)

    async def _count_dead_units(self, view: View, update: int) -> None:
        try:
            key = (view.path, "dead", update, view.state)
            packed = await self._reels.get(key, view.path, "dead", update)
        except Refusal:
            return
        counts = json.loads(gzip.decompress(packed))
        view.dead = DeadUnits(**counts) if counts else None


def _describe_package() -> dict[str, Any]:
    about = load_package().about
    agent = {
        "update": 0,
        "steps": about.get("steps"),
        "estimated_return": about.get("estimated_return"),
        "is_rounded": True,
    }
    opponents = [{"name": name, "greedy_return": _greedy_return(name)} for name in SHIPPED]
    return {
        "id": PACKAGE,
        "name": "the agent in the package",
        "agents": [agent],
        "opponents": opponents,
        "about": about,
    }


def _greedy_return(name: str) -> float:
    evaluation = load_package(name).about["evaluation"]["greedy"]
    return float(evaluation["mean_return"])


async def _require_package(number: int) -> None:
    if number != 0:
        raise Refusal(404, expected("agent 0 of the package", number, "ask for 0"))
    try:
        await asyncio.to_thread(load_package)
    except PixelpongError as error:
        raise Refusal(404, str(error)) from error


def _read_number(request: Request) -> int:
    text = request.path_params["number"]
    if not re.fullmatch("[0-9]{1,12}", text):
        raise Refusal(404, expected("a number", "something else", "reload the page"))
    return int(text)


def _read_after(request: Request) -> int:
    """The update after which news are wanted; a browser that comes back says it in a header."""
    texts = request.query_params.getlist("after")
    last = request.headers.get("last-event-id", "")
    texts = [last] if request.url.path.endswith("/events") and last else texts or ["0"]
    if len(texts) > 1 or not re.fullmatch("[0-9]{1,15}", texts[0]):
        raise Refusal(400, expected("after=UPDATE", "something else", "give a whole number"))
    return int(texts[0])


async def _answer_refusal(request: Request, refusal: Refusal) -> Response:
    return answer_json(request, {"error": refusal.text}, refusal.status)


async def _answer_error(request: Request, error: PixelpongError) -> Response:
    return answer_json(request, {"error": " ".join(str(error).split())[:500]}, 404)


async def _answer_unknown(request: Request, error: HTTPException) -> Response:
    text = expected("a path of the page", "another", "open /")
    return answer_json(request, {"error": text}, error.status_code)
