"""The page's server: what it serves, where, and to whom; uvicorn runs it.

Any web page that you visit can send requests to a server on your machine. So a request must name
this machine as its host (a foreign name that points here is refused), and requests from other pages
are refused: those with a foreign Origin, and those that the browser marks as foreign
(`Sec-Fetch-Site`), such as images. A link on another page may open this page, whose HTML is a file,
but nothing else. No other page can frame, embed or read an answer, or steer a page that it opened.
Any port is accepted, because behind a tunnel the browser uses a different one. If other machines
can reach the server, every request needs a token instead of a known host.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import mimetypes
import re
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pixelpong.errors import PixelpongError, on_one_line
from pixelpong.faces.page.game import Seats, play_socket
from pixelpong.faces.page.joining import draw_picture
from pixelpong.faces.page.library import Library
from pixelpong.faces.page.threads import BusyError, in_thread

T = TypeVar("T")

STATIC = Path(__file__).parent / "static"
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")  # this machine's names in its own browsers
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
OWN_SITES = {"same-origin", "none"}  # "none": the person typed or reloaded the address


@dataclass(frozen=True)
class Guard:
    """An ASGI application that passes only legitimate requests on to `app`."""

    app: ASGIApp
    hosts: tuple[str, ...]  # the server's names, in lower case; the second is for other machines
    port: int
    token: str | None = None  # a secret; None if only this machine can reach the server

    def url(self, page: str = "", host: str = "") -> str:
        """Return a page's address for a browser on this machine, or elsewhere through `host`."""
        token = f"?token={self.token}" if self.token else ""
        return f"http://{host or self.hosts[0]}:{self.port}/{token}{page}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102
        request, cookie = HTTPConnection(scope), f"pixelpong-{self.port}"
        shows_token = self._is_token(request.query_params.get("token", ""))
        has_cookie = self._is_token(request.cookies.get(cookie, ""))

        async def send_with_headers(message: Message) -> None:
            if message["type"].endswith((".response.start", "websocket.accept")):
                headers = MutableHeaders(raw=list(message.get("headers", [])))
                headers.update(HEADERS)
                headers.setdefault("cache-control", "no-cache" if "etag" in headers else "no-store")
                if shows_token:
                    value = f"{cookie}={self.token}; HttpOnly; SameSite=Strict; Path=/"
                    headers.append("set-cookie", value)
                message["headers"] = headers.raw
            await send(message)

        app = self._find_refusal(request, shows_token or has_cookie) or self.app
        await app(scope, receive, send_with_headers)

    def _is_token(self, text: str) -> bool:
        """Whether a text is the token; False if there is no token."""
        if self.token is None:
            return False
        return hmac.compare_digest(text.encode(errors="replace"), self.token.encode())

    def _find_refusal(self, request: HTTPConnection, has_token: bool) -> ASGIApp | None:
        """Return the answer to a request that must be refused, or None."""
        hosts = [host.lower() for host in request.headers.getlist("host")]
        origins = [origin.lower() for origin in request.headers.getlist("origin")]
        if len(hosts) != 1 or (self.token is None and not self._is_local(hosts[0])):
            return _answer_problem(403, "Open this page at localhost or 127.0.0.1, at any port.")
        own = [[f"http://{hosts[0]}"]]
        if self.token is not None:
            own.append([f"https://{hosts[0]}"])  # behind a proxy; without the token it is foreign
        needs_origin = bool(origins) or request.scope["type"] == "websocket"
        if (needs_origin and origins not in own) or _is_foreign(request):
            return _answer_problem(403, "This server answers only its own pages.")
        if self.token is not None and not has_token:
            return _ask_for_token(request)
        return None

    def _is_local(self, host: str) -> bool:
        """Whether a host names this machine, at any port; the host of a foreign page never does."""
        names = "|".join(map(re.escape, (*LOCAL_NAMES, *self.hosts)))
        return re.fullmatch(f"({names})(:[1-9][0-9]{{0,4}})?", host) is not None


def _ask_for_token(request: HTTPConnection) -> ASGIApp:
    """Answer who comes without the token: a person gets a page, with a field to type it."""
    if request.scope["type"] == "http" and request.scope["path"] == "/":
        return FileResponse(STATIC / "token.html", 401)
    return _answer_problem(401, "Open the address with the token that was printed.")


