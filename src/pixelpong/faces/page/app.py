"""The page's routes: static files, runs and sweeps as JSON, agents' games, a person's game."""

from __future__ import annotations

import asyncio
import json
import mimetypes
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket

from pixelpong.errors import PixelpongError, on_one_line
from pixelpong.faces.page.jobs import Reels
from pixelpong.faces.page.library import Library


class Site:
    """The routes, and what they need."""

    def __init__(self, library: Library) -> None:
        self._library, self._reels = library, Reels()

    def make_app(self) -> Starlette:
        """The application, without the checks of `pixelpong.faces.page.server.Guard`."""
        # The system's table of types may be wrong, and no browser runs a script of a wrong type.
        mimetypes.add_type("text/javascript", ".js")
        self._files = StaticFiles(packages=[("pixelpong.faces.page", "static")])
        kinds = (HTTPException, PixelpongError, Exception)
        app = Starlette(
            routes=[
                Route("/", self._index),
                Mount("/static", self._files),
                Route("/api/runs", self._list),
                Route("/api/runs/{run:path}/reels/{agent}", self._reel),
                Route("/api/runs/{run:path}", self._describe),
                Route("/api/sweeps/{name}", self._describe_sweep),
                WebSocketRoute("/game", self._game),
            ],
            middleware=[Middleware(GZipMiddleware, minimum_size=1000, compresslevel=5)],
            exception_handlers=dict.fromkeys(kinds, _answer_error),
        )
        app.router.redirect_slashes = False
        return app

    def close(self) -> None:
        """End the games that are being explained."""
        self._reels.close()

    async def _index(self, request: Request) -> Response:
        return await self._files.get_response("index.html", request.scope)

    async def _list(self, request: Request) -> Response:
        return _answer({"runs": await asyncio.to_thread(self._library.list)})

    async def _describe(self, request: Request) -> Response:
        return _answer(await asyncio.to_thread(self._library.tell, request.path_params["run"]))

    async def _describe_sweep(self, request: Request) -> Response:
        tell = self._library.tell_sweep
        return _answer(await asyncio.to_thread(tell, request.path_params["name"]))

    async def _reel(self, request: Request) -> Response:
        asked, which = request.path_params["run"], request.path_params["agent"]
        place = await asyncio.to_thread(self._library.find_agent, asked, which)
        return Response(await self._reels.get(*place), media_type="application/json")

    async def _game(self, websocket: WebSocket) -> None:
        from pixelpong.faces.games.socket import play_socket

        await play_socket(websocket, self._library.load_agent)


def _answer(content: Any, status: int = 200) -> Response:
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return Response(text, status, media_type="application/json")


async def _answer_error(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        return _answer({"problem": error.detail}, error.status_code)
    if isinstance(error, PixelpongError):
        return _answer({"problem": on_one_line(str(error))[:500]}, 404)
    text = f"The server failed with {type(error).__name__}; reload, or restart it."
    return _answer({"problem": text}, 500)
