"""Games in the browser, picture by picture, between a person and an agent.

`ClockedGame.tick` is called sixty times a second and emulates the frames that are due, one at speed
1. In Pong, `BrowserGame`, the agent plays the right side exactly as in training
(`pixelpong.agent.game.Controller`) and takes the most probable action. In any other game,
`pixelpong.faces.page.rival.RivalGame`, both play side by side. A person's moves never stick.

Messages to the browser, as JSON text:

    {"palette": [[red, green, blue], …]}              first of all; except in Pong also
        "rows", "game", "seed", "actions"
    {"phase": …, "points": [person, agent], "speed": …} when one of them changes
    {"problem": text}                                 before the close

Pictures are binary messages: one picture in Pong, else the person's and the agent's, one after the
other. Each has [rows, 160] palette indices and is encoded as the difference from the previous one,
the first from zeros (`pixelpong.faces.look.reel.encode_difference`). The browser sends a `Message`
as JSON text; anything else closes the socket with the reason. Each game has its own socket.

A frame, a decision and a picture take 0.2 ms together and run on the event loop; loading runs in
threads. This module writes no files.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from starlette.websockets import WebSocket, WebSocketDisconnect

from pixelpong.agent.choice import require_pong
from pixelpong.agent.file import Agent
from pixelpong.agent.game import Controller
from pixelpong.config.protocols import PONG
from pixelpong.errors import ConfigError, PixelpongError, on_one_line
from pixelpong.faces.look.reel import encode_difference
from pixelpong.faces.page.clocked import OVER, PLAYING, SERVE, ClockedGame, Message
from pixelpong.faces.page.rival import MAX_SEED, RivalGame
from pixelpong.faces.page.threads import BusyError, in_thread
from pixelpong.items import DOWN, STAY, UP
from pixelpong.pong.duel import Duel, Move
from pixelpong.pong.modes import FIRST_ROW, LAST_ROW, LEFT
from pixelpong.schema import decode
from pixelpong.seeding import make_rng

PICTURES_PER_SECOND = 60
AGAINST_RULES = 1008  # close code of RFC 6455
MAX_MESSAGE = 4096  # most bytes that the browser may send at once
MAX_GAMES = 64  # most games at once
MAX_LOADING = 4  # most threads that load games; other games wait for them in no thread

SERVE_FRAMES = 180  # the person's side serves automatically this many frames after a point

_DIRECTIONS = {"stay": STAY, "up": UP, "down": DOWN}


class BrowserGame(ClockedGame):
    """A game of Pong with the agent on the right."""

    def __init__(self, agent: Agent, rng: np.random.Generator) -> None:
        """Set up a game, which starts with the message ``serve``; `rng` is for the agent.

        Loading the emulator takes a tenth of a second or more.
        """
        require_pong(agent, "This agent")
        super().__init__()
        self._controller = Controller(agent, rng)
        self._game = Duel(sticky=(0.0, agent.protocol.sticky))  # a person's moves never stick
        self._person: Callable[[Duel], int] = lambda _: STAY
        self._serves = False
        agent.make_network().act(self.screen)  # may compile, so this runs before the clock

    def _advance(self) -> None:
        fires = self._serves or self._game.frames_since_point >= SERVE_FRAMES
        person, agent = Move(self._person(self._game)), self._controller.move(self._game)
        self._game.act(person, agent, fires=fires)
        self._serves &= self._game.server == LEFT

    def obey(self, message: Message) -> None:
        """Carry out a message from the person."""
        super().obey(message)
        if message.move is not None:
            direction = _DIRECTIONS[message.move]
            self._person = lambda _: direction
        if message.aim is not None:
            row = min(max(210 * message.aim, FIRST_ROW + 6), LAST_ROW - 6)
            self._person = lambda game: game.steer(row)
        if message.serve:
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

    @property
    def screens(self) -> tuple[NDArray[np.uint8], ...]:
        """The newest frame alone."""
        return (self.screen,)

    @property
    def points(self) -> tuple[int, int]:
        """The points of the person and of the agent."""
        return self._game.points

    @property
    def is_over(self) -> bool:
        """Whether the game has ended."""
        return self._game.is_over


def make_game(agent: Agent, seed: int) -> ClockedGame:
    """Make the game that a person plays against an agent."""
    if agent.protocol.game == PONG:
        return BrowserGame(agent, make_rng(seed, "play"))
    return RivalGame(agent, seed)


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

    async def make_game(self, run_id: str, which: str, seed: str) -> ClockedGame:
        """Load a game against an agent; without a seed, the system draws one."""
        if not re.fullmatch("[0-9]{0,16}", seed):
            raise ConfigError(f"A seed is a number below {MAX_SEED:,}.")
        number = int(seed) if seed else int.from_bytes(os.urandom(4), "little")
        async with self._loading:
            return await in_thread(lambda: make_game(self._load_agent(run_id, which), number))


async def play_socket(websocket: WebSocket, seats: Seats) -> None:
    """Serve one game until the browser leaves.

    Its address is ``?run=ID&agent=UPDATE|NAME|best|latest``, perhaps with ``&seed=NUMBER``.
    """
    await websocket.accept()
    words = [websocket.query_params.get(name, "") for name in ("run", "agent", "seed")]
    with contextlib.suppress(WebSocketDisconnect):
        try:
            with seats.take_one():
                await _run_clock(websocket, await seats.make_game(*words))
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


async def _run_clock(websocket: WebSocket, game: ClockedGame) -> None:
    """Run the game's clock, send new pictures and states, and carry out messages."""
    await websocket.send_json(game.introduce())
    now = asyncio.get_running_loop().time
    due, told, last = now(), None, [np.zeros(screen.size, np.uint8) for screen in game.screens]
    while True:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(due):
                while True:
                    game.obey(await _receive(websocket))
        game.tick()
        state, screens = game.describe(), [screen.reshape(-1).copy() for screen in game.screens]
        if state != told:
            await websocket.send_json(state)
        pictures = list(map(encode_difference, last, screens))
        if any(len(picture) > 2 for picture in pictures):
            await websocket.send_bytes(b"".join(pictures))
        told, last = state, screens
        due = max(due + 1 / PICTURES_PER_SECOND, now() - 0.1)  # never catch up for long
