"""Whether a record can be a state between two frames; one from a file may hold anything.

A state has one form, so each register is as wide as what the machine keeps of it: of a colour
seven bits, of a motion four. What passes here can be played on without harm, although Pong may
never get there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine import STATE

_BITS = {
    "pc": 0x7FF, "p": 0xC7, "timer_shift": 0x0F, "emptied": 0x01, "old_enabl": 0x02,
    "blanks": 0x01, "collisions": 0xDFFF,
}  # fmt: skip
"""The bits that a field may have, if not all. CXBLPF has one latch, the other CX… have two."""

_REGISTER_BITS = {
    0x00: 0xFD,  # VSYNC: a frame ends when bit 1 goes
    0x02: 0, 0x03: 0,  # WSYNC, RSYNC: orders
    0x06: 0xFE, 0x07: 0xFE, 0x08: 0xFE, 0x09: 0xFE,  # COLUP0, COLUP1, COLUPF, COLUBK
    0x0B: 0x08, 0x0C: 0x08,  # REFPx
    0x0D: 0xF0,  # PF0
    **dict.fromkeys(range(0x10, 0x1B), 0),  # RESPx, RESMx, RESBL: orders; sound: not kept
    0x1D: 0x02, 0x1E: 0x02, 0x1F: 0x02,  # ENAMx, ENABL
    **dict.fromkeys(range(0x20, 0x25), 0xF0),  # HMPx, HMMx, HMBL
    0x25: 0x01, 0x26: 0x01, 0x27: 0x01, 0x28: 0x02, 0x29: 0x02,  # VDELPx, VDELBL, RESMPx
    **dict.fromkeys(range(0x2A, 0x2D), 0),  # HMOVE, HMCLR, CXCLR: orders
}  # fmt: skip
"""The same of the TIA's registers."""

_VBLANK = 0x01

_LEAST, _MOST = -(1 << 20), 75
"""Cycles, counted from the line's beginning: some fifty frames ago, and the end of the line."""

_RANGES = {
    "cycle": (0, 75), "position": (0, 159), "timer_set": (_LEAST, _MOST),
    "emptied_until": (_LEAST, _MOST),
}  # fmt: skip
"""The least and the greatest value."""

PADDLE_MIDDLE, PADDLE_LEAST, PADDLE_MOST, PADDLE_STEP = 408_823, 27_450, 790_196, 23_000
"""Ohm; where a paddle stands first, the two ends of the knob, and how far a frame's press turns
it. Source: ALE, ``PADDLE_MIN``, ``PADDLE_MAX``, ``PADDLE_DELTA``; the middle is half their sum."""


def fault_in(state: NDArray[np.void]) -> str:
    """What makes a record no state between two frames; "" if nothing does.

    Args:
        state: [1] STATE, of any content.

    >>> import numpy as np
    >>> state = np.zeros(1, STATE)
    >>> state["p"], state["resistance"] = 0x30, [PADDLE_MIDDLE, PADDLE_MIDDLE, 0, 0]
    >>> fault_in(state)
    ''
    >>> state["tia"][0, 0x09] = 0x29  # COLUBK
    >>> fault_in(state)
    'tia with bits that it has not'
    """
    wrong = (state.view(np.uint8) ^ _SET) & _FIXED
    if wrong.any():
        return f"{_name_at(int(np.flatnonzero(wrong)[0]))} with bits that it has not"
    for name, (least, most) in _RANGES.items():
        numbers = state[name].ravel().tolist()
        if min(numbers) < least or max(numbers) > most:
            return f"{name} outside {least} … {most}"
    paddles = state["resistance"][0].tolist()
    if not all(map(_is_reached, paddles[:2])) or any(paddles[2:]):
        return "a paddle where no press turns it"
    if state["timer_shift"][0] not in (0, 3, 6, 10):
        return "a timer that counts at another rate"
    if state["emptied"][0] != state["tia"][0, _VBLANK] >> 7:
        return "paddles that VBLANK empties and does not"
    return ""


def _is_reached(resistance: int) -> bool:
    """Whether presses turn a paddle there: from the middle, or back from an end of the knob."""
    starts = (PADDLE_MIDDLE, PADDLE_LEAST, PADDLE_MOST)
    is_step = resistance % PADDLE_STEP in [start % PADDLE_STEP for start in starts]
    return is_step and PADDLE_LEAST <= resistance <= PADDLE_MOST


def _fixed_bits() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The bits that are the same in every state, and those of them that are set, by byte."""
    free, is_set = np.full(STATE.itemsize, 0xFF, np.uint8).view(STATE), np.zeros(1, STATE)
    for name, bits in _BITS.items():
        free[name] = bits
    for register, bits in _REGISTER_BITS.items():
        free["tia"][0, register] = bits
    is_set["p"] = 0x30
    return ~free.view(np.uint8), is_set.view(np.uint8)


_FIXED, _SET = _fixed_bits()


def _name_at(byte: int) -> str:
    fields = dict(STATE.fields or {})
    return max((field[1], name) for name, field in fields.items() if field[1] <= byte)[1]
