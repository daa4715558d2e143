"""The TIA, the chip that draws the picture: its response to the program's writes and reads.

The Atari 2600 has no memory for a picture. The TIA sends the television one line after the other,
and knows how six objects look *in this line*: the playfield (20 wide pixels, repeated or mirrored
for the right half), two players (8 pixels each), two missiles and a ball (a bar each). To change
something from line to line, the program writes to a register in time.

Time is counted in colour clocks. A line takes 228 of them: 68 in which the beam flies back, then
160 pixels. The processor's clock is a third of that, so a line takes 76 cycles. A write to WSYNC
halts the processor until the next line begins, which keeps programs in step with the beam. A frame
ends when the program clears VSYNC, after 262 lines in Pong. 210 of them are shown (`TOP`, `ROWS`).

A write that changes nothing costs one comparison. Before any other write, everything up to the
beam is drawn (`pixelpong.atari.drawing`).

In the functions, `t` is the cycle since the start of the line in which the frame began, and `bus`
the last byte on the data bus. Not covered: sound, light pens, the first clocks of objects that move
in the middle of a line. Written in typed Python. Source: see `pixelpong.atari.registers`.
"""

from __future__ import annotations

from pixelpong.atari.drawing import draw_to
from pixelpong.atari.machine import FRAME_DONE, NOT_IMPLEMENTED, WIDTH
from pixelpong.atari.registers import *
from pixelpong.atari.typed import Int, Machine, inline, make_table

_MOVES_UNTIL = 3  # the last cycle of a line in which HMOVE moves objects the full distance

# By the low bits of NUSIZx: the distance of a player's middle from its left edge, in columns.
_MIDDLE = make_table(8, 4, {5: 8, 7: 16})

# Writes.


@inline
def strobed_position(t: Int, is_player: Int) -> Int:
    """The column at which a write to RESPx, RESMx or RESBL at time `t` puts an object."""
    clock = t % 76 * 3
    if clock < BLANK_CLOCKS:
        return 2 + is_player
    return (clock - BLANK_CLOCKS + 4 + is_player) % WIDTH


def set_register(m: Machine, clock: Int, register: Int, value: Int) -> None:
    """Write a new value to a register of colours, shapes or switches, which ends the band."""
    draw_to(m, clock)
    m.dirty |= CHANGES_OBJECTS[register]
    m.tia[register] = value & MEANING[register]


def set_player(m: Machine, t: Int, register: Int, value: Int) -> None:
    """Write to GRPx, which also updates what VDEL delays: the other player, with GRP1 the ball."""
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
        draw_to(m, 3 * t + 1)
        m.dirty |= dirty
    m.old_grp[q] = m.tia[GRP0 + q]
    if p == 1:
        m.old_enabl = m.tia[ENABL]
    m.tia[register] = value


def set_lock(m: Machine, t: Int, register: Int, value: Int) -> None:
    """Write to RESMPx: hide a missile, or release it at its player's middle."""
    draw_to(m, 3 * t)
    p = register - RESMP0
    if value & 2 == 0:
        m.position[2 + p] = (m.position[p] + _MIDDLE[m.tia[NUSIZ0 + p] & 7]) % WIDTH
    m.dirty |= CHANGES_OBJECTS[register]
    m.tia[register] = value & 2


def set_position(m: Machine, t: Int, register: Int) -> None:
    """Write to RESPx, RESMx or RESBL: move an object to the beam."""
    draw_to(m, 3 * t)
    m.dirty |= CHANGES_OBJECTS[register]
    m.position[register - RESP0] = strobed_position(t, register <= RESP1)


def move_objects(m: Machine, t: Int) -> None:
    """Write to HMOVE: move each object by its HM register, −8 … 7 columns to the left.

    This is the distance at the start of a line; later in the line, objects move less.
    """
    motions = m.tia[HMP0] | m.tia[HMP0 + 1] | m.tia[HMP0 + 2] | m.tia[HMP0 + 3] | m.tia[HMBL]
    if t % 76 > _MOVES_UNTIL and motions:
        m.stop = NOT_IMPLEMENTED
    draw_to(m, 3 * t)
    for k in range(5):
        left = (m.tia[HMP0 + k] >> 4 ^ 8) - 8
        m.position[k] = (m.position[k] + WIDTH - left) % WIDTH
    m.blanks = 1
    m.dirty |= ALL_OBJECTS - (1 << PLAYFIELD)


