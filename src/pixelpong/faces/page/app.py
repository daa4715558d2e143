"""The page's routes: static files, runs and tournaments as JSON.

Covered: routes and their answers. Not covered: who is served (`guard`).
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import mimetypes
import re
import time
from pathlib import Path
from typing import Any

from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket

from pixelpong.agent.health import DeadUnits
from pixelpong.errors import PixelpongError, expected
from pixelpong.faces.page.background import Results
from pixelpong.faces.page.library import PACKAGE, Library, describe_package, load_package
from pixelpong.faces.page.live import Hub, encode_json
from pixelpong.faces.page.view import View

DEAD_SECONDS = 120.0
"""Seconds between two counts of dead units: each takes a core for a second."""


class Site:
    """The routes, and what they need."""

    def __init__(self, library: Library) -> None:
        """Serve `library`; call it within a running event loop."""
        self._library, self._results = library, Results()
        self._hub = Hub(self._consider_dead_units)
        self._counting: set[asyncio.Task[None]] = set()
        self._counted: dict[str, tuple[float, int]] = {}

    def make_app(self) -> Starlette:
        """The application, without the checks of `guard`."""
        run = "/api/runs/{run}"
        routes = [
            Route("/api/runs", self._list),
            Route(run, self._describe),
            Route(run + "/metrics", self._metrics),
            Route(run + "/events", self._events),
            Route(run + "/reels/agent/{number}", functools.partial(self._of_agent, "agent")),
            Route(run + "/moments/{number}", functools.partial(self._of_agent, "moment")),
            Route(run + "/weights/{number}", functools.partial(self._of_agent, "weights")),
            WebSocketRoute("/game", self._game),
            *_static_routes(),
        ]
        app = Starlette(
            routes=routes,
            middleware=[Middleware(GZipMiddleware, minimum_size=1000, compresslevel=5)],
            exception_handlers={
                HTTPException: _answer_refusal,
                PixelpongError: _answer_error,
                Exception: _answer_bug,
            },
        )
        app.router.redirect_slashes = False
        return app

    async def close(self) -> None:
        """End everything that is running."""
        self._hub.close()
        for task in self._counting:
            task.cancel()
        await self._results.close()

    async def _list(self, request: Request) -> Response:
        return _answer({"runs": await asyncio.to_thread(self._library.list)})

    async def _describe(self, request: Request) -> Response:
        if request.path_params["run"] == PACKAGE:
            return _answer(await asyncio.to_thread(describe_package))
        view = await self._view(request)
        return await asyncio.to_thread(lambda: _answer(view.tell_all()))

    async def _metrics(self, request: Request) -> Response:
        after, view = _read_after(request), await self._view(request)
        return await asyncio.to_thread(lambda: _answer({"columns": view.columns(after)}))

    async def _events(self, request: Request) -> EventSourceResponse:
        after = _read_after(request)
        return self._hub.open(await self._view(request), after)

    async def _of_agent(self, job: str, request: Request) -> Response:
        number = _read_number(request.path_params["number"])
        path: Path | None = None
        key: tuple[Any, ...] = (PACKAGE, job)
        if request.path_params["run"] != PACKAGE:
            view = await self._view(request)
            agent = await asyncio.to_thread(view.find_agent, number)
            path = view.path
            key = (path, job, number, agent["is_rounded"], agent["steps"], view.state)
        elif number == 0:
            await asyncio.to_thread(load_package)  # reports an error if it is missing
        else:
            raise HTTPException(404, expected("agent 0 of the package", number, "ask for 0"))
        return _answer_bytes(await self._results.get(key, path, job, number))

    async def _game(self, websocket: WebSocket) -> None:
        from pixelpong.faces.games.socket import play_socket

        await play_socket(websocket, self._library.load_agent)

    async def _view(self, request: Request) -> View:
        return await asyncio.to_thread(self._library.view, request.path_params["run"])

    def _consider_dead_units(self, view: View) -> None:
        """Count them if there is a newer agent, but not too often."""
        begun, newest_then = self._counted.get(view.id, (-DEAD_SECONDS, -1))
        newest = max((agent["update"] for agent in view.agents()), default=0)
        if newest in (0, newest_then) or time.monotonic() - begun < DEAD_SECONDS:
            return
        self._counted[view.id] = (time.monotonic(), newest)
        task = asyncio.create_task(self._count_dead_units(view, newest))
        self._counting.add(task)
        task.add_done_callback(self._counting.discard)

    async def _count_dead_units(self, view: View, update: int) -> None:
        with contextlib.suppress(HTTPException):
            key = (view.path, "dead", update, view.state)
            counts = json.loads(await self._results.get(key, view.path, "dead", update))
            view.dead = DeadUnits(**counts) if counts else None


def _static_routes() -> list[BaseRoute]:
    # The system's table of types may be wrong, and no browser runs a script of a wrong type.
    mimetypes.add_type("text/javascript", ".js")
    files = StaticFiles(packages=[("pixelpong.faces.page", "static")])

    async def answer_index(request: Request) -> Response:
        return await files.get_response("index.html", request.scope)

    return [Route("/", answer_index), Mount("/static", files)]


def _read_number(text: str) -> int:
    if not re.fullmatch("[0-9]{1,12}", text):
        raise HTTPException(404, expected("a number", "something else", "reload the page"))
    return int(text)


def _read_after(request: Request) -> int:
    """The update after which lines are wanted; a browser that reconnects sends it in a header."""
    texts = request.query_params.getlist("after")
    last = request.headers.get("last-event-id", "")
    texts = [last] if request.url.path.endswith("/events") and last else texts or ["0"]
    if len(texts) > 1 or not re.fullmatch("[0-9]{1,15}", texts[0]):
        raise HTTPException(400, expected("after=UPDATE", "something else", "give a whole number"))
    return int(texts[0])


def _answer(content: Any, status: int = 200) -> Response:
    return _answer_bytes(encode_json(content), status)


def _answer_bytes(content: bytes, status: int = 200) -> Response:
    return Response(content, status, media_type="application/json")


async def _answer_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    is_ours = error.detail.startswith("expected ")
    text = error.detail if is_ours else expected("a path of the page", "another", "open /")
    return _answer({"error": text}, error.status_code)


async def _answer_error(request: Request, error: Exception) -> Response:
    return _answer({"error": " ".join(str(error).split())[:500]}, 404)


async def _answer_bug(request: Request, error: Exception) -> Response:
    text = expected("an answer", type(error).__name__, "reload, or restart the server")
    return _answer({"error": text}, 500)
