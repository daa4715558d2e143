"""The game's WebSocket: sends pictures sixty times a second, and receives moves.

Messages to the browser, as JSON text:

    {"type": "state", "mode", "phase", "points": [left, right], "bounces": [walls, paddles],
     "speed", "agent": {…}}
    {"type": "palette", "colours": [[index, red, green, blue], …]}   before a picture that needs it
    {"type": "error", "text"}                           before the close, or after a failed request

Pictures are binary: [210, 160] palette indices, each as its difference from the one before
(`pixelpong.faces.page.reel.encode_difference`; the first from zeros). The browser sends the
messages of `read_message`, as JSON text; anything else closes the socket with the reason.

The browser reports every few pictures how many it has seen. If it is half a second behind, the game
waits for it; if it is ten seconds behind, it is dropped. A frame, a decision and a picture take
0.2 ms together and run on the event loop; loading, restarting and reading agents run in threads.
Nothing here writes a file.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
from collections.abc import Awaitable, Callable, Iterator
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray
from starlette.websockets import WebSocket, WebSocketDisconnect

from pixelpong.agent.file import Agent
from pixelpong.env.duel import RIGHT
from pixelpong.errors import PixelpongError, expected
from pixelpong.faces.games.game import MODES, SPEEDS, Game
from pixelpong.faces.page.reel import encode_difference
from pixelpong.items import DOWN, STAY, UP
from pixelpong.seeding import make_rng

MAX_GAMES = 4
"""Games at a time: the server has other work too."""

PICTURES_PER_SECOND = 60

MAX_MESSAGE = 200
"""Limit of a message, in characters."""

MAX_MESSAGES_PER_SECOND = 300

MAX_UNSEEN = 30
"""Pictures that the browser may be behind before the game waits."""

LATE_SECONDS = 10.0
"""Seconds without having seen a picture before the browser is dropped."""

IDLE_SECONDS = 600.0
"""Seconds that a game may stand still before it gives up its seat."""

AGAINST_RULES, TRY_LATER = 1008, 1013
"""Close codes of RFC 6455."""

_DIRECTIONS = {"stay": STAY, "up": UP, "down": DOWN}


LoadAgent = Callable[[str, str], Agent]
"""Returns the agent of a run's id by name; raises a `PixelpongError` if there is none."""


class _End(Exception):  # noqa: N818 - an end, with its reason
    """The socket is to be closed."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


async def play_socket(websocket: WebSocket, load_agent: LoadAgent) -> None:
    """Serve one game, from its first picture until the browser leaves.

    Args:
        websocket: not accepted yet; ``?run=ID&agent=UPDATE|best|latest&mode=play|two|watch``.
        load_agent: loads agents.
    """
    await websocket.accept()
    with contextlib.suppress(WebSocketDisconnect):
        try:
            with _seat():
                await _serve(websocket, load_agent)
        except _End as end:
            await _close(websocket, end.code, str(end))
        except PixelpongError as error:
            await _close(websocket, AGAINST_RULES, str(error))


async def _serve(websocket: WebSocket, load_agent: LoadAgent) -> None:
    query = websocket.query_params
    mode, run_id = query.get("mode", "play"), query.get("run", "")
    if mode not in MODES:
        advice = "use one of them"
        wanted = "mode=play, mode=two or mode=watch"
        raise _End(AGAINST_RULES, expected(wanted, repr(mode[:20]), advice))
    agent = await asyncio.to_thread(load_agent, run_id, query.get("agent", "best"))
    rng = make_rng(int.from_bytes(os.urandom(4), "little"), "play")
    game = await asyncio.to_thread(Game, agent, mode, rng)
    viewer = _Viewer(websocket, functools.partial(load_agent, run_id), game)
    tasks = [asyncio.create_task(viewer.listen()), asyncio.create_task(viewer.show())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
    for end in ends:
        if isinstance(end, Exception):
            raise end


_taken = 0


@contextlib.contextmanager
def _seat() -> Iterator[None]:
    """One of the `MAX_GAMES` seats; only the event loop's thread comes here."""
    global _taken
    if _taken >= MAX_GAMES:
        got = f"{MAX_GAMES} games in progress"
        raise _End(TRY_LATER, expected("a free seat", got, "close one of them, then try again"))
    _taken += 1
    try:
        yield
    finally:
        _taken -= 1


async def _close(websocket: WebSocket, code: int, reason: str) -> None:
    # A close frame has room for 123 bytes; the whole line is sent before it.
    short = reason.encode()[:120].decode(errors="ignore")
    with contextlib.suppress(RuntimeError, TimeoutError):
        async with asyncio.timeout(LATE_SECONDS):
            await websocket.send_text(json.dumps({"type": "error", "text": reason}))
            await websocket.close(code, short)


class _Message(msgspec.Struct, forbid_unknown_fields=True):
    type: str
    value: Any = None


_VALUES: dict[str, Any] = {
    "move": Literal["up", "down", "stay"],  # the keys
    "move_right": Literal["up", "down", "stay"],  # those of the second person
    "aim": Annotated[float, msgspec.Meta(ge=0, le=1)],  # mouse or finger, from top to bottom
    "serve": None,  # or begin
    "pause": bool,
    "restart": None,
    "speed": float,  # one of `SPEEDS`
    "agent": Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9]{1,20}$")],  # or best, or latest
    "seen": Annotated[int, msgspec.Meta(ge=0)],  # pictures so far
}


