"""Finds the entries of a cartridge's code by playing it, and keeps them for the next process.

Jumps through memory and switched banks hide code from `atari.machine.disassembly`. The
interpreter records where they lead. So before a cartridge is translated for the first time, the
interpreter plays it for some seconds of game time. Code that this misses is interpreted, recorded
and, if it runs often, translated the next time.

A recorded spot says only where a translation starts. The translated code comes from the ROM, so a
wrong spot costs time but never makes a wrong frame.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine.cache import keep, read_kept
from pixelpong.atari.machine.disassembly import BankedRom, Spot
from pixelpong.atari.machine.native import NativeCode
from pixelpong.atari.machine.record import DRAW_NOTHING, FRAME_DONE
from pixelpong.atari.machine.resetting import IDLE_FRAMES, NO_SWITCH, RESET

_GAMES, _FRAMES, _HOLD = 4, 450, 9  # games, frames per game, frames for which inputs are held
_RESET_FRAMES = 10
# A joystick's middle and its eight directions, as four bits each; a bit is 0 while pressed.
_DIRECTIONS = (15, 14, 13, 11, 7, 10, 6, 9, 5)
_HIGHEST_OHM = 800_000

_OFTEN = 10_000  # meeting unknown spots this often in a process makes compiling again worthwhile
_MOST_ROUNDS = 3  # most rounds of compiling again


def explore(code: NativeCode, power_on: Callable[[], NDArray[np.void]], size: int) -> set[Spot]:
    """Play a cartridge of `size` bytes with random inputs; return the spots that jumps led to.

    `code` plays it without a translation. The same cartridge always gives the same spots.
    """
    play = code.function("play", ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32)
    rng = np.random.default_rng(0)

    def hold(machine: Any, switches: int, count: int) -> bool:
        machine["swchb"] = switches
        return bool(play(machine.ctypes.data, count) == FRAME_DONE)

    for _ in range(_GAMES):
        machine: Any = power_on()
        machine["draws"], machine["swcha"] = DRAW_NOTHING, 0xFF
        is_running = hold(machine, NO_SWITCH, IDLE_FRAMES) and hold(machine, RESET, _RESET_FRAMES)
        for _ in range(_FRAMES // _HOLD):
            if is_running:  # something unsupported ends the game early
                _press(machine, rng)
                is_running = hold(machine, NO_SWITCH, _HOLD)
    return set(read_seen(code, size))


def _press(machine: Any, rng: np.random.Generator) -> None:
    """Set all controllers at random; a paddle's button is one of the joystick's directions."""
    left, right = rng.choice(_DIRECTIONS, 2)
    machine["swcha"] = left << 4 | right
    machine["fire"] = rng.choice((0, 0x80), 2)
    machine["resistance"] = rng.integers(_HIGHEST_OHM, size=4)


def read_seen(code: NativeCode, size: int) -> dict[Spot, int]:
    """Return the spots that a linked cartridge's interpreter recorded, with counts."""
    table = (ctypes.c_uint32 * size).from_address(code.address("atari.seen"))
    noted = np.array(table)
    return {
        (int(offset), int(noted[offset]) & 0xFFFF): int(noted[offset]) >> 16
        for offset in np.flatnonzero(noted)
    }


class Notes:
    """The spots at which a cartridge's translation starts, stored in the cache folder."""

    def __init__(self, rom: BankedRom, key: bytes, folder: Path | None) -> None:
        """Use a folder; without one, nothing is stored."""
        self._size = len(rom.content)
        name = hashlib.sha256(b"notes" + key).hexdigest()[:40]
        self._path = folder and folder / f"{name}.notes"
        self._rounds = 0
        self.spots: frozenset[Spot] = frozenset()

    def read(self) -> bool:
        """Read the stored spots; return whether there are any."""
        content = self._read()
        if content is not None:
            self._rounds, self.spots = content
        return content is not None

    def _read(self) -> tuple[int, frozenset[Spot]] | None:
        """Return how often it was recompiled, and the spots; None if there is no valid file."""
        content = self._path and read_kept(self._path)
        if not content or len(content) % 4:
            return None
        rounds, *numbers = np.frombuffer(content, "<u4").tolist()
        spots = frozenset((number >> 16, number & 0xFFFF) for number in numbers)
        if any(offset >= self._size or pc & 0x1000 == 0 for offset, pc in spots):
            return None
        return rounds, spots

    def write(self, spots: Iterable[Spot], rounds: int = 0) -> None:
        """Store spots for the next process."""
        if self._path is not None:
            numbers = [rounds, *(offset << 16 | pc for offset, pc in sorted(spots))]
            keep(self._path, np.array(numbers, "<u4").tobytes())

    def keep(self, code: NativeCode, known: Iterable[Spot]) -> None:
        """Store new spots if compiling again is worthwhile; `known` spots are already translated.

        Several processes may do this at once; together they count as one round.
        """
        seen = read_seen(code, self._size)
        new = seen.keys() - set(known)
        if self._rounds >= _MOST_ROUNDS or sum(seen[spot] for spot in new) < _OFTEN:
            return
        rounds, spots = self._read() or (0, self.spots)
        self.write(spots | new, max(rounds, self._rounds + 1))
