"""Where a cartridge's code begins: found by playing it, and kept for the next process.

Jumps through memory and switched banks hide code from `pixelpong.atari.disassembly`. The
interpreter notes where it is led to. So before a cartridge is translated for the first time, it is
played in the interpreter for some seconds of its time. What that misses is interpreted, noted, and
translated the next time, if it is met often.

A noted spot says only where a translation begins. What is translated is the ROM, so a wrong spot
costs time, and never makes a wrong frame.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.cache import keep, read_kept
from pixelpong.atari.disassembly import BankedRom, Spot
from pixelpong.atari.machine import DRAW_NOTHING, FRAME_DONE
from pixelpong.atari.native import NativeCode

_GAMES, _FRAMES, _HOLD = 4, 450, 9  # that are played; their frames, and those that inputs are held
_IDLE_FRAMES, _RESET_FRAMES = 60, 10
_NO_SWITCH, _RESET = 0x3F, 0x3E
# A joystick's middle and its eight directions, four bits each, 0 while pressed.
_DIRECTIONS = (15, 14, 13, 11, 7, 10, 6, 9, 5)
_HIGHEST_OHM = 800_000

_OFTEN = 10_000  # times in a process that unknown spots were met, which is worth compiling again
_MOST_ROUNDS = 3  # of compiling again


def explore(code: NativeCode, power_on: Callable[[], NDArray[np.void]], size: int) -> set[Spot]:
    """Play a cartridge of a size with random inputs; return the spots that jumps led to.

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
        goes_on = hold(machine, _NO_SWITCH, _IDLE_FRAMES) and hold(machine, _RESET, _RESET_FRAMES)
        for _ in range(_FRAMES // _HOLD):
            if goes_on:  # if it meets what is not covered, that is all
                _press(machine, rng)
                goes_on = hold(machine, _NO_SWITCH, _HOLD)
    return set(read_seen(code, size))


def _press(machine: Any, rng: np.random.Generator) -> None:
    """Press and turn whatever may be plugged in; a paddle's button is one of the directions."""
    left, right = rng.choice(_DIRECTIONS, 2)
    machine["swcha"] = left << 4 | right
    machine["fire"] = rng.choice((0, 0x80), 2)
    machine["resistance"] = rng.integers(_HIGHEST_OHM, size=4)


def read_seen(code: NativeCode, size: int) -> dict[Spot, int]:
    """The spots that the interpreter of a linked cartridge noted, and how often."""
    table = (ctypes.c_uint32 * size).from_address(code.address("atari.seen"))
    noted = np.array(table)
    return {
        (int(place), int(noted[place]) & 0xFFFF): int(noted[place]) >> 16
        for place in np.flatnonzero(noted)
    }


class Notes:
    """The spots at which a cartridge's translation begins, kept in the cache folder."""

    def __init__(self, rom: BankedRom, key: bytes, folder: Path | None) -> None:
        """Without a folder, nothing is kept."""
        self._size = len(rom.content)
        name = hashlib.sha256(b"notes" + key).hexdigest()[:40]
        self._path = folder and folder / f"{name}.notes"
        self._rounds = 0
        self.spots: frozenset[Spot] = frozenset()

    def read(self) -> bool:
        """Read what is kept, if anything is."""
        found = self._read()
        if found is not None:
            self._rounds, self.spots = found
        return found is not None

    def _read(self) -> tuple[int, frozenset[Spot]] | None:
        """The rounds of compiling again, and the spots; None if that is not what the file has."""
        content = self._path and read_kept(self._path)
        if not content or len(content) % 4:
            return None
        rounds, *numbers = np.frombuffer(content, "<u4").tolist()
        spots = frozenset((number >> 16, number & 0xFFFF) for number in numbers)
        if any(place >= self._size or pc & 0x1000 == 0 for place, pc in spots):
            return None
        return rounds, spots

    def write(self, spots: Iterable[Spot], rounds: int = 0) -> None:
        """Keep spots for the next process."""
        if self._path is not None:
            numbers = [rounds, *(place << 16 | pc for place, pc in sorted(spots))]
            keep(self._path, np.array(numbers, "<u4").tobytes())

    def keep(self, code: NativeCode, known: Iterable[Spot]) -> None:
        """Keep what was met while playing, if it is worth compiling again; `known` is translated.

        Several processes may do so at once: all that they met counts as one round.
        """
        seen = read_seen(code, self._size)
        new = seen.keys() - set(known)
        if self._rounds >= _MOST_ROUNDS or sum(seen[spot] for spot in new) < _OFTEN:
            return
        rounds, spots = self._read() or (0, self.spots)
        self.write(spots | new, max(rounds, self._rounds + 1))
