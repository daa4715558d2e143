"""The path of a new user, on the command line and in a real browser: train, win, list, play."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest
from pages import wait_for


@pytest.mark.browser
@pytest.mark.slow
def test_from_the_first_word_to_a_game_against_the_own_agent(tmp_path, open_page):
    how = {"cwd": tmp_path, "stderr": subprocess.STDOUT, "text": True}

    def say(line: str) -> str:
        return subprocess.check_output([sys.executable, "-m", *shlex.split(line)], **how)

    assert "pixelpong train" in say("pixelpong")

    # A target that any agent reaches: the path is the same, the training shorter.
    short = "--updates 3 --max-frames 800 --until-return -20.99 --seed 3"
    said = say(f"pixelpong train {short}")
    assert re.search(r"^Won: mean return −\d+\.\d+ \(.*\) over 200 games", said, re.M), said
    play, watch, film = (
        re.search(rf"^{what} +(pixelpong .*)$", said, re.M)[1].strip()
        for what in ("play against it", "watch it", "film it")
    )
    assert watch == "pixelpong watch runs/fast-001"
    assert film.startswith("pixelpong record runs/fast-001 ")

    assert re.search(r"^fast-001 +won", say("pixelpong runs"), re.M)

    words = [sys.executable, "-m", *shlex.split(play), "--no-open", "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, **how) as server:
        try:
            found = next(
                filter(None, (re.search(r"(http://\S+)\s", line) for line in server.stdout))
            )
            page = open_page(found[1])
            page.wait_for_selector(".play-score strong")
            page.wait_for_selector("text=Ready?")
            page.keyboard.press("Space")
            wait_for(page, "document.querySelector('.play-score strong').textContent !== '0 : 0'")
        finally:
            server.terminate()
