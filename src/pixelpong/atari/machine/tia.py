"""The TIA, the chip that draws the picture: its response to the program's writes and reads.

The Atari 2600 has no memory for a picture. The TIA sends one line after the other to the
television. It knows what six objects look like *in this line*: the playfield (20 wide pixels,
repeated or mirrored for the right half), two players (8 pixels each), two missiles and a ball (a
bar each). To change something from line to line, the program writes to a register at the right
time.

Time is counted in colour clocks. A line takes 228 of them: 68 in which the beam flies back, then
160 for the pixels. The processor's clock is a third of that, so a line takes 76 cycles. A write to
WSYNC halts the processor until the next line starts, which keeps programs in step with the beam. A
frame ends when the program clears VSYNC, usually after 262 lines, of which 210 are visible (`TOP`,
`ROWS`).

A write that changes nothing costs one comparison. Before any other write, everything up to the beam
is drawn (`atari.machine.drawing`) if it is needed.

In the functions, `t` is the cycle since the start of the line in which the frame started, and `bus`
is the last byte on the data bus. Sound and light pens are not covered. Written in typed Python.
Source: see `atari.machine.registers`; HMOVE was measured on ALE for all cycles and motions.
"""

from __future__ import annotations

from pixelpong.atari.machine.collisions import ALL_LATCHES, find_cares, find_pairs, note_move
from pixelpong.atari.machine.drawing import (
    draw_and_switch,
    draw_before,
    draw_before_move,
    draw_to,
)
from pixelpong.atari.machine.objects import (
    DISTANCES,
    NUM_COPIES,
    changes_between_lines,
    objects_switched_on,
    players_and_ball_on,
    playfield_on,
)
from pixelpong.atari.machine.record import FAR, FRAME_DONE, HAS_PAST, MAX_LINES, WIDTH
from pixelpong.atari.machine.registers import *
from pixelpong.atari.machine.typed import Int, Machine, inline, make_table

HAS_COMBS = 1  # whether HMOVE blanks pixels; for some cartridges, ALE does not do this

# The cycles to charge a capacitor per ohm, 1.6 · 10 nF · 1.19 MHz, as a fraction. Source: ALE.
_CYCLES_PER_OHM = (1904, 100_000)
_MOST_OHM = 1_000_000  # more means that there is no paddle

# For the low bits of NUSIZx, the distance from a player's left edge to its middle, and its width.
_MIDDLE = make_table(8, 4, {5: 8, 7: 16})
_SPREAD = make_table(8, 8, {5: 16, 7: 32})

# The columns by which HMOVE moves an object to the right, modulo the width of a line, by the cycle
# of the write and the object's HM register, which means −8 … 7 columns to the left. This is the
# distance at the start of a line. Later, objects move less far to the left, or even to the right.
_MOTIONS = (*range(0, -8, -1), *range(8, 0, -1))
_HMOVE_COLUMNS = (
    *(tuple(max(r, (3 * t + 1 >> 2) - 9) % WIDTH for r in _MOTIONS) for t in range(21)),
    *(tuple(min(0, r - (3 * t + 1 >> 2) + 47) % WIDTH for r in _MOTIONS) for t in range(21, 75)),
    tuple(r % WIDTH for r in _MOTIONS),
)

# Writes.


@inline
def strobed_position(t: Int, is_player: Int) -> Int:
    """Return the column at which a write to RESPx, RESMx or RESBL at time `t` puts an object."""
    clock = t % 76 * 3
    if clock < BLANK_CLOCKS:
        return 2 + is_player
    return (clock - BLANK_CLOCKS + 4 + is_player) % WIDTH


def set_register(m: Machine, t: Int, register: Int, value: Int) -> None:
    """Write a new value to a register of colours, shapes or switches; this ends the band."""
    clock = 3 * t + DELAY[register]
    moved = MOVES_OBJECTS[register]
    if register >= PF0 and register <= PF2:
        clock = 3 * t + PLAYFIELD_DELAY[t & 3]
    if moved:
        draw_before_move(m, clock, moved)
    else:
        draw_before(m, clock, CHANGES_OBJECTS[register])
    m.dirty |= CHANGES_OBJECTS[register]
    m.tia[register] = value & MEANING[register]
    if m.draws == 0:
        note_move(m, moved)
        if register >= PF0 and register <= PF2:
            draw_and_switch(m, clock, m.on & ~(1 << PLAYFIELD) | playfield_on(m))
        elif SWITCHES[register]:
            draw_and_switch(m, clock, objects_switched_on(m))


