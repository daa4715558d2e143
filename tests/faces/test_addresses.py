"""Where the page listens, and where a browser is led."""

from __future__ import annotations

import ipaddress
import re
import socket
import sys
from urllib.parse import urlsplit

import httpx
import pytest
from pages import wait_for
from promises import promise
from waiting import PATIENCE, wait_until
from web_client import serving

from pixelpong.agent.choice import Agents
from pixelpong.faces.page import View
from pixelpong.faces.page.joining import draw_in_text
from pixelpong.run.directory import RunDirectory


def test_a_port_that_is_taken_is_passed_over_with_a_line(tmp_path):
    with serving(tmp_path) as one, serving(tmp_path, port=one.port) as two:
        assert two.told[0] == f"port {one.port} is taken; using {two.port}"
        assert not any("token" in line for line in two.told)
        for served in (one, two):
            assert httpx.get(f"{served.url}/api/runs").json() == {"runs": []}


@promise("the page")
def test_an_address_that_others_reach_needs_a_token_that_is_new_each_time(tmp_path):
    tokens = set()
    for _ in range(2):
        with serving(tmp_path, host="0.0.0.0") as served:
            mine, theirs, *_ = served.told
            token = mine.split("?token=")[1]
            host = urlsplit(theirs.split()[-1]).hostname
            if len(socket.if_nameindex()) > 1:  # then this machine is in a network
                assert not ipaddress.ip_address(host).is_loopback, "a phone knows no names"
            assert token in theirs
            assert httpx.get(f"{served.url}/api/runs").status_code == 401
            assert httpx.get(f"{served.url}/api/runs?token={token}").status_code == 200
            tokens.add(token)
    assert len(tokens) == 2
    assert re.fullmatch("[a-z2-9]{8}", token), "to be typed on a phone"


@pytest.mark.slow
def test_the_browser_is_opened_silently_at_an_agents_file(toy_runs, tmp_path, monkeypatch, capfd):
    seen, file, browser = (tmp_path / name for name in ("seen", "mine.safetensors", "browser"))
    Agents.of_run(RunDirectory(toy_runs["fast"])).load("latest").write(file)
    browser.write_text(f'#!/bin/sh\necho noise; echo noise >&2; echo "$1" > {seen}\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))
    with serving(tmp_path / "runs", view=View("play", file)) as served:
        served.page.open()
        assert wait_until(lambda: seen.exists() and seen.read_text().endswith("\n"))
        url = seen.read_text().strip()
        assert any(url in line for line in served.told)
        name = url.removeprefix(f"{served.url}/#play/").removesuffix("/best")
        assert re.fullmatch("mine.safetensors~[0-9a-f]{8}", name)
        reel = httpx.get(f"{served.url}/api/runs/{name}/reels/best", timeout=PATIENCE).json()
        assert reel["steps"] == len(reel["actions"]) > 1
        listed = {"id": name, "name": "mine.safetensors"}
        assert httpx.get(f"{served.url}/api/runs").json() == {"runs": [], "file": listed}
    assert capfd.readouterr() == ("", "")


def test_a_terminal_shows_a_code_for_phones(tmp_path, monkeypatch):
    for is_terminal in (True, False):
        monkeypatch.setattr(sys.stderr, "isatty", lambda answer=is_terminal: answer, raising=False)
        with serving(tmp_path, host="0.0.0.0") as served:
            address = next(line for line in served.told if "another machine" in line).split()[-1]
            codes = [line for line in served.told if "█" in line]
            assert codes == [draw_in_text(address)] * is_terminal
    with serving(tmp_path) as served:
        assert not any("█" in line for line in served.told), "nobody else can come"
    assert max(map(len, codes or draw_in_text(address).splitlines())) <= 60


@pytest.mark.browser
def test_the_page_shows_a_code_to_those_who_may_bring_others(tmp_path, open_page):
    with serving(tmp_path) as served:
        assert httpx.get(f"{served.url}/join.svg").status_code == 404
        page = open_page(f"{served.url}/#join")
        wait_for(page, "document.querySelector('main').textContent.includes('--host 0.0.0.0')")
        assert not page.locator("#join").is_visible()
    with serving(tmp_path, host="0.0.0.0") as served:
        mine, theirs, *_ = served.told
        assert httpx.get(f"{served.url}/join.svg").status_code == 401
        page = open_page(mine.split()[-1])
        page.locator("#join").click()
        page.wait_for_selector("img.join")
        assert page.locator(".address").inner_text() == theirs.split()[-1]
        wait_for(page, f"document.querySelector('img.join').naturalWidth === {8 * 37}")
