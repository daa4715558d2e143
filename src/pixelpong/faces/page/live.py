"""News of runs, as server-sent events: one tail a run, however many look on.

The files of a run that is watched are looked at four times a second, in a thread. What is new is
made into text once and laid into each viewer's tray, all of it in one piece: with hundreds of
viewers it is the number of pieces that costs. A viewer that lets its tray grow over 64 kB,
or leaves something in it for 10 seconds, is dropped: its browser comes back by itself and says
where it was. Nobody waits for a viewer, least of all the training, which does not know of them.

    event: metrics   {"after": U, "columns": …}  all lines after update U: what was there is void
    event: summary   the light part of a run, when it changes; with a "problem" where it is gone

Covered: tails, trays, dropping. Not covered: connections that stand still (`connections`).
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pixelpong.faces.page.guard import Message, Receive, Refusal, Send
from pixelpong.faces.page.library import View

POLL_SECONDS = 0.25
ALIVE_SECONDS = 4.0
"""Between two comments that keep a quiet connection open."""

SUMMARY_SECONDS = 2.0
"""Between two looks at what changes without the metrics: whether it is live, its agents."""

MAX_BEHIND_BYTES = 64 << 10
MAX_BEHIND_SECONDS = 10.0

MAX_VIEWERS = 500

_PIECE = 8 << 10
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


def encode_json(content: Any) -> bytes:
    """As JSON; numbers that it cannot hold become null."""
    try:
        text = json.dumps(content, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    except ValueError:
        text = json.dumps(_clean(content), separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "replace")


def _clean(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _clean(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_clean(value) for value in content]
    is_odd = isinstance(content, float) and (content != content or abs(content) == float("inf"))
    return None if is_odd else content


def encode_event(name: str, content: Any, number: int | None = None) -> bytes:
    """One server-sent event; a browser that comes back says the `number` of the last."""
    mark = b"" if number is None else b"id: %d\n" % number
    return b"event: %s\n%sdata: %s\n\n" % (name.encode(), mark, encode_json(content))


@dataclass
class _Parcel:
    """Something to be sent, since when, and what of its size counts."""

    content: bytes
    since: float
    counted: int


class Viewer:
    """The tray of one who looks on."""

    def __init__(self) -> None:
        """Nothing lies in it."""
        self._parcels: deque[_Parcel] = deque()
        self._bytes = 0
        self._news = asyncio.Event()
        self._sender: asyncio.Task[Any] | None = None
        self.is_dropped = self._is_ended = False

    def push(self, content: bytes, *, is_first: bool = False) -> None:
        """Lay something into it.

        Args:
            content: what to send.
            is_first: what was there before the viewer came. Its size does not count, nor that of
                one large piece of news for a viewer that has all before it: neither is behind.
        """
        if self.is_dropped or self._is_ended:
            return
        is_free = is_first or (not self._parcels and len(content) > MAX_BEHIND_BYTES)
        counted = 0 if is_free else len(content)
        self._parcels.append(_Parcel(content, time.monotonic(), counted))
        self._bytes += counted
        self._news.set()
        self.check()

    def check(self) -> None:
        """Drop the viewer where it is too far behind."""
        is_late = bool(self._parcels) and (
            time.monotonic() - self._parcels[0].since > MAX_BEHIND_SECONDS
        )
        if is_late or self._bytes > MAX_BEHIND_BYTES:
            self.is_dropped = True
            self._parcels.clear()
            if self._sender is not None:
                self._sender.cancel()  # which may wait for the network

    def end(self) -> None:
        """Nothing more comes; what lies in the tray is still sent."""
        self._is_ended = True
        self._news.set()

    async def send_all(self, send: Callable[[bytes], Any]) -> None:
        """Send what comes until it ends; cancelled where the viewer is dropped."""
        self._sender = asyncio.current_task()
        while not self.is_dropped:
            if not self._parcels:
                if self._is_ended:
                    return
                self._news.clear()
                await self._news.wait()
                continue
            parcel = self._parcels[0]
            for start in range(0, len(parcel.content), _PIECE):
                await send(parcel.content[start : start + _PIECE])
                if not parcel.counted:
                    parcel.since = time.monotonic()
            if self._parcels:
                self._parcels.popleft()
                self._bytes -= parcel.counted


class Channel:
    """One run with viewers: a tail that runs while there are any."""

    def __init__(self, view: View, on_look: Callable[[View], None]) -> None:
        """Watch `view`; `on_look` is called now and then, while somebody looks on."""
        self._view, self._on_look = view, on_look
        self._lock = asyncio.Lock()
        self._summary, self._version = b"", 0
        self._summarized_at = self._alive_at = 0.0
        self.viewers: set[Viewer] = set()
        self.task: asyncio.Task[None] | None = None

    async def join(self, after: int) -> Viewer:
        """A new viewer, in whose tray lies all that is after this update."""
        viewer = Viewer()
        async with self._lock:  # so that nothing is missed between the first look and the next
            if not self.viewers:
                self._version = self._view.version
            news, first = await self._look(after)
            self._push(news)
            viewer.push(first, is_first=True)
            if not self._summary:
                self._summary = await asyncio.to_thread(self._tell)
            viewer.push(self._summary, is_first=True)
            self.viewers.add(viewer)
        if self.task is None or self.task.done():
            self.task = asyncio.create_task(self._run())
        return viewer

    def close(self) -> None:
        """End all streams."""
        for viewer in self.viewers:
            viewer.end()
        if self.task is not None:
            self.task.cancel()

    async def _run(self) -> None:
        while self.viewers:
            await asyncio.sleep(POLL_SECONDS)
            async with self._lock:
                try:
                    is_over = await self._poll()
                except Exception:
                    is_over = True  # a bug; browsers come back, others are not disturbed
            for viewer in self.viewers:
                viewer.check()
                if is_over:
                    viewer.end()

    async def _poll(self) -> bool:
        """Look once; whether the run is gone."""
        now = time.monotonic()
        await asyncio.to_thread(self._view.refresh)
        version = self._version
        news, _ = await self._look(None)
        is_there = self._view.is_there
        is_due = now - self._summarized_at >= SUMMARY_SECONDS
        if self._version != version or not is_there or is_due:
            self._summarized_at = now
            self._on_look(self._view)
            summary = await asyncio.to_thread(self._tell)
            if summary != self._summary:
                self._summary = summary
                news += summary
        if now - self._alive_at >= ALIVE_SECONDS:
            self._alive_at = now
            news += b": alive\n\n"
        self._push(news)
        return not is_there

    async def _look(self, after: int | None) -> tuple[bytes, bytes]:
        """What is new to all viewers, and to one who has all until `after`."""

        def look() -> tuple[bytes, bytes]:
            with self._view.lock:
                kept = self._view.kept_since(self._version)
                self._version = self._view.version
                return self._tell_metrics(kept), self._tell_metrics(after)

        return await asyncio.to_thread(look)

    def _tell_metrics(self, after: int | None) -> bytes:
        if after is None:
            return b""
        last = self._view.table.last_update
        after = min(after, last)  # later ones were cut off
        return encode_event("metrics", {"after": after, "columns": self._view.columns(after)}, last)

    def _tell(self) -> bytes:
        return encode_event("summary", self._view.tell_light())

    def _push(self, content: bytes) -> None:
        if not content:
            return
        for viewer in self.viewers:
            viewer.push(content)


class Hub:
    """All channels of one server."""

    def __init__(
        self,
        abort: Callable[[tuple[str, int] | None], None],
        on_look: Callable[[View], None],
    ) -> None:
        """Begin with none.

        Args:
            abort: closes the connection of an address at once.
            on_look: called with a run now and then, while somebody looks on.
        """
        self._abort, self._on_look = abort, on_look
        self._channels: dict[str, Channel] = {}
        self._is_closed = False

    @property
    def num_viewers(self) -> int:
        """Of all runs."""
        return sum(len(channel.viewers) for channel in self._channels.values())

    def open(self, view: View, after: int) -> Stream:
        """The stream of a run's news after an update.

        Raises:
            Refusal: there are too many viewers.
        """
        if self._is_closed or self.num_viewers >= MAX_VIEWERS:
            raise Refusal(503, expected_viewers())
        return Stream(self, view, after)

    async def join(self, view: View, after: int) -> tuple[Channel, Viewer]:
        """A new viewer of a run."""
        channel = self._channels.get(view.id)
        if channel is None:
            channel = self._channels[view.id] = Channel(view, self._on_look)
        viewer = await channel.join(after)
        if self._is_closed:
            viewer.end()
        return channel, viewer

    def leave(self, view: View, channel: Channel, viewer: Viewer) -> None:
        """One viewer less."""
        channel.viewers.discard(viewer)
        if not channel.viewers and self._channels.get(view.id) is channel:
            channel.close()
            del self._channels[view.id]

    def drop(self, client: tuple[str, int] | None) -> None:
        """Close the connection of a viewer that is behind."""
        self._abort(client)

    def close(self) -> None:
        """End all streams, and open no more."""
        self._is_closed = True
        for channel in self._channels.values():
            channel.close()


def expected_viewers() -> str:
    """What is said to one viewer too many."""
    return f"expected at most {MAX_VIEWERS} viewers, got one more; close a page and reload"


class Stream:
    """One answer that goes on until its viewer leaves, is dropped, or the run is gone."""

    def __init__(self, hub: Hub, view: View, after: int) -> None:
        """See `Hub.open`."""
        self._hub, self._view, self._after = hub, view, after

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer as an ASGI application."""

        async def pass_on(content: bytes) -> None:
            await send({"type": "http.response.body", "body": content, "more_body": True})

        await send({"type": "http.response.start", "status": 200, "headers": list(_HEADERS)})
        if scope["method"] != "HEAD":
            channel, viewer = await self._hub.join(self._view, self._after)
            try:
                tasks = [
                    asyncio.create_task(viewer.send_all(pass_on)),
                    asyncio.create_task(_wait_until_gone(receive)),
                ]
                await _first_of(tasks)
            finally:
                self._hub.leave(self._view, channel, viewer)
            if viewer.is_dropped:
                self._hub.drop(scope.get("client"))
                return
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _first_of(tasks: list[asyncio.Task[None]]) -> None:
    """Wait until one is done; the others are given up."""
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _wait_until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
