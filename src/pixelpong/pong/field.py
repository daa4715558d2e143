"""The field of Pong, drawn directly: one bit for each pixel that is not background.

The field is every second pixel of every second row of the picture, from row `FIELD_TOP` on. Drawing
it takes less time than drawing a picture. It equals the result of `pixelpong.pong.preprocess` for
the picture. The code is typed Python, compiled with Pong (`pixelpong.pong.native`).
"""

from __future__ import annotations

import numpy as np

from pixelpong.atari.machine.drawing import FRONT_TO_BACK, colour_of
from pixelpong.atari.machine.record import DRAW_OWN, MACHINE, WIDTH
from pixelpong.atari.machine.registers import *
from pixelpong.atari.machine.typed import Int, Machine, Wide, columns, wide

FIELD_TOP, FIELD_SIZE = 35, 80
DRAW_FIELD = DRAW_OWN

PONG_MACHINE = np.dtype(
    [
        *MACHINE.descr,
        # For `pixelpong.pong.cartridge`: the remaining rounds of a loop; the rounds in which the
        # playfield changes; and the addresses of the playfield's data.
        ("rounds", "<u8", 3),
        ("playfield_rounds", "<u8", 3),
        ("playfield_at", "<u2", 4),
        ("field", "<u8", (FIELD_SIZE, 2)),  # bit x of row y: something is drawn there
    ]
)
"""The record of the machine with Pong in it."""

BACKGROUND = (0, 34, 228)  # black, the background during play, the background of the first frame
IS_ACTIVE = tuple(int(colour not in BACKGROUND) for colour in range(256))

_EVEN_1, _EVEN_2, _EVEN_4, _EVEN_8, _EVEN_16, _EVEN_32, _EVEN_64 = (
    sum(((1 << n) - 1) << k for k in range(0, 192, 2 * n)) for n in (1, 2, 4, 8, 16, 32, 64)
)
_LOW_96 = (1 << 96) - 1
_LINE = (1 << WIDTH) - 1


def draw_own(m: Machine, row: Int, x0: Int, x1: Int, count: Int) -> None:
    """Record which pixels of the field have a colour that is not background."""
    first = max(row - FIELD_TOP, 0)
    end = min(row - FIELD_TOP + count, 2 * FIELD_SIZE)
    first += first & 1
    if first >= end:
        return
    where = columns(x0, x1)
    pixels = halve_columns(active_pixels(m) & where)
    keep = ~halve_columns(where)
    for y in range(first >> 1, end + 1 >> 1):
        m.field[y] = m.field[y] & keep | pixels
    if m.blanks and x0 < 8 and row == FIELD_TOP + first:  # in the first row only
        m.field[first >> 1] &= ~halve_columns(columns(x0, min(x1, 8)))


def active_pixels(m: Machine) -> Wide:
    """Return the line's pixels that are not background, computed back to front as in `paint`."""
    if m.tia[VBLANK] & 2:
        return wide(0)
    pixels = _LINE if IS_ACTIVE[m.tia[COLUBK]] else wide(0)
    for k in range(5, -1, -1):
        o = FRONT_TO_BACK[m.tia[CTRLPF] >> 1 & 3][k]
        if m.objects >> o & 1:
            left = columns(0, 80) if IS_ACTIVE[colour_of(m, o, 0)] else wide(0)
            right = columns(80, WIDTH) if IS_ACTIVE[colour_of(m, o, 1)] else wide(0)
            pixels = pixels & ~m.mask[o] | m.mask[o] & (left | right)
    return pixels & _LINE


def halve_columns(pixels: Wide) -> Wide:
    """Keep every second pixel: bit 2k becomes bit k."""
    pixels &= _EVEN_1
    pixels = (pixels | pixels >> 1) & _EVEN_2
    pixels = (pixels | pixels >> 2) & _EVEN_4
    pixels = (pixels | pixels >> 4) & _EVEN_8
    pixels = (pixels | pixels >> 8) & _EVEN_16
    pixels = (pixels | pixels >> 16) & _EVEN_32
    pixels = (pixels | pixels >> 32) & _EVEN_64
    return (pixels | pixels >> 64) & _LOW_96
