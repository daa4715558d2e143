"""The page's server as a process: how it ends, and what connections may cost it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest
from promises import promise
from waiting import PATIENCE, exit_code, join, wait_until
from web_client import serving
from websockets.sync.client import connect

from pixelpong.faces.page import connections, threads
from pixelpong.faces.page.library import Library

needs_proc = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="asks Linux's /proc")

DASHBOARD = """
import sys
from pathlib import Path
from pixelpong import __main__
sys.argv = ["pixelpong", "dashboard", "--no-open", "--port", "0"]
"""
HANGS = """
from {package} import {module}

def read(*_, **__):
    Path("reading").touch()
    open("pipe").read()  # nobody ever writes to it

{owner} = read
"""

# Writes a letter into a file whenever the page could not accept a connection; it is open already,
# since later there is no descriptor for it.
COUNTS_TRIES = """
from pixelpong.faces.page import serving
make, tries = serving.make_exception_handler, open("tries", "ab", buffering=0)

def make_counting(tell):
    handle = make(tell)
    return lambda loop, context: (handle(loop, context), tries.write(b"x"))

serving.make_exception_handler = make_counting
"""


@contextlib.contextmanager
def started(folder, script="", **how):
    """A dashboard in `folder`, after a script: its process, its address, the file of its words."""
    words = folder / "words"
    command = [sys.executable, "-c", f"{DASHBOARD}{script}\n__main__.main()"]
    with (
        words.open("w") as file,
        subprocess.Popen(command, cwd=folder, stderr=file, stdout=file, **how) as process,
    ):
        try:
            wait_until(lambda: "Ctrl-C" in words.read_text() or process.poll() is not None)
            yield process, re.search(r"http://[^/]+", words.read_text())[0], words
        finally:
            process.kill()


@promise("the page ends")
@pytest.mark.parametrize(
    ("owner", "path", "number"),
    [
        ("library.Library.list_runs", "/api/runs", signal.SIGTERM),
        ("library.Library.load_agent", "/game?run=package&agent=club", signal.SIGINT),
        ("staticfiles.StaticFiles.lookup_path", "/static/app.js", signal.SIGTERM),
    ],
)
def test_a_read_that_hangs_does_not_keep_the_process(tmp_path, owner, path, number):
    os.mkfifo(tmp_path / "pipe")
    module = owner.split(".")[0]
    package = "starlette" if module == "staticfiles" else "pixelpong.faces.page"
    script = HANGS.format(package=package, module=module, owner=owner)
    with started(tmp_path, script) as (process, url, words):
        threading.Thread(target=ask_in_vain, args=(url, path), daemon=True).start()
        wait_until((tmp_path / "reading").exists)
        assert httpx.get(url).status_code == 200, "others are served"
        process.send_signal(number)
        assert exit_code(process) == 0
        assert "Traceback" not in words.read_text()


@promise("the page ends")
@pytest.mark.slow
@needs_proc
def test_a_process_that_cannot_end_is_not_waited_for_long(tmp_path):
    """One that plays games, stopped here; on a disk that does not answer it would be alike."""
    children = []
    with started(tmp_path) as (process, url, words):
        path = "/api/runs/package/reels/club"
        threading.Thread(target=ask_in_vain, args=(url, path), daemon=True).start()
        try:
            wait_until(lambda: "spawn_main" in describe_children(process.pid, children))
            for child in children:
                os.kill(child, signal.SIGSTOP)
            process.terminate()
            assert exit_code(process) == 1
            assert "exiting without waiting for it" in words.read_text().splitlines()[-1]
        finally:
            for child in children:
                os.kill(child, signal.SIGKILL)


def describe_children(pid, found) -> str:
    """The command lines of a process's children, whose numbers are put into `found`."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    found[:] = [int(child) for task in tasks for child in task.read_text().split()]
    return " ".join(Path(f"/proc/{child}/cmdline").read_text() for child in found)


def ask_in_vain(url, path) -> None:
    with contextlib.suppress(Exception):
        if path.startswith("/game"):
            with connect(url.replace("http", "ws") + path, origin=url) as game:
                game.recv()
        else:
            httpx.get(url + path, timeout=PATIENCE)


def test_reads_that_hang_take_no_more_than_their_share_of_threads(tmp_path, monkeypatch):
    """Too many are refused in a line, and the server ends; later ones are answered."""
    begun, goes_on = [], threading.Event()

    def read(_):
        begun.append(1)
        wait_until(goes_on.is_set)
        return {"runs": []}

    monkeypatch.setattr(threads, "_free_threads", threading.BoundedSemaphore(2))
    monkeypatch.setattr(Library, "list_runs", read)
    with serving(tmp_path) as served, httpx.Client(base_url=served.url, timeout=PATIENCE) as client:
        asked = (served.url, "/api/runs")
        waiting = [threading.Thread(target=ask_in_vain, args=asked) for _ in range(2)]
        for each in waiting:
            each.start()
        wait_until(lambda: len(begun) == 2)
        answer = client.get("/api/runs")
        assert (answer.status_code, list(answer.json())) == (503, ["problem"])
        assert client.get("/static/app.js").status_code == 200
        goes_on.set()
        join(*waiting)
        assert wait_until(lambda: client.get("/api/runs").status_code == 200)


