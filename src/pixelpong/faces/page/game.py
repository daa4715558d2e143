"""A game of Pong in the browser, picture by picture, between a person and an agent.

`BrowserGame.tick` is called sixty times a second and emulates the frames that are due, one at speed
1. The agent plays the right side exactly as in training (`pixelpong.agent.game.Controller`) and
takes the most probable action. A person's moves never stick.

Messages to the browser, as JSON text:

    {"palette": [[red, green, blue], …]}              first of all
    {"phase": …, "points": [left, right], "speed": …} when one of them changes
    {"problem": text}                                 before the close

Pictures are binary messages: [210, 160] palette indices, each encoded as the difference from the
previous picture, the first from zeros (`pixelpong.faces.look.reel.encode_difference`). The browser
sends a `Message` as JSON text; anything else closes the socket with the reason. Each game has its
own socket.

A frame, a decision and a picture take 0.2 ms together and run on the event loop; loading runs in
threads. This module writes no files.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray
from starlette.websockets import WebSocket, WebSocketDisconnect

from pixelpong.agent.choice import require_pong
from pixelpong.agent.file import Agent
from pixelpong.agent.game import Controller
from pixelpong.atari.machine.palette import PALETTE
from pixelpong.errors import PixelpongError, on_one_line
from pixelpong.faces.look.reel import encode_difference
from pixelpong.faces.page.threads import BusyError, in_thread
from pixelpong.items import DOWN, STAY, UP
from pixelpong.pong.duel import Duel, Move
from pixelpong.pong.modes import FIRST_ROW, LAST_ROW, LEFT
from pixelpong.schema import Share, decode
from pixelpong.seeding import make_rng

PICTURES_PER_SECOND = 60
AGAINST_RULES = 1008  # close code of RFC 6455
MAX_MESSAGE = 4096  # most bytes that the browser may send at once
MAX_GAMES = 64  # most games at once
MAX_LOADING = 4  # most threads that load games; other games wait for them in no thread

SERVE_FRAMES = 180  # the person's side serves automatically this many frames after a point

_DIRECTIONS = {"stay": STAY, "up": UP, "down": DOWN}

# The phases of a game: not started, in a rally, waiting for the person's serve, paused, finished.
READY, PLAYING, SERVE, PAUSED, OVER = "ready", "playing", "serve", "paused", "over"


class Message(msgspec.Struct, forbid_unknown_fields=True):
    """A message from the browser."""

    move: Literal["stay", "up", "down"] | None = None  # the key that is held
    aim: Share | None = None  # the height of the mouse or finger, 0 at the top of the field
    speed: Literal["0.5", "1", "2"] | None = None  # a factor on sixty frames a second
    pause: bool | None = None
    serve: bool = False  # serve the ball or start the game


class BrowserGame:
    """A game with the agent on the right; its `speed` is in frames per tick."""

    def __init__(self, agent: Agent, rng: np.random.Generator) -> None:
        """Set up a game, which starts with the message ``serve``; `rng` is for the agent.

        Loading the emulator takes a tenth of a second or more.
        """
        require_pong(agent, "This agent")
        self.speed, self._controller = 1.0, Controller(agent, rng)
        self._game = Duel(sticky=(0.0, agent.protocol.sticky))  # a person's moves never stick
        self._person: Callable[[Duel], int] = lambda _: STAY
        self._state, self._serves, self._credit = READY, False, 0.0
        agent.make_network().act(self.screen)  # may compile, so this runs before the clock

    def tick(self) -> None:
        """Advance the game by a sixtieth of a second unless it is paused or over."""
        if self._state != PLAYING:
            return
        self._credit += self.speed
        while self._credit >= 1 and not self._game.is_over:
            self._credit -= 1
            self._advance()

    def _advance(self) -> None:
        fires = self._serves or self._game.frames_since_point >= SERVE_FRAMES
        person, agent = Move(self._person(self._game)), self._controller.move(self._game)
        self._game.act(person, agent, fires=fires)
        self._serves &= self._game.server == LEFT

    def obey(self, message: Message) -> None:
        """Carry out a message from the person."""
        if message.move is not None:
            direction = _DIRECTIONS[message.move]
            self._person = lambda _: direction
        if message.aim is not None:
            row = min(max(210 * message.aim, FIRST_ROW + 6), LAST_ROW - 6)
            self._person = lambda game: game.steer(row)
        if message.speed is not None:
            self.speed = float(message.speed)
        if message.pause is not None and self._state != READY:
            self._state = PAUSED if message.pause else PLAYING
        if message.serve:
            self._state = PLAYING if self._state == READY else self._state
            self._serves = self._game.server == LEFT

    @property
    def phase(self) -> str:
        """READY, PLAYING, SERVE, PAUSED or OVER."""
        if self._game.is_over:
            return OVER
        is_waiting = self._state == PLAYING and self._game.server == LEFT
        return SERVE if is_waiting else self._state

    @property
    def screen(self) -> NDArray[np.uint8]:
        """The newest frame, [210, 160] uint8 palette indices."""
        return self._game.screen

    def describe(self) -> dict[str, Any]:
        """Describe the state of the game, as JSON."""
        return {"phase": self.phase, "points": list(self._game.points), "speed": self.speed}


class Seats:
    """What all games of a server share: its agents, and a limited number of seats."""

    def __init__(self, load_agent: Callable[[str, str], Agent]) -> None:
        """Offer `MAX_GAMES` seats; `load_agent` takes the id of a run and the name of an agent."""
        self._load_agent, self._num_free = load_agent, MAX_GAMES
        self._loading = asyncio.Semaphore(MAX_LOADING)

    @contextlib.contextmanager
    def take_one(self) -> Iterator[None]:
        """Context manager that takes a seat; raises `BusyError` if all are taken."""
        if self._num_free == 0:
            raise BusyError(f"{MAX_GAMES} games are being played already. Try again later.")
        self._num_free -= 1
        try:
            yield
        finally:
            self._num_free += 1

    async def make_game(self, run_id: str, which: str) -> BrowserGame:
        """Load a game against an agent."""
        rng = make_rng(int.from_bytes(os.urandom(4), "little"), "play")
        async with self._loading:
            return await in_thread(lambda: BrowserGame(self._load_agent(run_id, which), rng))


async def play_socket(websocket: WebSocket, seats: Seats) -> None:
    """Serve one game until the browser leaves, at ``?run=ID&agent=UPDATE|NAME|best|latest``."""
    await websocket.accept()
    run_id, which = (websocket.query_params.get(name, "") for name in ("run", "agent"))
    with contextlib.suppress(WebSocketDisconnect):
        try:
            with seats.take_one():
                await _run_clock(websocket, await seats.make_game(run_id, which))
        except (PixelpongError, ValueError) as error:
            with contextlib.suppress(RuntimeError):  # it has left
                await websocket.send_json({"problem": on_one_line(str(error))[:500]})
                await websocket.close(AGAINST_RULES)


async def _receive(websocket: WebSocket) -> Message:
    """Receive the next message from the browser.

    Raises:
        WebSocketDisconnect: the browser has left.
        ValueError: the browser has sent something other than a `Message`.
    """
    received = await websocket.receive()
    if received["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(received["code"])
    if received.get("text") is None:
        raise ValueError("The game takes JSON as text, not binary messages.")
    return decode(received["text"].encode("utf-8", "replace"), Message)


async def _run_clock(websocket: WebSocket, game: BrowserGame) -> None:
    """Run the game's clock, send new pictures and states, and carry out messages."""
    await websocket.send_json({"palette": PALETTE.tolist()})
    now = asyncio.get_running_loop().time
    due, told, last = now(), None, np.zeros(210 * 160, np.uint8)
    while True:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(due):
                while True:
                    game.obey(await _receive(websocket))
        game.tick()
        state, screen = game.describe(), game.screen.reshape(-1).copy()
        if state != told:
            await websocket.send_json(state)
        picture = encode_difference(last, screen)
        if len(picture) > 2:
            await websocket.send_bytes(picture)
        told, last = state, screen
        due = max(due + 1 / PICTURES_PER_SECOND, now() - 0.1)  # never catch up for long
