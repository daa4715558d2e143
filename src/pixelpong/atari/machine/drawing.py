"""Draws lines into the picture or the field.

Drawing is lazy. Before a write that changes something, `draw_to` draws everything up to the beam: a
*band* of lines in which all objects stay the same. Each object's pixels in a line form one 160-bit
integer. So two objects collide where both have a bit set, and a band of equal lines is drawn once
and copied. If the picture is not needed, a band is only searched for collisions, which the program
can read.

Without a picture, most drawing is skipped: a write draws only if it changes an object that matters
to a latch that is not yet set (``m.cares``, see `atari.machine.collisions`).

Written in typed Python.
"""

from __future__ import annotations

from pixelpong.atari.machine.collisions import (
    LATCHES_AMONG,
    LATCHES_OF,
    find_collisions,
    find_pairs,
    latches_in_reach,
    latches_switched_on,
    may_meet,
    note_move,
    refresh,
)
from pixelpong.atari.machine.objects import changes_between_lines, objects_switched_on
from pixelpong.atari.machine.record import DRAW_OWN, DRAW_PICTURE, FAR, ROWS, TOP, WIDTH
from pixelpong.atari.machine.registers import *
from pixelpong.atari.machine.typed import (
    Int,
    Machine,
    blend,
    columns,
    copy,
    fill,
    inline,
    lowest_bit,
)

# The order in which objects cover each other, by bits 1 ("score") and 2 ("front") of CTRLPF. In
# score mode, each half of the playfield is like a missile of its player; in the right half, it has
# the colour of the objects that it covers.
_IN_FRONT = (BALL, PLAYFIELD, PLAYER0, MISSILE0, PLAYER1, MISSILE1)
FRONT_TO_BACK = (
    (PLAYER0, MISSILE0, PLAYER1, MISSILE1, BALL, PLAYFIELD),
    (PLAYER0, MISSILE0, PLAYFIELD, PLAYER1, MISSILE1, BALL),
    _IN_FRONT,
    _IN_FRONT,
)

# The same from the back; and for each order and set of objects, the objects' ranks in it as bits.
_BACK_TO_FRONT = tuple(order[::-1] for order in FRONT_TO_BACK)
_RANKS = tuple(
    tuple(sum(1 << k for k in range(6) if objects >> order[k] & 1) for objects in range(64))
    for order in _BACK_TO_FRONT
)

# The register with the colour of each object.
COLOURS = (COLUPF, COLUP0, COLUP1, COLUP0, COLUP1, COLUPF)
_LEFT_HALF = (1 << 80) - 1
# Columns that a "star" moves to the left from one line to the next.
_STAR_MOVES = (18, 33, 0, 17)

FIRST_OWN_ROW = 0  # the first row of the picture that `draw_own` needs


@inline
def draw_before(m: Machine, clock: Int, changes: Int) -> None:
    """Draw up to a clock at which some objects change, if anything depends on it."""
    if m.draws or changes & m.cares:
        draw_to(m, clock)


@inline
def draw_before_move(m: Machine, clock: Int, objects: Int) -> None:
    """Draw up to a clock at which some objects move or are resized, so that others may be near."""
    if m.draws or objects & m.cares or may_meet(m, objects):
        draw_to(m, clock)


@inline
def draw_and_switch(m: Machine, clock: Int, on: Int) -> None:
    """Note which objects a write switched on; draw up to it with the old pairs before new ones."""
    was = m.on
    if on != was:
        pairs = LATCHES_AMONG[(on | was) & ALL_OBJECTS] & m.near
        pairs &= LATCHES_OF[(on ^ was) & ALL_OBJECTS]
        if pairs:
            draw_to(m, clock)
        m.on = on
        if pairs:
            find_pairs(m)


@inline
def draw_to(m: Machine, clock: Int) -> None:
    """Draw the missing part up to a colour clock, with the current registers."""
    if clock > m.drawn:
        if clock <= m.unseen_until and changes_between_lines(m) == 0:
            m.drawn = clock
        else:
            draw_bands(m, clock)


def draw_bands(m: Machine, clock: Int) -> None:
    """Draw up to a clock; go line by line while something changes between lines."""
    begin = m.drawn
    bottom = CLOCKS * (TOP + ROWS)
    end = min(clock, bottom)
    if end > begin:
        m.drawn = end
        m.unseen_until = end // CLOCKS * CLOCKS + BLANK_CLOCKS if end < bottom else FAR
        if changes_between_lines(m):
            begin = draw_single_lines(m, begin, end)
        if begin < end:
            draw_band(m, begin, end)