# --- connections --------------------------------------------------------------------------------

HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: "
SHORT = 0.5  # seconds, in place of those that a user has
WHOLE = b"GET /api/runs HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@promise("the page's connections")
@pytest.mark.parametrize("sent", [b"", HALF, WHOLE + HALF, WHOLE + b"G"])
def test_a_connection_that_does_not_send_a_whole_request_is_closed(tmp_path, monkeypatch, sent):
    """Also if it sends a byte now and then; one that asks again and again stays."""
    monkeypatch.setattr(connections, "HEAD_SECONDS", SHORT)
    with serving(tmp_path) as served, httpx.Client(base_url=served.url, timeout=PATIENCE) as client:
        with socket.create_connection(("127.0.0.1", served.port)) as slow:
            slow.sendall(sent)
            stops = threading.Event()
            dribble = threading.Thread(target=send_slowly, args=(slow, stops))
            dribble.start()
            with contextlib.suppress(ConnectionResetError):
                while slow.recv(65536):
                    pass
            stops.set()
            join(dribble)
        monkeypatch.setattr(connections, "HEAD_SECONDS", 1e6)
        for _ in range(3):
            assert client.get("/api/runs").status_code == 200


def send_slowly(slow, stops) -> None:
    with contextlib.suppress(OSError):
        while not stops.wait(0.2):
            slow.sendall(b"x")


@promise("the page's connections")
@needs_proc
def test_an_answer_that_nobody_reads_and_a_game_that_lasts(tmp_path, monkeypatch):
    """The first is given up, and the second has as much time as it likes."""
    deadlines, wait = [], connections.Connections._await_head
    monkeypatch.setattr(connections, "HEAD_SECONDS", 1e6)
    monkeypatch.setattr(connections, "SEND_SECONDS", 1.0)
    monkeypatch.setattr(Library, "list_runs", lambda _: {"runs": os.urandom(20_000_000).hex()})

    def note(known, client):
        wait(known, client)
        deadlines.append((client[1], known._known[client].deadline))

    monkeypatch.setattr(connections.Connections, "_await_head", note)
    address = "/game?run=package&agent=club"
    with serving(tmp_path) as served, connect(
        f"ws://127.0.0.1:{served.port}{address}", origin=served.url, ping_interval=None
    ) as game:  # fmt: skip
        monkeypatch.setattr(connections, "HEAD_SECONDS", 1.0)  # of those who come now
        with socket.create_connection(("127.0.0.1", served.port)) as lazy:
            lazy.sendall(WHOLE)
            wait_until(lambda: is_closed(served.port, lazy))
        greeting = json.loads(game.recv())
        assert list(greeting) == ["palette"]
        ((_, deadline),) = [it for it in deadlines if it[0] == game.local_address[1]]
        assert deadline.cancelled(), "a game ends by no deadline"
        game.send('{"serve": true}')
        phases = set()
        while "playing" not in phases:
            told = game.recv()
            phases |= {json.loads(told)["phase"]} if isinstance(told, str) else set()
        assert isinstance(game.recv(), bytes), "pictures"


def is_closed(port, lazy) -> bool:
    """Whether the other end has closed it, as Linux lists it."""
    ends = f"0100007F:{port:04X} 0100007F:{lazy.getsockname()[1]:04X} 01"
    with open("/proc/net/tcp") as file:
        return not any(ends in line for line in file)


@promise("the page's connections")
@needs_proc
def test_the_oldest_silent_connection_makes_room(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "MAX_WAITING", 8)
    monkeypatch.setattr(connections, "HEAD_SECONDS", 1e6)
    with serving(tmp_path) as served, contextlib.ExitStack() as stack:
        crowd = []
        for _ in range(20):
            crowd.append(stack.enter_context(socket.create_connection(("127.0.0.1", served.port))))
            crowd[-1].sendall(HALF)
        wait_until(lambda: sum(not is_closed(served.port, each) for each in crowd) <= 8)
        assert httpx.get(f"{served.url}/api/runs").status_code == 200
        assert not is_closed(served.port, crowd[-1])


@promise("the page's connections")
def test_descriptors_that_run_out_cost_one_line(tmp_path):
    """And the page is there again as soon as there are some."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48))  # noqa: E731
    tries = tmp_path / "tries"
    with started(tmp_path, COUNTS_TRIES, preexec_fn=limit) as (process, url, words):
        port = int(url.rpartition(":")[2])
        with contextlib.ExitStack() as stack:
            for _ in range(120):
                stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            assert wait_until(lambda: "cannot accept a connection" in words.read_text())
            wait_until(lambda: tries.exists() and tries.stat().st_size >= 4)  # it tries again
        assert httpx.get(f"{url}/api/runs", timeout=100).json() == {"runs": []}
        told = [line for line in words.read_text().splitlines() if "press Ctrl-C" not in line]
        assert len([line for line in told if "cannot accept a connection" in line]) == 1
        assert len(told) <= 3, told
        process.terminate()
        assert exit_code(process) == 0