def read_message(text: str) -> tuple[str, Any]:
    """Read a message of the browser, ``{"type": …, "value": …}``, as type and value; see `_VALUES`.

    Raises:
        ValueError: it is not one of these messages.

    >>> read_message('{"type": "aim", "value": 0.5}')
    ('aim', 0.5)
    """
    if len(text) > MAX_MESSAGE:
        raise ValueError(f"a message of {len(text)} characters")
    message = msgspec.json.decode(text, type=_Message)
    if message.type not in _VALUES:
        raise ValueError(f"a message {text[:60]!r}")
    value = msgspec.convert(message.value, _VALUES[message.type])
    if message.type == "speed" and value not in SPEEDS:
        raise ValueError(f"a speed of {value}")
    return message.type, value


class _Viewer:
    """A browser, and the game it shows."""

    def __init__(
        self, websocket: WebSocket, load_agent: Callable[[str], Agent], game: Game
    ) -> None:
        self._websocket, self._load_agent = websocket, load_agent
        self._game, self._lock = game, asyncio.Lock()
        self._last: NDArray[np.uint8] = np.zeros(210 * 160, np.uint8)
        self._colours: set[int] = set()
        self._state, self._texts = "", list[str]()
        self._num_shown = self._num_seen = 0
        self._was_asked, self._was_seen = asyncio.Event(), asyncio.Event()

    async def listen(self) -> None:
        """Take the browser's messages, until it leaves or sends an invalid one."""
        loop = asyncio.get_running_loop()
        second, count = 0.0, 0
        while True:
            received = await self._websocket.receive()
            if received["type"] == "websocket.disconnect":
                raise WebSocketDisconnect(received.get("code") or 1005)
            if loop.time() - second >= 1:
                second, count = loop.time(), 0
            count += 1
            try:
                if count > MAX_MESSAGES_PER_SECOND:
                    raise ValueError(f"more than {MAX_MESSAGES_PER_SECOND} a second")
                await self._obey(*read_message(received.get("text") or ""))
            except ValueError as error:
                got = " ".join(str(error).split())[:80]
                line = expected("a message of the game", got, "reload the page")
                raise _End(AGAINST_RULES, line) from error

    async def _obey(self, kind: str, value: Any) -> None:
        game = self._game
        match kind:
            case "seen":
                if not self._num_seen <= value <= self._num_shown:
                    raise ValueError(f"{value} pictures seen of {self._num_shown}")
                self._num_seen = value
                self._was_seen.set()
                return
            case "move":
                game.move(_DIRECTIONS[value])
            case "move_right":
                game.move(_DIRECTIONS[value], RIGHT)
            case "aim":
                game.aim(value)
            case "pause":
                game.is_paused = value
            case "speed":
                game.speed = value
            case "serve":
                game.serve()
            case "restart":
                async with self._lock:
                    await asyncio.to_thread(game.restart)
            case "agent":
                await self._seat_agent(value)
        self._was_asked.set()

    async def _seat_agent(self, which: str) -> None:
        try:
            agent = await asyncio.to_thread(self._load_agent, which)
            async with self._lock:
                await asyncio.to_thread(self._game.seat, agent)
        except PixelpongError as error:
            self._texts.append(json.dumps({"type": "error", "text": str(error)}))

    async def show(self) -> None:
        """Run the game's clock and send its pictures, until the browser falls too far behind."""
        clock = _Clock()
        while True:
            async with self._lock:
                self._was_asked.clear()
                self._was_seen.clear()
                has_moved = self._game.tick()
                texts, picture = self._look()
            for text in texts:
                sending = self._websocket.send_text(text)
                await _within(LATE_SECONDS, sending, AGAINST_RULES, _LATE)
            if has_moved or len(picture) > 2:
                sending = self._websocket.send_bytes(picture)
                await _within(LATE_SECONDS, sending, AGAINST_RULES, _LATE)
                self._num_shown += 1
            if self._game.is_still:
                got = f"nobody for {IDLE_SECONDS / 60:.0f} minutes"
                line = expected("somebody to play", got, "reload the page")
                await _within(IDLE_SECONDS, self._was_asked.wait(), TRY_LATER, line)
                clock.start()
            elif self._num_shown - self._num_seen >= MAX_UNSEEN:
                await _within(LATE_SECONDS, self._was_seen.wait(), TRY_LATER, _LATE)
                clock.start()
            await clock.beat()

    def _look(self) -> tuple[list[str], bytes]:
        """The new messages, and the picture."""
        texts, self._texts = self._texts, []
        screen = self._game.screen.reshape(-1)
        state = json.dumps({"type": "state"} | self._game.describe())
        if state != self._state:
            texts.append(state)
        picture = encode_difference(self._last, screen)
        self._state, self._last = state, screen.copy()
        unknown = set(picture[2 + (len(picture) - 2) // 3 * 2 :]) - self._colours
        if unknown:
            self._colours |= unknown
            frame = self._game.frame().reshape(-1, 3)
            colours = [[i, *frame[np.flatnonzero(screen == i)[0]].tolist()] for i in unknown]
            texts.append(json.dumps({"type": "palette", "colours": colours}))
        return texts, picture


_LATE = expected(
    "the pictures to be seen in time", f"a delay of {LATE_SECONDS:.0f} seconds", "reload the page"
)


async def _within(seconds: float, waiting: Awaitable[Any], code: int, line: str) -> None:
    """Wait, with a time limit."""
    try:
        async with asyncio.timeout(seconds):
            await waiting
    except TimeoutError:
        raise _End(code, line) from None


class _Clock:
    """Beats at fixed times, however long the work in between takes."""

    def __init__(self) -> None:
        self._now = asyncio.get_running_loop().time
        self.start()

    def start(self) -> None:
        """Set the next beat to one period from now."""
        self._due = self._now()

    async def beat(self) -> None:
        """Wait for the next beat; if it is long past, restart from now instead of catching up."""
        self._due = max(self._due + 1 / PICTURES_PER_SECOND, self._now() - 0.1)
        await asyncio.sleep(max(self._due - self._now(), 0))