@inline
def set_colour(m: Machine, t: Int, register: Int, value: Int) -> None:
    """Write to COLUxx, which changes no object."""
    if m.draws:
        set_register(m, t, register, value)
    else:
        m.tia[register] = value & MEANING[register]


def set_size(m: Machine, t: Int, register: Int, value: Int) -> None:
    """Write to NUSIZx, and make a hidden first copy visible again."""
    p = register - NUSIZ0
    if changes_between_lines(m):
        draw_to(m, 3 * t)  # ends the previous line if it has not ended yet
    is_star = m.star_form if p == 0 else 0
    if m.tia[register] != value or m.hidden >> p & 1 or is_star:
        set_register(m, t, register, value)
        m.hidden &= ~(1 << p)
        if p == 0:
            m.star_form = 0
        find_cares(m)


def set_control(m: Machine, t: Int, value: Int) -> None:
    """Write to CTRLPF; late in a line, mirroring starts in the next line."""
    if m.mirrors != m.tia[CTRLPF] & 1:
        draw_to(m, 3 * t)  # ends the previous line if it has not ended yet
    mirrors = value & 1 if t % 76 * 3 < BLANK_CLOCKS + 79 else m.mirrors
    if mirrors != value & 1:
        draw_to(m, 3 * t)  # what changes at this line's end does not change at an earlier one's
    if m.tia[CTRLPF] != value or mirrors != m.mirrors:
        set_register(m, t, CTRLPF, value)
        m.mirrors = mirrors
        find_pairs(m)


def set_player(m: Machine, t: Int, register: Int, value: Int) -> None:
    """Write to GRPx, and update the delayed other player and, for GRP1, the ball."""
    p = register - GRP0
    q = 1 - p
    dirty = 0
    if m.tia[VDELP0 + p] == 0 and m.tia[register] != value:
        dirty = 1 << PLAYER0 + p
    if m.tia[VDELP0 + q] and m.old_grp[q] != m.tia[GRP0 + q]:
        dirty |= 1 << PLAYER0 + q
    if p == 1 and m.tia[VDELBL] and m.old_enabl != m.tia[ENABL]:
        dirty |= 1 << BALL
    if dirty:
        draw_before(m, 3 * t + 1, dirty)
        m.dirty |= dirty
    m.old_grp[q] = m.tia[GRP0 + q]
    if p == 1:
        m.old_enabl = m.tia[ENABL]
    m.tia[register] = value
    if dirty and m.draws == 0:
        others = m.on & ~(1 << PLAYER0 | 1 << PLAYER1 | 1 << BALL)
        draw_and_switch(m, 3 * t + 1, others | players_and_ball_on(m))


@inline
def set_switch(m: Machine, t: Int, register: Int, value: Int) -> None:
    """Write to ENAM0, ENAM1 or ENABL."""
    if m.tia[VDELBL if register == ENABL else register - ENAM0 + RESMP0]:
        m.tia[register] = value & 2  # the object is hidden, or delayed until a write to GRP1
    else:
        set_register(m, t, register, value)


def set_lock(m: Machine, t: Int, register: Int, value: Int) -> None:
    """Write to RESMPx: hide a missile, or release it at its player's middle."""
    p = register - RESMP0
    draw_before_move(m, 3 * t, CHANGES_OBJECTS[register])
    if value & 2 == 0:
        m.position[2 + p] = (m.position[p] + _MIDDLE[m.tia[NUSIZ0 + p] & 7]) % WIDTH
        if p == 0:
            m.star_form = 0
    m.dirty |= CHANGES_OBJECTS[register]
    m.tia[register] = value & 2
    if m.draws == 0:
        note_move(m, CHANGES_OBJECTS[register])
        draw_and_switch(m, 3 * t, objects_switched_on(m))


def find_copy(m: Machine, p: Int, column: Int) -> Int:
    """Classify a column by the nearest copy of a player.

    Return 1 if the column is inside a copy, 2 if it is one of the four before a copy, else 0.
    """
    size = m.tia[NUSIZ0 + p] & 7
    kind = 0
    for k in range(NUM_COPIES[size]):
        gap = (column + WIDTH - (m.position[p] + DISTANCES[size] * k) % WIDTH) % WIDTH
        if gap < 4:
            kind = 2
        elif gap < 4 + _SPREAD[size]:
            kind = 1
    return kind


