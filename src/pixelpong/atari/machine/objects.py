"""The pixels of the six objects in a line, as wide numbers: bit x for column x.

The playfield has 20 wide pixels, repeated or mirrored in the right half; the two players have eight
pixels and up to three copies; the two missiles and the ball are bars. Written in typed Python.
"""

from __future__ import annotations

from pixelpong.atari.machine.record import WIDTH
from pixelpong.atari.machine.registers import *
from pixelpong.atari.machine.typed import Int, Machine, Wide, inline, wide

_LINE = (1 << WIDTH) - 1

# For the low bits of NUSIZx, the number of copies of a player or missile, and the columns from one
# copy to the next.
NUM_COPIES, DISTANCES = (1, 2, 2, 3, 2, 1, 3, 1), (0, 16, 32, 16, 64, 0, 32, 0)

# For the same bits, whether there is a copy 16, 32 and 64 columns to the right of the first one, as
# a mask of the eight pixels.
_AT_16, _AT_32, _AT_64 = (
    tuple(
        255 * (far in range(distance, distance * count, distance or 1))
        for count, distance in zip(NUM_COPIES, DISTANCES, strict=True)
    )
    for far in (16, 32, 64)
)

# Each byte with its bits reversed, and each byte with bits two or four pixels wide.
MIRRORED = tuple(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
_DOUBLED = tuple(sum(3 << 2 * b for b in range(8) if byte >> b & 1) for byte in range(256))
_QUADRUPLED = tuple(sum(15 << 4 * b for b in range(8) if byte >> b & 1) for byte in range(256))


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


@inline
def stretched(pixels: Int, size: Int) -> Int:
    """Return a player's eight pixels as wide as NUSIZx has them."""
    if size == 5:
        pixels = _DOUBLED[pixels]
    elif size == 7:
        pixels = _QUADRUPLED[pixels]
    return pixels


@inline
def missile_bar(m: Machine, p: Int, is_wide: Int) -> Int:
    """Return a missile's pixels, a bar; at least two if `is_wide`."""
    return (1 << (1 << (m.tia[NUSIZ0 + p] >> 4 & 3 | is_wide))) - 1


@inline
def with_copies(m: Machine, o: Int, bits: Int, first: Int) -> Wide:
    """Return the mask of a player or missile with these pixels; `first` leaves out one copy."""
    size = m.tia[NUSIZ0 + ((o - PLAYER0) & 1)] & 7
    is_late = o < MISSILE0 and size in (5, 7)
    column = (m.position[o - PLAYER0] + is_late) % WIDTH
    shape = wide(0 if first else bits)
    if NUM_COPIES[size] == 1:
        return around(shape << column)
    shape |= wide(bits & _AT_16[size]) << 16 | wide(bits & _AT_32[size]) << 32
    shape |= wide(bits & _AT_64[size]) << 64
    return (shape << column | shape >> WIDTH - column) & _LINE


@inline
def bar_of_ball(m: Machine) -> Wide:
    """Return the ball's mask if it is switched on, a bar."""
    bar = (wide(1) << (1 << (m.tia[CTRLPF] >> 4 & 3))) - 1
    return around(bar << m.position[4] % WIDTH)


def player_or_missile_mask(m: Machine, o: Int) -> Wide:
    """Return the mask of a player (8 pixels, maybe mirrored or wide) or missile (a bar)."""
    p = (o - PLAYER0) & 1
    bits = 0
    first = 0
    if o >= MISSILE0:
        is_star = m.star_form if o == MISSILE0 else 0
        if m.tia[RESMP0 + p] == 0 and m.tia[ENAM0 + p] and is_star != 2:
            bits = missile_bar(m, p, is_star == 1)
    else:
        first = m.hidden >> p & 1
        bits = m.old_grp[p] if m.tia[VDELP0 + p] else m.tia[GRP0 + p]
        if m.tia[REFP0 + p] == 0:
            bits = MIRRORED[bits]
        bits = stretched(bits, m.tia[NUSIZ0 + p] & 7)
    if bits == 0:
        return wide(0)
    return with_copies(m, o, bits, first)


def ball_mask(m: Machine) -> Wide:
    """Return the ball's mask, a bar."""
    is_on = m.old_enabl if m.tia[VDELBL] else m.tia[ENABL]
    if is_on == 0:
        return wide(0)
    return bar_of_ball(m)


def reach_of(m: Machine, o: Int) -> Wide:
    """Return the columns that an object can cover where it is; of the playfield, its pixels."""
    if o == PLAYFIELD:
        return playfield_mask(m)
    if o == BALL:
        return bar_of_ball(m)
    p = (o - PLAYER0) & 1
    bits = stretched(255, m.tia[NUSIZ0 + p] & 7)
    if o >= MISSILE0:
        bits = missile_bar(m, p, 1)  # as wide as a star may be
    return with_copies(m, o, bits, 0)


# Objects that are switched on, so that they may have pixels.


@inline
def playfield_on(m: Machine) -> Int:
    """Return the playfield if it has pixels."""
    return ((m.tia[PF0] | m.tia[PF1] | m.tia[PF2]) != 0) << PLAYFIELD


@inline
def players_and_ball_on(m: Machine) -> Int:
    """Return the players and the ball, as far as they have pixels."""
    player0 = m.old_grp[0] if m.tia[VDELP0] else m.tia[GRP0]
    player1 = m.old_grp[1] if m.tia[VDELP1] else m.tia[GRP1]
    ball = m.old_enabl if m.tia[VDELBL] else m.tia[ENABL]
    return (player0 != 0) << PLAYER0 | (player1 != 0) << PLAYER1 | (ball != 0) << BALL


@inline
def objects_switched_on(m: Machine) -> Int:
    """Return the objects that have any pixels anywhere."""
    objects = playfield_on(m) | players_and_ball_on(m)
    objects |= (m.tia[ENAM0] & ~m.tia[RESMP0]) >> 1 << MISSILE0
    return objects | (m.tia[ENAM1] & ~m.tia[RESMP1]) >> 1 << MISSILE1


@inline
def changes_between_lines(m: Machine) -> Int:
    """Return whether a drawn object changes at the end of a line."""
    return m.hidden | m.stars | (m.mirrors ^ m.tia[CTRLPF] & 1)


@inline
def shows_playfield_alone(m: Machine) -> Int:
    """Return whether only the playfield can have pixels, so that nothing can collide."""
    missile0 = 0 if m.tia[RESMP0] else m.tia[ENAM0]
    missile1 = 0 if m.tia[RESMP1] else m.tia[ENAM1]
    players = m.tia[GRP0] | m.tia[GRP1] | m.old_grp[0] | m.old_grp[1]
    return (players | m.tia[ENABL] | m.old_enabl | missile0 | missile1) == 0
