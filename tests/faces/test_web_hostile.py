"""Who is served: Host, Origin, token, and paths that lead nowhere; in-process, without sockets."""

from __future__ import annotations

import hmac
import itertools

import pytest
from promises import promise
from web_client import OWN, ask_app

from pixelpong.faces.page.library import Library
from pixelpong.faces.page.server import HEADERS, Guard, make_app

pytestmark = promise("the page")

PORT = 8080
ORIGIN = ("origin", f"http://{OWN}")
LOOPBACK = ("127.0.0.1", "localhost"), PORT


@pytest.fixture(scope="module")
def page(toy_runs):
    """The page behind a guard that the test may choose; its game greets and ends."""

    async def play_socket(websocket, load_agent):
        await websocket.accept()
        await websocket.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pixelpong.faces.page.server.play_socket", play_socket)
        app = make_app(Library(toy_runs["fast"].parent))
        yield lambda guard=LOOPBACK: Guard(app, *guard)


HOSTS = [
    "", " ", "null", "*", f"*:{PORT}", "evil.example", f"evil.example:{PORT}", f"0.0.0.0:{PORT}",
    f"localhost.evil.example:{PORT}", f"evil.example.127.0.0.1:{PORT}", f"{'a' * 5000}:{PORT}",
    "127.0.0.1", "localhost", f"127.0.0.1:{PORT + 1}", f"127.0.0.2:{PORT}", f"2130706433:{PORT}",
    f"localhost.:{PORT}", f"localhost:0{PORT}", f"localhost: {PORT}", f"[::1]:{PORT}",
    f"localhost:{PORT}@evil.example", f"evil.example@localhost:{PORT}", f"localhost:{PORT}/",
    f"http://localhost:{PORT}", f"localhost:{PORT},evil.example", f"[::ffff:127.0.0.1]:{PORT}",
    f"l\u00f6calhost:{PORT}", f"%6cocalhost:{PORT}", f"localhost\t:{PORT}",
]  # fmt: skip
ORIGINS = [
    "", "null", "*", f"https://{OWN}", f"ws://{OWN}", "file://", f"http://{OWN}/", OWN,
    f"http://{OWN}.", *(f"http://{host}" for host in HOSTS if host.strip()),
]  # fmt: skip


def test_a_foreign_host_is_refused_whatever_it_asks_for(page):
    asked = ("/", "http"), ("/api/runs", "http"), ("/game", "websocket")
    for host, (path, kind) in itertools.product(HOSTS, asked):
        for origin in ([], [ORIGIN], [("origin", f"http://{host}")]):
            check(ask_app(page(), path, *origin, host=host, kind=kind), 403)
    check(ask_app(page(), "/", ("host", "evil.example")), 403)


def test_a_foreign_page_can_neither_ask_nor_play_but_its_own_can(page):
    """A game needs an origin, and exactly one."""
    for origin in ORIGINS:
        check(ask_app(page(), "/api/runs", ("origin", origin)), 403)
        check(ask_app(page(), "/game", ("origin", origin), kind="websocket"), 403)
    for origins in ([], [ORIGIN, ("origin", "http://evil.example")]):
        check(ask_app(page(), "/game", *origins, kind="websocket"), 403)
    for host in (OWN, f"localhost:{PORT}", f"LocalHost:{PORT}"):
        assert ask_app(page(), "/api/runs", host=host).status_code == 200
        origin = ("origin", f"http://{host}".lower())
        assert ask_app(page(), "/game", origin, host=host, kind="websocket").status_code == 101


def test_each_path_has_its_answer_for_looking_and_none_for_anything_else(page):
    found = "/", "/static/style.css", "/static/app.js", "/api/runs", "/api/runs/fast"
    missing = "/nothing", "/game", "/api/runs/x", "/api/runs/fast/reels/999"
    for path, status in {**dict.fromkeys(found, 200), **dict.fromkeys(missing, 404)}.items():
        check(ask_app(page(), path), status)
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "X"):
            answer = ask_app(page(), path, method=method)
            check(answer, 404 if status == 404 and answer.status_code == 404 else 405)


TARGETS = ["etc/passwd", "config.json", "run.lock", "__init__.py"]
STEPS = [
    "../", "..%2f", "%2e%2e/", "%2e%2e%2f", "%252e%252e%252f", "..\\", "..%5c", "....//", "..;/",
    "..%00/", "%c0%ae%c0%ae/", "%e0%80%ae%e0%80%ae/", "/", "//", "file:///", "/proc/self/cwd/",
    "~/", "%2f", "C:/",
]  # fmt: skip
ODD = ["", ".", "..", "%00", "0%00", "-1", "1.0", "9" * 400, "NaN", "*", "%", "%zz", "0" * 16]


@pytest.mark.slow
def test_no_path_leads_out_of_the_table(page):
    """Nothing but the list's ids, and the names of saved agents, is answered."""
    every = [step * n + target for step, target, n in itertools.product(STEPS, TARGETS, (1, 4))]
    places = "/{}", "/static/{}", "/api/runs/{}", "/api/runs/{}/reels/1", "/api/runs/fast/reels/{}"
    targets = {place.format(payload) for place in places for payload in every + ODD} - {"/", "//"}
    for target in targets:
        answer = ask_app(page(), target)
        assert answer.status_code in (400, 404), target
        assert b"root:" not in answer.content
    assert len(targets) > 700


def check(answer, status):
    """Every answer has the headers, and a refusal one line of JSON."""
    assert answer.status_code == status
    assert answer.headers.items() >= HEADERS.items()
    assert "default-src 'none'; script-src 'self'; " in HEADERS["content-security-policy"]
    assert "unsafe" not in HEADERS["content-security-policy"]
    assert "cache-control" in answer.headers
    assert not answer.headers.keys() & {"server", "access-control-allow-origin"}
    if status >= 400:
        assert list(answer.json()) == ["problem"]
        assert "\n" not in answer.json()["problem"]


def test_nobody_is_served_without_the_token(page, monkeypatch):
    token, compared, same = "correct-horse-battery", [], hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append((a, b)) or same(a, b))
    app, name = page((("127.0.0.1",), PORT, token)), f"pixelpong-{PORT}"
    wrong = ["", "wrong", token[:-1], token + "x", token.upper(), "%00", "caf%C3%A9", "%ff"]
    for path, words in itertools.product(("/", "/static/app.js", "/api/runs", "/nothing"), wrong):
        check(ask_app(app, path), 401)
        check(ask_app(app, f"{path}?token={words}"), 401)
        check(ask_app(app, path, ("cookie", f"{name}={words}")), 401)
    assert compared, "the token was compared in another way"
    answer = ask_app(app, f"/api/runs?token={token}")
    value, *flags = answer.headers["set-cookie"].split("; ")
    assert (answer.status_code, set(flags)) == (200, {"HttpOnly", "SameSite=Strict", "Path=/"})
    for cookie, status in ((value, 200), (f"{value}0", 401)):
        answer = ask_app(app, "/api/runs", ("cookie", f"a=b; {cookie}"))
        assert (answer.status_code, "set-cookie" in answer.headers) == (status, False)
        game = ask_app(app, "/game", ORIGIN, ("cookie", cookie), kind="websocket")
        assert game.status_code == (101 if status == 200 else 401)
    assert ask_app(app, f"/?token={token}", host="any.example").status_code == 200
    check(ask_app(app, "/", host="evil.example"), 401)
