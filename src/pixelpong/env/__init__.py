"""The game: the real one on two emulators, a toy in its place, what the network sees of a frame."""

from __future__ import annotations

import typing

from pixelpong.config.protocols import Protocol

if typing.TYPE_CHECKING:
    from pixelpong.env.pong import Emulator


def make_emulator(protocol: Protocol, emulator: str = "native") -> Emulator:
    """The emulator that plays `protocol`.

    Args:
        protocol: what is played.
        emulator: ``"native"`` or ``"ale"``; the bits are the same. The toy has its own.

    Raises:
        EmulatorError: the emulator or its game is not installed.
    """
    from pixelpong.env.pong import Emulator, make_console

    if protocol.name == "Catch-v0":
        from pixelpong.env.fake import CatchConsole

        return Emulator(protocol, CatchConsole())
    return Emulator(protocol, make_console(emulator))
