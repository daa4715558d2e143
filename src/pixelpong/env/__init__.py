"""The game: the real one on two emulators, a toy in its place, what the network sees of a frame."""

from __future__ import annotations

import typing
from collections.abc import Sequence

from pixelpong.config.protocols import Protocol

if typing.TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pixelpong.env.native import NativeConsole, NotCoveredError


class Emulator(typing.Protocol):
    """What both games offer; one contract test holds for them.

    Attributes:
        protocol: what is played.
        screen: [210, 160] uint8 palette indices of the newest frame, overwritten at every step;
            not defined between `set_state` and the next step.
        num_frames: frames emulated since the last reset.
        held: the action of the last frame, as Gymnasium numbers it.
    """

    protocol: Protocol
    screen: NDArray[np.uint8]
    num_frames: int
    held: int

    @property
    def native(self) -> NativeConsole | None:
        """The compiled game that is played; None if it is none."""

    def turn_to_ale(self, reason: NotCoveredError) -> None:
        """Play on with ALE where the compiled game can't."""

    def reset(self) -> None:
        """Start an episode: the same start every time."""

    def step(self, action: int, draws: Sequence[float]) -> float:
        """Ask for `action` for one step and return the reward: −1, 0 or +1.

        Args:
            action: 0 to 5, as ``ALE/Pong-v5`` numbers them; ours are STAY, UP and DOWN.
            draws: uniform numbers in [0, 1): the first chooses the frame skip where the
                protocol leaves it open, the next ones are the coin of each frame; at least
                1 + protocol.max_frame_skip of them.
        """

    @property
    def is_over(self) -> bool:
        """Whether the episode has ended: the last point is played, or the frames are used up."""

    def frame(self) -> NDArray[np.uint8]:
        """The newest frame in colour, [210, 160, 3] uint8; not defined where `screen` is not."""

    def get_state(self) -> bytes:
        """All that the future depends on; the picture is not part of it."""

    def set_state(self, state: bytes) -> None:
        """Go on from `state`, taken by any emulator of the same protocol, in any process.

        Raises:
            EmulatorError: `state` is not a snapshot.
        """


def make_emulator(protocol: Protocol, emulator: str = "native") -> Emulator:
    """The emulator that plays `protocol`.

    Args:
        protocol: what is played.
        emulator: ``"native"`` or ``"ale"``; the bits are the same. The toy has its own.

    Raises:
        EmulatorError: the emulator or its game is not installed.
    """
    if protocol.name == "Catch-v0":
        from pixelpong.env.fake import CatchEmulator

        return CatchEmulator(protocol)
    from pixelpong.env.pong import PongEmulator

    return PongEmulator(protocol, emulator)
