"""The path of a new user, in a real terminal and a real browser: train, win, list, play."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest
from conftest import patience
from pages import read_canvas, wait_for

SIZE = 24, 80


class Shell:
    """Commands in a terminal of 80 × 24."""

    def __init__(self, folder) -> None:
        self.folder = folder

    @contextlib.contextmanager
    def started(self, line: str):
        """While inside, the command runs; `read` reads what it writes."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *SIZE, 0, 0))
        words = shlex.split(line)
        assert words[0] == "pixelpong"
        environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
        process = subprocess.Popen(
            [sys.executable, "-m", *words], cwd=self.folder, env=environment | {"TERM": "xterm"},
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        try:
            yield process, ours
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.wait(30 * patience())
            os.close(ours)

    def run(self, line: str) -> str:
        """What a command writes until it ends well, without the codes of the terminal."""
        with self.started(line) as (process, terminal):
            said = read(terminal, lambda _: False, 120)
            assert process.wait(30) == 0, said
        return said


def read(terminal: int, is_enough, seconds: float) -> str:
    """What comes until it is enough, or until the end."""
    said, deadline = b"", time.monotonic() + seconds * patience()
    while time.monotonic() < deadline and not is_enough(plain(said)):
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                chunk = os.read(terminal, 65536)
            except OSError:  # the other end is closed
                break
            if not chunk:
                break
            said += chunk
    return plain(said)


def plain(said: bytes) -> str:
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", said.decode(errors="replace"))
    return text.replace("\r", "")


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_from_the_first_word_to_a_game_against_the_own_agent(tmp_path, open_page):
    shell = Shell(tmp_path)
    assert "pixelpong train" in shell.run("pixelpong")

    # A target that any agent reaches: the path is the same, the training shorter.
    said = shell.run("pixelpong train --updates 3 --until-return -20.99 --seed 3")
    for words in ("estimated return", "in total", "watch it: pixelpong dashboard"):
        assert words in said, said
    assert re.search(r"^Won: mean return −\d+\.\d+ \(.*\) over 200 games", said, re.M), said
    play, watch, film = (
        re.search(rf"^{what} +(pixelpong .*)$", said, re.M)[1].strip()
        for what in ("play against it", "watch it", "film it")
    )
    assert watch == "pixelpong watch runs/fast-001"
    assert film.startswith("pixelpong record runs/fast-001 ")

    assert re.search(r"^fast-001 +won", shell.run("pixelpong runs"), re.M)
    assert "won" in shell.run("pixelpong runs latest").lower()

    with shell.started(f"{play} --no-open --port 0") as (_, terminal):
        said = read(terminal, lambda text: re.search(r"http://\S+\s", text), 60)
        page = open_page(re.search(r"http://\S+", said)[0])
        page.wait_for_selector(".play-score strong")
        wait_for(
            page, "document.querySelector('.play-message .play-title')?.textContent === 'Ready?'"
        )
        before = read_canvas(page, ".play-stage canvas")
        page.keyboard.press("Space")
        wait_for(page, "document.querySelector('.play-score strong').textContent !== '0 : 0'")
        assert (read_canvas(page, ".play-stage canvas") != before).any()
