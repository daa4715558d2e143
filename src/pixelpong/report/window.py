"""An agent against the built-in opponent, in the emulator's own window; nothing of the web.

The window is in a process of its own: who closes it ends that process, without a word, so the
emulator has it. The game is emulated beside it, and of as many frames as the speed asks for, one
every sixtieth of a second is emulated once more there, from the same state and with the same move.

Covered: showing whole episodes, those that an evaluation with seed 0 plays.
Not covered: playing oneself (`pixelpong.report.web`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from pixelpong.agents import Agent
from pixelpong.errors import ConfigError, EmulatorError, PixelpongError, expected
from pixelpong.report.web.game import WATCH, Game, Person, SoloCourt
from pixelpong.seeding import make_rng

PICTURES_PER_SECOND = 60

_HURRY_SECONDS = 0.1
"""Between two pictures, where the speed is as fast as can be: showing one takes 0.016 s."""

_JOIN_SECONDS = 5.0


def _never() -> bool:
    return False


def watch_in_window(
    agent: Agent, episodes: int = 1, speed: float = 1.0, should_stop: Callable[[], bool] = _never
) -> dict[str, Any]:
    """Show an agent play, until the episodes are over, the window is closed or somebody says stop.

    Args:
        agent: what plays, greedily.
        episodes: how many.
        speed: 1 is the game's own; 0 as fast as can be.
        should_stop: asked a few times a second.

    Returns:
        ``returns``, of the episodes that came to their end.

    Raises:
        ConfigError: there is no display, or a number is out of range.
        EmulatorError: the emulator or its game is not installed, or the window broke down.
    """
    if episodes < 1:
        raise ConfigError(expected("--episodes of at least 1", episodes, "show one"))
    if not 0 <= speed <= 1000:
        raise ConfigError(expected("--speed from 0 to 1000", speed, "use 1 for the game's own"))
    if agent.protocol.name == "Catch-v0":
        got = "one of Catch-v0"
        raise ConfigError(expected("an agent that plays Pong", got, "leave --window out"))
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_show, args=(agent, episodes, speed, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        returns = _collect(ours, should_stop)
    finally:
        ours.close()  # which tells it to end
        process.join(_JOIN_SECONDS)
        if process.is_alive():
            process.kill()
            process.join()
    if process.exitcode:
        got = f"an end with exit code {process.exitcode}"
        raise EmulatorError(expected("the window to stay", got, "leave --window out"))
    return {"returns": returns}


def _collect(ours: Connection, should_stop: Callable[[], bool]) -> list[float]:
    """What the window's process tells, until it ends."""
    returns: list[float] = []
    with contextlib.suppress(EOFError, ConnectionResetError):
        while not should_stop():
            if ours.poll(0.1):
                told = ours.recv()
                if isinstance(told, PixelpongError):
                    raise told
                returns.append(told)
    return returns


def _show(agent: Agent, episodes: int, speed: float, theirs: Connection) -> None:
    """The window's process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to hear
    if sys.platform == "linux":
        # Without a display, SDL would go on and draw where nobody sees it.
        os.environ.setdefault("SDL_VIDEODRIVER", "x11,wayland")
    with contextlib.suppress(BrokenPipeError):
        try:
            court = _WindowCourt(agent)
            for index in range(episodes):
                game = Game(agent, WATCH, make_rng(0, "evaluate", 0, index), court)
                if not _show_episode(game, court, speed, theirs):
                    return
                lost, won = court.points
                theirs.send(float(won - lost))
        except PixelpongError as error:
            theirs.send(error)


def _show_episode(game: Game, court: _WindowCourt, speed: float, theirs: Connection) -> bool:
    """Whether it came to its end before the parent said stop, which it does by going."""
    due, period = time.monotonic(), 1 / PICTURES_PER_SECOND / min(speed or 1.0, 1.0)
    credit = 0.0
    while not court.is_over:
        if theirs.poll():
            return False
        if speed == 0:
            while not court.is_over and time.monotonic() < due:
                game.tick()
            due = time.monotonic() + _HURRY_SECONDS
        credit += max(speed, 1.0)
        frames, credit = int(credit), credit % 1
        for left in reversed(range(frames)):
            court.is_shown = left == 0
            game.tick()
        court.is_shown = False
        if speed:
            due = max(due + period, time.monotonic() - 0.1)
            time.sleep(max(due - time.monotonic(), 0))
    return True


class _WindowCourt(SoloCourt):
    """The game, and a window that shows a frame of it where `is_shown`."""

    def __init__(self, agent: Agent) -> None:
        from pixelpong.env.ale import AleConsole
        from pixelpong.env.pong import PongEmulator

        super().__init__(agent.protocol)
        protocol = dataclasses.replace(agent.protocol, frame_skips=(1, 1))
        self.is_shown = False
        try:
            self._window = PongEmulator(protocol, console=AleConsole(has_window=True))
        except RuntimeError as error:
            got = " ".join(str(error).split())[:80]
            advice = "leave --window out and watch in a browser"
            raise ConfigError(expected("a display for --window", got, advice)) from error

    def advance(self, person: Person, action: int, coin: float) -> None:
        """See `Court.advance`."""
        if self.is_shown:
            self._window.set_state(self.emulator.get_state())
            self._window.step(action, (0.0, coin))
        super().advance(person, action, coin)
