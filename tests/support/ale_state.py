"""Reads ALE's serialised state as the console's record: what the lock-step compares.

ALE writes a state as a row of little-endian int32, truth values as one of two patterns of 32 bits,
and texts as their length and their characters. `_PARTS` names them all. ALE counts times from the
start of the last frame, has four bits of a motion, one number for the playfield, and the paddles in
reverse order. What else it has follows from the record, never varies, or does not affect the future
(the sound, the frame counters, the clocks of the picture already drawn).

Source: ALE 0.12, the ``save`` of its parts.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from pixelpong.atari.machine.record import STATE

_TRUE = np.array([0xFAB1FAB2], "<u4").view("<i4").item()

_GENERATOR = "generator"  # A text of any length

_PARTS: tuple[str | bytes, ...] = (
    "left_paddle right_paddle frames episode_frames mode difficulty size",
    b"60e0ea3cbe0913d39803477945e9e5ec",  # the ROM's MD5
    b"System", "cycles", _GENERATOR,
    b"M6502Low", "a x y s opcode pc n v b d i not_z c status",
    b"M6532", "ram_size ram:128 timer timer_shift timer_set timer_ran_out",
    "timer_was_read directions:2",
    b"TIA", "frame_start clocks:6 vsync_end objects",
    "vsync vblank nusiz:2 colup:2 colupf colubk ctrlpf priority refp:2 pf grp:2 old_grp:2",
    "enam:2 enabl old_enabl hm:5 vdelp:2 vdelbl resmp:2 collisions position:5",
    "shown_grp:2 hmove_clock blanks stars star emptied emptied_until",
    b"TIASound", "sound:7",
    b"Cartridge2K",
    "reward score is_over has_generator paddle_min paddle_max",
)  # fmt: skip
"""Texts, and the names of numbers, with their count if there are several."""


def _truth(bit: int) -> Callable[[int], int]:
    return lambda n: bit if n == _TRUE else 0


def _low(n: int) -> int:
    return n & 0xFF


_LINKS: dict[str, tuple[str, int, Callable[[int], int]]] = {
    **{
        name: (name, 0, int)
        for name in ("a", "x", "y", "s", "ram", "timer", "timer_shift", "old_grp", "position")
    },
    "pc": ("pc", 0, lambda n: n & 0xFFFF),
    "right_paddle": ("resistance", 0, int), "left_paddle": ("resistance", 1, int),
    "emptied": ("emptied", 0, _truth(1)), "old_enabl": ("old_enabl", 0, _truth(2)),
    "blanks": ("blanks", 0, _truth(1)),
    "collisions": ("collisions", 0, lambda n: n & 0x1FFF | (n & 0x6000) << 1),
    "vsync": ("tia", 0x00, int), "vblank": ("tia", 0x01, int), "nusiz": ("tia", 0x04, int),
    "colup": ("tia", 0x06, _low), "colupf": ("tia", 0x08, _low), "colubk": ("tia", 0x09, _low),
    "ctrlpf": ("tia", 0x0A, int), "refp": ("tia", 0x0B, _truth(0x08)), "grp": ("tia", 0x1B, int),
    "enam": ("tia", 0x1D, _truth(0x02)), "enabl": ("tia", 0x1F, _truth(0x02)),
    "hm": ("tia", 0x20, lambda n: n << 4 & 0xF0), "vdelp": ("tia", 0x25, _truth(0x01)),
    "vdelbl": ("tia", 0x27, _truth(0x01)), "resmp": ("tia", 0x28, _truth(0x02)),
}  # fmt: skip
"""Values in both: ALE's name; the record's field, the place of the first number; how to read it."""

_FLAGS = {"n": 0x80, "v": 0x40, "b": 0x10, "d": 0x08, "i": 0x04, "not_z": 0x02, "c": 0x01}
"""The processor's flags. The bit of Z is set if `not_z` is false; bit 5 is always set."""


def read_state(data: bytes) -> np.ndarray:
    """The console's record in what ``cloneState().serialize()`` returned: [1] STATE."""
    ale = _numbers_in(data)
    state: Any = np.zeros(1, STATE)
    for name, (field, at, read) in _LINKS.items():
        numbers = [read(n) for n in ale[name]]
        if state[field].ndim > 1:
            state[field][0, at : at + len(numbers)] = numbers
        else:
            (state[field][0],) = numbers
    flags = sum(bit for name, bit in _FLAGS.items() if ale[name] == [_TRUE])
    state["p"] = 0x20 | flags ^ _FLAGS["not_z"]
    # ALE counts cycles from the frame's start, which may be anywhere in a line.
    cycles = ale["cycles"][0]
    state["cycle"] = cycle = (cycles - ale["frame_start"][0] // 3) % 76
    for name in ("timer_set", "emptied_until"):
        state[name] = ale[name][0] - (cycles - cycle)
    playfield = ale["pf"][0]
    state["tia"][0, 0x0D:0x10] = playfield << 4 & 0xF0, playfield >> 4 & 0xFF, playfield >> 12
    return state


def _numbers_in(data: bytes) -> dict[str, list[int]]:
    """All numbers of a serialised state, by name; its texts must be where they are known to be."""
    numbers: dict[str, list[int]] = {}
    place = 0
    for part in _PARTS:
        if isinstance(part, bytes):
            assert data.startswith(len(part).to_bytes(4, "little") + part, place), part
            place += 4 + len(part)
        elif part is _GENERATOR:
            place += 4 + int.from_bytes(data[place : place + 4], "little")
        else:
            for word in part.split():
                name, _, count = word.partition(":")
                values = struct.unpack_from(f"<{count or 1}i", data, place)
                numbers[name] = list(values)
                place += 4 * len(values)
    assert place == len(data), (place, len(data))
    return numbers
