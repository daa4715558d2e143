"""The game: on two emulators, and what the network sees of a frame."""

from __future__ import annotations

import typing

from pixelpong.config.protocols import Protocol

if typing.TYPE_CHECKING:
    from pixelpong.env.pong import Emulator


def make_emulator(protocol: Protocol, emulator: str = "native") -> Emulator:
    """Make an emulator that plays `protocol`.

    Args:
        protocol: the game to play.
        emulator: ``"native"`` or ``"ale"``; the bits are the same.

    Raises:
        EmulatorError: the emulator or its game is not installed.
    """
    from pixelpong.env.pong import Emulator, make_console

    return Emulator(protocol, make_console(emulator))
