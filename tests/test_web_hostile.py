"""The page's server against whoever means it ill: over real sockets, byte by byte."""

from __future__ import annotations

import contextlib
import hmac
import itertools
import socket
import sys
import time
import types

import pytest
from conftest import patience, wait_until
from web_client import (
    api,
    ask,
    connect,
    get,
    handshake,
    head,
    make_lines,
    metrics_line,
    read_answer,
    serving,
)

from pixelpong.faces.page import address, live, server
from pixelpong.faces.page.view import id_of
from pixelpong.run.directory import RunDirectory

TOKEN = "correct horse battery"
CLOSE = "Connection: close"

EVERY_ANSWER = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@pytest.fixture(scope="module")
def run(toy_runs):
    return RunDirectory.open(toy_runs["fast"], [].append)


@pytest.fixture(scope="module", autouse=True)
def game():
    """A game that greets, so that what matters here is who gets there."""

    async def play_socket(websocket, library):
        await websocket.accept()
        await websocket.send_text("hello")
        await websocket.close()

    stand_in = types.ModuleType("pixelpong.faces.games.socket")
    stand_in.play_socket = play_socket
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "pixelpong.faces.games.socket", stand_in)
        yield


@pytest.fixture(scope="module")
def port(run):
    with serving(run.path.parent) as served:
        yield served.port


def hosts(port):
    """Names that are not this server's."""
    return [
        "", " ", "evil.example", f"evil.example:{port}", f"localhost.evil.example:{port}",
        f"127.0.0.1.evil.example:{port}", f"evil.example.127.0.0.1:{port}", f"0.0.0.0:{port}",
        "127.0.0.1", "localhost", "[::1]", f"127.0.0.1:{port + 1}", f"localhost:{port + 1}",
        "127.0.0.1:80", "localhost:443", f"127.0.0.2:{port}", f"127.1:{port}", f"127.0.1:{port}",
        f"2130706433:{port}", f"0x7f000001:{port}", f"0177.0.0.1:{port}", f"localhost.:{port}",
        f"localhost:{port}.", f"localhost:0{port}", f"localhost: {port}", f"local host:{port}",
        f"localhost:{port}@evil.example", f"evil.example@localhost:{port}",
        f"user:word@localhost:{port}", f"localhost:{port}/", f"localhost:{port}/..",
        f"localhost:{port}#", f"localhost:{port}?", f"http://localhost:{port}",
        f"localhost:{port},evil.example", f"localhost:{port};evil", f"::1:{port}",
        f"[::]:{port}", f"[::ffff:127.0.0.1]:{port}", f"[::1%25lo]:{port}",
        f"[0:0:0:0:0:0:0:1]:{port}",
        f"l\u00f6calhost:{port}", f"%6cocalhost:{port}", f"localhost%00:{port}",
        f"localhost\t:{port}",
        f"{'a' * 5000}:{port}", "null", "*", f"*:{port}",
    ]  # fmt: skip


@pytest.mark.slow
def test_only_its_own_names_are_served(port):
    strange = hosts(port)
    assert len(strange) >= 40
    for host in strange:
        for request in (
            head("GET", "/", host, CLOSE),
            head("GET", "/api/runs", host, CLOSE),
            handshake(port, host, f"Origin: http://localhost:{port}"),
            handshake(port, host, f"Origin: http://{host}"),
        ):
            assert ask(port, request).status in (400, 403), host
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LocalHost:{port}", f"[::1]:{port}"):
        assert ask(port, head("GET", "/api/runs", host, CLOSE)).status == 200, host
        assert ask(port, handshake(port, host, f"Origin: http://{host}")).status == 101, host


def origins(port):
    names = [host for host in hosts(port) if host.strip() and host not in ("*", "null")]
    return [
        "", "null", "*", f"https://localhost:{port}", f"ws://localhost:{port}", "file://",
        f"http://localhost:{port}/", f"localhost:{port}", f"http://localhost:{port} ".strip() + ".",
        *(f"http://{name}" for name in names if not name.startswith("http")),
    ]  # fmt: skip


def test_the_game_opens_for_a_page_of_this_server_only(port):
    own, strange = f"127.0.0.1:{port}", origins(port)
    assert len(strange) >= 40
    for origin in strange:
        answer = ask(port, handshake(port, own, f"Origin: {origin}"))
        assert answer.status in (400, 403), origin
    assert ask(port, handshake(port, own, f"Origin: http://{own}")).status == 101


