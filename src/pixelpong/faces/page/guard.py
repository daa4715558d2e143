"""Who is served: Host, Origin, method, token; and the headers that every answer carries.

A page on a person's own machine is within reach of every web page that person visits. So only
requests that name this server as their host are answered (a foreign name that was made to point
here is none), nothing can be changed but by the game's WebSocket, which a foreign page cannot
open, and nothing that is answered can be framed, embedded or read by another page. Where the
server listens on more than this machine, all of it needs a token.

Covered: the checks, as a wrapper around any ASGI application. Not covered: slow and half-open
connections (`connections`), what is served (`app`).
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from pixelpong.errors import expected

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

METHODS = ("GET", "HEAD")

MAX_PATH, MAX_QUERY = 500, 2000
"""Characters; ours have below 100."""

_MAX_FIELDS = 20

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'{socket}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class Refusal(Exception):  # noqa: N818 - an answer, not an error
    """A request that is answered with a status and one line."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


@dataclass(frozen=True)
class Door:
    """By which names the server may be called, and what it asks for.

    Attributes:
        hosts: lower-case names and addresses, IPv6 ones in brackets.
        port: that it listens on.
        token: secret that everybody must know; None where nobody has to.
        is_wide: it listens on all addresses of this machine, so the one that a connection came
            in by is a name for it too.
    """

    hosts: tuple[str, ...]
    port: int
    token: str | None = None
    is_wide: bool = False

    def names(self, scope: Message) -> set[str]:
        """What a Host header may say on a connection."""
        hosts = set(self.hosts)
        if self.is_wide and scope.get("server"):
            address = scope["server"][0]
            hosts.add(f"[{address}]" if ":" in address else address)
        names = {f"{host}:{self.port}" for host in hosts}
        return names | hosts if self.port == 80 else names

    @property
    def cookie(self) -> tuple[str, str]:
        """Name and value of the cookie of who has shown the token: not the token itself."""
        assert self.token is not None
        digest = hmac.new(self.token.encode(), b"pixelpong cookie", hashlib.sha256)
        return f"pixelpong-{self.port}", digest.hexdigest()


class Guard:
    """An ASGI application behind a door."""

    def __init__(self, app: App, door: Door) -> None:
        """Let through to `app` what `door` allows."""
        self._app, self._door = app, door

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request, whatever happens: an error of ours becomes one line too."""
        answer = _Answer(scope, send)
        try:
            answer.socket = _require_name(scope, self._door)
            _require_harmless(scope)
            answer.cookie = _require_token(scope, self._door)
            await self._app(scope, receive, answer.send)
        except Refusal as refusal:
            await answer.refuse(refusal)
        except Exception as error:
            if not answer.has_begun:
                text = expected("an answer", type(error).__name__, "reload, or start anew")
                await answer.refuse(Refusal(500, text))


class _Answer:
    """What goes back, with our headers."""

    def __init__(self, scope: Message, send: Send) -> None:
        self._is_socket = scope["type"] == "websocket"
        self._send = send
        self.has_begun = False
        self.socket = ""
        self.cookie: bytes | None = None

    async def send(self, message: Message) -> None:
        """Pass a message on."""
        kind = message["type"]
        if kind == "websocket.close" and not self.has_begun:
            return await self.refuse(Refusal(404, "expected a game, got another path"))
        if kind.endswith("response.start") or kind == "websocket.accept":
            self.has_begun = True
            message["headers"] = [*self._own_headers(message.get("headers", []))]
        await self._send(message)
        return None

    async def refuse(self, refusal: Refusal) -> None:
        """Answer with one line."""
        if self.has_begun:
            return
        body = json.dumps({"error": refusal.text}, ensure_ascii=False).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            *([(b"allow", ", ".join(METHODS).encode())] if refusal.status == 405 else []),
        ]
        kind = "websocket.http.response" if self._is_socket else "http.response"
        await self.send({"type": f"{kind}.start", "status": refusal.status, "headers": headers})
        await self.send({"type": f"{kind}.body", "body": body, "more_body": False})

    def _own_headers(self, headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        given = [(name.lower(), value) for name, value in headers]
        ours = all_headers(self.socket)
        if not any(name == b"cache-control" for name, _ in given):
            ours.append((b"cache-control", b"no-store"))
        if self.cookie is not None:
            ours.append((b"set-cookie", self.cookie))
        names = {name for name, _ in ours}
        return [(name, value) for name, value in given if name not in names] + ours


def all_headers(socket: str = "") -> list[tuple[bytes, bytes]]:
    """The headers of every answer.

    Args:
        socket: ``ws://…`` of this server, for browsers to whom ``'self'`` does not say it.
    """
    policy = _POLICY.format(socket=f" {socket}" if socket else "")
    return [(b"content-security-policy", policy.encode()), *_HEADERS]


def _values(scope: Message, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]


def _require_name(scope: Message, door: Door) -> str:
    """The WebSocket's address, where the request was meant for us."""
    names = door.names(scope)
    hosts = [host.lower() for host in _values(scope, b"host")]
    if len(hosts) != 1 or hosts[0] not in names:
        advice = f"open http://{door.hosts[0]}:{door.port}/"
        raise Refusal(403, expected("the name of this server", "another Host", advice))
    origins = [origin.lower() for origin in _values(scope, b"origin")]
    is_socket = scope["type"] == "websocket"
    is_ours = len(origins) == 1 and origins[0] in {f"http://{name}" for name in names}
    if (origins or is_socket) and not is_ours:
        raise Refusal(403, expected("a page of this server", "another Origin", "open it there"))
    sites = _values(scope, b"sec-fetch-site")
    if scope["path"] != "/" and any(site not in ("same-origin", "none") for site in sites):
        raise Refusal(403, expected("a page of this server", "another site", "open it there"))
    return f"ws://{hosts[0]}"


def _require_harmless(scope: Message) -> None:
    if scope["type"] == "http" and scope["method"] not in METHODS:
        raise Refusal(405, expected("GET or HEAD", "another method", "only look"))
    if len(scope["path"]) > MAX_PATH or len(scope.get("query_string", b"")) > MAX_QUERY:
        what = f"at most {MAX_PATH} characters and {MAX_QUERY} in the query"
        raise Refusal(414, expected(what, "more", "shorten it"))


def _require_token(scope: Message, door: Door) -> bytes | None:
    """The cookie to be set, where the token was shown in the address."""
    if door.token is None:
        return None
    name, value = door.cookie
    shown = _values(scope, b"cookie")
    pairs = [pair.strip().partition("=") for cookie in shown for pair in cookie.split(";")]
    if any(_is_same(got, value) for key, _, got in pairs if key == name):
        return None
    try:
        fields = parse_qsl(scope.get("query_string", b"").decode(), max_num_fields=_MAX_FIELDS)
    except ValueError:
        fields = []
    if any(_is_same(got, door.token) for key, got in fields if key == "token"):
        return f"{name}={value}; HttpOnly; SameSite=Strict; Path=/".encode()
    advice = "open the address that was printed at the start"
    raise Refusal(401, expected("the token", "none or another", advice))


def _is_same(got: str, wanted: str) -> bool:
    """Compare in a time that does not tell how much of it is right."""
    return hmac.compare_digest(got.encode(errors="replace"), wanted.encode())
