"""The machine as one flat record: the console's state and the picture it is drawing.

The first part, `STATE`, is everything the future depends on between two frames: processor, memory,
timer, paddles and TIA. The next part holds the initial states of some older frames, because
pictures may still show a part of them (`atari.machine.past`). A snapshot is a copy of both parts.
The rest of `MACHINE` is computed again in every frame: values that save drawing twice, and the
picture itself. The record has no pointers, so it can be anywhere in memory, and compiled code that
stays inside it can do no harm.

Between two frames the record is canonical: a state has one form, whichever emulator wrote it. So
equal states have equal bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# A frame has 262 lines. The picture shows ROWS of them, starting at line TOP, with WIDTH pixels
# each. A frame with more than MAX_LINES lines ends at the next write to the TIA. European
# cartridges have different values.
TOP, ROWS, WIDTH, MAX_LINES = 34, 210, 160, 290
MOST_ROWS = 256  # the most rows of any cartridge

STATE = np.dtype(
    [
        # The processor (6507): its position in the code, and in the line's 76 cycles.
        ("pc", "<u2"),
        ("cycle", "<i2"),
        ("a", "u1"),
        ("x", "u1"),
        ("y", "u1"),
        ("s", "u1"),  # stack pointer
        ("p", "u1"),  # flags, see `atari.machine.opcodes`
        # The chip with the memory, the timer and the ports (6532 RIOT).
        ("ram", "u1", 128),
        ("timer", "u1"),  # the value written to the timer
        ("timer_shift", "u1"),  # the timer counts once in 1 << timer_shift cycles
        ("timer_set", "<i4"),  # cycle in which the timer was written, from the line's start
        # The paddles. A capacitor is emptied, and charges faster at a lower resistance.
        ("resistance", "<i4", 4),  # resistance in ohm of the paddles at INPT0 … INPT3
        ("emptied", "u1"),  # 1 while VBLANK holds the capacitors empty
        ("emptied_until", "<i4"),  # cycle in which this ended, counted like `timer_set`
        # The TIA. The last value written to each register, by address, without meaningless bits; 0
        # if a write triggers an action instead of storing a value.
        ("tia", "u1", 45),
        ("old_grp", "u1", 2),  # the players' previous eight pixels, for VDELPx
        ("old_enabl", "u1"),  # the same for the ball, for VDELBL
        ("position", "u1", 5),  # columns of the two players, the two missiles and the ball
        ("blanks", "u1"),  # 1 if HMOVE blanks the left of the next drawn line
        # A read of latch CXM0P + k returns bit 2k as its bit 7, and bit 2k + 1 as its bit 6.
        ("collisions", "<u2"),
        # Fields that only some cartridges use, starting with those that carry over to the next
        # frame.
        ("begun", "<i4"),  # the cycle in which an unfinished frame continues, 0 for a new frame
        ("vsync_end", "<i4"),  # before this cycle, the end of VSYNC ends no frame; 0: no VSYNC
        ("hmove_age", "u1"),  # cycles since HMOVE, 0 if it was long ago
        ("timer_read", "u1"),  # 1 if the timer was read after it ran out
        ("timer_reset", "<i4"),  # cycle of that read
        ("directions", "u1"),  # directions of the pins of SWCHA
        ("hidden", "u1"),  # bit p: the first copy of player p is hidden to the line's end
        ("late_mirror", "u1"),  # 1 if CTRLPF's bit 0 takes effect only in the next line
        ("stars", "u1"),  # 1 while missile 0 moves in every line, like the stars in "Cosmic Ark"
        ("star", "u1"),
        ("star_form", "u1"),  # 1 if the star is wider, 2 if it is hidden
        ("is_grey", "u1"),  # 1 if the previous frame had an odd number of lines, in European games
        # The cartridge: the part of the ROM at each quarter of its addresses in kB, and its memory.
        ("banks", "u1", 4),
        ("extra_ram", "u1", 128),
    ]
)
"""The state between two frames: 373 bytes, little-endian, without padding."""

BEGINNING = np.dtype(
    [
        *STATE.descr,
        ("swcha", "u1"),  # the buttons, one bit each, which is 0 while pressed
        ("swchb", "u1"),  # RESET, SELECT and the other switches
        ("fire", "u1", 2),  # bit 7 of INPT4 and INPT5: the joysticks' buttons, 0 while pressed
        ("counts", "u1"),  # 1 if the frame's instructions are counted
    ]
)
"""Everything that determines a frame: the state before it, and its inputs."""

MOST_OLDER = 3  # the most frames that one of the two pictures may be made of
MOST_ACTS = 200  # the most steps in which ALE walks through a menu before a game
SECOND_AT = 256  # where the second player's actions begin, above the most frames of a call
MOST_NOTED = 4  # the most values that the score of a game needs from the frame before

KEPT = np.dtype(
    [
        *BEGINNING.descr,
        # For `atari.machine.past`: which of the two pictures is drawn; the number of frames that
        # each is made of; the clocks up to which they drew; their initial states and this frame's.
        ("side", "u1"),
        ("older", "u1", 2),
        ("drew_to", "<i4", 2 * MOST_OLDER),
        ("beginnings", "u1", 2 * MOST_OLDER * BEGINNING.itemsize),
        ("beginning", "u1", BEGINNING.itemsize),
        # For `atari.machine.scoring`: values of the frame before.
        ("noted", "<i4", MOST_NOTED),
    ]
)
"""A snapshot for most cartridges, see `atari.machine.cartridge.Cartridge.kept_size`."""

MACHINE = np.dtype(
    [
        *KEPT.descr,
        # The snapshot before the current frames, which is restored if they stop.
        ("before", "u1", KEPT.itemsize),
        ("aside", "u1", BEGINNING.itemsize),  # saved while a picture is completed
        # The outcome of the last frames, see `atari.machine.playing.play_frames`.
        ("stop", "<i4"),  # 0 while a frame runs, then one of the codes below
        ("reward", "<i4"),  # points won minus points lost
        ("second", "<i4"),  # the second player's reward, in games with points for each
        ("is_over", "<i4"),  # 1 if the game has ended
        ("frames", "<i4"),  # number of frames played
        ("points", "<i4"),  # points so far in this game
        ("lives", "<i4"),
        ("may_end", "<i4"),  # 1 if the next frame may be the last
        # The inputs of a start, and of a frame.
        ("mode", "<i4"),  # the number of the game on the cartridge
        ("sticks", "u1", MOST_ACTS),  # 1 for each of ALE's steps in a menu that repeats an action
        ("acts", "<i4"),  # the number of these steps
        ("held", "<i4"),  # the action of the last one
        ("turn", "<i4"),  # how far a press turns a paddle, in ohm
        ("draws", "<i4"),  # the draw mode, DRAW_NOTHING and so on
        ("draws_until", "<i4"),  # the clock up to which the frame is drawn
        ("touched", "<i4"),  # the clock up to which ALE has drawn an unfinished frame
        ("now", "<i4"),  # the cycle while one part of the processor hands over to another
        ("left", "<i4"),  # number of instructions until ALE abandons the frame
        ("hmove_at", "<i4"),  # cycle of the last HMOVE
        ("mirrors", "u1"),  # whether the right half of the playfield is mirrored in this line
        ("charged", "<i4", 4),  # number of cycles until the paddles' capacitors are charged
        # Drawing. Everything is drawn up to `drawn`, in colour clocks since the frame's start.
        ("objects", "u1"),  # bit o: object o has a pixel in the line
        ("dirty", "u1"),  # bit o: the mask of object o is out of date
        ("meets", "<u2"),  # latches of the pairs of objects that overlap somewhere in the line
        ("drawn", "<i4"),
        ("unseen_until", "<i4"),  # the beam shows no pixel between `drawn` and this clock
        # What may collide while nothing is drawn, see `atari.machine.collisions`.
        ("on", "u1"),  # bit o: object o has a pixel somewhere
        ("moved", "u1"),  # bit o: the reach of object o is out of date
        ("cares", "u1"),  # bit o: object o matters to a latch that is not yet set
        ("near", "<u2"),  # latches of the pairs of objects whose reaches overlap
        ("possible", "<u2"),  # those of which both objects are on
        ("reach", "<u8", (6, 3)),  # the columns that an object can cover where it is
        ("blanks_from", "<i4"),  # the clock of the HMOVE that set `blanks`
        ("mask", "<u8", (6, 3)),  # the pixels of each object in a line, bit x for column x
        ("shades", "u1", 256),  # the picture's value for each palette index
        ("picture", "u1", MOST_ROWS * WIDTH),  # palette indices or other shades
    ]
)
"""The whole record, 47 kB. A cartridge's own record may have more fields at the end."""