def set_player_position(m: Machine, t: Int, p: Int) -> None:
    """Write to RESPx: move a player to the beam; its first copy appears one line later."""
    column = strobed_position(t, 1)
    kind = find_copy(m, p, column)
    clock = 3 * t + 11 * (kind == 1)  # the current copy is drawn to its end
    if HAS_PAST:
        m.touched = clock
    draw_to(m, clock)  # in any case, because the next end of a line ends `hidden`
    m.position[p] = column
    m.hidden = m.hidden & ~(1 << p) | (kind != 2) << p
    m.dirty |= 1 << PLAYER0 + p
    note_move(m, 1 << PLAYER0 + p)
    find_cares(m)


def set_bar_position(m: Machine, t: Int, register: Int) -> None:
    """Write to RESMx or RESBL: move a bar to the beam, or less far just after HMOVE."""
    draw_before_move(m, 3 * t + DELAY[register], CHANGES_OBJECTS[register])
    column = strobed_position(t, 0)
    cycle = t % 76
    since = t - m.hmove_at
    if register == RESP0 + 2:
        if since == 20 and cycle == 23:
            column = 8
        m.star_form = 0
    elif since == 3 and cycle == 6:
        column = 3
    elif register == RESBL:
        if since == 18 and cycle in (20, 23):
            column = 10
        elif since == 7 and cycle == 10:
            column = 6
        elif since == 6 and cycle == 9:
            column = 5
    m.dirty |= CHANGES_OBJECTS[register]
    m.position[register - RESP0] = column
    note_move(m, CHANGES_OBJECTS[register])


@inline
def moved_by_hmove(m: Machine, cycle: Int) -> Int:
    """Return the objects that HMOVE moves, or that change their form with it."""
    moved = m.hidden << PLAYER0 | (m.stars | m.star_form != 0) << MISSILE0
    motions = m.tia[HMP0] | m.tia[HMP0 + 1] | m.tia[HMM0] | m.tia[HMM0 + 1] | m.tia[HMBL]
    if motions == 0 and _HMOVE_COLUMNS[cycle][0] == 0:
        return moved
    for k in range(5):
        moved |= (_HMOVE_COLUMNS[cycle][m.tia[HMP0 + k] >> 4] != 0) << PLAYER0 + k
    return moved


def move_objects(m: Machine, t: Int) -> None:
    """Write to HMOVE: move each object by its HM register."""
    cycle = t % 76
    moved = moved_by_hmove(m, cycle)
    draw_before_move(m, 3 * t, moved)
    if cycle <= 20 or cycle == 75:
        m.blanks = HAS_COMBS
        m.blanks_from = max(m.blanks_from, 3 * t)
    m.hmove_at = t
    if moved:
        for k in range(5):
            right = _HMOVE_COLUMNS[cycle][m.tia[HMP0 + k] >> 4]
            m.position[k] = (m.position[k] + right) % WIDTH
        m.stars = 0
        m.star_form = 0
        m.hidden = 0
        m.dirty |= moved
        note_move(m, moved)
        find_cares(m)


def set_motion(m: Machine, t: Int, value: Int) -> None:
    """Write to HMM0; at a certain time after HMOVE, this makes missile 0 move in every line."""
    if t == m.hmove_at + 21 and m.tia[HMM0] == 0x70 and value & 0xF0 == 0x60:
        draw_to(m, 3 * t)
        m.stars = 1
        m.star = 0
        find_pairs(m)
    m.tia[HMM0] = value & 0xF0


def set_blank(m: Machine, t: Int, value: Int) -> None:
    """Write to VBLANK; bit 1 darkens the picture, bit 7 keeps the paddles' capacitors empty."""
    draw_to(m, 3 * t + DELAY[VBLANK])
    if value & 0x80:
        m.emptied = 1
    elif m.tia[VBLANK] & 0x80:
        m.emptied = 0
        m.emptied_until = t
        charge_paddles(m)
    m.tia[VBLANK] = value
    find_pairs(m)


