"""Nothing leaves this machine, and nobody else is told anything.

From inside, `guard/network_guard.py` watches every Python process of every test. It cannot see
what native code does (Ray's daemons), so a training, one with Ray and the served page are looked
at from outside too, with strace, on all their processes. Chromium's requests: `test_browser`.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import needs
import pytest
from network_guard import NetworkUseError, is_local
from promises import promise
from waiting import exit_code
from web_client import make_trained
from websockets.sync.client import connect

from pixelpong.faces.page.server import STATIC

pytestmark = promise("nothing leaves")

ELSEWHERE = "198.51.100.7"
"""An address that documentation is written with, RFC 5737."""

PIXELPONG = [sys.executable, "-m", "pixelpong"]


# --- the guard --------------------------------------------------------------------------------


def connect_to(family: int, *address: object) -> None:
    with socket.socket(family) as made:
        made.setblocking(False)
        made.connect(address)


def send_to(*address: object) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.sendto(b"x", address)


V4, V6, NAME = socket.AF_INET, socket.AF_INET6, "pixelpong.invalid"
ATTEMPTS = [
    (connect_to, V4, ELSEWHERE, 443), (connect_to, V6, "2001:db8::7", 443),
    (connect_to, V6, f"::ffff:{ELSEWHERE}", 443), (send_to, ELSEWHERE, 53),
    (socket.getaddrinfo, NAME, 443), (socket.getaddrinfo, NAME.encode(), 443),
    (socket.gethostbyname, NAME), (socket.gethostbyaddr, ELSEWHERE),
    (socket.getnameinfo, (ELSEWHERE, 80), 0), (urllib.request.urlopen, f"https://{NAME}/"),
]  # fmt: skip


def test_what_would_leave_this_machine_is_stopped_and_written_down(network_log):
    refused = "expected nothing to leave this machine, got socket"
    for attempt, *words in ATTEMPTS:
        with pytest.raises(NetworkUseError, match=refused):
            attempt(*words)
        (line,) = network_log.read_text().splitlines()
        network_log.write_text("")
        assert f"in process {os.getpid()}" in line
        assert "test_what_would_leave_this_machine" in line


def test_a_child_that_would_not_find_the_guard_is_refused(network_log):
    words = [sys.executable, "-c", ""]
    with pytest.raises(NetworkUseError, match="guard's folder on PYTHONPATH"):
        subprocess.run(words, env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)})
    assert "without the guard" in network_log.read_text()
    network_log.write_text("")
    assert subprocess.run(words, env=dict(os.environ)).returncode == 0


TESTS_THAT_REACH_OUT = f"""
import contextlib, socket, subprocess, sys

def reach():
    with contextlib.suppress(Exception), socket.socket() as made:
        made.connect(("{ELSEWHERE}", 443))

def test_that_stays_here():
    with socket.create_server(("127.0.0.1", 0)) as server:
        for host in ("127.0.0.1", "localhost"):
            socket.create_connection((host, server.getsockname()[1])).close()
    for each in socket.socketpair():
        each.close()

def test_that_swallows_it():
    reach()

def test_whose_child_does_it():
    words = "import socket; socket.getaddrinfo('pixelpong.invalid', 1)"
    subprocess.run([sys.executable, "-c", words], stderr=subprocess.DEVNULL)
