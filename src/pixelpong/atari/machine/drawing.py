"""Draws lines into the picture or the field, and computes each object's pixels in a line.

Drawing is lazy. Before a write that changes something, `draw_to` draws everything up to the beam: a
*band* of lines in which all objects stay the same. Each object's pixels in a line form one 160-bit
integer. So two objects collide where both have a bit set, and a band of equal lines is drawn once
and copied. If the picture is not needed, a band is only searched for collisions, which the program
can read.

Without a picture, most drawing is skipped: a write draws only if it changes an object in a pair
whose latch is not yet set (``m.cares``), and only pairs that overlap somewhere in the line
(``m.meets``) are searched. Written in typed Python.
"""

from __future__ import annotations

from pixelpong.atari.machine.record import DRAW_OWN, DRAW_PICTURE, FAR, ROWS, TOP, WIDTH
from pixelpong.atari.machine.registers import *
from pixelpong.atari.machine.typed import (
    Int,
    Machine,
    Wide,
    blend,
    columns,
    copy,
    fill,
    inline,
    lowest_bit,
    wide,
)

_LINE = (1 << WIDTH) - 1

# For the low bits of NUSIZx, the number of copies of a player or missile, and the columns from one
# copy to the next.
NUM_COPIES, DISTANCES = (1, 2, 2, 3, 2, 1, 3, 1), (0, 16, 32, 16, 64, 0, 32, 0)

