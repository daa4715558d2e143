"""The emulator's own window, on a display that lives in memory."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import shutil
import struct
import subprocess
import threading
import time

import numpy as np
import pytest
from conftest import patience, wait_until
from test_game import make_agent

from pixelpong.agents import Agent
from pixelpong.errors import ConfigError
from pixelpong.report.window import watch_in_window

FIELD, OWN, OTHER = (144, 72, 17), (92, 186, 92), (213, 130, 74)


class Display:
    """A screen of Xvfb, which keeps its pixels in a file."""

    def __init__(self, folder):
        self._file = folder / "Xvfb_screen0"
        read, write = os.pipe()
        self.process = subprocess.Popen(
            ["Xvfb", "-displayfd", str(write), "-screen", "0", "1024x768x24", "-fbdir", folder],
            pass_fds=[write],
            stderr=subprocess.DEVNULL,
        )
        os.close(write)
        with os.fdopen(read) as number:
            self.name = f":{number.readline().strip()}"

    def count(self, colour) -> int:
        """Pixels of a colour: red, green, blue."""
        content = self._file.read_bytes()
        header = struct.unpack(">25I", content[:100])
        size, height, line, colours = header[0], header[5], header[12], header[19]
        pixels = np.frombuffer(content, np.uint8, height * line, size + 12 * colours)
        blue, green, red = np.moveaxis(pixels.reshape(-1, 4)[:, :3], 1, 0)
        return int(((red == colour[0]) & (green == colour[1]) & (blue == colour[2])).sum())


@pytest.fixture
def display(tmp_path, monkeypatch):
    if shutil.which("Xvfb") is None:
        pytest.skip("needs Xvfb (Debian's package xvfb)")
    shown = Display(tmp_path)
    monkeypatch.setenv("DISPLAY", shown.name)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("SDL_VIDEODRIVER", raising=False)
    yield shown
    shown.process.terminate()
    shown.process.wait()


class Watching(threading.Thread):
    """Watches in the background, until told to stop."""

    def __init__(self, speed=1.0):
        super().__init__()
        self.speed, self.stop, self.report = speed, threading.Event(), None
        self.start()

    def run(self):
        agent = make_agent(kind=Agent)
        self.report = watch_in_window(agent, 1, self.speed, self.stop.is_set)


@pytest.mark.slow
def test_it_shows_the_episodes_of_an_evaluation(display):
    agent = make_agent(kind=Agent)
    wanted = [agent.play_episode(0, index).episode_return for index in range(2)]
    assert watch_in_window(agent, episodes=2, speed=0) == {"returns": wanted}


@pytest.mark.slow
def test_what_it_shows_is_pong_and_a_stop_ends_it(display):
    watching = Watching()
    try:
        assert wait_until(lambda: display.count(OWN) > 0 and display.count(OTHER) > 0, 20)
        # The field has 25,600 pixels, a paddle 64; the points above are in the paddles' colours.
        assert display.count(FIELD) > 25_000
        assert 64 <= display.count(OWN) < display.count(FIELD) / 40
    finally:
        watching.stop.set()
        watching.join(10)
    assert watching.report == {"returns": []}


@pytest.mark.slow
def test_it_goes_as_fast_as_it_is_told(display):
    agent = make_agent(kind=Agent)
    frames = 4 * len(agent.play_episode(0, 0))
    begin = time.perf_counter()
    watch_in_window(agent, episodes=1, speed=40.0)
    assert frames / 60 / 40 < time.perf_counter() - begin < frames / 60 / 40 + 8 * patience()


@pytest.mark.slow
def test_closing_the_window_ends_it_without_a_word(display, capfd):
    if ctypes.util.find_library("X11") is None:
        pytest.skip("needs libX11")
    watching = Watching()
    try:
        assert wait_until(lambda: display.count(OWN) > 0, 20)
        close_windows(display.name)
        watching.join(10)
        assert watching.report == {"returns": []}
    finally:
        watching.stop.set()
        watching.join(10)
    assert capfd.readouterr().err == ""


def close_windows(name: str):
    """Ask every window to close, as a window manager does: WM_PROTOCOLS, WM_DELETE_WINDOW."""
    x11 = ctypes.CDLL(ctypes.util.find_library("X11"))
    handle = ctypes.c_void_p
    x11.XOpenDisplay.restype = x11.XDefaultRootWindow.restype = x11.XInternAtom.restype = handle
    display = handle(x11.XOpenDisplay(name.encode()))
    root, parent, count = ctypes.c_ulong(), ctypes.c_ulong(), ctypes.c_uint()
    children = ctypes.POINTER(ctypes.c_ulong)()
    x11.XQueryTree(
        display, handle(x11.XDefaultRootWindow(display)), ctypes.byref(root),
        ctypes.byref(parent), ctypes.byref(children), ctypes.byref(count),
    )  # fmt: skip
    protocols, delete = (
        x11.XInternAtom(display, atom, 0) for atom in (b"WM_PROTOCOLS", b"WM_DELETE_WINDOW")
    )
    for window in children[: count.value]:
        event = (ctypes.c_long * 24)()
        # type, serial, send_event, display, window, message_type, format, data
        event[:9] = [33, 0, 1, 0, window, protocols, 32, delete, 0]
        x11.XSendEvent(display, ctypes.c_ulong(window), 0, ctypes.c_long(0), ctypes.byref(event))
    x11.XCloseDisplay(display)


@pytest.mark.slow
@pytest.mark.parametrize("name", [None, "", ":4711"])
def test_without_a_display_one_line_says_what_to_do(monkeypatch, capfd, name):
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("SDL_VIDEODRIVER", raising=False)
    monkeypatch.delenv("DISPLAY", raising=False)
    if name is not None:
        monkeypatch.setenv("DISPLAY", name)
    with pytest.raises(ConfigError, match="expected a display for --window, .*leave --window out"):
        watch_in_window(make_agent(kind=Agent))
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("changes", "line"),
    [({"episodes": 0}, "--episodes"), ({"speed": -1}, "--speed"), ({"speed": float("nan")}, "0")],
)
def test_numbers_out_of_range_are_refused(changes, line):
    with pytest.raises(ConfigError, match=line):
        watch_in_window(make_agent(kind=Agent), **changes)


def test_the_toy_has_no_window():
    with pytest.raises(ConfigError, match="leave --window out"):
        watch_in_window(make_agent("Catch-v0", kind=Agent))
