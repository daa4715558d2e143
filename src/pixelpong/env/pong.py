"""Atari Pong, exactly: steps, sticky actions and snapshots, on either emulator.

The emulators play single frames and use no random numbers. The coin is tossed here, once per frame,
with numbers that the caller draws. The distribution is that of ``ALE/Pong-v5``, and a game is a
pure function of (state, actions, draws): `get_state` and `set_state` move it to any process, and to
the other emulator.

Covered: stepping, snapshots, frames as palette indices and in colour, continuing on ALE if the
native emulator can't. Not covered: what the network sees (`pixelpong.env.preprocess`).
"""

from __future__ import annotations

import struct
import typing
import warnings
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.check import fault_in
from pixelpong.atari.machine import DRAW_PICTURE, STATE
from pixelpong.atari.palette import PALETTE
from pixelpong.config.protocols import Protocol
from pixelpong.env.native import NativeConsole, NotCoveredError
from pixelpong.errors import EmulatorError, EmulatorWarning, expected

if typing.TYPE_CHECKING:
    from pixelpong.env.ale import AleConsole

    Console = NativeConsole | AleConsole

NATIVE, ALE = "native", "ale"

_NOOP = 0
_NUM_ACTIONS = 6

_MAGIC = b"PONG"
_SEAL = struct.Struct("<4sI")
"""The start of a snapshot: magic, CRC-32 of the rest."""

_PROGRESS = struct.Struct("<B3xI")
"""Next, the action held and the frames so far; the console's state follows."""


def make_console(emulator: str) -> Console:
    """Make a console with Pong in it; if the native emulator can't play, warn and use ALE.

    Args:
        emulator: NATIVE or ALE.

    Raises:
        EmulatorError: the emulator or its game is not installed.
    """
    if emulator == NATIVE:
        try:
            return NativeConsole()
        except NotCoveredError as error:
            return _turn_to_ale(error)
    from pixelpong.env.ale import AleConsole

    return AleConsole()


def _turn_to_ale(reason: NotCoveredError) -> Console:
    """Warn, and return ALE in place of the native emulator."""
    console = make_console(ALE)
    text = f"ALE plays, forty times slower: the native emulator can't ({reason})"
    warnings.warn(text, EmulatorWarning, stacklevel=4)
    return console


