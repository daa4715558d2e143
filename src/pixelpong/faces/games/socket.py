"""The game's WebSocket: sends pictures sixty times a second, and receives moves.

Messages to the browser, as JSON text:

    {"palette": [[red, green, blue], …]}              first of all
    {"phase": …, "points": [left, right], "speed": …} when one of them changes
    {"problem": text}                                 before the close

Pictures are binary: [210, 160] palette indices, each as its difference from the one before
(`pixelpong.faces.look.reel.encode_difference`; the first from zeros). The browser sends a `Message`
as JSON text; anything else closes the socket with the reason. Another game is another socket.

A frame, a decision and a picture take 0.2 ms together and run on the event loop; loading runs in
threads. Nothing here writes a file.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from typing import Annotated, Literal

import msgspec
import numpy as np
from starlette.websockets import WebSocket, WebSocketDisconnect

from pixelpong.agent.file import Agent
from pixelpong.atari.palette import PALETTE
from pixelpong.errors import PixelpongError, on_one_line
from pixelpong.faces.games.game import Game
from pixelpong.faces.look.reel import encode_difference
from pixelpong.items import DOWN, STAY, UP
from pixelpong.schema import decode
from pixelpong.seeding import make_rng

PICTURES_PER_SECOND = 60
AGAINST_RULES = 1008  # close code of RFC 6455

_DIRECTIONS = {"stay": STAY, "up": UP, "down": DOWN}

# Returns the agent of a run's id by name; raises a `PixelpongError` if there is none.
LoadAgent = Callable[[str, str], Agent]


class Message(msgspec.Struct, forbid_unknown_fields=True):
    """What the browser may send."""

    move: Literal["stay", "up", "down"] | None = None  # the keys
    aim: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None  # mouse or finger, from the top
    speed: Literal["0.5", "1", "2"] | None = None  # times the game's own sixty frames a second
    pause: bool | None = None
    serve: bool = False  # or begin


async def play_socket(websocket: WebSocket, load_agent: LoadAgent) -> None:
    """Serve one game until the browser leaves, at ``?run=ID&agent=UPDATE|NAME|best|latest``."""
    await websocket.accept()
    run_id, which = (websocket.query_params.get(name, "") for name in ("run", "agent"))
    rng = make_rng(int.from_bytes(os.urandom(4), "little"), "play")
    with contextlib.suppress(WebSocketDisconnect):
        try:
            game = await asyncio.to_thread(lambda: Game(load_agent(run_id, which), rng))
            await _play(websocket, game)
        except (PixelpongError, ValueError) as error:
            with contextlib.suppress(RuntimeError):  # it has left
                await websocket.send_json({"problem": on_one_line(str(error))[:500]})
                await websocket.close(AGAINST_RULES)


async def _play(websocket: WebSocket, game: Game) -> None:
    """Run the game's clock, send what is new and do what is asked."""
    await websocket.send_json({"palette": PALETTE.tolist()})
    now = asyncio.get_running_loop().time
    due, told, last = now(), None, np.zeros(210 * 160, np.uint8)
    while True:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(due):
                while True:
                    _obey(game, await websocket.receive_text())
        game.tick()
        state, screen = game.describe(), game.screen.reshape(-1).copy()
        if state != told:
            await websocket.send_json(state)
        picture = encode_difference(last, screen)
        if len(picture) > 2:
            await websocket.send_bytes(picture)
        told, last = state, screen
        due = max(due + 1 / PICTURES_PER_SECOND, now() - 0.1)  # never catch up for long


def _obey(game: Game, text: str) -> None:
    message = decode(text.encode("utf-8", "replace"), Message)
    if message.move is not None:
        game.move(_DIRECTIONS[message.move])
    if message.aim is not None:
        game.aim(message.aim)
    if message.speed is not None:
        game.speed = float(message.speed)
    if message.pause is not None:
        game.pause(message.pause)
    if message.serve:
        game.serve()
