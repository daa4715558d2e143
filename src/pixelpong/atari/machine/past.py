"""The parts of older frames that a picture shows: ``play_frame(m, counts)``.

ALE draws into two pictures in turn. So if a frame ends early or is left in the middle, the rest of
its picture shows older content: the frame before the last one, perhaps an even older one in the
lower rows, and black at first. This is rare, so nothing is drawn for it. Instead, the record keeps
the initial states of the frames that the two pictures are made of, and how far they drew. If a
picture is needed and its frame has not drawn all of it, these frames are played again.

If a frame drew the whole picture, only that frame must be kept. A picture made of more than
`MOST_OLDER` frames stops with `TOO_OLD`. A cartridge with its own functions draws in its own form
and keeps nothing. Written in typed Python. Source: measured on ALE (``docs/emulator.md``).
"""

from __future__ import annotations

from pixelpong.atari.machine.console import run_frame
from pixelpong.atari.machine.record import (
    ASIDE,
    BEGINNING_SIZE,
    BEGINNINGS,
    DRAW_PICTURE,
    FAR,
    FRAME_DONE,
    HAS_PAST,
    MOST_OLDER,
    ROWS,
    THIS_BEGINNING,
    TOO_OLD,
    TOP,
    WIDTH,
)
from pixelpong.atari.machine.registers import BLANK_CLOCKS, CLOCKS
from pixelpong.atari.machine.typed import Int, Machine, copy, fill


def play_frame(m: Machine, counts: Int) -> None:
    """Play a frame like `run_frame`, and add the parts of older frames that ALE's picture shows."""
    if HAS_PAST == 0:
        run_frame(m, counts)
        return
    continues = m.begun != 0  # a frame that was left in the middle
    m.counts = counts
    m.draws_until = FAR
    m.touched = 0
    m.side = m.side & 1 ^ (continues == 0)
    if continues == 0:
        copy(m, THIS_BEGINNING, 0, BEGINNING_SIZE)
    run_frame(m, counts)
    if m.stop == FRAME_DONE:
        # When ALE leaves a frame, the beam has passed all rows, but ALE draws them only up to the
        # last use of the TIA.
        end = min(m.touched if m.begun else 3 * m.now, CLOCKS * (TOP + ROWS))
        if end > CLOCKS * TOP:
            keep_beginning(m, end)
        if m.draws == DRAW_PICTURE and (continues or end < CLOCKS * (TOP + ROWS)):
            complete_picture(m, end, continues or m.begun)


def keep_beginning(m: Machine, end: Int) -> None:
    """Store the initial state of this frame, which drew up to `end`; drop frames it covers."""
    first = m.side * MOST_OLDER
    count = min(m.older[m.side], MOST_OLDER + 1)
    if end == CLOCKS * (TOP + ROWS):
        count = 0
    elif count <= MOST_OLDER:
        while count > 0 and m.drew_to[first + count - 1] <= end:
            count -= 1
    if count < MOST_OLDER:
        m.drew_to[first + count] = end
        copy(m, BEGINNINGS + (first + count) * BEGINNING_SIZE, THIS_BEGINNING, BEGINNING_SIZE)
    m.older[m.side] = min(count, MOST_OLDER) + 1


def complete_picture(m: Machine, end: Int, is_in_parts: Int) -> None:
    """Draw the frames that make up a picture over each other, starting with the oldest."""
    count = m.older[m.side]
    if count > MOST_OLDER:
        m.stop = TOO_OLD
    elif count == 1 and end > CLOCKS * TOP and is_in_parts == 0:  # a single frame, already drawn
        row = end // CLOCKS - TOP
        at = row * WIDTH + max(end % CLOCKS - BLANK_CLOCKS, 0)
        fill(m.picture, at, m.shades[0], ROWS * WIDTH - at)
    else:
        fill(m.picture, 0, m.shades[0], ROWS * WIDTH)
        copy(m, ASIDE, 0, BEGINNING_SIZE)
        for k in range(count):
            index = m.side * MOST_OLDER + k
            copy(m, 0, BEGINNINGS + index * BEGINNING_SIZE, BEGINNING_SIZE)
            m.draws_until = m.drew_to[index]
            run_frame(m, m.counts & 1)
        copy(m, 0, ASIDE, BEGINNING_SIZE)
        m.stop = FRAME_DONE
