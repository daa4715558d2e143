"""Atari Pong, exactly: the only file with the emulator.

The emulator runs without sticky actions of its own; the coin is tossed here, once a frame, from
numbers that the caller draws. The distribution is that of ``ALE/Pong-v5``, and a game becomes a
pure function of (state, actions, draws): `get_state` and `set_state` move it to any process.

Covered: stepping, snapshots, frames as palette indices and in colour.
Not covered: what the network sees (`pixelpong.env.preprocess`).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any

import ale_py
import numpy as np
from numpy.typing import NDArray

from pixelpong.env.rom import find_rom
from pixelpong.errors import EmulatorError, expected
from pixelpong.protocols import Protocol

_NOOP = ale_py.Action.NOOP.value
_ACTIONS = tuple(
    each.value
    for each in (
        ale_py.Action.NOOP, ale_py.Action.FIRE, ale_py.Action.RIGHT, ale_py.Action.LEFT,
        ale_py.Action.RIGHTFIRE, ale_py.Action.LEFTFIRE,
    )
)  # fmt: skip
"""The emulator's numbers of what Gymnasium numbers 0 to 5; STAY, UP and DOWN are among them."""

_HEADER = struct.Struct("<iiHI")
"""Of a snapshot: the action held, frames so far, size of the state in bytes, its checksum. Where
the state differs from a game's start follows as uint16, then what it has there as uint8."""


class PongEmulator:
    """One emulator with Pong in it, reused for game after game."""

    def __init__(self, protocol: Protocol, *, has_window: bool = False) -> None:
        """Load the game; in a window of the emulator's own, which waits at every frame, if asked.

        Raises:
            EmulatorError: the game is not where the ale-py package keeps it.
        """
        self.protocol = protocol
        self._ale = _load(protocol, has_window=has_window)
        self._act = self._ale.act
        self._low, self._high = protocol.frame_skips
        self._held = _NOOP
        self.num_frames = 0
        self.screen = np.zeros((210, 160), np.uint8)
        # A reset takes 3 ms and always ends in the same state: keep it, and go back to it in
        # 20 µs. The emulator's picture is not part of a state, so it is kept as well.
        self._ale.reset_game()
        self._start = self._ale.cloneState()
        self._start_bytes = np.frombuffer(self._start.serialize(), np.uint8)
        self._start_screen: NDArray[np.uint8] = self._ale.getScreen()
        self._start_frame: NDArray[np.uint8] = self._ale.getScreenRGB()
        self.reset()

    def reset(self) -> None:
        """See `pixelpong.env.Emulator.reset`."""
        self._ale.restoreState(self._start)
        self.screen[:] = self._start_screen
        self._held = _NOOP
        self.num_frames = 0

    def step(self, action: int, draws: Sequence[float]) -> float:
        """See `pixelpong.env.Emulator.step`."""
        skip = self._low + int(draws[0] * (self._high - self._low + 1))
        wanted, sticky, act = _ACTIONS[action], self.protocol.sticky, self._act
        held, reward = self._held, 0
        for coin in draws[1 : 1 + skip]:
            if coin >= sticky:
                held = wanted
            reward += act(held)
        self._held = held
        self.num_frames = self._ale.getEpisodeFrameNumber()
        self._ale.getScreen(self.screen)
        return float(reward)

    @property
    def is_over(self) -> bool:
        """See `pixelpong.env.Emulator.is_over`."""
        return bool(self._ale.game_over())

    def frame(self) -> NDArray[np.uint8]:
        """See `pixelpong.env.Emulator.frame`."""
        if self.num_frames == 0:
            return self._start_frame.copy()
        frame: NDArray[np.uint8] = self._ale.getScreenRGB()
        return frame

    def get_state(self) -> bytes:
        """See `pixelpong.env.Emulator.get_state`; some 200 bytes.

        Of the 8 kB that the emulator's state takes, 60 bytes or so differ from those of a game's
        start; they alone are kept.
        """
        state = np.frombuffer(self._ale.cloneState().serialize(), np.uint8)
        where = np.flatnonzero(state != self._fit_start(len(state))).astype("<u2")
        header = _HEADER.pack(self._held, self.num_frames, len(state), zlib.crc32(state.data))
        return header + where.tobytes() + state[where].tobytes()

    def set_state(self, state: bytes) -> None:
        """See `pixelpong.env.Emulator.set_state`."""
        try:
            held, num_frames, size, checksum = _HEADER.unpack_from(state)
            if held not in _ACTIONS:
                raise ValueError(f"an action {held} held")
            num_other = (len(state) - _HEADER.size) // 3
            whole = self._fit_start(size)
            where = np.frombuffer(state, "<u2", num_other, _HEADER.size)
            whole[where] = np.frombuffer(state, np.uint8, num_other, _HEADER.size + 2 * num_other)
            if zlib.crc32(whole.data) != checksum:
                raise ValueError("one that is damaged, or of another version of ale-py")
            self._ale.restoreState(ale_py.ALEState(whole.tobytes()))
        except Exception as error:
            raise EmulatorError(
                expected("a snapshot of the emulator", str(error), "take one with get_state()")
            ) from error
        self._held, self.num_frames = held, num_frames

    def _fit_start(self, size: int) -> NDArray[np.uint8]:
        """The start's state, cut or filled with zeros to so many bytes."""
        start = np.zeros(size, np.uint8)
        start[: len(self._start_bytes)] = self._start_bytes[:size]
        return start


def _load(protocol: Protocol, *, has_window: bool = False) -> Any:
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    ale.setInt("frame_skip", 1)
    ale.setBool("display_screen", has_window)
    ale.setInt("max_num_frames_per_episode", protocol.max_frames)
    ale.loadROM(find_rom())
    return ale
