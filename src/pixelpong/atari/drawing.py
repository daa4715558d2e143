"""Drawing lines into the picture or the field, and computing how each object looks in a line.

Drawing is lazy. Before a write that changes something, `draw_to` draws everything up to the beam: a
*band* of lines whose objects all stay the same. Each object's pixels in a line are one number of
160 bits. So two objects collide where the bits of both are set, and a band of equal lines is drawn
once and copied. If the picture is not needed, a band is only searched for collisions, which the
program can read. Written in typed Python.
"""

from __future__ import annotations

from pixelpong.atari.machine import (
    DRAW_FIELD,
    DRAW_NOTHING,
    DRAW_PICTURE,
    FIELD_SIZE,
    FIELD_TOP,
    ROWS,
    TOP,
    WIDTH,
)
from pixelpong.atari.registers import *
from pixelpong.atari.typed import Int, Machine, Wide, copy, fill, inline, lowest_bit, wide

_LINE = (1 << WIDTH) - 1

# By the low bits of NUSIZx: the columns of the copies of a player or missile; 255 means none.
_COPIES = (
    (0, 255, 255), (0, 16, 255), (0, 32, 255), (0, 16, 32),
    (0, 64, 255), (0, 255, 255), (0, 32, 64), (0, 255, 255),
)  # fmt: skip