# Each byte with its bits reversed, and each byte with bits two or four pixels wide.
MIRRORED = tuple(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
_DOUBLED = tuple(sum(3 << 2 * b for b in range(8) if byte >> b & 1) for byte in range(256))
_QUADRUPLED = tuple(sum(15 << 4 * b for b in range(8) if byte >> b & 1) for byte in range(256))

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

_LATCHES = {
    (MISSILE0, PLAYER1): 0, (MISSILE0, PLAYER0): 1, (MISSILE1, PLAYER0): 2, (MISSILE1, PLAYER1): 3,
    (PLAYER0, PLAYFIELD): 4, (PLAYER0, BALL): 5, (PLAYER1, PLAYFIELD): 6, (PLAYER1, BALL): 7,
    (MISSILE0, PLAYFIELD): 8, (MISSILE0, BALL): 9, (MISSILE1, PLAYFIELD): 10, (MISSILE1, BALL): 11,
    (BALL, PLAYFIELD): 12, (PLAYER0, PLAYER1): 14, (MISSILE0, MISSILE1): 15,
}  # fmt: skip
COLLISION = tuple(
    tuple(
        sum(1 << bit for pair, bit in _LATCHES.items() if pair in ((a, b), (b, a)))
        for b in range(6)
    )
    for a in range(6)
)
"""The bit in `collisions` that two objects set."""

_PAIRS = {bit: pair for pair, bit in _LATCHES.items()}
ALL_LATCHES = sum(1 << bit for bit in _PAIRS)
FIRST_OF_PAIR, SECOND_OF_PAIR = (
    tuple(_PAIRS[bit][k] if bit in _PAIRS else 0 for bit in range(16)) for k in (0, 1)
)
LATCHES_OF = tuple(sum(row) for row in COLLISION)
"""The latches that an object can set."""
LATCHES_AMONG = tuple(
    sum(1 << bit for bit, (a, b) in _PAIRS.items() if objects >> a & objects >> b & 1)
    for objects in range(64)
)
"""The latches that some objects can set."""
OBJECTS_LOW, OBJECTS_HIGH = (
    tuple(
        sum({1 << o for bit, pair in _PAIRS.items() if byte << shift >> bit & 1 for o in pair})
        for byte in range(256)
    )
    for shift in (0, 8)
)
"""The objects that can set some latches, by the latches' low and high byte."""

# The register with the colour of each object.
COLOURS = (COLUPF, COLUP0, COLUP1, COLUP0, COLUP1, COLUPF)
_LEFT_HALF = (1 << 80) - 1
# Columns that a "star" moves to the left from one line to the next.
_STAR_MOVES = (18, 33, 0, 17)

FIRST_OWN_ROW = 0  # the first row of the picture that `draw_own` needs


# The pixels of each object.


@inline
def around(bits: Wide) -> Wide:
    """Wrap pixels beyond the right edge around to the left edge."""
    return (bits | bits >> WIDTH) & _LINE


def playfield_mask(m: Machine) -> Wide:
    """Return the playfield's mask: 20 bits of four pixels each, then the same, maybe mirrored."""
    left = m.tia[PF0] >> 4 | MIRRORED[m.tia[PF1]] << 4 | m.tia[PF2] << 12
    right = left
    if m.mirrors:
        right = MIRRORED[m.tia[PF2]] | m.tia[PF1] << 8 | (MIRRORED[m.tia[PF0]] & 15) << 16
    return (
        wide(_QUADRUPLED[left & 255])
        | wide(_QUADRUPLED[left >> 8 & 255]) << 32
        | wide(_QUADRUPLED[left >> 16]) << 64
        | wide(_QUADRUPLED[right & 255]) << 80
        | wide(_QUADRUPLED[right >> 8 & 255]) << 112
        | wide(_QUADRUPLED[right >> 16]) << 144
    )


def player_or_missile_mask(m: Machine, o: Int) -> Wide:
    """Return the mask of a player (8 pixels, maybe mirrored or wide) or missile (a bar)."""
    p = (o - PLAYER0) & 1
    size = m.tia[NUSIZ0 + p] & 7
    late = 0
    first = 0
    if o >= MISSILE0:
        is_star = m.star_form if o == MISSILE0 else 0
        bits = (1 << (1 << (m.tia[NUSIZ0 + p] >> 4 & 3 | (is_star == 1)))) - 1
        if m.tia[RESMP0 + p] != 0 or m.tia[ENAM0 + p] == 0 or is_star == 2:
            bits = 0
    else:
        first = m.hidden >> p & 1
        bits = m.old_grp[p] if m.tia[VDELP0 + p] else m.tia[GRP0 + p]
        if m.tia[REFP0 + p] == 0:
            bits = MIRRORED[bits]
        if size == 5:
            bits = _DOUBLED[bits]
            late = 1
        elif size == 7:
            bits = _QUADRUPLED[bits]
            late = 1
    mask = wide(0)
    if bits != 0:
        for k in range(first, NUM_COPIES[size]):
            column = m.position[o - PLAYER0] + DISTANCES[size] * k + late
            mask |= wide(bits) << column % WIDTH
    return around(mask)


def ball_mask(m: Machine) -> Wide:
    """Return the ball's mask, a bar."""
    is_on = m.old_enabl if m.tia[VDELBL] else m.tia[ENABL]
    if is_on == 0:
        return wide(0)
    bar = (wide(1) << (1 << (m.tia[CTRLPF] >> 4 & 3))) - 1
    return around(bar << m.position[4] % WIDTH)


def refresh(m: Machine, which: Int) -> None:
    """Update the masks of some dirty objects, and record which objects they meet."""
    m.dirty &= ~which
    while which:
        o = lowest_bit(which)
        which &= which - 1
        mask = wide(0)
        if o == PLAYFIELD:
            mask = playfield_mask(m)
        elif o == BALL:
            mask = ball_mask(m)
        else:
            mask = player_or_missile_mask(m, o)
        m.mask[o] = mask
        m.meets &= ALL_LATCHES - LATCHES_OF[o]
        m.objects &= ~(1 << o)
        if mask != 0:
            others = m.objects
            m.objects |= 1 << o
            while others:
                b = lowest_bit(others)
                others &= others - 1
                if COLLISION[o][b] != 0 and mask & m.mask[b] != 0:
                    m.meets |= COLLISION[o][b]


@inline
def objects_switched_on(m: Machine) -> Int:
    """Return the objects that have any pixels anywhere."""
    player0 = m.old_grp[0] if m.tia[VDELP0] else m.tia[GRP0]
    player1 = m.old_grp[1] if m.tia[VDELP1] else m.tia[GRP1]
    ball = m.old_enabl if m.tia[VDELBL] else m.tia[ENABL]
    objects = (m.tia[PF0] | m.tia[PF1] | m.tia[PF2]) != 0
    objects |= (player0 != 0) << PLAYER0 | (player1 != 0) << PLAYER1 | (ball != 0) << BALL
    objects |= (m.tia[ENAM0] & ~m.tia[RESMP0]) >> 1 << MISSILE0
    return objects | (m.tia[ENAM1] & ~m.tia[RESMP1]) >> 1 << MISSILE1


@inline
def shows_playfield_alone(m: Machine) -> Int:
    """Return whether only the playfield can have pixels, so that nothing can collide."""
    missile0 = 0 if m.tia[RESMP0] else m.tia[ENAM0]
    missile1 = 0 if m.tia[RESMP1] else m.tia[ENAM1]
    players = m.tia[GRP0] | m.tia[GRP1] | m.old_grp[0] | m.old_grp[1]
    return (players | m.tia[ENABL] | m.old_enabl | missile0 | missile1) == 0


# Drawing.


@inline
def objects_of(latches: Int) -> Int:
    """Return the objects that can set some latches."""
    return OBJECTS_LOW[latches & 255] | OBJECTS_HIGH[latches >> 8 & 255]


@inline
def draw_before(m: Machine, clock: Int, changes: Int) -> None:
    """Draw up to a clock at which some objects change, if anything depends on it."""
    if m.draws or changes & m.cares:
        draw_to(m, clock)


@inline
def draw_to(m: Machine, clock: Int) -> None:
    """Draw the missing part up to a colour clock, with the current registers."""
    if clock > m.drawn:
        if clock <= m.unseen_until and changes_between_lines(m) == 0:
            m.drawn = clock
        else:
            draw_bands(m, clock)


@inline
def changes_between_lines(m: Machine) -> Int:
    """Return whether a drawn object changes at the end of a line."""
    return m.hidden | m.stars | (m.mirrors ^ m.tia[CTRLPF] & 1)


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
    if m.hidden:
        m.dirty |= 1 << PLAYER0 | 1 << PLAYER1
        m.hidden = 0
    if m.mirrors != m.tia[CTRLPF] & 1:
        m.mirrors = m.tia[CTRLPF] & 1
        m.dirty |= 1 << PLAYFIELD
    if m.stars:
        m.star = m.star + 1 & 3
        m.star_form = m.star if m.star < 3 else 0
        m.position[2] = (m.position[2] + WIDTH - _STAR_MOVES[m.star]) % WIDTH
        m.dirty |= 1 << MISSILE0


@inline
def end_blanks(m: Machine, begin: Int, end: Int) -> None:
    """End the blank that HMOVE causes if a line's first eight columns are over."""
    line = begin // CLOCKS + (begin % CLOCKS >= BLANK_CLOCKS + 8)
    if end >= line * CLOCKS + BLANK_CLOCKS + 8:
        m.blanks = 0


@inline
def draw_band(m: Machine, begin: Int, end: Int) -> None:
    """Draw a band: the rest of a line, whole lines, the start of a line."""
    latches = ALL_LATCHES & ~m.collisions
    is_unseen = m.draws == DRAW_OWN and end < CLOCKS * (TOP + FIRST_OWN_ROW)
    if m.draws == 0 or is_unseen:
        if m.tia[VBLANK] & 2 or shows_playfield_alone(m):
            latches = 0
        if latches:
            if m.dirty & STALE:
                m.dirty &= ALL_OBJECTS
                m.on = objects_switched_on(m)
            latches &= LATCHES_AMONG[m.on & ALL_OBJECTS]
        if latches:
            needed = m.dirty & objects_of(latches)
            if needed:
                refresh(m, needed)
        if latches & m.meets == 0:
            if m.blanks:
                end_blanks(m, begin, end)
            return
    elif m.dirty & ALL_OBJECTS:
        refresh(m, m.dirty & ALL_OBJECTS)
    latches &= m.meets
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
    if x0 < 8 and x1 >= 8:
        m.blanks = 0


def draw_own(m: Machine, row: Int, x0: Int, x1: Int, count: Int) -> None:
    """Draw part of some equal rows in the cartridge's own form; a cartridge may replace this."""


def find_collisions(m: Machine, where: Wide, latches: Int) -> None:
    """Set those latches whose objects overlap in these columns."""
    while latches:
        k = lowest_bit(latches)
        latches &= latches - 1
        if m.mask[FIRST_OF_PAIR[k]] & m.mask[SECOND_OF_PAIR[k]] & where != 0:
            m.collisions |= 1 << k
    m.cares = objects_of(ALL_LATCHES & ~m.collisions)


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
        for k in range(5, -1, -1):
            o = FRONT_TO_BACK[m.tia[CTRLPF] >> 1 & 3][k]
            if m.objects >> o & 1:
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
