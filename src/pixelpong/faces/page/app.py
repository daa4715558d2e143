"""The page's routes: static files, runs as JSON, agents' games, and the game of a person."""

from __future__ import annotations

import asyncio
import json
import mimetypes
import re
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket

from pixelpong.errors import PixelpongError, expected
from pixelpong.faces.page.jobs import Reels
from pixelpong.faces.page.library import Library


class Site:
    """The routes, and what they need."""

    def __init__(self, library: Library) -> None:
        self._library, self._reels = library, Reels()

    def make_app(self) -> Starlette:
        """The application, without the checks of `guard`."""
        app = Starlette(
            routes=[
                Route("/api/runs", self._list),
                Route("/api/runs/{run:path}/reels/{agent}", self._reel),
                Route("/api/runs/{run:path}", self._describe),
                WebSocketRoute("/game", self._game),
                *_static_routes(),
            ],
            middleware=[Middleware(GZipMiddleware, minimum_size=1000, compresslevel=5)],
            exception_handlers={
                HTTPException: _answer_refusal,
                PixelpongError: _answer_error,
                Exception: _answer_bug,
            },
        )
        app.router.redirect_slashes = False
        return app

    def close(self) -> None:
        """End the games that are being explained."""
        self._reels.close()

    async def _list(self, request: Request) -> Response:
        return _answer({"runs": await asyncio.to_thread(self._library.list)})

    async def _describe(self, request: Request) -> Response:
        asked, query = request.path_params["run"], request.query_params
        after = query.get("after", "0")
        if not re.fullmatch("[0-9]{1,15}", after):
            raise HTTPException(400, "after= needs the number of an update")
        tell = self._library.tell
        return _answer(await asyncio.to_thread(tell, asked, int(after), query.get("table")))

    async def _reel(self, request: Request) -> Response:
        asked, which = request.path_params["run"], request.path_params["agent"]
        place = await asyncio.to_thread(self._library.find_agent, asked, which)
        return _answer_bytes(await self._reels.get(*place))

    async def _game(self, websocket: WebSocket) -> None:
        from pixelpong.faces.games.socket import play_socket

        await play_socket(websocket, self._library.load_agent)


def _static_routes() -> list[BaseRoute]:
    # The system's table of types may be wrong, and no browser runs a script of a wrong type.
    mimetypes.add_type("text/javascript", ".js")
    files = StaticFiles(packages=[("pixelpong.faces.page", "static")])

    async def answer_index(request: Request) -> Response:
        return await files.get_response("index.html", request.scope)

    return [Route("/", answer_index), Mount("/static", files)]


def _answer(content: Any, status: int = 200) -> Response:
    return _answer_bytes(
        json.dumps(content, allow_nan=False, separators=(",", ":")).encode(), status
    )


def _answer_bytes(content: bytes, status: int = 200) -> Response:
    return Response(content, status, media_type="application/json")


async def _answer_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _answer({"problem": error.detail}, error.status_code)


async def _answer_error(request: Request, error: Exception) -> Response:
    return _answer({"problem": " ".join(str(error).split())[:500]}, 404)


async def _answer_bug(request: Request, error: Exception) -> Response:
    text = expected("an answer", type(error).__name__, "reload, or restart the server")
    return _answer({"problem": text}, 500)