# A byte with its bits reversed, and bytes whose bits are two or four pixels wide.
MIRRORED = tuple(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
_DOUBLED = tuple(sum(3 << 2 * b for b in range(8) if byte >> b & 1) for byte in range(256))
_QUADRUPLED = tuple(sum(15 << 4 * b for b in range(8) if byte >> b & 1) for byte in range(256))

# The order in which objects cover each other, by bit 2 of CTRLPF.
_FRONT_TO_BACK = (
    (PLAYER0, MISSILE0, PLAYER1, MISSILE1, BALL, PLAYFIELD),
    (BALL, PLAYFIELD, PLAYER0, MISSILE0, PLAYER1, MISSILE1),
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
"""The bit of `collisions` that two objects set."""

BACKGROUND = (0, 34, 228)  # black, the background of play, that of the first frame
IS_ACTIVE = tuple(int(colour not in BACKGROUND) for colour in range(256))

_EVEN_1, _EVEN_2, _EVEN_4, _EVEN_8, _EVEN_16, _EVEN_32, _EVEN_64 = (
    sum(((1 << n) - 1) << k for k in range(0, 192, 2 * n)) for n in (1, 2, 4, 8, 16, 32, 64)
)
_LOW_96 = (1 << 96) - 1


# The pixels of each object.


@inline
def around(bits: Wide) -> Wide:
    """Wrap pixels beyond the right edge around to the left."""
    return (bits | bits >> WIDTH) & _LINE


def playfield_mask(m: Machine) -> Wide:
    """The playfield: 20 bits of four pixels each, then the same again, plain or mirrored."""
    left = m.tia[PF0] >> 4 | MIRRORED[m.tia[PF1]] << 4 | m.tia[PF2] << 12
    right = left
    if m.tia[CTRLPF] & 1:
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
    """A player (eight pixels, maybe mirrored or wide) or a missile (a bar), up to three copies."""
    p = (o - PLAYER0) & 1
    size = m.tia[NUSIZ0 + p] & 7
    late = 0
    if o >= MISSILE0:
        bits = (1 << (1 << (m.tia[NUSIZ0 + p] >> 4 & 3))) - 1
        if m.tia[RESMP0 + p] != 0 or m.tia[ENAM0 + p] == 0:
            bits = 0
    else:
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
        for k in range(3):
            if _COPIES[size][k] != 255:
                column = (m.position[o - PLAYER0] + _COPIES[size][k] + late) % WIDTH
                mask |= wide(bits) << column
    return around(mask)


def ball_mask(m: Machine) -> Wide:
    """The ball: a bar."""
    is_on = m.old_enabl if m.tia[VDELBL] else m.tia[ENABL]
    if is_on == 0:
        return wide(0)
    bar = (wide(1) << (1 << (m.tia[CTRLPF] >> 4 & 3))) - 1
    return around(bar << m.position[4] % WIDTH)


def refresh(m: Machine) -> None:
    """Update the masks of the dirty objects."""
    while m.dirty:
        o = lowest_bit(m.dirty)
        m.dirty &= m.dirty - 1
        mask = wide(0)
        if o == PLAYFIELD:
            mask = playfield_mask(m)
        elif o == BALL:
            mask = ball_mask(m)
        else:
            mask = player_or_missile_mask(m, o)
        m.mask[o] = mask
        m.objects = m.objects & ~(1 << o) | (mask != 0) << o


@inline
def shows_playfield_alone(m: Machine) -> Int:
    """Whether no other object can have a pixel, so that nothing can collide."""
    missile0 = 0 if m.tia[RESMP0] else m.tia[ENAM0]
    missile1 = 0 if m.tia[RESMP1] else m.tia[ENAM1]
    players = m.tia[GRP0] | m.tia[GRP1] | m.old_grp[0] | m.old_grp[1]
    return (players | m.tia[ENABL] | m.old_enabl | missile0 | missile1) == 0


# Drawing.


@inline
def columns(x0: Int, x1: Int) -> Wide:
    """The bits of the columns from x0 up to, but not including, x1."""
    return (wide(1) << x1) - (wide(1) << x0)


def draw_to(m: Machine, clock: Int) -> None:
    """Draw everything up to a colour clock that is not drawn yet, with the current registers."""
    end = min(clock, CLOCKS * (TOP + ROWS))
    if end > m.drawn:
        draw_band(m, end)


def draw_band(m: Machine, end: Int) -> None:
    """Draw from `drawn` to `end`: the rest of a line, whole lines, the start of a line."""
    begin = m.drawn
    m.drawn = end
    is_above_field = m.draws == DRAW_FIELD and end < CLOCKS * (TOP + FIELD_TOP)
    if (m.draws == DRAW_NOTHING or is_above_field) and shows_playfield_alone(m):
        m.blanks = 0
        return
    if m.dirty:
        refresh(m)
    line = begin // CLOCKS
    x0 = max(begin % CLOCKS - BLANK_CLOCKS, 0)
    last = end // CLOCKS
    x1 = max(end % CLOCKS - BLANK_CLOCKS, 0)
    if line < last:
        if x0:
            draw_lines(m, line, x0, WIDTH, 1)
            line += 1
        if line < last:
            draw_lines(m, line, 0, WIDTH, last - line)
        x0 = 0
    draw_lines(m, last, x0, x1, 1)


def draw_lines(m: Machine, line: Int, x0: Int, x1: Int, count: Int) -> None:
    """Draw a part of a line, or several equal whole lines."""
    if x1 <= x0:
        return
    if m.objects & (m.objects - 1) != 0 and m.tia[VBLANK] & 2 == 0:
        find_collisions(m, columns(x0, x1))
    if m.draws == DRAW_PICTURE:
        paint(m, line - TOP, x0, x1, count)
    elif m.draws == DRAW_FIELD:
        draw_field(m, line - TOP, x0, x1, count)
    if x1 == WIDTH:
        m.blanks = 0


def find_collisions(m: Machine, where: Wide) -> None:
    """Set the latches of objects that overlap in these columns."""
    first = m.objects
    while first:
        a = lowest_bit(first)
        first &= first - 1
        mask = m.mask[a] & where
        second = first
        while second:
            b = lowest_bit(second)
            second &= second - 1
            if m.collisions & COLLISION[a][b] == 0 and mask & m.mask[b] != 0:
                m.collisions |= COLLISION[a][b]


@inline
def colour_of(m: Machine, o: Int, is_right: Int) -> Int:
    """The palette index of an object in one half of the line."""
    # "Score" mode: each half has a player's colour, unless the playfield is in front.
    if o == PLAYFIELD and m.tia[CTRLPF] & 6 == 2:
        return m.tia[COLUP0 + is_right]
    if o in (PLAYFIELD, BALL):
        return m.tia[COLUPF]
    return m.tia[COLUP0 + ((o - PLAYER0) & 1)]


def paint(m: Machine, row: Int, x0: Int, x1: Int, count: Int) -> None:
    """Paint the objects into the picture from back to front, and copy equal rows."""
    at = row * WIDTH
    if m.tia[VBLANK] & 2:
        fill(m.picture, at + x0, 0, x1 - x0)
    else:
        fill(m.picture, at + x0, m.tia[COLUBK], x1 - x0)
        for k in range(5, -1, -1):
            o = _FRONT_TO_BACK[m.tia[CTRLPF] >> 2 & 1][k]
            if m.objects >> o & 1:
                if x0 < 80:
                    paint_runs(m, at, m.mask[o] & columns(x0, min(x1, 80)), colour_of(m, o, 0))
                if x1 > 80:
                    paint_runs(m, at, m.mask[o] & columns(max(x0, 80), x1), colour_of(m, o, 1))
    for k in range(1, count):
        copy(m.picture, at + k * WIDTH, at, WIDTH)
    if m.blanks != 0 and x0 < 8:  # in the first row only
        fill(m.picture, at + x0, 0, min(x1, 8) - x0)


def paint_runs(m: Machine, at: Int, pixels: Wide, colour: Int) -> None:
    """Paint pixels of a row, run by run."""
    while pixels != 0:
        x = lowest_bit(pixels)
        length = lowest_bit(~(pixels >> x))
        fill(m.picture, at + x, colour, length)
        pixels &= ~columns(x, x + length)


def draw_field(m: Machine, row: Int, x0: Int, x1: Int, count: Int) -> None:
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


def active_pixels(m: Machine) -> Wide:
    """The pixels of the line that are not background, computed back to front as in `paint`."""
    if m.tia[VBLANK] & 2:
        return wide(0)
    pixels = _LINE if IS_ACTIVE[m.tia[COLUBK]] else wide(0)
    for k in range(5, -1, -1):
        o = _FRONT_TO_BACK[m.tia[CTRLPF] >> 2 & 1][k]
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