METHODS = [
    "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "MKCOL", "COPY",
    "MOVE", "LOCK", "UNLOCK", "SEARCH", "REPORT", "PURGE", "get", "Get", "GETS", "X",
]  # fmt: skip


def paths_of(run):
    """Every path with its status."""
    numbers = {"/reels/agent/1": 404, "/weights/1": 404}
    of_run = {"": 200, "/metrics": 200, "/events": 200} | numbers
    own = dict.fromkeys(("/", "/static/style.css", "/static/app.js", "/api/runs"), 200)
    missing = dict.fromkeys(("/game", "/nothing", "/api/runs/x"), 404)
    return own | missing | {api(run, rest): status for rest, status in of_run.items()}


def test_every_method_but_looking_is_refused(port, run):
    own = f"127.0.0.1:{port}"
    for method, path in itertools.product(METHODS, paths_of(run)):
        answer = ask(port, head(method, path, own, CLOSE))
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD"), (method, path)
        check(answer)
        upgrade = handshake(port, own, f"Origin: http://{own}", target=path)
        assert ask(port, upgrade.replace(b"GET", method.encode(), 1)).status == 405, (method, path)


@pytest.mark.slow
def test_each_path_has_its_answer_and_only_the_game_is_a_socket(port, run):
    own = f"127.0.0.1:{port}"
    for path, status in paths_of(run).items():
        for method in ("GET", "HEAD"):
            answer = get(port, path, method=method)
            assert answer.status == status, (method, path)
            check(answer, method)
        answer = ask(port, handshake(port, own, f"Origin: http://{own}", target=path))
        assert answer.status == (101 if path == "/game" else 403), path
        if path == "/game":
            check(answer)


def check(answer, method="GET"):
    """Every answer has the headers, and a refusal one line of JSON."""
    assert answer.headers.items() >= EVERY_ANSWER.items()
    policy = answer.headers["content-security-policy"]
    parts = dict(part.strip().partition(" ")[::2] for part in policy.split(";"))
    assert parts["script-src"] == "'self'"
    for name in ("default-src", "base-uri", "form-action", "frame-ancestors"):
        assert parts[name] == "'none'"
    assert not [word for word in ("unsafe", "*") if word in policy]
    assert "cache-control" in answer.headers
    assert not answer.headers.keys() & {"server", "access-control-allow-origin"}
    if method == "HEAD":
        assert answer.body == b""
    elif answer.status >= 400:
        assert list(answer.json()) == ["error"]
        assert "\n" not in answer.json()["error"]


