"""Checks who is served, by Host, Origin, method and token; sets the headers of every answer.

Every web page that a person visits can reach a server on that person's machine. So a request must
name this server as its host (a foreign name that points here is refused), only the game's
WebSocket, which a foreign page cannot open, can change anything, and no other page can frame, embed
or read an answer. If other machines can reach the server, every request needs a token.

Covered: the checks, as a wrapper around any ASGI application. Not covered: what is served (`app`).
"""

from __future__ import annotations

import hmac

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pixelpong.errors import expected
from pixelpong.faces.page.address import Door

METHODS = ("GET", "HEAD")

MAX_TARGET = 2000
"""Limit of path and query, in characters; ours have fewer than 100."""

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""Headers of every answer."""


class Guard:
    """An ASGI application behind a door."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        """Pass to `app` only what `door` allows."""
        self._app, self._door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = HTTPConnection(scope)
        cookie: str | None = None

        async def send_with_headers(message: Message) -> None:
            if message["type"].endswith((".response.start", "websocket.accept")):
                headers = MutableHeaders(raw=list(message.get("headers", [])))
                headers.update(HEADERS)
                headers.setdefault("cache-control", "no-cache" if "etag" in headers else "no-store")
                if cookie is not None:
                    headers.append("set-cookie", cookie)
                message["headers"] = headers.raw
            await send(message)

        app = self._find_refusal(request)
        if app is None and self._door.token is not None and not self._has_cookie(request):
            if self._shows_token(request):
                cookie = "{}={}; HttpOnly; SameSite=Strict; Path=/".format(*self._door.cookie)
            else:
                advice = "open the address that was printed at the start"
                app = _refuse(401, expected("the token", "none or a wrong one", advice))
        await (app or self._app)(scope, receive, send_with_headers)

    def _find_refusal(self, request: HTTPConnection) -> ASGIApp | None:
        """The refusal of a request that is not meant for us, or wants to do more than read."""
        headers, door = request.headers, self._door
        hosts = [host.lower() for host in headers.getlist("host")]
        if len(hosts) != 1 or hosts[0] not in door.names(request.scope["server"][0]):
            advice = f"open http://{door.hosts[0]}:{door.port}/"
            return _refuse(403, expected("the name of this server", "another Host", advice))
        origins = [origin.lower() for origin in headers.getlist("origin")]
        is_socket = request.scope["type"] == "websocket"
        if (origins or is_socket) and origins != [f"http://{hosts[0]}"]:
            return _refuse(403, expected("a page of this server", "another Origin", "open it"))
        is_foreign = headers.get("sec-fetch-site", "none") not in ("same-origin", "none")
        if is_foreign and request.url.path != "/":
            return _refuse(403, expected("a page of this server", "another site", "open it"))
        if not is_socket and request.scope["method"] not in METHODS:
            answer = _refuse(405, expected("GET or HEAD", "another method", "use GET"))
            answer.headers["allow"] = ", ".join(METHODS)
            return answer
        if len(request.url.path) + len(request.url.query) > MAX_TARGET:
            what = f"an address of at most {MAX_TARGET} characters"
            return _refuse(414, expected(what, "more", "shorten it"))
        return None

    def _has_cookie(self, request: HTTPConnection) -> bool:
        name, value = self._door.cookie
        return _is_same(request.cookies.get(name, ""), value)

    def _shows_token(self, request: HTTPConnection) -> bool:
        """Whether the address contains it: one guess per request."""
        shown = request.query_params.getlist("token")
        return len(shown) == 1 and _is_same(shown[0], self._door.token or "")


def _refuse(status: int, text: str) -> JSONResponse:
    return JSONResponse({"error": text}, status)


def _is_same(got: str, wanted: str) -> bool:
    """Compare in a time that does not reveal how much is right."""
    return hmac.compare_digest(got.encode(errors="replace"), wanted.encode())
