"""A state of ALE as the console's record: where a game starts, and what its cartridge is like.

ALE writes a state as a row of little-endian int32, truth values as one of two patterns of 32 bits,
and texts as their length and their characters; each chip's numbers follow its name. Source: what
``cloneState().serialize()`` of ALE 0.12 returns.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine.banks import LINE, NONE, QUARTERS, WHOLE
from pixelpong.atari.machine.disassembly import BankedRom
from pixelpong.atari.machine.record import make_machine

_TRUE = 0xFAB1FAB2 - (1 << 32)
_NEVER = 0x7FFFFFFF

PARTS = {
    "System": "cycles",
    "M6502Low": "a x y s opcode pc n v b d i not_z c",
    "M6532": "size ram:128 timer timer_shift timer_set timer_reset timer_read directions",
    "TIA": (
        "frame_start clocks:6 vsync_end objects vsync vblank nusiz:2 colup:4 ctrlpf priority "
        "refp:2 pf grp:2 old_grp:2 enam:2 enabl old_enabl hm:5 vdelp:2 vdelbl resmp:2 collisions "
        "position:5 shown_grp:2 hmove blanks stars star emptied emptied_until"
    ),
}
_SCHEMES = {"2K": NONE, "4K": NONE, "F8": WHOLE, "F6": WHOLE, "E0": QUARTERS, "FE": LINE}
_LONGEST = 400  # lines; ALE left a frame in the middle that is longer


def _row_of(chip: str) -> tuple[bytes, struct.Struct, dict[str, int | slice]]:
    """What is before a chip's numbers, all of them, and which of them a name stands for."""
    places: dict[str, int | slice] = {}
    size = 0
    for word in PARTS[chip].split():
        name, _, count = word.partition(":")
        places[name] = slice(size, size + int(count)) if count else size
        size += int(count or 1)
    mark = len(chip).to_bytes(4, "little") + chip.encode()
    return mark, struct.Struct(f"<{size}i"), places


_ROWS = [_row_of(chip) for chip in PARTS]


def read_numbers(data: bytes) -> dict[str, Any]:
    """The numbers of a serialised state by name; those of a truth value are as they are."""
    found: dict[str, Any] = {}
    for mark, row, places in _ROWS:
        numbers = list(row.unpack_from(data, data.index(mark, 8) + len(mark)))
        found |= {name: numbers[place] for name, place in places.items()}
    return found


def find_cartridge(data: bytes) -> tuple[str, dict[str, int]]:
    """The cartridge as ALE sees it; the constants in which it differs from the machine's own."""
    at = data.rindex(b"Cartridge") + len(b"Cartridge")
    (length,) = struct.unpack_from("<i", data, at - 13)
    kind = data[at : at + length - 9].decode()
    ale = read_numbers(data)
    first, last = (ale["clocks"][k] - ale["frame_start"] for k in (0, 1))
    rows = (last - first) // 228
    constants = {"TOP": first // 228, "ROWS": rows, "MAX_LINES": 342 if rows >= 250 else 290}
    return kind, constants


def read_machine(data: bytes, rom: BankedRom) -> NDArray[np.void]:
    """The console's record: [1] MACHINE."""
    ale = read_numbers(data)
    machine: Any = make_machine()
    m = machine[0]

    def is_true(name: str) -> bool:
        return bool(ale[name] == _TRUE)

    start = ale["frame_start"] // 3
    total = ale["cycles"] - start
    is_begun = total > 76 * _LONGEST
    line = start if is_begun else ale["cycles"] - total % 76
    m["begun"], m["cycle"] = (total, 0) if is_begun else (0, total % 76)
    for name in ("a", "x", "y", "s", "ram", "timer", "timer_shift", "directions", "position"):
        m[name] = ale[name]
    m["pc"] = ale["pc"] & 0xFFFF
    flags = {"n": 7, "v": 6, "d": 3, "i": 2, "c": 0}
    zero = (not is_true("not_z")) << 1
    m["p"] = 0x30 | zero | sum(is_true(name) << bit for name, bit in flags.items())
    m["timer_set"], m["emptied_until"] = ale["timer_set"] - line, ale["emptied_until"] - line
    m["timer_read"] = is_true("timer_read")
    m["timer_reset"] = ale["timer_reset"] - line if is_true("timer_read") else 0
    tia = m["tia"]
    tia[0x00], tia[0x01], tia[0x04:0x06] = ale["vsync"], ale["vblank"], ale["nusiz"]
    tia[0x06:0x0A] = [colour & 0xFE for colour in ale["colup"]]
    tia[0x0A], pf = ale["ctrlpf"], ale["pf"]
    tia[0x0D:0x10] = pf << 4 & 0xF0, pf >> 4 & 0xFF, pf >> 12 & 0xFF
    tia[0x1B:0x1D], m["old_grp"] = ale["grp"], ale["old_grp"]
    for name, at, bit in (
        ("refp", 0x0B, 8),
        ("enam", 0x1D, 2),
        ("vdelp", 0x25, 1),
        ("resmp", 0x28, 2),
    ):
        tia[at : at + 2] = [bit * (value == _TRUE) for value in ale[name]]
    tia[0x1F], m["old_enabl"] = 2 * is_true("enabl"), 2 * is_true("old_enabl")
    tia[0x27], tia[0x20:0x25] = is_true("vdelbl"), [value << 4 & 0xF0 for value in ale["hm"]]
    m["collisions"] = ale["collisions"] & 0x1FFF | (ale["collisions"] & 0x6000) << 1
    m["blanks"], m["emptied"] = is_true("blanks"), is_true("emptied")
    m["stars"], m["star"] = is_true("stars"), ale["star"] & 3
    since = ale["cycles"] - ale["hmove"] // 3
    m["hmove_age"] = since if 0 < since < 100 else 0
    if ale["vsync_end"] < _NEVER // 2:  # frames that ended without it were subtracted from "never"
        m["vsync_end"] = ale["vsync_end"] // 3 - line or -1
    _read_banks(data, rom, m)
    m["swchb"], m["swcha"], m["fire"] = 0x3F, 0xFF, 0x80
    return machine


def _read_banks(data: bytes, rom: BankedRom, m: Any) -> None:
    at = data.rindex(b"Cartridge")
    at += struct.unpack_from("<i", data, at - 4)[0]
    if rom.scheme == WHOLE:
        m["banks"] = [4 * struct.unpack_from("<i", data, at)[0] + k for k in range(4)]
        if rom.has_ram:
            m["extra_ram"] = struct.unpack_from("<128i", data, at + 8)
    if rom.scheme == QUARTERS:
        m["banks"] = struct.unpack_from("<4i", data, at + 4)