class Emulator:
    """An emulator of one game, reused for every episode.

    Attributes:
        protocol: the game to play.
        console: plays it.
        screen: [210, 160] uint8 palette indices of the newest frame, overwritten at every step;
            not defined between `set_state` and the next step.
        num_frames: frames since the last reset.
        held: the action of the last frame, which the next one may keep; in the game for two, those
            of both sides (`pixelpong.env.duel.make_emulator_for_two`).
    """

    def __init__(self, protocol: Protocol, console: Console) -> None:
        """Start a game.

        Args:
            protocol: the game to play.
            console: plays it.
        """
        self.protocol = protocol
        self._low, self._high = protocol.frame_skips
        self.console = console
        self.screen = console.picture
        self.reset()

    def reset(self) -> None:
        """Start an episode, always from the same state."""
        self.console.reset()
        self.held, self.num_frames = _NOOP, 0

    def step(self, action: int, draws: Sequence[float]) -> float:
        """Play one step with `action` and return the reward: −1, 0 or +1.

        Args:
            action: 0 to 5, numbered as in ``ALE/Pong-v5``; ours are STAY, UP and DOWN.
            draws: at least 1 + protocol.max_frame_skip uniform numbers in [0, 1): the first chooses
                the frame skip if the protocol has several, the others are the coin of each frame.
        """
        skip = self._low + int(draws[0] * (self._high - self._low + 1))
        sticky, held = self.protocol.sticky, self.held
        frames = bytearray()
        for coin in draws[1 : 1 + skip]:
            if coin >= sticky:
                held = action
            frames.append(held)
        self.held = held
        left = max(self.protocol.max_frames - self.num_frames, 0)
        reward, _, played = self._run(bytes(frames[:left]))
        self.num_frames += played
        return float(reward)

    def _run(self, actions: bytes) -> tuple[int, bool, int]:
        try:
            return self.console.run(actions, DRAW_PICTURE)
        except NotCoveredError as error:
            self.turn_to_ale(error)
            return self.console.run(actions, DRAW_PICTURE)

    @property
    def native(self) -> NativeConsole | None:
        """The native console; None if ALE plays."""
        return self.console if isinstance(self.console, NativeConsole) else None

    def turn_to_ale(self, reason: NotCoveredError) -> None:
        """Warn, and continue on ALE from the same state."""
        native, self.console = self.console, _turn_to_ale(reason)
        self.console.picture = native.picture  # others may hold a reference to it
        self.console.set_state(native.get_state())

    @property
    def is_over(self) -> bool:
        """Whether the episode has ended, by its last point or by the frame limit."""
        return self.console.is_over or self.num_frames >= self.protocol.max_frames

    def frame(self) -> NDArray[np.uint8]:
        """The newest frame in colour, [210, 160, 3] uint8; not defined if `screen` is not."""
        return PALETTE[self.screen]

    def get_state(self) -> bytes:
        """Everything the future depends on, 236 bytes, without the picture."""
        return _Own(pack_snapshot(self.held, self.num_frames, self.console.get_state()))

    def set_state(self, state: bytes) -> None:
        """Continue from `state`, taken by any emulator of the same protocol, in any process.

        Raises:
            EmulatorError: `state` is not a snapshot.
        """
        unpack = _unpack_content if type(state) is _Own else unpack_snapshot
        self.held, self.num_frames, record = unpack(state)
        self.console.set_state(record)


class _Own(bytes):
    """A snapshot that has never left the training, so it needs no check."""


def pack_snapshot(held: int, num_frames: int, state: NDArray[np.void]) -> bytes:
    """Make a snapshot: the console's state, and what the coin and the frame limit need.

    Args:
        held: the action of the last frame, 0 to 5; in the game for two, plus 16 times the left
            side's.
        num_frames: frames of the episode so far.
        state: [1] STATE.
    """
    content = _PROGRESS.pack(held, num_frames) + state.tobytes()
    return _SEAL.pack(_MAGIC, zlib.crc32(content)) + content


def unpack_snapshot(snapshot: bytes) -> tuple[int, int, NDArray[np.void]]:
    """Return the arguments of `pack_snapshot`, checked: a snapshot may come from a file.

    Raises:
        EmulatorError: it is not a snapshot, it is damaged, or the console can't be in its state.
    """
    if snapshot[:4] != _MAGIC:
        raise _no_snapshot("something else, or one of a version before 0.1.0")
    if len(snapshot) != _SEAL.size + _PROGRESS.size + STATE.itemsize:
        raise _no_snapshot(f"{len(snapshot)} bytes")
    if zlib.crc32(snapshot[_SEAL.size :]) != _SEAL.unpack_from(snapshot)[1]:
        raise _no_snapshot("a damaged one: another checksum")
    held, num_frames, state = _unpack_content(snapshot)
    if max(held & 15, held >> 4) >= _NUM_ACTIONS:
        raise _no_snapshot(f"an action {held} held")
    if fault := fault_in(state):
        raise _no_snapshot(fault)
    return held, num_frames, state


def _unpack_content(snapshot: bytes) -> tuple[int, int, NDArray[np.void]]:
    held, num_frames = _PROGRESS.unpack_from(snapshot, _SEAL.size)
    return held, num_frames, np.frombuffer(snapshot, STATE, offset=_SEAL.size + _PROGRESS.size)


def _no_snapshot(got: str) -> EmulatorError:
    return EmulatorError(expected("a snapshot of the emulator", got, "take one with get_state()"))
