"""Who is served: Host, Origin, token, and paths that lead nowhere; in-process, without sockets."""

from __future__ import annotations

import hmac
import itertools

import pytest
from web_client import api, ask_app

from pixelpong.faces.page.library import Library
from pixelpong.faces.page.server import HEADERS, Guard, make_app
from pixelpong.run.directory import RunDirectory

PORT = 8080
OWN = f"127.0.0.1:{PORT}"
ORIGIN = ("origin", f"http://{OWN}")
DOOR = ("127.0.0.1", "localhost"), PORT


@pytest.fixture(scope="module")
def run(toy_runs):
    return RunDirectory(toy_runs["fast"])


@pytest.fixture(scope="module")
def page(run):
    """The page behind a door that the test may choose; its game greets and ends."""

    async def play_socket(websocket, load_agent):
        await websocket.accept()
        await websocket.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pixelpong.faces.page.server.play_socket", play_socket)
        app = make_app(Library(run.path.parent))
        yield lambda door=DOOR: Guard(app, *door)


HOSTS = [
    "", " ", "evil.example", f"evil.example:{PORT}", f"localhost.evil.example:{PORT}",
    f"127.0.0.1.evil.example:{PORT}", f"evil.example.127.0.0.1:{PORT}", f"0.0.0.0:{PORT}",
    "127.0.0.1", "localhost", f"127.0.0.1:{PORT + 1}", "127.0.0.1:80", f"127.0.0.2:{PORT}",
    f"127.1:{PORT}", f"2130706433:{PORT}", f"0x7f000001:{PORT}", f"0177.0.0.1:{PORT}",
    f"localhost.:{PORT}", f"localhost:0{PORT}", f"localhost: {PORT}", f"[::1]:{PORT}",
    f"localhost:{PORT}@evil.example", f"evil.example@localhost:{PORT}", f"localhost:{PORT}/",
    f"localhost:{PORT}#", f"http://localhost:{PORT}", f"localhost:{PORT},evil.example",
    f"[::ffff:127.0.0.1]:{PORT}", f"l\u00f6calhost:{PORT}", f"%6cocalhost:{PORT}",
    f"localhost\t:{PORT}", f"{'a' * 5000}:{PORT}", "null", "*", f"*:{PORT}",
]  # fmt: skip


@pytest.mark.parametrize("host", HOSTS)
def test_a_foreign_host_is_refused_whatever_it_asks_for(page, host):
    for path, kind in (("/", "http"), ("/api/runs", "http"), ("/game", "websocket")):
        for origin in ([], [ORIGIN], [("origin", f"http://{host}")]):
            answer = ask_app(page(), path, host, *origin, kind=kind)
            check(answer, 403)


def test_its_own_names_are_served_and_one_host_only(page):
    for host in (OWN, f"localhost:{PORT}", f"LocalHost:{PORT}"):
        assert ask_app(page(), "/api/runs", host).status == 200
        origin = ("origin", f"http://{host}".lower())
        assert ask_app(page(), "/game", host, origin, kind="websocket").status == 101
    check(ask_app(page(), "/", OWN, ("host", "evil.example")), 403)


ORIGINS = [
    "", "null", "*", f"https://{OWN}", f"ws://{OWN}", "file://", f"http://{OWN}/", OWN,
    f"http://{OWN}.", *(f"http://{host}" for host in HOSTS if host.strip()),
]  # fmt: skip


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_foreign_page_can_neither_ask_nor_play(page, origin):
    check(ask_app(page(), "/api/runs", OWN, ("origin", origin)), 403)
    check(ask_app(page(), "/game", OWN, ("origin", origin), kind="websocket"), 403)


def test_a_game_needs_an_origin_and_exactly_one(page):
    check(ask_app(page(), "/game", OWN, kind="websocket"), 403)
    twice = [ORIGIN, ("origin", "http://evil.example")]
    check(ask_app(page(), "/game", OWN, *twice, kind="websocket"), 403)


def test_each_path_has_its_answer_for_looking_and_none_for_anything_else(page, run):
    paths = dict.fromkeys(("/", "/static/style.css", "/static/app.js", "/api/runs", api(run)), 200)
    paths |= dict.fromkeys(("/nothing", "/game", "/api/runs/x", api(run, "/reels/999")), 404)
    for path, status in paths.items():
        check(ask_app(page(), path, OWN), status)
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "X"):
            answer = ask_app(page(), path, OWN, method=method)
            check(answer, 404 if status == 404 and answer.status == 404 else 405)


TARGETS = ["etc/passwd", "config.json", "run.lock", "__init__.py"]
STEPS = [
    "../", "..%2f", "%2e%2e/", "%2e%2e%2f", "%252e%252e%252f", "..\\", "..%5c", "....//", "..;/",
    "..%00/", "%c0%ae%c0%ae/", "%e0%80%ae%e0%80%ae/", "/", "//", "file:///", "/proc/self/cwd/",
    "~/", "%2f", "C:/",
]  # fmt: skip
ODD = ["", ".", "..", "%00", "0%00", "-1", "1.0", "9" * 400, "NaN", "*", "%", "%zz", "0" * 16]


@pytest.mark.slow
def test_no_path_leads_out_of_the_table(page, run):
    """Nothing but the list's ids, and the names of saved agents, is answered."""
    every = [step * n + target for step, target, n in itertools.product(STEPS, TARGETS, (1, 4))]
    places = ["/{}", "/static/{}", "/api/runs/{}", "/api/runs/{}/reels/1", api(run, "/reels/{}")]
    app, count = page(), 0
    for place, payload in itertools.product(places, every + ODD):
        target = place.format(payload)
        if target in ("/", "//"):
            continue
        answer = ask_app(app, target, OWN)
        assert answer.status in (400, 404), target
        assert b"root:" not in answer.body
        count += 1
    assert count > 700


def check(answer, status):
    """Every answer has the headers, and a refusal one line of JSON."""
    assert answer.status == status
    assert answer.headers.items() >= HEADERS.items()
    policy = HEADERS["content-security-policy"]
    assert "default-src 'none'; script-src 'self'; " in policy
    assert "unsafe" not in policy
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
    for path, kind in itertools.product(("/", "/static/app.js", "/api/runs", "/nothing"), wrong):
        check(ask_app(app, path, OWN), 401)
        check(ask_app(app, f"{path}?token={kind}", OWN), 401)
        check(ask_app(app, path, OWN, ("cookie", f"{name}={kind}")), 401)
    assert compared, "the token was compared in another way"
    answer = ask_app(app, f"/api/runs?token={token}", OWN)
    value, *flags = answer.headers["set-cookie"].split("; ")
    assert (answer.status, set(flags)) == (200, {"HttpOnly", "SameSite=Strict", "Path=/"})
    for cookie, status in ((value, 200), (f"{value}0", 401)):
        answer = ask_app(app, "/api/runs", OWN, ("cookie", f"a=b; {cookie}"))
        assert (answer.status, "set-cookie" in answer.headers) == (status, False)
        game = ask_app(app, "/game", OWN, ORIGIN, ("cookie", cookie), kind="websocket")
        assert game.status == (101 if status == 200 else 401)
    assert ask_app(app, f"/?token={token}", "any.example").status == 200, "whoever has it knows us"
    check(ask_app(app, "/", "evil.example"), 401)