def _is_foreign(request: HTTPConnection) -> bool:
    """Whether the browser reports that another page sent the request, other than by a link."""
    names = ("site", "mode", "dest")
    site, mode, destination = (request.headers.getlist(f"sec-fetch-{name}") for name in names)
    is_link = (mode, destination) == (["navigate"], ["document"])
    return not (OWN_SITES.issuperset(site) or (is_link and request.scope["path"] == "/"))


class _Number(Convertor[int]):
    """A seed or an index in an address; `int` would raise for more than 4,300 digits."""

    regex = "[0-9]{1,16}"

    def convert(self, value: str) -> int:
        """Convert the text of an address to a number."""
        return int(value)

    def to_string(self, value: int) -> str:
        """Convert a number to text."""
        return str(value)


register_url_convertor("number", _Number())


def make_app(library: Library) -> Starlette:
    """Make the application: static files, runs as JSON, agents' games, a person's game."""
    # The system's table of types may be wrong, and browsers run no scripts of a wrong type.
    mimetypes.add_type("text/javascript", ".js")

    def as_json(function: Callable[..., Any]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            return await in_thread(lambda: _answer(function(**request.path_params)))

        return answer

    def viewer_of(request: Request) -> str:
        client = request.client.host if request.client else ""
        return request.query_params.get("viewer", client)[:100]

    async def answer_reel(request: Request) -> Response:
        viewer = viewer_of(request)
        is_brief = request.query_params.get("part") == "beginning"
        making = library.reel(**request.path_params, viewer=viewer, is_brief=is_brief)
        reel = await _while_connected(request, making)
        return Response(reel, media_type="application/json")

    async def answer_film(request: Request) -> Response:
        making = library.film(**request.path_params, viewer=viewer_of(request))
        return Response(await _while_connected(request, making), media_type="video/mp4")

    async def answer_notice(request: Request) -> Response:
        return _answer(library.find_notice(request.query_params.get("viewer", "")[:100]))

    async def answer_code(request: Request) -> Response:
        if not request.app.state.address:
            raise HTTPException(404, "Only this machine reaches this server.")
        return Response(draw_picture(request.app.state.address), media_type="image/svg+xml")

    seats = Seats(library.load_agent)
    app = Starlette(
        routes=[
            Route("/", lambda _: FileResponse(STATIC / "index.html")),
            Mount("/static", StaticFiles(directory=STATIC)),
            Route("/join.svg", answer_code),
            Route("/api/join", lambda request: _answer({"address": request.app.state.address})),
            Route("/api/notice", answer_notice),
            Route("/api/runs", as_json(library.list_runs)),
            Route("/api/runs/{run_id:path}/reels/{which}", answer_reel),
            Route(
                "/api/runs/{run_id:path}/reels/{which}/{seed:number}/{episode:number}", answer_reel
            ),
            Route(
                "/api/runs/{run_id:path}/films/{which}/{seed:number}/{episode:number}/{middle:number}",
                answer_film,
            ),
            Route("/api/runs/{run_id:path}", as_json(library.describe)),
            Route("/api/several/{ids:path}", as_json(library.compare)),
            WebSocketRoute("/game", lambda websocket: play_socket(websocket, seats)),
        ],
        middleware=[Middleware(GZipMiddleware, minimum_size=1000, compresslevel=5)],
        exception_handlers=dict.fromkeys((HTTPException, PixelpongError, Exception), _answer_error),
    )
    app.router.redirect_slashes = False
    app.state.address = ""  # for other machines, if they reach this server
    return app


async def _while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Await the result of `work`; cancel it if the client leaves.

    Raises:
        BusyError: the client has left.
    """

    async def wait_for_end() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    tasks = working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(wait_for_end())
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if leaving.done():
            raise BusyError("The client has left.")
        return await working
    finally:
        working.cancel()
        leaving.cancel()


def _answer(content: Any, status: int = 200) -> Response:
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return Response(text, status, media_type="application/json")


def _answer_problem(status: int, text: str) -> Response:
    return _answer({"problem": text}, status)


async def _answer_error(request: Request, error: Exception) -> Response:
    match error:
        case HTTPException():
            return _answer_problem(error.status_code, error.detail)
        case BusyError():
            return _answer_problem(503, str(error))
        case PixelpongError():
            return _answer_problem(404, on_one_line(str(error)))
    return _answer_problem(500, f"The server failed ({type(error).__name__}). Restart it.")
