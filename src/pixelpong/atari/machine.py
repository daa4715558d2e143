"""The machine as one flat record: what the console remembers, and the picture it is drawing.

The first part, `STATE`, is everything the future depends on between two frames: processor, memory,
timer, paddles, TIA. A snapshot is a copy of it. The rest of `MACHINE` is computed again in every
frame: values that save drawing twice, and the picture itself. The record has no pointers, so it can
be anywhere in memory, and compiled code that stays inside it can do no harm.

Between two frames the record is canonical: a state has one form, whichever emulator wrote it, so
equal states have equal bytes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# A frame has 262 lines. The picture is ROWS of them, from line TOP on, WIDTH pixels each.
TOP, ROWS, WIDTH = 34, 210, 160
# The field: every second pixel of every second row of the picture, starting at row FIELD_TOP.
FIELD_TOP, FIELD_SIZE = 35, 80

STATE = np.dtype(
    [
        # The processor (6507): its position in the code, and in the line's 76 cycles.
        ("pc", "<u2"),  # offset in the cartridge, 0 … 0x7FF
        ("cycle", "<i2"),
        ("a", "u1"),
        ("x", "u1"),
        ("y", "u1"),
        ("s", "u1"),  # stack pointer
        ("p", "u1"),  # flags: N V 1 B D I Z C, from the highest bit to the lowest
        # The chip with memory, timer and ports (6532 RIOT).
        ("ram", "u1", 128),
        ("timer", "u1"),  # the value written
        ("timer_shift", "u1"),  # it counts once in 1 << timer_shift cycles
        ("timer_set", "<i4"),  # cycle in which it was written, counted from the line's start
        # Paddles: a capacitor is emptied, and charges faster at a lower resistance.
        ("resistance", "<i4", 4),  # ohm, of the paddle at INPT0 … INPT3
        ("emptied", "u1"),  # 1 while VBLANK holds the capacitors empty
        ("emptied_until", "<i4"),  # cycle in which that ended, counted as `timer_set`
        # The TIA: the last value written to each register, by address, without the bits that have
        # no meaning; 0 if a write triggers an action instead of storing a value.
        ("tia", "u1", 45),
        ("old_grp", "u1", 2),  # the players' previous eight pixels, for VDELPx
        ("old_enabl", "u1"),  # the same for the ball, for VDELBL
        ("position", "u1", 5),  # columns of the two players, the two missiles, the ball
        ("blanks", "u1"),  # 1 if HMOVE blanks the left of the next line drawn
        # A read of latch CXM0P + k returns bit 2k as its bit 7, and bit 2k + 1 as its bit 6.
        ("collisions", "<u2"),
    ]
)
"""The state between two frames: 220 bytes, little-endian, without gaps."""

MACHINE = np.dtype(
    [
        *STATE.descr,
        # The state before the current frames, restored if they stop.
        ("before", "u1", STATE.itemsize),
        # The inputs of the frame, and its outcome.
        ("draws", "<i4"),  # what is drawn: DRAW_NOTHING, DRAW_FIELD, DRAW_PICTURE
        ("stop", "<i4"),  # 0 while the frame runs, then one of the codes below
        ("vsync_end", "<i4"),  # cycle before which the end of VSYNC does not end the frame
        ("charged", "<i4", 4),  # cycles until the paddles' capacitors are charged
        ("swcha", "u1"),  # the buttons, a bit each, 0 while pressed
        ("swchb", "u1"),  # RESET, SELECT and the other switches
        # Drawing: everything is drawn up to `drawn`, in colour clocks since the frame's start.
        ("objects", "u1"),  # bit o: object o has a pixel in the line
        ("dirty", "u1"),  # bit o: its mask is out of date
        ("drawn", "<i4"),
        ("mask", "<u8", (6, 3)),  # pixels of each object in a line, bit x for column x
        # For the hints of a cartridge: the rounds left of a loop; those in which the playfield
        # changes, and the address of its data.
        ("rounds", "<u8", 3),
        ("playfield_rounds", "<u8", 3),
        ("playfield_at", "<u2", 4),
        ("field", "<u8", (FIELD_SIZE, 2)),  # bit x of row y: something is drawn there
        ("picture", "u1", ROWS * WIDTH),  # palette indices
    ]
)
"""The whole record, 35 kB."""

STATE_SIZE = STATE.itemsize
BEFORE = MACHINE.fields["before"][1]  # type: ignore[index]  # the offset of the copy

DRAW_NOTHING, DRAW_FIELD, DRAW_PICTURE = range(3)

# Why a frame stopped: it was complete (the first), or something was not covered.
FRAME_DONE, NOT_TRANSLATED, TOO_LONG, TIMER_RAN_OUT, NOT_IMPLEMENTED = range(1, 6)

# A paddle's knob, in ohm: its initial position, its ends, how far a press turns it in a frame.
# Source: ALE, PADDLE_MIN, PADDLE_MAX, PADDLE_DELTA; the centre is half the sum.
PADDLE_CENTRE, PADDLE_LOWEST, PADDLE_HIGHEST, PADDLE_TURN = 408_823, 27_450, 790_196, 23_000

MAX_CYCLES = 76 * 290  # a longer frame is abandoned, as in ALE; 262 lines are usual


def make_machine() -> NDArray[np.void]:
    """Make a machine that was never switched on: [1], all zeros."""
    return np.zeros(1, MACHINE)
