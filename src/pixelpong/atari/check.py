"""Checks whether a record, as from a file, can be a state between two frames.

A state has one form, so a register has only the bits that the machine keeps: seven of a colour,
four of a motion. A record that passes is safe to play on, although Pong may never get there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine import (
    PADDLE_CENTRE,
    PADDLE_HIGHEST,
    PADDLE_LOWEST,
    PADDLE_TURN,
    STATE,
)
from pixelpong.atari.registers import (
    AUDV1,
    CXCLR,
    HMCLR,
    HMOVE,
    MEANING,
    NUM_REGISTERS,
    RESP0,
    RSYNC,
    VBLANK,
    VSYNC,
    WSYNC,
)

_BITS = {
    "pc": 0x7FF, "p": 0xC7, "timer_shift": 0x0F, "emptied": 0x01, "old_enabl": 0x02,
    "blanks": 0x01, "collisions": 0xDFFF,
}  # fmt: skip
"""The bits that a field may have, if not all. CXBLPF has one latch, the other CX… two."""

_ORDERS = (WSYNC, RSYNC, *range(RESP0, AUDV1 + 1), HMOVE, HMCLR, CXCLR)
"""Registers of the TIA that keep nothing: a write to them is an order, or the sound."""

_LEAST, _MOST = -(1 << 20), 75
"""Cycles, counted from the start of the line: about fifty frames ago, and the end of the line."""

_RANGES = {
    "cycle": (0, 75), "position": (0, 159), "timer_set": (_LEAST, _MOST),
    "emptied_until": (_LEAST, _MOST),
}  # fmt: skip
"""The smallest and the largest value."""


def fault_in(state: NDArray[np.void]) -> str:
    """Return why a record can't be a state between two frames, or "" if it can.

    Args:
        state: [1] STATE, of any content.

    >>> import numpy as np
    >>> state = np.zeros(1, STATE)
    >>> state["p"], state["resistance"] = 0x30, [PADDLE_CENTRE, PADDLE_CENTRE, 0, 0]
    >>> fault_in(state)
    ''
    >>> state["tia"][0, 0x09] = 0x29  # COLUBK
    >>> fault_in(state)
    'tia with bits that it does not have'
    """
    wrong = (state.view(np.uint8) ^ _SET) & _FIXED
    if wrong.any():
        return f"{_name_at(int(np.flatnonzero(wrong)[0]))} with bits that it does not have"
    for name, (least, most) in _RANGES.items():
        numbers = state[name].ravel().tolist()
        if min(numbers) < least or max(numbers) > most:
            return f"{name} outside {least} … {most}"
    *held, third, fourth = state["resistance"][0].tolist()
    if not all(map(_is_reached, held)):
        return "a paddle in a position that no press reaches"
    if third != fourth or third not in (0, PADDLE_CENTRE):
        return "a third or fourth paddle that somebody holds"
    if state["emptied"][0] != state["tia"][0, VBLANK] >> 7:
        return "emptied that differs from VBLANK"
    if state["timer_shift"][0] not in (0, 3, 6, 10):
        return "a timer with a rate that it does not have"
    return ""


def _is_reached(resistance: int) -> bool:
    """Whether presses can turn a paddle there, from the middle or from an end of the knob."""
    starts = (PADDLE_CENTRE, PADDLE_LOWEST, PADDLE_HIGHEST)
    is_step = resistance % PADDLE_TURN in [start % PADDLE_TURN for start in starts]
    return is_step and PADDLE_LOWEST <= resistance <= PADDLE_HIGHEST


def _fixed_bits() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """For each byte, the bits that are the same in every state, and which of them are set."""
    free, is_set = np.full(STATE.itemsize, 0xFF, np.uint8).view(STATE), np.zeros(1, STATE)
    for name, bits in _BITS.items():
        free[name] = bits
    free["tia"] = MEANING[:NUM_REGISTERS]
    free["tia"][0, _ORDERS] = 0
    free["tia"][0, VSYNC] = 0xFD  # a frame ends when bit 1 is cleared
    is_set["p"] = 0x30
    return ~free.view(np.uint8), is_set.view(np.uint8)


_FIXED, _SET = _fixed_bits()


def _name_at(byte: int) -> str:
    fields = dict(STATE.fields or {})
    return max((field[1], name) for name, field in fields.items() if field[1] <= byte)[1]
