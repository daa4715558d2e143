"""Typed Python for tests: what calls a cartridge's frame."""

from __future__ import annotations

from pixelpong.atari.typed import Int, Machine


def play_frame(m: Machine) -> Int:
    """One frame, and why it stopped."""
    run_frame(m)  # noqa: F821
    return m.stop
