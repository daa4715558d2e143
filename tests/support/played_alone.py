"""Plays on a machine of its own: ``python played_alone.py`` prints what it saw, and from where."""

from __future__ import annotations

import hashlib

from pixelpong.atari.machine import DRAW_PICTURE
from pixelpong.env.native import NativeConsole, NativeGame, load_game


def play_alone(seed: int, game: NativeGame | None = None) -> str:
    """A hash of all that the machine shows and remembers."""
    console, digest = NativeConsole(0, game), hashlib.sha256()
    for k in range(300):
        console.run(bytes([(k * k >> seed) % 6] * 8), DRAW_PICTURE)
        digest.update(console.picture.tobytes() + console.get_state().tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    print(play_alone(0), load_game().was_kept)
