"""The game's WebSocket: sends pictures sixty times a second, and receives moves.

Messages to the browser, as JSON text:

    {"type": "palette", "colours": [[red, green, blue], …]}   first of all
    {"type": "state", "phase", "points": [left, right], "speed"}
    {"type": "error", "text"}                                 before the close

Pictures are binary: [210, 160] palette indices, each as its difference from the one before
(`pixelpong.faces.look.reel.encode_difference`; the first from zeros). The browser sends the
messages of `read_message`, as JSON text; anything else closes the socket with the reason. Another
game is another socket.

A frame, a decision and a picture take 0.2 ms together and run on the event loop; loading runs in
threads. Nothing here writes a file.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from starlette.websockets import WebSocket, WebSocketDisconnect

from pixelpong.agent.file import Agent
from pixelpong.atari.palette import PALETTE
from pixelpong.errors import PixelpongError, on_one_line
from pixelpong.faces.games.game import Game
from pixelpong.faces.look.reel import encode_difference
from pixelpong.items import DOWN, STAY, UP
from pixelpong.schema import convert, decode
from pixelpong.seeding import make_rng

PICTURES_PER_SECOND = 60
AGAINST_RULES = 1008  # close code of RFC 6455

_DIRECTIONS = {"stay": STAY, "up": UP, "down": DOWN}

# Returns the agent of a run's id by name; raises a `PixelpongError` if there is none.
LoadAgent = Callable[[str, str], Agent]

_VALUES: dict[str, Any] = {
    "move": Literal["up", "down", "stay"],  # the keys
    "aim": Annotated[float, msgspec.Meta(ge=0, le=1)],  # mouse or finger, from top to bottom
    "serve": None,  # or begin
    "pause": bool,
    "speed": Literal["0.5", "1", "2"],  # times the game's own sixty frames a second
}


async def play_socket(websocket: WebSocket, load_agent: LoadAgent) -> None:
    """Serve one game until the browser leaves, at ``?run=ID&agent=UPDATE|NAME|best|latest``."""
    await websocket.accept()
    run_id, which = (websocket.query_params.get(name, "") for name in ("run", "agent"))
    with contextlib.suppress(WebSocketDisconnect):
        try:
            agent = await asyncio.to_thread(load_agent, run_id, which)
            rng = make_rng(int.from_bytes(os.urandom(4), "little"), "play")
            game = await asyncio.to_thread(Game, agent, rng)
            await _play(websocket, game)
        except (PixelpongError, ValueError) as error:
            with contextlib.suppress(RuntimeError):  # it has left
                await websocket.send_json({"type": "error", "text": on_one_line(str(error))[:500]})
                await websocket.close(AGAINST_RULES)


class _Message(msgspec.Struct, forbid_unknown_fields=True):
    type: str
    value: Any = None


def read_message(text: str) -> tuple[str, Any]:
    """Read a message of the browser as type and value; an invalid one raises ValueError.

    >>> read_message('{"type": "aim", "value": 0.5}')
    ('aim', 0.5)
    """
    message = decode(text.encode("utf-8", "replace"), _Message)
    if message.type not in _VALUES:
        raise ValueError(f"{message.type[:60]!r} is no message of the game; reload the page")
    return message.type, convert(message.value, _VALUES[message.type])


async def _play(websocket: WebSocket, game: Game) -> None:
    """Run until the browser leaves or sends something invalid."""
    tasks = [asyncio.create_task(each(websocket, game)) for each in (_listen, _show)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _listen(websocket: WebSocket, game: Game) -> None:
    while True:
        match read_message(await websocket.receive_text()):
            case "move", direction:
                game.move(_DIRECTIONS[direction])
            case "aim", place:
                game.aim(place)
            case "pause", is_paused:
                game.pause(is_paused)
            case "speed", speed:
                game.speed = float(speed)
            case "serve", _:
                game.serve()


async def _show(websocket: WebSocket, game: Game) -> None:
    """Run the game's clock, and send what is new."""
    await websocket.send_json({"type": "palette", "colours": PALETTE.tolist()})
    now = asyncio.get_running_loop().time
    due, told, last = now(), None, np.zeros(210 * 160, np.uint8)
    while True:
        game.tick()
        state, screen = {"type": "state", **game.describe()}, game.screen.reshape(-1).copy()
        if state != told:
            await websocket.send_json(state)
        picture = encode_difference(last, screen)
        if len(picture) > 2:
            await websocket.send_bytes(picture)
        told, last = state, screen
        due = max(due + 1 / PICTURES_PER_SECOND, now() - 0.1)  # never catch up for long
        await asyncio.sleep(max(due - now(), 0))
