"""Updates of runs, as server-sent events: each run is read once for any number of viewers.

A thread checks the files of a watched run four times a second. If there is something new, it wakes
the viewers, and each gets what it does not have yet; text that most of them need is made once.
Nothing is stored for a slow viewer: it gets everything it missed in one piece, and is dropped if it
reads nothing for 10 seconds. Its browser then reconnects and says where it was. Nothing waits for a
viewer, and the training does not know about them.

    event: metrics   {"after": U, "columns": …}  all lines after update U, replacing older ones
    event: summary   the light part of a run, when it changes; with a "problem" if it is gone
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.exceptions import HTTPException

from pixelpong.errors import expected
from pixelpong.faces.page.view import Position, View

POLL_SECONDS = 0.25
ALIVE_SECONDS = 4.0
"""Seconds between two comments that keep a quiet connection open."""

SUMMARY_SECONDS = 2.0
"""Seconds between two checks of facts outside the metrics: whether it is live, its agents."""

BEHIND_SECONDS = 10.0
"""Seconds to take an event; a viewer that needs longer is dropped."""

MAX_VIEWERS = 500


def encode_json(content: Any) -> bytes:
    """As JSON."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def _encode_event(name: str, content: Any, number: int | None = None) -> bytes:
    """One server-sent event; a browser that reconnects sends the `number` of the last one."""
    text = encode_json(content).decode()
    mark = None if number is None else str(number)
    return ServerSentEvent(text, event=name, id=mark, sep="\n").encode()


class Channel:
    """One run, which is watched as long as it has viewers.

    Attributes:
        num_viewers: the number of its viewers.
        is_over: whether its streams have ended.
    """

    def __init__(self, view: View, on_look: Callable[[View], None]) -> None:
        """Watch `view`; `on_look` is called from time to time while there are viewers."""
        self._view, self._on_look = view, on_look
        self._news: dict[tuple[Position, Position], tuple[Position, bytes]] = {}
        self._summary = b""
        self._change = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.num_viewers, self.is_over = 0, False

    async def follow(self, after: int) -> AsyncIterator[bytes]:
        """All events for a viewer that has the lines up to the update `after`."""
        self.num_viewers += 1
        if self._task is None:
            self._task = asyncio.create_task(self._keep_looking())
        try:
            position, summary = (self._view.position[0], after), b""
            news: bytes | None = None
            while True:
                change = self._change
                if news is None or position != self._view.position:
                    position, news = await self._tell_since(position)
                    yield news
                if summary != self._summary:
                    summary = self._summary
                    yield summary
                if self.is_over:
                    return
                await change.wait()
        finally:
            self.num_viewers -= 1
            if not self.num_viewers:
                self.close()

    def close(self) -> None:
        """End all streams."""
        self.is_over = True
        self._wake()

    def _wake(self) -> None:
        change, self._change = self._change, asyncio.Event()
        change.set()

    async def _keep_looking(self) -> None:
        try:
            position, due = self._view.position, 0.0
            while not self.is_over:
                await asyncio.to_thread(self._view.refresh)
                is_new = position != self._view.position
                if is_new:
                    self._news.clear()
                    position, _ = await self._tell_since(position)
                if is_new or time.monotonic() >= due or not self._view.is_there:
                    due = time.monotonic() + SUMMARY_SECONDS
                    self._on_look(self._view)
                    before = self._summary
                    self._summary = await asyncio.to_thread(self._tell_summary)
                    self.is_over |= not self._view.is_there
                    if is_new or before != self._summary:
                        self._wake()
                await asyncio.sleep(POLL_SECONDS)
        finally:
            self.close()

    async def _tell_since(self, known: Position) -> tuple[Position, bytes]:
        """The view's position, and an event with everything new since `known`."""
        key = (known, self._view.position)
        if key not in self._news:
            self._news[key] = await asyncio.to_thread(self._tell_metrics, known)
        return self._news[key]

    def _tell_metrics(self, known: Position) -> tuple[Position, bytes]:
        with self._view.lock:
            epoch, last = self._view.position
            after = min(known[1], last) if known[0] == epoch else 0
            told = {"after": after, "columns": self._view.columns(after)}
            return (epoch, last), _encode_event("metrics", told, last)

    def _tell_summary(self) -> bytes:
        return _encode_event("summary", self._view.tell_light())


class Hub:
    """All channels of one server."""

    def __init__(self, on_look: Callable[[View], None]) -> None:
        """Begin with none; `on_look` is called from time to time with a run that is watched."""
        self._on_look = on_look
        self._channels: dict[str, Channel] = {}
        self._is_closed = False

    def open(self, view: View, after: int) -> EventSourceResponse:
        """The stream of a run's events after an update.

        Raises:
            HTTPException: there are too many viewers.
        """
        self._channels = {key: each for key, each in self._channels.items() if not each.is_over}
        count = sum(channel.num_viewers for channel in self._channels.values())
        if self._is_closed or count >= MAX_VIEWERS:
            text = expected(f"at most {MAX_VIEWERS} viewers", "one more", "close a page and reload")
            raise HTTPException(503, text)
        if view.id not in self._channels:
            self._channels[view.id] = Channel(view, self._on_look)
        return EventSourceResponse(
            self._channels[view.id].follow(after),
            ping=ALIVE_SECONDS,
            ping_message_factory=lambda: ServerSentEvent(comment="alive", sep="\n"),
            send_timeout=BEHIND_SECONDS,
        )

    def close(self) -> None:
        """End all streams, and open no more."""
        self._is_closed = True
        for channel in self._channels.values():
            channel.close()