def set_blank(m: Machine, t: Int, value: Int) -> None:
    """Write to VBLANK: bit 1 darkens the picture, bit 7 keeps the paddles' capacitors empty."""
    draw_to(m, 3 * t)
    if value & 0x80:
        m.emptied = 1
    elif m.tia[VBLANK] & 0x80:
        m.emptied = 0
        m.emptied_until = t
    m.tia[VBLANK] = value


@inline
def write_tia(m: Machine, t: Int, register: Int, value: Int) -> Int:
    """Write to a register, 0 to 0x3F; return the cycle after it, which is later after a halt."""
    if register == WSYNC:
        return (t + 75) // 76 * 76
    if register >= HMP0 and register <= HMBL:
        m.tia[register] = value & 0xF0
    elif register >= RESP0 and register <= RESBL:
        set_position(m, t, register)
    elif register in (ENAM0, ENAM1) and m.tia[register - ENAM0 + RESMP0]:
        m.tia[register] = value & 2  # hidden, so nothing changes, and the band need not end
    elif register == ENABL and m.tia[VDELBL]:
        m.tia[ENABL] = value & 2  # delayed until the next write to GRP1
    elif register == GRP0:
        if m.tia[GRP0] != value or m.old_grp[1] != m.tia[GRP1]:
            set_player(m, t, register, value)
    elif register == GRP1:
        is_late = m.old_grp[0] != m.tia[GRP0] or m.old_enabl != m.tia[ENABL]
        if m.tia[GRP1] != value or is_late:
            set_player(m, t, register, value)
    elif register >= NUSIZ0 and register <= RESMP1 and (register < AUDC0 or register > AUDV1):
        if m.tia[register] != value & MEANING[register]:
            if register >= PF0 and register <= PF2:
                set_register(m, 3 * t + PLAYFIELD_DELAY[t & 3], register, value)
            elif register >= RESMP0:
                set_lock(m, t, register, value)
            else:
                set_register(m, 3 * t + DELAY[register], register, value)
    elif register == VSYNC:
        if (m.tia[VSYNC] | value) & 2:  # frames end only at instructions with VSYNC's own address
            m.stop = NOT_IMPLEMENTED
    elif register == VBLANK:
        set_blank(m, t, value)
    elif register == HMOVE:
        move_objects(m, t)
    elif register == HMCLR:
        for k in range(5):
            m.tia[HMP0 + k] = 0
    elif register == CXCLR:
        draw_to(m, 3 * t)
        m.collisions = 0
    return t


def write_vsync(m: Machine, t: Int, value: Int) -> None:
    """Write to VSYNC: bit 1 announces the end of the frame, which comes once it is cleared."""
    if value & 2:
        m.vsync_end = t + 76
    elif m.tia[VSYNC] & 2 and t >= m.vsync_end and m.stop == 0:
        m.stop = FRAME_DONE
    m.tia[VSYNC] = value


# Reads.


def read_tia(m: Machine, t: Int, address: Int, bus: Int) -> Int:
    """Read collisions or a paddle's capacitor; bits that the TIA does not drive are `bus`."""
    register = address & 15
    bus &= 0x3F
    if register >= 8 and register < 12:
        return bus | is_charged(m, t, register & 3) << 7
    if register >= 12:  # INPT4 and INPT5, joystick buttons, are not pressed; the rest is unused
        return bus | (register < 14) << 7
    draw_to(m, 3 * t)
    two = m.collisions >> 2 * register
    return (two & 1) << 7 | (two & 2) << 5 | bus


@inline
def is_charged(m: Machine, t: Int, paddle: Int) -> Int:
    """Whether the capacitor of INPT0 … INPT3 has charged by now."""
    return m.emptied == 0 and t - m.emptied_until > m.charged[paddle]
