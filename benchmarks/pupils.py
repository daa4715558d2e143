"""A class that plays: how many pictures a second do so many players get from one server?

    python benchmarks/pupils.py > benchmarks/pupils.json

For each size of class, a server is started, and so many players connect, each with a socket of
its own, as browsers do. Each begins a game of Pong against the same agent and moves its paddle.
After a while their pictures are counted; the console makes 60 a second, of which those are sent
that differ from the one before. The players are in another process, which needs the processor,
too: in a class each pupil has a device.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from records import made_by, to_text
from websockets.asyncio.client import connect

MOVES = ("up", "stay", "down", "stay")


@contextmanager
def served() -> Iterator[str]:
    """A server of its own: its address."""
    command = [sys.executable, "-m", "pixelpong", "play", "--no-open", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            yield re.search(r"http://[^/]+", server.stderr.readline())[0]
        finally:
            server.terminate()
            server.wait()


async def play(address: str, begin: asyncio.Barrier, seconds: float) -> float:
    """Play for a while; the pictures a second."""
    url = f"{address.replace('http', 'ws')}/game?run=package&agent=club"
    async with connect(url, origin=address, max_size=None, compression=None) as socket:
        while '"ready"' not in str(await socket.recv()):
            pass
        await begin.wait()
        await socket.send(json.dumps({"serve": True}))
        pictures, moved, end = 0, 0, time.monotonic() + seconds
        while time.monotonic() < end:
            message = await socket.recv()
            if isinstance(message, bytes):
                pictures += 1
                if pictures % 15 == 0:
                    moved += 1
                    await socket.send(
                        json.dumps({"move": MOVES[moved % len(MOVES)], "serve": True})
                    )
        return pictures / seconds


async def play_all(address: str, players: int, seconds: float) -> list[float]:
    """So many games at once."""
    begin = asyncio.Barrier(players)
    return await asyncio.gather(*(play(address, begin, seconds) for _ in range(players)))


def parse(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 12, 30])
    parser.add_argument("--seconds", type=float, default=20.0)
    return parser.parse_args(words)


def main() -> None:
    """Measure each size of class."""
    options = parse()
    report: dict[str, Any] = made_by() | {"seconds": options.seconds, "classes": []}
    for size in options.sizes:
        with served() as address:
            pictures = asyncio.run(play_all(address, size, options.seconds))
        report["classes"].append(
            {
                "players": size,
                "pictures_per_second": round(statistics.median(pictures), 1),
                "fewest": round(min(pictures), 1),
            }
        )
        sys.stderr.write(f"{report['classes'][-1]}\n")
    print(to_text(report), end="")


if __name__ == "__main__":
    main()