REQUESTS = {
    "a foreign origin": ("/api/runs", ["Origin: http://evil.example"], 403),
    "no origin": ("/api/runs", ["Origin: null"], 403),
    "a foreign site": ("/api/runs", ["Sec-Fetch-Site: cross-site"], 403),
    "a neighbour": ("/static/app.js", ["Sec-Fetch-Site: same-site"], 403),
    "this page": ("/api/runs", ["Sec-Fetch-Site: same-origin"], 200),
    "a link to us": ("/", ["Sec-Fetch-Site: cross-site"], 200),
    "a long query": ("/?" + "q" * 3000, [], 414),
    **{
        f"{path} after {value}": (f"{{run}}/{path}?after={value}", [], 400)
        for path in ("metrics", "events")
        for value in ("x", "-1", "1.5", "1e3", "%00", "%d9%a1", "9" * 16, "", "%201", "1&after=2")
    },
    "a long number": (f"{{run}}/events?after={'1' * 3000}", [], 414),
    "bytes": ("{run}/metrics?after=5&other=%ff%fe", [], 200),
    "many words": ("{run}/metrics?" + "a=1&" * 400, [], 200),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_is_answered_or_refused(port, run, name):
    target, headers, status = REQUESTS[name]
    answer = get(port, target.replace("{run}", api(run)), *headers)
    assert answer.status == status
    check(answer)


def test_a_head_that_is_not_in_order_is_refused(port):
    own = f"127.0.0.1:{port}"
    game = handshake(port, own, f"Origin: http://{own}")
    twice = (f"Origin: http://{own}", "Origin: http://evil.example")
    for request, status in (
        (head("GET", "/", None, CLOSE), 400),
        (b"GET / HTTP/1.0\r\n\r\n", 403),
        (head("GET", "/", own, f"Host: {own}", CLOSE), 400),
        (head("GET", "/", own, "Host: evil.example", CLOSE), 400),
        (head("GET", "/", None, f"X-Forwarded-Host: {own}", CLOSE), 400),
        (handshake(port, own), 403),
        (handshake(port, own, *twice), 400),
        (game.replace(b"Version: 13", b"Version: 12"), 400),
        (game.replace(b"Sec-WebSocket-Key", b"X-Key"), 400),
    ):
        answer = ask(port, request)
        assert answer.status == status, request
        if status == 403:
            check(answer)


TARGETS = ["etc/passwd", "config.json", "run.lock", "__init__.py"]
STEPS = [
    "../", "..%2f", "..%2F", "%2e%2e/", "%2e%2e%2f", "%252e%252e%252f", "..\\", "..%5c",
    "%2e%2e%5c",
    "....//", "..;/", "..%00/", "%c0%ae%c0%ae/", "%e0%80%ae%e0%80%ae/", "..%c0%af", "..%ef%bc%8f",
    "%uff0e%uff0e/", "/", "//", "file:///", "/proc/self/cwd/", "~/", "%2f", "C:/", "%5c%5c",
]  # fmt: skip


def payloads():
    for step, target, depth in itertools.product(STEPS, TARGETS, (1, 3, 8)):
        yield step * depth + target
    yield from ("", ".", "..", "%00", "0%00", "-1", "1.0", "1e3", "\u0661".encode().hex(), "%d9%a1")
    yield from ("9" * 13, "9" * 400, "index.html%00.js", "NaN", "*", "%", "%zz", "a" * 16, "0" * 16)


@pytest.mark.slow
def test_no_path_leads_out_of_the_table(port, run):
    """Nothing but the list's ids, the table's names and plain numbers is answered."""
    run_id, every = id_of(run.path), list(payloads())
    assert len(every) >= 200
    own = f"127.0.0.1:{port}"
    places = [
        "/{}", "/static/{}", "/api/runs/{}", "/api/runs/{}/metrics", "/api/runs/{}/events",
        "/api/runs/{}/reels/agent/1",
        f"/api/runs/{run_id}/reels/agent/{{}}", f"/api/runs/{run_id}/weights/{{}}",
    ]  # fmt: skip
    with connect(port) as made:
        for place, payload in itertools.product(places, every):
            target = place.format(payload)
            if target in ("/", "//"):
                continue
            made.sendall(head("GET", target, own))
            answer = read_answer(made)
            assert answer.status in (400, 404, 414), target
            assert b"root:" not in answer.body
            if answer.status == 400 or answer.headers.get("connection") == "close":
                made.close()
                made = connect(port)
        made.close()


def test_nobody_is_served_without_the_token(run, monkeypatch):
    compared = []
    same = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append((a, b)) or same(a, b))
    with serving(run.path.parent, token=TOKEN) as served:
        port, own = served.port, f"127.0.0.1:{served.port}"
        wrong = ["", "wrong", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "%00", "caf%C3%A9", "%ff"]
        for path in ["/", "/static/app.js", "/api/runs", "/nothing"]:
            assert get(port, path).status == 401
            for each in wrong:
                quoted = each.replace(" ", "+")
                assert get(port, f"{path}?token={quoted}").status == 401, each
                assert get(port, path, f"Cookie: pixelpong-{port}={quoted}").status == 401
                assert get(port, path, f"Authorization: Bearer {each}").status == 401
        before = len(compared)
        answer = get(port, "/api/runs?token=correct+horse%20battery")
        assert answer.status == 200
        assert len(compared) > before, "the token was compared in another way"
        cookie = answer.headers["set-cookie"]
        name_and_value, *flags = cookie.split("; ")
        assert set(flags) == {"HttpOnly", "SameSite=Strict", "Path=/"}
        assert "horse" not in cookie
        assert get(port, "/api/runs", f"Cookie: a=b; {name_and_value}; c").status == 200
        assert "set-cookie" not in get(port, "/api/runs", f"Cookie: {name_and_value}").headers
        assert get(port, "/api/runs", f"Cookie: {name_and_value}0").status == 401
        origin = f"Origin: http://{own}"
        assert ask(port, handshake(port, own, origin)).status == 401
        assert ask(port, handshake(port, own, origin, f"Cookie: {name_and_value}")).status == 101
        many = "&".join(["token=x"] * 30)
        assert get(port, f"/api/runs?{many}&token=correct+horse+battery").status == 401


