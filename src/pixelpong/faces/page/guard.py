"""Checks who is served, by Host, Origin and token; sets the headers of every answer.

Every web page that a person visits can reach a server on that person's machine. So a request must
name this server as its host (a foreign name that points here is refused), a page of another origin
is refused, and no other page can frame, embed or read an answer. If other machines can reach the
server, every request needs a token.
"""

from __future__ import annotations

import hmac

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pixelpong.errors import expected
from pixelpong.faces.page.address import Door

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    """An ASGI application that passes on to `app` only what `door` allows."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app, self._door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, token = HTTPConnection(scope), self._door.token
        cookie = f"pixelpong-{self._door.port}"
        shows_token = _is_same(request.query_params.get("token"), token)

        async def send_with_headers(message: Message) -> None:
            if message["type"].endswith((".response.start", "websocket.accept")):
                headers = MutableHeaders(raw=list(message.get("headers", [])))
                headers.update(HEADERS)
                headers.setdefault("cache-control", "no-cache" if "etag" in headers else "no-store")
                if shows_token:
                    headers.append(
                        "set-cookie", f"{cookie}={token}; HttpOnly; SameSite=Strict; Path=/"
                    )
                message["headers"] = headers.raw
            await send(message)

        app = self._find_refusal(request)
        has_cookie = _is_same(request.cookies.get(cookie), token)
        if app is None and token is not None and not shows_token and not has_cookie:
            advice = "open the address that was printed at the start"
            app = _refuse(401, expected("the token", "none or a wrong one", advice))
        await (app or self._app)(scope, receive, send_with_headers)

    def _find_refusal(self, request: HTTPConnection) -> ASGIApp | None:
        """The refusal of a request that is not meant for us."""
        headers, door = request.headers, self._door
        hosts = [host.lower() for host in headers.getlist("host")]
        if len(hosts) != 1 or hosts[0] not in door.names(request.scope["server"][0]):
            advice = f"open http://{door.hosts[0]}:{door.port}/"
            return _refuse(403, expected("the name of this server", "another Host", advice))
        origins = [origin.lower() for origin in headers.getlist("origin")]
        is_socket = request.scope["type"] == "websocket"
        if (origins or is_socket) and origins != [f"http://{hosts[0]}"]:
            return _refuse(403, expected("a page of this server", "another Origin", "open it"))
        return None


def _refuse(status: int, text: str) -> JSONResponse:
    return JSONResponse({"problem": text}, status)


def _is_same(got: str | None, wanted: str | None) -> bool:
    """Compare in a time that does not reveal how much is right."""
    if got is None or wanted is None:
        return False
    return hmac.compare_digest(got.encode(errors="replace"), wanted.encode())