"""


@pytest.mark.slow
def test_a_test_that_reaches_out_fails_whatever_it_swallows(run_tests):
    code, said = run_tests(TESTS_THAT_REACH_OUT)
    assert code == 1, said
    assert "3 passed, 2 errors" in said
    assert "ERROR" not in [line.split()[0] for line in said.splitlines() if "stays" in line]
    for what in (ELSEWHERE, "pixelpong.invalid"):
        assert f"'{what}'" in said


# --- from outside -----------------------------------------------------------------------------


def traced(command: list[str], trace: Path) -> list[str]:
    """The command under strace, which follows every process that it starts."""
    if not shutil.which("strace"):
        needs.lacks("STRACE", "no strace on this machine: apt-get install strace")
    watched = "trace=connect,sendto,sendmsg,sendmmsg,bind"
    return ["strace", "-f", "--seccomp-bpf", "-e", watched, "-o", str(trace), *command]


_ADDRESS = re.compile(
    r"sin6?_port=htons\((\d+)\).*?"
    r'(?:inet_addr\("([^"]+)"\)|inet_pton\(AF_INET6, "([^"]+)")'
)


def find_outward(trace: str) -> set[str]:
    """What the traced processes did that anybody else could notice, as strace wrote it.

    A connection or a message to another address, a question to a name server wherever it is, and
    a socket that others can reach.
    """
    found = set()
    for line in trace.splitlines():
        call = re.match(r"\d+ +(connect|sendto|sendmsg|sendmmsg|bind)\(", line)
        for port, *addresses in _ADDRESS.findall(line) if call else ():
            address = "".join(addresses)
            is_wide = call[1] == "bind" and address in ("0.0.0.0", "::")
            if not is_local(address) or port == "53" or is_wide:
                found.add(f"{call[1]} {address}:{port}")
    return found


@pytest.mark.slow
def test_what_leaves_the_machine_is_seen_from_outside(tmp_path):
    """The tracing itself: of a child of a child, without the guard, which would stop it."""
    attempts = (
        "import contextlib, socket\n"
        "made = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3)]\n"
        f"made[0].connect(('{ELSEWHERE}', 9))\n"
        "made[1].bind(('0.0.0.0', 0))\n"
        "with contextlib.suppress(OSError): made[2].sendto(b'x', ('127.0.0.1', 53))\n"
        "made[2].sendto(b'x', ('127.0.0.1', 9))\n"
    )
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {attempts!r}])"
    trace = tmp_path / "trace"
    subprocess.run(traced([sys.executable, "-c", outer], trace), check=True)
    assert find_outward(trace.read_text()) == {
        f"connect {ELSEWHERE}:9", "bind 0.0.0.0:0", "sendto 127.0.0.1:53",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["threads", pytest.param("ray", marks=pytest.mark.ray)])
def test_no_process_of_a_training_reaches_out(engine, tmp_path):
    trace = tmp_path / "trace"
    words = ["train", "--max-frames", "300", "--updates", "3", "--workers", "2"]
    words += ["--engine", engine, "--run", str(tmp_path / "run")]
    done = subprocess.run(traced([*PIXELPONG, *words], trace), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text = trace.read_text()
    assert len(set(re.findall(r"^\d+", text, flags=re.M))) >= 3  # the workers were seen
    assert find_outward(text) == set()


@pytest.mark.slow
def test_no_process_of_the_page_reaches_out(tmp_path):
    """While it is asked for everything that it has."""
    trace = tmp_path / "trace"
    make_trained(tmp_path / "runs" / "toy", updates=6)
    words = ["dashboard", str(tmp_path / "runs"), "--no-open", "--port", "0"]
    with subprocess.Popen(
        traced([*PIXELPONG, *words], trace), stderr=subprocess.PIPE, text=True
    ) as strace:
        port = int(re.search(r":(\d+)/", strace.stderr.readline())[1])
        url = f"http://127.0.0.1:{port}"
        files = [f"/static/{file.name}" for file in STATIC.iterdir()]
        for path in ("/", *files, "/api/runs", "/api/runs/toy", "/api/runs/toy/reels/6"):
            assert urllib.request.urlopen(url + path).status == 200, path
        game = f"{url.replace('http', 'ws')}/game?run=package&agent=best"
        with connect(game, origin=url) as socket:
            assert "palette" in socket.recv()
        server = int(trace.read_text().split()[0])
        os.kill(server, signal.SIGINT)
        assert exit_code(strace) == 0
    assert find_outward(trace.read_text()) == set()
