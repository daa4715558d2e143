"""The page's routes: static files, runs and sweeps as JSON, agents' games, a person's game."""

from __future__ import annotations

import json
import mimetypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles

from pixelpong.errors import PixelpongError, on_one_line
from pixelpong.faces.games.socket import play_socket
from pixelpong.faces.page.library import Library

STATIC = Path(__file__).parent / "static"


def make_app(library: Library) -> Starlette:
    """The application, without the checks of `pixelpong.faces.page.server.Guard`."""
    # The system's table of types may be wrong, and no browser runs a script of a wrong type.
    mimetypes.add_type("text/javascript", ".js")

    def tell(function: Callable[..., Any]) -> Callable[[Request], Response]:
        return lambda request: _answer(function(**request.path_params))  # runs in a thread

    app = Starlette(
        routes=[
            Route("/", lambda _: FileResponse(STATIC / "index.html")),
            Mount("/static", StaticFiles(directory=STATIC)),
            Route("/api/runs", tell(library.list)),
            Route("/api/runs/{run_id:path}/reels/{which}", tell(library.reel)),
            Route("/api/runs/{run_id:path}", tell(library.tell)),
            Route("/api/several/{ids:path}", tell(library.compare)),
            WebSocketRoute("/game", lambda websocket: play_socket(websocket, library.load_agent)),
        ],
        middleware=[Middleware(GZipMiddleware, minimum_size=1000, compresslevel=5)],
        exception_handlers=dict.fromkeys((HTTPException, PixelpongError, Exception), _answer_error),
    )
    app.router.redirect_slashes = False
    return app


def _answer(content: Any, status: int = 200) -> Response:
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return Response(text, status, media_type="application/json")


async def _answer_error(request: Request, error: Exception) -> Response:
    match error:
        case HTTPException():
            return _answer({"problem": error.detail}, error.status_code)
        case PixelpongError():
            return _answer({"problem": on_one_line(str(error))}, 404)
    return _answer({"problem": f"The server failed: {type(error).__name__}; restart it."}, 500)
