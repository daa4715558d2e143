"""Agents' games for the page, and films of them, made one after another by a process.

A request waits here, in no thread of the page, so any number of them leave the rest of the page
responsive. A request whose client has left is never played. Each viewer waits for one game at a
time, because a person looks at the newest choice.
"""

from __future__ import annotations

import asyncio
import functools
import json
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pixelpong.agent.choice import open_agent
from pixelpong.agent.game import play_game
from pixelpong.errors import RunError
from pixelpong.faces.look.film import encode_film, name_game
from pixelpong.faces.look.reel import make_reel, steps_per_second
from pixelpong.faces.page.threads import BusyError
from pixelpong.processes import Processes

BEGINNING = 240  # moments of a reel that is made at once; 16 seconds of Pong
FILM_SECONDS = 20
REELS_KEPT = 20  # number of newest reels in memory; each takes a few megabytes
MAX_WAITING = 16  # most viewers who wait for their game


@dataclass(frozen=True)
class ReelKey:
    """The values that determine a reel."""

    path: Path | None  # a run or an agent's file; None for the package
    which: str  # the name of the agent
    seed: int
    episode: int
    identities: tuple[Any, ...]  # they change with the agent's files
    moments: int | None = None  # pictures of so many moments at most, from the beginning

    def call(self) -> tuple[Any, ...]:
        """Return the function that makes the reel, and its arguments."""
        return play_and_explain, self.path, self.which, self.seed, self.episode, self.moments


@dataclass(frozen=True)
class FilmKey:
    """The game of a reel, and the step in the middle of a film of it."""

    reel: ReelKey
    middle: int

    def call(self) -> tuple[Any, ...]:
        """Return the function that makes the film, and its arguments."""
        game = self.reel
        return play_and_film, game.path, game.which, game.seed, game.episode, self.middle


@dataclass(frozen=True)
class _Request:
    key: ReelKey | FilmKey
    answer: asyncio.Future[bytes] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class Reels:
    """Reels (`pixelpong.faces.look.reel`) as JSON, and films, made on request or from a cache."""

    def __init__(self) -> None:
        """Start with an empty cache and without a process."""
        self._pool, self._is_closed = Processes(1, hears=True), False
        self._kept: dict[ReelKey | FilmKey, bytes] = {}  # the newest last
        self._waiting: dict[str, _Request] = {}  # by viewer, the oldest first
        self._player: asyncio.Task[None] | None = None

    async def get(self, key: ReelKey | FilmKey, viewer: str) -> bytes:
        """Return the reel with this key, as JSON, or the film, as MP4.

        To withdraw the request, cancel the call.

        Raises:
            BusyError: a newer request of this viewer has come, or too many viewers are waiting.
            RunError: the process that plays games crashed.
        """
        if key in self._kept:
            return self._keep(key, self._kept[key])
        older = self._waiting.pop(viewer, None)
        if older is not None and not older.answer.done():
            older.answer.set_exception(BusyError("A newer request replaced this one."))
        if len(self._waiting) >= MAX_WAITING:
            raise BusyError(f"{MAX_WAITING} others are waiting for a game. Try again later.")
        request = self._waiting[viewer] = _Request(key)
        if self._player is None:
            self._player = asyncio.create_task(self._play_all())
        try:
            return await request.answer
        finally:
            if self._waiting.get(viewer) is request:
                del self._waiting[viewer]

    async def _play_all(self) -> None:
        """Play the requested games until none is waiting."""
        try:
            while self._waiting:
                request = self._waiting.pop(next(iter(self._waiting)))
                await self._answer(request)
        finally:
            self._player = None

    async def _answer(self, request: _Request) -> None:
        try:
            reel = await self._make(request.key)
            if not request.answer.done():  # the client is still there
                request.answer.set_result(reel)
        except Exception as error:
            if not request.answer.done():
                request.answer.set_exception(error)
        finally:
            request.answer.cancel()  # in case this task was cancelled

    async def _make(self, key: ReelKey | FilmKey) -> bytes:
        if key in self._kept:  # another viewer has just waited for it
            return self._kept[key]
        try:
            reel = await asyncio.wrap_future(self._pool.submit(*key.call()))
            self.read_notice()  # so that lines that no page asks for do not pile up
            return self._keep(key, reel)
        except BrokenProcessPool:  # killed during the game or before it
            if not self._is_closed:
                self._pool = Processes(1, hears=True)
            raise RunError("The process that plays games crashed. Try again.") from None

    def prepare(self) -> None:
        """Start the process, and let it load what a game of Pong needs."""
        self._pool.submit(play_and_explain, None, "beginner", 0, 0, 1)

    def count_ahead(self, viewer: str) -> int:
        """Count the games of others that are played before this viewer's; 0 if none is waited for.

        The game that is being played now is one of them.
        """
        return list(self._waiting).index(viewer) + 1 if viewer in self._waiting else 0

    def read_notice(self) -> str:
        """Return the line about slow work in the process that makes reels, or ``""``."""
        return self._pool.read_notice()

    def _keep(self, key: ReelKey | FilmKey, reel: bytes) -> bytes:
        self._kept.pop(key, None)
        self._kept[key] = reel
        if len(self._kept) > REELS_KEPT:
            del self._kept[next(iter(self._kept))]
        return reel

    def close(self) -> None:
        """End the process that makes reels."""
        self._is_closed = True
        self._pool.kill()


def play_and_explain(
    path: Path | None, which: str, seed: int, episode: int, moments: int | None
) -> bytes:
    """Make the reel of a game; `path` is a run or an agent's file, None the package."""
    _, agent = open_agent(path, which)
    reel = make_reel(agent, seed, episode, moments)
    return json.dumps(reel, allow_nan=False, separators=(",", ":")).encode()


def play_and_film(path: Path | None, which: str, seed: int, episode: int, middle: int) -> bytes:
    """Make a film of `FILM_SECONDS` around a step of a game, with what the agent sees."""
    _, agent = open_agent(path, which)
    rate = steps_per_second(agent.protocol)
    name = "package" if path is None else path.name.removesuffix(".safetensors")
    return encode_film(
        agent,
        functools.partial(play_game, agent, seed, episode),
        name_game(name, agent, seed, episode),
        has_overlay=True,
        scale=2,
        speed=1.0,
        seconds=FILM_SECONDS,
        start=max(0, middle - int(rate * FILM_SECONDS / 2)),
    )
