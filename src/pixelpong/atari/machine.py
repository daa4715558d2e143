"""The machine as one flat record: what the console remembers, and the picture it is drawing.

The first part, `STATE`, is everything the future depends on between two frames: processor, memory,
timer, paddles, TIA. Behind it is how some older frames began, of which pictures may still show a
part (`pixelpong.atari.past`). A snapshot is a copy of both. The rest of `MACHINE` is computed again
in every frame: values that save drawing twice, and the picture itself. The record has no pointers,
so it can be anywhere in memory, and compiled code that stays inside it can do no harm.

Between two frames the record is canonical: a state has one form, whichever emulator wrote it, so
equal states have equal bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# A frame has 262 lines. The picture is ROWS of them, from line TOP on, WIDTH pixels each. A frame
# that is longer than MAX_LINES ends at the next write to the TIA. European cartridges have others.
TOP, ROWS, WIDTH, MAX_LINES = 34, 210, 160, 290
MOST_ROWS = 250  # of any cartridge

STATE = np.dtype(
    [
        # The processor (6507): its position in the code, and in the line's 76 cycles.
        ("pc", "<u2"),
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
        # What only some cartridges use. First what a frame leaves to the next one.
        ("begun", "<i4"),  # the cycle in which an unfinished frame continues, 0 if a new one begins
        ("vsync_end", "<i4"),  # until this cycle the end of VSYNC ends no frame; 0: none began
        ("hmove_age", "u1"),  # cycles since HMOVE, 0 if it was long ago
        ("timer_read", "u1"),  # 1 if the timer was read after it ran out
        ("timer_reset", "<i4"),  # when
        ("directions", "u1"),  # of the pins of SWCHA
        ("hidden", "u1"),  # bit p: the first copy of player p is hidden to the line's end
        ("late_mirror", "u1"),  # 1 if CTRLPF's bit 0 counts from the next line on only
        ("stars", "u1"),  # 1 while missile 0 moves in every line, as the stars of "Cosmic Ark" do
        ("star", "u1"),
        ("star_form", "u1"),  # 1 if it is wider, 2 if it is hidden
        ("is_grey", "u1"),  # 1 if the frame before had an odd number of lines, in European games
        # The cartridge: the part of the ROM in each quarter of its addresses, in kB; its memory.
        ("banks", "u1", 4),
        ("extra_ram", "u1", 128),
    ]
)
"""The state between two frames: 373 bytes, little-endian, without gaps."""

BEGINNING = np.dtype(
    [
        *STATE.descr,
        ("swcha", "u1"),  # the buttons, a bit each, 0 while pressed
        ("swchb", "u1"),  # RESET, SELECT and the other switches
        ("fire", "u1", 2),  # bit 7 of INPT4 and INPT5, the joysticks' buttons, 0 while pressed
        ("counts", "u1"),  # 1 if the frame's instructions are counted
    ]
)
"""All that a frame is made of: the state before it, and its inputs."""

MOST_OLDER = 3  # frames of which one of the two pictures may be made

KEPT = np.dtype(
    [
        *BEGINNING.descr,
        # For `pixelpong.atari.past`: which of the two pictures is drawn; the frames of which each
        # is made; the clocks up to which they drew; how they began, and how this frame did.
        ("side", "u1"),
        ("older", "u1", 2),
        ("drew_to", "<i4", 2 * MOST_OLDER),
        ("beginnings", "u1", 2 * MOST_OLDER * BEGINNING.itemsize),
        ("beginning", "u1", BEGINNING.itemsize),
    ]
)
"""What a snapshot of most cartridges keeps, see `pixelpong.atari.cartridge.Cartridge.kept_size`."""

MACHINE = np.dtype(
    [
        *KEPT.descr,
        # What is kept, before the current frames; it is restored if they stop.
        ("before", "u1", KEPT.itemsize),
        ("aside", "u1", BEGINNING.itemsize),  # while a picture is completed
        # The outcome of the last frames, see `pixelpong.atari.playing.play_frames`.
        ("stop", "<i4"),  # 0 while a frame runs, then one of the codes below
        ("reward", "<i4"),  # points won, minus those lost
        ("is_over", "<i4"),  # 1 if the game has ended
        ("frames", "<i4"),  # that were played
        ("points", "<i4"),  # so far in this game
        ("lives", "<i4"),
        ("may_end", "<i4"),  # 1 if the next frame may be the last
        # The inputs of a frame.
        ("draws", "<i4"),  # what is drawn: DRAW_NOTHING, DRAW_OWN, DRAW_PICTURE
        ("draws_until", "<i4"),  # the clock up to which the frame is drawn
        ("touched", "<i4"),  # the clock up to which ALE has drawn an unfinished frame
        ("now", "<i4"),  # the cycle, while one part of the processor hands over to another
        ("left", "<i4"),  # instructions until ALE abandons the frame
        ("hmove_at", "<i4"),  # cycle of the last HMOVE
        ("mirrors", "u1"),  # whether the right half of the playfield is mirrored in this line
        ("charged", "<i4", 4),  # cycles until the paddles' capacitors are charged
        # Drawing: everything is drawn up to `drawn`, in colour clocks since the frame's start.
        ("objects", "u1"),  # bit o: object o has a pixel in the line
        ("dirty", "u1"),  # bit o: its mask is out of date
        ("on", "u1"),  # bit o: it has a pixel somewhere
        ("meets", "<u2"),  # latches of the pairs of objects that overlap somewhere in the line
        ("cares", "u1"),  # bit o: while nothing is drawn, o matters to a latch that is not yet set
        ("drawn", "<i4"),
        ("mask", "<u8", (6, 3)),  # pixels of each object in a line, bit x for column x
        ("shades", "u1", 256),  # by palette index, what the picture holds
        ("picture", "u1", MOST_ROWS * WIDTH),  # palette indices, or other shades
    ]
)
"""The whole record, 46 kB. A cartridge's own may have more fields behind these."""

