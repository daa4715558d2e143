"""The path of a new user, in a real terminal and a real browser: train, win, list, play."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import termios

import pytest
from pages import wait_for


@contextlib.contextmanager
def terminal(folder, line: str):
    """A command in a terminal of 80 × 24: its process, and what it has written, which grows."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        [sys.executable, "-m", *shlex.split(line)], cwd=folder, env=environment | {"TERM": "xterm"},
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)

    def read():
        written = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while chunk := os.read(ours, 65536):
                written += chunk
                text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", written.decode(errors="replace"))
                yield text.replace("\r", "")

    try:
        yield process, read()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        os.close(ours)


def say(folder, line: str) -> str:
    """What a command writes until it ends well."""
    with terminal(folder, line) as (process, texts):
        *_, said = texts
        assert process.wait() == 0, said
    return said


@pytest.mark.browser
@pytest.mark.slow
def test_from_the_first_word_to_a_game_against_the_own_agent(tmp_path, open_page):
    assert "pixelpong train" in say(tmp_path, "pixelpong")

    # A target that any agent reaches: the path is the same, the training shorter.
    short = "--updates 3 --max-frames 800 --until-return -20.99 --seed 3"
    said = say(tmp_path, f"pixelpong train {short}")
    for words in ("estimated return", "in total", "watch it: pixelpong dashboard"):
        assert words in said, said
    assert re.search(r"^Won: mean return −\d+\.\d+ \(.*\) over 200 games", said, re.M), said
    play, watch, film = (
        re.search(rf"^{what} +(pixelpong .*)$", said, re.M)[1].strip()
        for what in ("play against it", "watch it", "film it")
    )
    assert watch == "pixelpong watch runs/fast-001"
    assert film.startswith("pixelpong record runs/fast-001 ")

    assert re.search(r"^fast-001 +won", say(tmp_path, "pixelpong runs"), re.M)

    with terminal(tmp_path, f"{play} --no-open --port 0") as (_, texts):
        found = next(filter(None, (re.search(r"(http://\S+)\s", text) for text in texts)))
        page = open_page(found[1])
        page.wait_for_selector(".play-score strong")
        page.wait_for_selector("text=Ready?")
        page.keyboard.press("Space")
        wait_for(page, "document.querySelector('.play-score strong').textContent !== '0 : 0'")
