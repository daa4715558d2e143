"""The line that says what is being compiled: on the terminal, and on the page while games wait."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import pytest
from pages import wait_for
from waiting import PATIENCE, wait_until
from web_client import serving

from pixelpong import notices
from pixelpong.agent.file import load_shipped
from pixelpong.atari.steps import compiling
from pixelpong.faces.page import reels
from pixelpong.faces.page.library import Library
from pixelpong.notices import slow_work
from pixelpong.processes import Processes

LINE = "Compiling something for this processor, once …"
GATE = "PIXELPONG_TEST_GATE"  # a file: work lasts until it exists

real_play_and_explain = reels.play_and_explain


def work_slowly(line=LINE):
    with slow_work(line):
        wait_until(Path(os.environ[GATE]).exists)


def play_after_compiling(*key):
    """What the process that makes reels does on its first start, in no time."""
    work_slowly()
    return real_play_and_explain(*key)


@pytest.fixture
def gate(tmp_path, monkeypatch):
    """The file that ends the slow work of this process and its children."""
    monkeypatch.setenv(GATE, str(tmp_path / "gate"))
    return tmp_path / "gate"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_line_is_printed_once_and_stands_until_the_work_ends(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert notices.current() == ""
    with contextlib.suppress(ZeroDivisionError), slow_work("outer"):
        with slow_work("inner"):
            assert notices.current() == "inner"
        assert notices.current() == "outer"
        raise ZeroDivisionError
    assert notices.current() == ""
    assert sys.stderr.getvalue() == "outer\ninner\n"


def test_what_numba_compiles_for_us_is_the_line_until_it_is_compiled(monkeypatch):
    heard, lines = [], []
    monkeypatch.setattr(notices, "_listeners", [heard.append])
    monkeypatch.setattr(compiling, "_find_folder", lambda sources: None)
    compiling._announce.cache_clear()
    monkeypatch.setattr(sys, "stderr", Terminal())

    def double(x):
        return x + x

    kernel = compiling.compiled()(double)
    for number in (2.0, 3.0, np.float32(2)):  # the last one is of another type
        assert kernel(number) == 2 * number
        lines.append(notices.current())
    with pytest.raises(Exception, match="none"):
        kernel(None)  # which fails to compile
    assert lines == [""] * 3
    assert heard[:4] == [compiling.LINE, ""] * 2
    assert notices.current() == heard[-1] == ""
    assert sys.stderr.getvalue() == f"{compiling.LINE}\n", "printed once"


def test_a_process_of_a_pool_passes_its_line_on(gate):
    with Processes(1, hears=True) as pool:
        assert pool.read_notice() == ""
        work = pool.submit(work_slowly)
        assert wait_until(lambda: pool.read_notice() == LINE)
        gate.touch()
        work.result()
        assert pool.read_notice() == ""
        pool.submit(work_slowly).result()
    pool.kill()
    assert pool.read_notice() == "", "also after its end"


def test_the_page_is_told_what_a_game_waits_for(tmp_path, gate, monkeypatch):
    monkeypatch.setattr(reels, "play_and_explain", play_after_compiling)
    with serving(tmp_path) as served, ThreadPoolExecutor(1) as pool:

        def ask(path):
            return httpx.get(f"{served.url}/api/{path}", timeout=PATIENCE).json()

        assert ask("notice") == {"notice": ""}
        reel = pool.submit(ask, "runs/package/reels/club")
        assert wait_until(lambda: ask("notice") == {"notice": LINE})
        gate.touch()
        assert "problem" not in reel.result()
        assert ask("notice") == {"notice": ""}


@pytest.mark.browser
def test_a_visitor_reads_what_is_compiled_until_the_game_comes(
    tmp_path, gate, open_page, monkeypatch
):
    monkeypatch.setattr(reels, "play_and_explain", play_after_compiling)
    with serving(tmp_path) as served:
        page = open_page(f"{served.url}/#watch/package/club", motion="reduce")
        page.wait_for_selector(f".outcome:has-text('{LINE}')")
        gate.touch()
        page.wait_for_selector(".viewer[data-part=whole]")
        assert "The club in the package" in page.locator(".outcome").inner_text()
        page.wait_for_timeout(1500)  # longer than until the line is asked for again
        assert LINE not in page.locator("main").inner_text()


@pytest.mark.browser
def test_a_player_reads_what_is_compiled_until_the_game_comes(tmp_path, open_page, monkeypatch):
    is_done = threading.Event()

    def load_agent(library, run_id, which):
        with slow_work(LINE):
            is_done.wait(PATIENCE)
        return load_shipped(which)

    monkeypatch.setattr(Library, "load_agent", load_agent)
    with serving(tmp_path) as served:
        page = open_page(f"{served.url}/#play/package/best")
        page.wait_for_selector(f".play-message:has-text('{LINE}')")
        assert "Connecting…" in page.locator(".play-message").inner_text()
        is_done.set()
        wait_for(page, "document.querySelector('.play-title').textContent === 'Ready?'")
        page.wait_for_timeout(1500)
        assert LINE not in page.locator("main").inner_text()
