"""Playing frames of any cartridge, in typed Python."""

from __future__ import annotations

from pixelpong.atari.machine import FRAME_DONE
from pixelpong.atari.typed import Int, Machine


def play(m: Machine, count: Int) -> Int:
    """Play frames with the inputs as they are; return the stop code."""
    for _ in range(count):
        run_frame(m)  # type: ignore[name-defined]
        if m.stop != FRAME_DONE:
            return m.stop
    return FRAME_DONE
