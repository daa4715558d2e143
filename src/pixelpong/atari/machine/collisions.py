"""Which objects collide: the search, and in a frame without a picture, what may be left out of it.

Two objects collide where both have a pixel, and the latch of the pair is set until the program
clears it. A band of lines in which all objects stay the same needs a search only for pairs that
overlap somewhere in the line (``m.meets``) and whose latches are not yet set.

Without a picture, only collisions can make it necessary to draw. Most pairs of objects are never
close to each other, so three things are known about them at all times:

- the objects that are switched on (``m.on``);
- the *reach* of each object, the columns that it can cover where it is, whatever its pixels are;
  pairs whose reaches overlap are ``m.near``. An object that has moved since is near all others,
  until its reach is needed and computed again (``m.moved``);
- ``m.possible``, the latches of the pairs that are on and near. Objects of which such a latch is
  not yet set are those that matter (``m.cares``).

So new pixels of an object that is far from all others are just stored. **Why this is exact:** from
``m.drawn`` up to now, no object of a possible pair has changed, because each such change draws
first (`atari.machine.drawing.draw_before`). And the possible pairs are those of that whole time,
because before a write adds one, everything is drawn with the old pairs (`draw_before_move`,
`draw_and_switch`). What changes by itself at the end of a line obeys the same rule: until then all
objects matter, and pairs count as near that may be near in the next line (`find_pairs`).

Written in typed Python.
"""

from __future__ import annotations

from pixelpong.atari.machine.objects import (
    ball_mask,
    changes_between_lines,
    objects_switched_on,
    player_or_missile_mask,
    playfield_mask,
    reach_of,
    shows_playfield_alone,
)
from pixelpong.atari.machine.registers import *
from pixelpong.atari.machine.typed import Int, Machine, Wide, inline, lowest_bit, wide

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
LATCHES_OF, LATCHES_AMONG = (
    tuple(
        sum(1 << bit for bit, pair in _PAIRS.items() if sum(objects >> o & 1 for o in pair) >= n)
        for objects in range(64)
    )
    for n in (1, 2)
)
"""For a set of objects, the latches of pairs with any of them, and of pairs of two of them."""
OBJECTS_LOW, OBJECTS_HIGH = (
    tuple(
        sum({1 << o for bit, pair in _PAIRS.items() if byte << shift >> bit & 1 for o in pair})
        for byte in range(256)
    )
    for shift in (0, 8)
)
"""The objects that can set some latches, by the latches' low and high byte."""


@inline
def objects_of(latches: Int) -> Int:
    """Return the objects that can set some latches."""
    return OBJECTS_LOW[latches & 255] | OBJECTS_HIGH[latches >> 8 & 255]


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
        m.meets &= ALL_LATCHES - LATCHES_OF[1 << o]
        m.objects &= ~(1 << o)
        if mask != 0:
            others = m.objects
            m.objects |= 1 << o
            while others:
                b = lowest_bit(others)
                others &= others - 1
                if COLLISION[o][b] != 0 and mask & m.mask[b] != 0:
                    m.meets |= COLLISION[o][b]


def find_collisions(m: Machine, where: Wide, latches: Int) -> None:
    """Set those latches whose objects overlap in these columns."""
    while latches:
        k = lowest_bit(latches)
        latches &= latches - 1
        if m.mask[FIRST_OF_PAIR[k]] & m.mask[SECOND_OF_PAIR[k]] & where != 0:
            m.collisions |= 1 << k
    find_cares(m)


@inline
def latches_in_reach(m: Machine) -> Int:
    """Return the latches that a band may set, by the possible pairs; update what they need."""
    latches = m.possible & ~m.collisions
    if latches:
        which = m.moved & objects_of(latches)
        if which:
            find_near(m, which)
            latches = m.possible & ~m.collisions
        which = m.dirty & objects_of(latches)
        if which:
            refresh(m, which)
    return latches & m.meets


@inline
def latches_switched_on(m: Machine) -> Int:
    """Return the latches that a band may set, by the objects alone; update what they need."""
    latches = 0
    if m.tia[VBLANK] & 2 == 0 and shows_playfield_alone(m) == 0:
        latches = ALL_LATCHES & ~m.collisions & LATCHES_AMONG[objects_switched_on(m)]
        which = m.dirty & objects_of(latches)
        if which:
            refresh(m, which)
    return latches & m.meets


# The pairs that may collide, in a frame without a picture.


def begin_pairs(m: Machine) -> None:
    """Begin a frame in which no reach is known."""
    m.on = objects_switched_on(m)
    m.moved = ALL_OBJECTS
    m.near = ALL_LATCHES
    find_pairs(m)


@inline
def note_move(m: Machine, objects: Int) -> None:
    """Note that some objects have moved, or have another size: now they may be near any other."""
    if m.draws == 0 and objects & ~m.moved:
        m.moved |= objects
        m.near |= LATCHES_OF[objects]
        find_pairs(m)


@inline
def may_meet(m: Machine, objects: Int) -> Int:
    """Return whether a latch that is not yet set becomes possible if some objects move."""
    pairs = LATCHES_OF[objects] & LATCHES_AMONG[m.on & ALL_OBJECTS]
    return pairs & ~(m.near | m.collisions)


def find_near(m: Machine, which: Int) -> None:
    """Compute the reaches of some objects that have moved, and which others they are near."""
    m.moved &= ~which
    while which:
        o = lowest_bit(which)
        which &= which - 1
        reach = reach_of(m, o)
        m.reach[o] = reach
        near = 0
        for b in range(6):
            if (m.moved | which) >> b & 1 or reach & m.reach[b] != 0:
                near |= COLLISION[o][b]
        m.near = m.near & (ALL_LATCHES - LATCHES_OF[1 << o]) | near
    find_pairs(m)


def find_pairs(m: Machine) -> None:
    """Find the pairs that may collide from now on."""
    near = m.near
    if m.stars:
        near |= LATCHES_OF[1 << MISSILE0]
    if m.mirrors != m.tia[CTRLPF] & 1:
        near |= LATCHES_OF[1 << PLAYFIELD]
    m.possible = 0 if m.tia[VBLANK] & 2 else LATCHES_AMONG[m.on & ALL_OBJECTS] & near
    find_cares(m)


@inline
def find_cares(m: Machine) -> None:
    """Find the objects whose changes matter."""
    m.cares = objects_of(m.possible & ~m.collisions)
    if changes_between_lines(m):
        m.cares = ALL_OBJECTS