STATE_SIZE, BEGINNING_SIZE, KEPT_SIZE = STATE.itemsize, BEGINNING.itemsize, KEPT.itemsize
# The offsets of the copies.
BEFORE, ASIDE, THIS_BEGINNING, BEGINNINGS = (
    MACHINE.fields[name][1]  # type: ignore[index]
    for name in ("before", "aside", "beginning", "beginnings")
)

# What a frame draws. A cartridge can have a form of its own (`pixelpong.atari.drawing.draw_own`).
DRAW_NOTHING, DRAW_OWN, DRAW_PICTURE = range(3)

# Why a frame stopped: it was complete (the first), or something was not covered. The last two stay
# inside: the frame is long, so its instructions are counted; it has had so many that ALE leaves it.
FRAME_DONE, NOT_IMPLEMENTED, TOO_OLD, LONG_FRAME, TOO_MANY = range(1, 6)

# A paddle's knob, in ohm: its initial position, its ends, how far a press turns it in a frame.
# Source: ALE, PADDLE_MIN, PADDLE_MAX, PADDLE_DELTA; the centre is half the sum.
PADDLE_CENTRE, PADDLE_LOWEST, PADDLE_HIGHEST, PADDLE_TURN = 408_823, 27_450, 790_196, 23_000
NO_PADDLE = 1_100_000  # so much that the capacitor is never charged

HAS_PAST = 1  # whether a short frame shows a part of an older one, as on ALE
INSTRUCTIONS = 25_000  # of a frame, at most, before ALE returns in the middle of it
FAR = 1 << 29  # a cycle that never comes


def make_machine(record: np.dtype[Any] = MACHINE) -> NDArray[np.void]:
    """Make a machine that was never switched on: [1] `record`; its pictures are palette indices."""
    machine: Any = np.zeros(1, record)
    machine["shades"] = range(256)
    return machine