@pytest.mark.slow
def test_hundreds_of_half_open_connections_keep_nobody_out(port):
    beginnings = [b"", b"G", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: 127.0.0.1:1\r\nX"]
    with contextlib.ExitStack() as held:
        for begin in itertools.islice(itertools.cycle(beginnings), 500):
            held.enter_context(connect(port)).sendall(begin)
        took = []
        for _ in range(10):
            begin = time.monotonic()
            assert get(port, "/api/runs").status == 200
            took.append(time.monotonic() - begin)
        assert sorted(took)[5] < 1.0 * patience()


@pytest.mark.slow
def test_more_connections_than_there_is_room_for_are_refused_until_others_leave(run, monkeypatch):
    monkeypatch.setattr(server, "MAX_CONNECTIONS", 30)
    with serving(run.path.parent) as served, contextlib.ExitStack() as held:
        for _ in range(30):
            held.enter_context(connect(served.port))
        assert wait_until(lambda: get(served.port, "/api/runs").status == 503)
        held.close()
        assert wait_until(lambda: get(served.port, "/api/runs").status == 200)


@pytest.mark.slow
def test_a_connection_that_takes_no_answer_is_dropped(run, monkeypatch):
    """By the system. What it asked for is larger than all buffers between us."""
    monkeypatch.setattr(address, "SLOW_SECONDS", 1.0)
    with serving(run.path.parent) as served:
        with connect(served.port, receive_buffer=4096) as made:
            request = head("GET", "/static/charts.js", f"127.0.0.1:{served.port}")
            made.sendall(request * 200)
            assert wait_until(lambda: is_reset(made))
            assert len(read_events(made, 2.0)) < 1 << 20, "the whole of it came"


def read_events(made: socket.socket, seconds: float) -> bytes:
    data, deadline = b"", time.monotonic() + seconds
    made.settimeout(0.2)
    while time.monotonic() < deadline:
        try:
            more = made.recv(65536)
        except TimeoutError:
            continue
        except OSError:
            break
        if not more:
            break
        data += more
    return data


@pytest.mark.slow
def test_a_viewer_that_reads_slowly_is_dropped_and_others_are_not(tmp_path, monkeypatch):
    """By the server, which frees its seat; the system would wait for longer."""
    run = make_lines(tmp_path / "toy", updates=2)
    monkeypatch.setattr(address, "SLOW_SECONDS", 1000.0)
    monkeypatch.setattr(live, "BEHIND_SECONDS", 1.0)
    monkeypatch.setattr(live, "MAX_VIEWERS", 2)
    with serving(tmp_path) as served:
        request = head("GET", api(run, "/events"), f"127.0.0.1:{served.port}")
        with connect(served.port, receive_buffer=2048) as slow, connect(served.port) as quick:
            slow.sendall(request)
            quick.sendall(request)
            assert b"event: summary" in read_events(quick, 1.5)
            update, news, deadline = 100, b"", time.monotonic() + 25

            def is_dropped():
                return ask(served.port, request).status == 200

            assert not is_dropped()
            while not is_dropped() and time.monotonic() < deadline:
                run.metrics.append(*(metrics_line(update + i, x=0.123456) for i in range(300)))
                update += 300
                news += read_events(quick, 0.3)
            assert is_dropped(), "it was not dropped"
            run.metrics.append(metrics_line(update))
            news += read_events(quick, 1.5)
            assert f"id: {update}\n".encode() in news, "the quick one missed something"


def is_reset(made: socket.socket) -> bool:
    """Whether the other side has cut the connection; reads nothing."""
    with contextlib.suppress(OSError):
        made.sendall(b"\n")  # whoever speaks hears that the connection is gone
    state = made.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    return bool(made.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)) or state != 1


@pytest.mark.slow
def test_too_many_viewers_are_refused_with_a_line(run, monkeypatch):
    monkeypatch.setattr(live, "MAX_VIEWERS", 3)
    with serving(run.path.parent) as served, contextlib.ExitStack() as stack:
        request = head("GET", api(run, "/events"), f"127.0.0.1:{served.port}")
        held = [stack.enter_context(connect(served.port)) for _ in range(3)]
        for made in held:
            made.sendall(request)
            assert read_answer(made).status == 200
            read_events(made, 0.3)
        assert ask(served.port, request).status == 503
        held[0].close()
        assert wait_until(lambda: ask(served.port, request).status == 200, 10)
