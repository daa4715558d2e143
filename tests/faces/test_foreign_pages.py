"""Other web pages: nothing of theirs reaches the page's application."""

from __future__ import annotations

import itertools
import re

import pytest
from promises import promise
from starlette.responses import Response
from starlette.routing import Mount, WebSocketRoute
from web_client import OWN, ask_app

from pixelpong.faces.page.library import Library
from pixelpong.faces.page.server import Guard, make_app

pytestmark = promise("the page")

OWN_PAGE = ("origin", f"http://{OWN}")


def list_routes(folder) -> list[tuple[str, str]]:
    """The kind and the path of each route of the application, with its parameters in braces."""
    routes = []
    for route in make_app(Library(folder)).routes:
        kind = "websocket" if isinstance(route, WebSocketRoute) else "http"
        routes.append((kind, f"{route.path}/app.js" if isinstance(route, Mount) else route.path))
    return routes


PARAMETER = re.compile(r"{(\w+)(?::\w+)?}")
VALUES = {
    "run_id": "package", "which": "nobody", "seed": "0", "episode": "0", "middle": "0",
    "ids": "package",
}  # fmt: skip


def fill(path, **values) -> str:
    """A route's path with its parameters filled in."""
    return PARAMETER.sub(lambda found: (VALUES | values)[found[1]], path)


# --- who is let in ------------------------------------------------------------------------------

# What browsers send with the requests that a page can cause: mode and destination.
CAUSES = [
    ("no-cors", "image"), ("no-cors", "script"), ("no-cors", "style"), ("no-cors", "audio"),
    ("no-cors", "empty"), ("cors", "empty"), ("cors", "font"), ("same-origin", "worker"),
    ("navigate", "iframe"), ("navigate", "frame"), ("navigate", "embed"), ("navigate", "object"),
    ("navigate", "document"), ("websocket", "websocket"), ("no-cors", "document"),
]  # fmt: skip
FOREIGN = ["cross-site", "same-site", "", "foreign", "same-origin, cross-site"]


@pytest.fixture
def guard():
    """A guard, and the list of what it has let in."""
    reached = []

    async def app(scope, receive, send):
        reached.append((scope["type"], scope["path"]))
        await Response()(scope, receive, send)

    return Guard(app, ("127.0.0.1",), 8080), reached


def mark(site, mode, destination):
    values = {"site": site, "mode": mode, "dest": destination}
    return [(f"sec-fetch-{name}", value) for name, value in values.items() if value is not None]


def test_no_route_is_reached_by_what_a_foreign_page_causes_but_by_a_link_to_the_page(
    tmp_path, guard
):
    guarded, reached = guard
    routes = list_routes(tmp_path)
    assert {"/", "/api/runs", "/game"} < {path for _, path in routes}
    marks = [*itertools.product(FOREIGN[:1], CAUSES), *itertools.product(FOREIGN[1:], CAUSES[::12])]
    for (kind, path), (site, cause) in itertools.product(routes, marks):
        is_link = path == "/" and cause == ("navigate", "document")
        for headers in (
            mark(site, *cause),
            [*mark("same-origin", *cause), ("sec-fetch-site", site)],
        ):
            origins = [[], [OWN_PAGE]] if kind == "http" else [[OWN_PAGE]]
            for origin in origins:
                answer = ask_app(guarded, fill(path), *headers, *origin, kind=kind)
                assert answer.status_code == (200 if is_link else 403), (path, headers)
                assert len(reached) == is_link
                reached.clear()


def test_the_own_page_and_a_person_reach_every_route(tmp_path, guard):
    guarded, reached = guard
    for (kind, path), site, cause in itertools.product(
        list_routes(tmp_path), ("same-origin", "none", None), CAUSES
    ):
        headers = mark(site, *cause)
        origin = [OWN_PAGE] if kind == "websocket" else []
        ask_app(guarded, fill(path), *headers, *origin, kind=kind)
        assert reached.pop() == (kind, fill(path))


def test_a_page_behind_https_is_its_own_only_with_the_token(guard):
    guarded, reached = guard
    secure = ("origin", f"https://{OWN}")
    assert ask_app(guarded, "/game", secure, kind="websocket").status_code == 403
    guarded = Guard(guarded.app, guarded.hosts, 8080, token="word")
    assert ask_app(guarded, "/game?token=word", secure, kind="websocket").status_code == 200
    assert ask_app(guarded, "/game", secure, kind="websocket").status_code == 401
    foreign = ("origin", "https://evil.example")
    assert ask_app(guarded, "/game?token=word", foreign, kind="websocket").status_code == 403
    assert len(reached) == 1


# --- odd words in addresses ---------------------------------------------------------------------

ODD = [
    *("9" * size for size in (15, 16, 17, 20, 400, 4300, 4301, 20_000)), "0" * 5000 + "1", "-1",
    "+1", "1.0", "1e3", "0x1", "%31", "%D9%A1", "%EF%BC%91", "1%0A", "%0A1", "1_0", "", " ", "%00",
    "%ff%fe", "a" * 20_000, ",", "," * 3000, "~", "*", "null", "..", "%2e%2e%2f" * 50,
]  # fmt: skip


def test_odd_words_in_any_place_of_any_address_are_refused_and_never_an_error(toy_runs):
    """An exception in the server would be raised here."""
    folder = toy_runs["fast"].parent
    shelf = Library(folder)
    app = Guard(make_app(shelf), ("127.0.0.1",), 8080)
    tried = 0
    for kind, path in list_routes(folder):
        for found, word in itertools.product(PARAMETER.finditer(path), ODD):
            answer = ask_app(app, fill(path, **{found[1]: word}), kind=kind)
            assert answer.status_code in (400, 404), (path, found[1], word[:50])
            assert list(answer.json()) == ["problem"]
            tried += 1
    assert tried >= 5 * len(ODD)
    for word in ODD:
        for query in (f"run={word}&agent=best", f"run=package&agent={word}"):
            ask_app(app, f"/game?{query}", OWN_PAGE, kind="websocket")  # it ends
    shelf.close()
