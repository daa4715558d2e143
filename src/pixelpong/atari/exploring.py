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
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.cache import cache_folder, keep, read_kept
from pixelpong.atari.disassembly import BankedRom, Spot
from pixelpong.atari.machine import DRAW_NOTHING, FRAME_DONE, MOST_OHM
from pixelpong.atari.native import NativeCode

_GAMES, _FRAMES, _HOLD = 4, 500, 9  # that are played, their frames, and for how long inputs are held
_IDLE_FRAMES, _RESET_FRAMES = 60, 10
NO_SWITCH, RESET, SELECT = 0x3F, 0x3E, 0x3D  # what of the console's switches is held
# A joystick's eight directions and its middle, four bits each, 0 while pressed.
_DIRECTIONS = (15, 14, 13, 11, 7, 10, 6, 9, 5)

OFTEN = 10_000  # times in a process that unknown spots were met, which is worth compiling again
MOST_ROUNDS = 3  # of compiling again


def explore(code: NativeCode, power_on: Callable[[], NDArray[np.void]]) -> set[Spot]:
    """Play a cartridge with random inputs; return the spots that jumps led to.

    `code` plays it without a translation. The same cartridge always gives the same spots.
    """
    play = code.function("play", ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32)
    chance = random.Random(0)

    def hold(machine: Any, switches: int, count: int) -> bool:
        machine["swchb"] = switches
        return bool(play(machine.ctypes.data, count) == FRAME_DONE)

    for _ in range(_GAMES):
        machine: Any = power_on()
        machine["draws"] = DRAW_NOTHING
        _press(machine, chance, 0.0)
        goes_on = hold(machine, NO_SWITCH, _IDLE_FRAMES) and hold(machine, RESET, _RESET_FRAMES)
        for _ in range(_FRAMES // _HOLD):
            if goes_on:
                _press(machine, chance, 0.8)
                goes_on = hold(machine, NO_SWITCH, _HOLD)
    return {spot for spot, _ in read_seen(code)}


def _press(machine: Any, chance: random.Random, how_often: float) -> None:
    """Press whatever may be plugged in: both joysticks, and paddles, whose buttons are directions."""
    pressed = [chance.random() < how_often for _ in range(4)]
    first, second = (
        chance.choice(_DIRECTIONS) if is_pressed else _DIRECTIONS[0] for is_pressed in pressed[:2]
    )
    machine["swcha"] = first << 4 | second
    machine["fire"] = [0x80 * (chance.random() > how_often / 2) for _ in range(2)]
    machine["resistance"] = [chance.randrange(MOST_OHM) for _ in range(4)]


def read_seen(code: NativeCode) -> list[tuple[Spot, int]]:
    """The spots that the interpreter of a linked cartridge noted, and how often."""
    size = code.sizes["seen"]
    table = np.ctypeslib.as_array((ctypes.c_uint32 * size).from_address(code.address("atari.seen")))
    return [
        ((int(place), int(table[place] & 0xFFFF)), int(table[place] >> 16))
        for place in np.flatnonzero(table)
    ]