def draw_single_lines(m: Machine, begin: Int, end: Int) -> Int:
    """Draw line by line; return the clock after which nothing changes between lines."""
    while changes_between_lines(m) and begin < end:
        if begin % CLOCKS == 0 and begin != CLOCKS * TOP:
            end_line(m)
        stop = min(end, (begin // CLOCKS + 1) * CLOCKS)
        draw_band(m, begin, stop)
        begin = stop
    return begin


def end_line(m: Machine) -> None:
    """Apply the changes that happen only between two drawn lines."""
    moved = 0
    if m.hidden:
        m.dirty |= 1 << PLAYER0 | 1 << PLAYER1
        m.hidden = 0
    if m.mirrors != m.tia[CTRLPF] & 1:
        m.mirrors = m.tia[CTRLPF] & 1
        moved |= 1 << PLAYFIELD
    if m.stars:
        m.star = m.star + 1 & 3
        m.star_form = m.star if m.star < 3 else 0
        m.position[2] = (m.position[2] + WIDTH - _STAR_MOVES[m.star]) % WIDTH
        moved |= 1 << MISSILE0
    m.dirty |= moved
    note_move(m, moved)
    find_pairs(m)


@inline
def end_blanks(m: Machine, begin: Int, end: Int) -> None:
    """End the blank that HMOVE causes if a line's first eight columns are over."""
    line = begin // CLOCKS + (begin % CLOCKS >= BLANK_CLOCKS + 8)
    if end >= line * CLOCKS + BLANK_CLOCKS + 8:
        m.blanks = 0


@inline
def draw_band(m: Machine, begin: Int, end: Int) -> None:
    """Draw a band: the rest of a line, whole lines, the start of a line."""
    latches = 0
    is_unseen = m.draws == DRAW_OWN and end < CLOCKS * (TOP + FIRST_OWN_ROW)
    if m.draws == 0:
        latches = latches_in_reach(m)
        if latches == 0:
            return
    elif is_unseen:
        latches = latches_switched_on(m)
        if latches == 0:
            if m.blanks:
                end_blanks(m, begin, end)
            return
    else:
        if m.dirty:
            refresh(m, m.dirty)
        latches = m.meets & ~m.collisions
    line = begin // CLOCKS
    x0 = max(begin % CLOCKS - BLANK_CLOCKS, 0)
    last = end // CLOCKS
    x1 = max(end % CLOCKS - BLANK_CLOCKS, 0)
    if line < last:
        if x0:
            draw_lines(m, line, x0, WIDTH, 1, latches)
            line += 1
        if line < last:
            draw_lines(m, line, 0, WIDTH, last - line, latches)
        x0 = 0
    draw_lines(m, last, x0, x1, 1, latches)


def draw_lines(m: Machine, line: Int, x0: Int, x1: Int, count: Int, latches: Int) -> None:
    """Draw part of a line, or several equal whole lines; this may set some latches."""
    if x1 <= x0:
        return
    if latches & ~m.collisions != 0 and m.tia[VBLANK] & 2 == 0:
        find_collisions(m, columns(x0, x1), latches & ~m.collisions)
    if m.draws & DRAW_PICTURE:
        paint(m, line - TOP, x0, x1, count)
    if m.draws & DRAW_OWN:
        draw_own(m, line - TOP, x0, x1, count)
    if m.draws and x0 < 8 and x1 >= 8:
        m.blanks = 0


def draw_own(m: Machine, row: Int, x0: Int, x1: Int, count: Int) -> None:
    """Draw part of some equal rows in the cartridge's own form; a cartridge may replace this."""


@inline
def is_score(m: Machine) -> Int:
    """Return whether each half of the playfield has a player's colour; in front, only if alone."""
    control = m.tia[CTRLPF] & 6
    if control == 6 and objects_switched_on(m) == 1 << PLAYFIELD:
        control = 2
    return control == 2


@inline
def colour_of(m: Machine, o: Int, is_right: Int) -> Int:
    """Return an object's palette index in one half of the line."""
    if o == PLAYFIELD and is_score(m):
        return m.tia[COLUP0 + is_right]
    return m.tia[COLOURS[o]]


def paint(m: Machine, row: Int, x0: Int, x1: Int, count: Int) -> None:
    """Paint the objects into the picture from back to front, and copy equal rows.

    An index with its lowest bit set is grey: that is how a European television loses colour.
    """
    at = row * WIDTH
    where = columns(x0, x1)
    if m.tia[VBLANK] & 2:
        blend(m.picture, at, where, m.shades[0])
    else:
        blend(m.picture, at, where, m.shades[m.tia[COLUBK] | m.is_grey])
        order = m.tia[CTRLPF] >> 1 & 3
        ranks = _RANKS[order][m.objects & ALL_OBJECTS]
        while ranks:
            o = _BACK_TO_FRONT[order][lowest_bit(ranks)]
            ranks &= ranks - 1
            pixels = m.mask[o] & where
            colour = m.tia[COLOURS[o]]
            if o == PLAYFIELD and is_score(m):
                colour = m.tia[COLUP0]
                blend(m.picture, at, pixels, m.shades[m.tia[COLUP1] | m.is_grey])
                pixels &= _LEFT_HALF
            blend(m.picture, at, pixels, m.shades[colour | m.is_grey])
    for k in range(1, count):
        copy(m.picture, at + k * WIDTH, at, WIDTH)
    if m.blanks != 0 and x0 < 8:  # in the first row only
        fill(m.picture, at + x0, m.shades[0], min(x1, 8) - x0)