def charge_paddles(m: Machine) -> None:
    """Set the number of cycles until the capacitors are charged.

    If a capacitor would have been charged before the frame started, ALE acts as if it never is.
    """
    for k in range(4):
        ohm = m.resistance[k]
        cycles = ohm * _CYCLES_PER_OHM[0] // _CYCLES_PER_OHM[1]
        is_over = cycles != 0 and m.emptied_until + cycles < m.cycle
        m.charged[k] = FAR if ohm >= _MOST_OHM or is_over else cycles


def clear_collisions(m: Machine, t: Int) -> None:
    """Write to CXCLR; afterwards, latches that were set matter again."""
    m.collisions = ALL_LATCHES  # no latch need be searched that is cleared now
    draw_to(m, 3 * t)
    m.collisions = 0
    find_pairs(m)


def write_vsync(m: Machine, t: Int, value: Int) -> None:
    """Write to VSYNC; the frame ends when bit 1 is cleared after it was set."""
    if value & 2:
        m.vsync_end = t + 76
    elif t >= m.vsync_end and m.stop == 0:
        m.vsync_end = FAR
        m.stop = FRAME_DONE
    m.tia[VSYNC] = value


@inline
def touch(m: Machine, t: Int, register: Int) -> None:
    """Record how far ALE draws before a write; this is visible if ALE then leaves the frame."""
    late = DELAY[register]
    if register >= PF0 and register <= PF2:
        late = PLAYFIELD_DELAY[t & 3]
    m.touched = 3 * t + late


def write_tia(m: Machine, t: Int, register: Int, value: Int) -> Int:
    """Write to a register, 0 to 0x3F; return the next cycle, which is later after a halt."""
    if HAS_PAST:
        touch(m, t, register)
    if t >= 76 * (MAX_LINES + 1) and m.stop == 0:
        m.stop = FRAME_DONE
    if register == WSYNC:
        return (t + 75) // 76 * 76
    if IS_PLAIN[register] and m.tia[register] == value & MEANING[register]:
        return t
    # `atari.machine.tia_writes` reads these cases, so their conditions depend on `register` alone.
    if register == HMM0:
        set_motion(m, t, value)
    elif register >= HMP0 and register <= HMBL:
        m.tia[register] = value & 0xF0
    elif register in (RESP0, RESP1):
        set_player_position(m, t, register - RESP0)
    elif register > RESP1 and register <= RESBL:
        set_bar_position(m, t, register)
    elif register >= ENAM0 and register <= ENABL:
        set_switch(m, t, register, value)
    elif register in (GRP0, GRP1):
        set_player(m, t, register, value)
    elif register in (NUSIZ0, NUSIZ1):
        set_size(m, t, register, value)
    elif register == CTRLPF:
        set_control(m, t, value)
    elif register in (RESMP0, RESMP1):
        set_lock(m, t, register, value)
    elif register >= COLUP0 and register <= COLUBK:
        set_colour(m, t, register, value)
    elif IS_PLAIN[register] and register != VBLANK:
        set_register(m, t, register, value)
    elif register == VSYNC:
        write_vsync(m, t, value)
    elif register == VBLANK:
        set_blank(m, t, value)
    elif register == HMOVE:
        move_objects(m, t)
    elif register == HMCLR:
        m.tia[HMP0] = m.tia[HMP0 + 1] = m.tia[HMM0] = m.tia[HMM0 + 1] = m.tia[HMBL] = 0
    elif register == CXCLR:
        clear_collisions(m, t)
    return t


# Reads.


def read_tia(m: Machine, t: Int, address: Int, bus: Int) -> Int:
    """Read collisions, a paddle or a button; bits that the TIA does not drive come from `bus`."""
    register = address & 15
    bus &= 0x3F
    if HAS_PAST:
        m.touched = 3 * t
    if register >= 8 and register < 12:
        return bus | is_charged(m, t, register & 3) << 7
    if register >= 12:
        return bus | (m.fire[register & 1] & 0x80 if register < 14 else 0)
    if m.draws or m.possible & ~m.collisions & 3 << 2 * register:
        draw_to(m, 3 * t)
    two = m.collisions >> 2 * register
    return (two & 1) << 7 | (two & 2) << 5 | bus


@inline
def is_charged(m: Machine, t: Int, paddle: Int) -> Int:
    """Return whether the capacitor at INPT0 … INPT3 has charged by now or has no resistance."""
    charge = m.charged[paddle]
    return charge == 0 or (m.emptied == 0 and t - m.emptied_until > charge)
