"""Atari Pong, exactly: steps, sticky actions and snapshots.

The console plays single frames and uses no random numbers. Whether an action sticks is decided
here, once per frame, with numbers that the caller draws. The distribution is that of
``ALE/Pong-v5``, and a game is a pure function of (state, actions, draws): `get_state` and
`set_state` move it to any process.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine import DRAW_PICTURE, STATE
from pixelpong.atari.palette import PALETTE
from pixelpong.config.protocols import Protocol
from pixelpong.env.native import NativeConsole
from pixelpong.errors import ConfigError, expected
from pixelpong.items import STAY

# The start of a snapshot: the action held and the frames so far; the console's state follows.
_PROGRESS = struct.Struct("<B3xI")


class Emulator:
    """An emulator of one game, reused for every episode."""

    def __init__(self, protocol: Protocol, mode: int = 0) -> None:
        """Play by a protocol; `mode` is the cartridge's, see `NativeGame.switch_on`."""
        self.protocol, self.console = protocol, NativeConsole(mode)
        self._low, self._high = protocol.frame_skips
        self.reset()

    def reset(self) -> None:
        """Start an episode, always from the same state."""
        self.console.reset()
        # The action of the last frame, which the next frame may keep; in the two-player game, those
        # of both sides.
        self.held, self.num_frames = STAY, 0

    def step(self, action: int, draws: Sequence[float]) -> float:
        """Play one step with an action of ``ALE/Pong-v5`` and return the reward: −1, 0 or +1.

        `draws` are at least 1 + protocol.max_frame_skip uniform numbers in [0, 1): the first
        chooses the frame skip if the protocol has several, the others decide at each frame whether
        the held action sticks.

        Raises:
            ConfigError: there are fewer.
        """
        if len(draws) <= self._high:
            raise ConfigError(expected(f"at least {1 + self._high} draws", len(draws)))
        skip = self._low + int(draws[0] * (self._high - self._low + 1))
        sticky, held = self.protocol.sticky, self.held
        frames = bytearray()
        for coin in draws[1 : 1 + skip]:
            if coin >= sticky:
                held = action
            frames.append(held)
        self.held = held
        left = max(self.protocol.max_frames - self.num_frames, 0)
        reward, _, played = self.console.run(bytes(frames[:left]), DRAW_PICTURE)
        self.num_frames += played
        return float(reward)

    @property
    def screen(self) -> NDArray[np.uint8]:
        """The newest frame, [210, 160] palette indices, overwritten at every step.

        Not defined between `set_state` and the next step.
        """
        return self.console.picture

    @property
    def is_over(self) -> bool:
        """Whether the episode has ended, by its last point or by the frame limit."""
        return self.console.is_over or self.num_frames >= self.protocol.max_frames

    def frame(self) -> NDArray[np.uint8]:
        """The newest frame in colour, [210, 160, 3] uint8; not defined if `screen` is not."""
        return PALETTE[self.screen]

    def get_state(self) -> bytes:
        """Everything the future depends on, 382 bytes, without the picture."""
        return _PROGRESS.pack(self.held, self.num_frames) + self.console.get_state().tobytes()

    def set_state(self, state: bytes) -> None:
        """Continue from `state`, taken by any emulator of the same protocol, in any process."""
        self.held, self.num_frames = _PROGRESS.unpack_from(state)
        self.console.set_state(np.frombuffer(state, STATE, offset=_PROGRESS.size))
