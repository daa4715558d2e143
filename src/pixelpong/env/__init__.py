"""The game, and what the network sees of a frame."""

from __future__ import annotations

import typing

from pixelpong.config.protocols import Protocol

if typing.TYPE_CHECKING:
    from pixelpong.env.pong import Emulator


def make_emulator(protocol: Protocol) -> Emulator:
    """Make an emulator that plays `protocol`."""
    from pixelpong.env.native import NativeConsole
    from pixelpong.env.pong import Emulator

    return Emulator(protocol, NativeConsole())
