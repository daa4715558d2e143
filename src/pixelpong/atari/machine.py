"""The machine as one flat record: what the console remembers, and the picture it is drawing.

The first part, `STATE`, is all that the future depends on between two frames: processor, memory,
timer, paddles, TIA. A snapshot is a copy of it. The rest of `MACHINE` is made anew in every frame:
what the TIA keeps so that it need not draw twice, and the picture itself. There are no pointers in
it, so a record can lie anywhere, and compiled code that stays inside its record harms nothing.

Between two frames the record is canonical: one state has one form, whatever emulator wrote it. So
two that agree have equal bytes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

TOP, ROWS, WIDTH = 34, 210, 160
"""Of the 262 lines of a frame those from TOP on are shown, ROWS of them, WIDTH pixels each."""

FIELD_TOP, FIELD_SIZE = 35, 80
"""The field: every second pixel of every second row of the picture, from this row of it on."""

STATE = np.dtype(
    [
        # The processor (6507): where it is, and in which of the line's 76 cycles.
        ("pc", "<u2"),  # offset in the cartridge, 0 … 0x7FF
        ("cycle", "<i2"),
        ("a", "u1"),
        ("x", "u1"),
        ("y", "u1"),
        ("s", "u1"),  # stack pointer
        ("p", "u1"),  # flags: N V 1 B D I Z C, from the highest bit to the lowest
        # The chip with memory, timer and ports (6532 RIOT).
        ("ram", "u1", 128),
        ("timer", "u1"),  # what was written
        ("timer_shift", "u1"),  # it counts once in 1 << timer_shift cycles
        ("timer_set", "<i4"),  # cycle in which it was written, counted from the line's begin
        # Paddles: a capacitor is emptied, and charges the faster the lower the resistance.
        ("resistance", "<i4", 4),  # ohm, of the paddle at INPT0 … INPT3
        ("emptied", "u1"),  # 1 while VBLANK holds the capacitors empty
        ("emptied_until", "<i4"),  # cycle in which it let go, counted as `timer_set`
        # The TIA: what was last written to each of its registers, by address, bits without a
        # meaning cleared; 0 if a write is an order and not a value.
        ("tia", "u1", 45),
        ("old_grp", "u1", 2),  # the players' eight pixels as they were, for VDELPx
        ("old_enabl", "u1"),  # the same of the ball, for VDELBL
        ("position", "u1", 5),  # columns of the two players, the two missiles, the ball
        ("blanks", "u1"),  # 1 if HMOVE blanks the left of the next line drawn
        # Bit 2k: what a read of latch CXM0P + k has as its bit 7; bit 2k + 1: as its bit 6.
        ("collisions", "<u2"),
    ]
)
"""Between two frames; 220 bytes, little-endian, without gaps."""

MACHINE = np.dtype(
    [
        *STATE.descr,
        # The state before the frames that are being played, to go back to if they stop.
        ("before", "u1", STATE.itemsize),
        # What the frame is run with, and what came of it.
        ("draws", "<i4"),  # what is drawn: DRAW_NOTHING, DRAW_FIELD, DRAW_PICTURE
        ("stop", "<i4"),  # 0 while the frame runs, then one of the codes below
        ("vsync_end", "<i4"),  # cycle before which the end of VSYNC does not end the frame
        ("charged", "<i4", 4),  # cycles in which the paddles' capacitors charge
        ("swcha", "u1"),  # the buttons, a bit each, 0 while pressed
        ("swchb", "u1"),  # RESET, SELECT and the other switches
        # What is drawn: everything up to `drawn`, in colour clocks since the frame's begin.
        ("objects", "u1"),  # bit o: object o has a pixel in the line
        ("dirty", "u1"),  # bit o: its mask is out of date
        ("drawn", "<i4"),
        ("mask", "<u8", (6, 3)),  # pixels of each object in a line, bit x for column x
        # For the hints of a cartridge: the rounds of a loop that are left to do; those in which
        # the playfield changes, and where it was fetched from.
        ("rounds", "<u8", 3),
        ("playfield_rounds", "<u8", 3),
        ("playfield_at", "<u2", 4),
        ("field", "<u8", (FIELD_SIZE, 2)),  # bit x of row y: something is drawn there
        ("picture", "u1", ROWS * WIDTH),  # palette indices
    ]
)
"""The whole record, 35 kB."""

STATE_SIZE = STATE.itemsize
BEFORE = MACHINE.fields["before"][1]  # type: ignore[index]
"""Of the record, where the copy of the state lies."""

DRAW_NOTHING, DRAW_FIELD, DRAW_PICTURE = range(3)

FRAME_DONE, NOT_TRANSLATED, TOO_LONG, TIMER_RAN_OUT, NOT_IMPLEMENTED = range(1, 6)
"""Why a frame stopped: it ended, or the machine met what it does not cover (all others)."""

PADDLE_CENTRE, PADDLE_LOWEST, PADDLE_HIGHEST, PADDLE_TURN = 408_823, 27_450, 790_196, 23_000
"""Of a paddle's knob, in ohm: where it is at first, its ends, how far a press turns it in a frame.

Source: ALE, ``PADDLE_MIN``, ``PADDLE_MAX``, ``PADDLE_DELTA``; the centre is half the sum.
"""

MAX_CYCLES = 76 * 290
"""A frame that takes longer is given up: ALE would end it. 262 lines are usual."""


def make_machine() -> NDArray[np.void]:
    """A machine that was never switched on: [1], all zeros."""
    return np.zeros(1, MACHINE)