STATE_SIZE, BEGINNING_SIZE, KEPT_SIZE = STATE.itemsize, BEGINNING.itemsize, KEPT.itemsize
# The offsets of the copies.
BEFORE, ASIDE, THIS_BEGINNING, BEGINNINGS = (
    MACHINE.fields[name][1]  # type: ignore[index]
    for name in ("before", "aside", "beginning", "beginnings")
)

# What a frame draws. A cartridge can have its own form (`atari.machine.drawing.draw_own`).
DRAW_NOTHING, DRAW_OWN, DRAW_PICTURE, DRAW_BOTH = range(4)

# Why a frame stopped: the first code means that it is complete; the next two, that something was
# not covered. Two are internal: the frame is long, so its instructions must be counted; or it has
# so many that ALE leaves it. The last one is of a start: the game could not be chosen.
FRAME_DONE, NOT_IMPLEMENTED, TOO_OLD, LONG_FRAME, TOO_MANY, NOT_CHOSEN = range(1, 7)

# A paddle's knob, in ohm: its initial position, its ends, and its turn by a press of one frame.
# Source: ALE, PADDLE_MIN, PADDLE_MAX, PADDLE_DELTA; the centre is half the sum.
PADDLE_CENTRE, PADDLE_LOWEST, PADDLE_HIGHEST, PADDLE_TURN = 408_823, 27_450, 790_196, 23_000
NO_PADDLE = 1_100_000  # a resistance with which the capacitor is never charged

HAS_PAST = 1  # whether a short frame shows a part of an older one, as on ALE
INSTRUCTIONS = 25_000  # most instructions in a frame before ALE returns in the middle of it
FAR = 1 << 29  # a cycle that never comes


def make_machine(record: np.dtype[Any] = MACHINE) -> NDArray[np.void]:
    """Make a machine that was never switched on, [1] `record`, with palette indices as pictures."""
    machine: Any = np.zeros(1, record)
    machine["shades"], machine["turn"] = range(256), PADDLE_TURN
    return machine


def format_registers(machine: NDArray[np.void]) -> str:
    """Format the processor's registers for debugging, in hexadecimal and with a bit per flag.

    >>> print(format_registers(make_machine()))
      PC AC XR YR SP NV-BDIZC
    0000 00 00 00 00 00000000
    """
    state = machine[0]
    registers = " ".join(f"{state[name]:02X}" for name in "axys")
    return f"  PC AC XR YR SP NV-BDIZC\n{state['pc']:04X} {registers} {state['p']:08b}"
