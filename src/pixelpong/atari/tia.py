"""The TIA, the chip that draws the picture, and what it does when the program writes to it.

The Atari 2600 has no memory for a picture. The TIA sends the television one line after the other,
and knows of six objects what they look like *in this line*: the playfield (20 fat pixels, repeated
or mirrored for the right half), two players (8 pixels each), two missiles and a ball (a bar each).
Whatever is to differ from line to line, the program changes in time, by writing to a register.

Time is counted in colour clocks. A line takes 228 of them: 68 in which the beam flies back, then
160 pixels. The processor's clock is a third of that, so a line takes 76 cycles. A write to WSYNC
halts the processor until the next line begins; so programs keep in step with the beam. A frame
ends when the program lets VSYNC go, after 262 lines here. 210 of them are shown (`TOP`, `ROWS`).

Drawing is lazy. A write that changes nothing costs one comparison. Before one that changes something,
`draw_to` draws all that came before it, up to the beam: a *band* of lines whose objects all stay the
same. Each object's pixels in a line are one number of 160 bits, so that two objects collide where
the bits of both are set, and a band of equal lines is drawn once and copied. Where nobody looks at
the picture, a band is only searched for collisions, which the program can read.

Written in typed Python (`pixelpong.atari.typed`): it runs as it stands, and compiled.

Covered: all that shows, collisions, paddles. Not covered: sound, light pens, the first clocks of
objects that are moved in the middle of a line. Sources: the TIA's hardware manual ("Stella
Programmer's Guide", Steve Wright 1979); the delays were measured on ALE (`docs/emulator.md`).
"""

from __future__ import annotations

from pixelpong.atari.machine import FIELD_SIZE, FIELD_TOP, ROWS, TOP, WIDTH
from pixelpong.atari.machine import (
    DRAW_FIELD,
    DRAW_NOTHING,
    DRAW_PICTURE,
    FRAME_DONE,
    NOT_IMPLEMENTED,
)
from pixelpong.atari.typed import (
    Int,
    Machine,
    Wide,
    copy,
    fill,
    inline,
    lowest_bit,
    make_table,
    wide,
)

# Registers, by address. (Not listed: RSYNC and the sound's.)
VSYNC, VBLANK, WSYNC, NUSIZ0, NUSIZ1 = 0x00, 0x01, 0x02, 0x04, 0x05
COLUP0, COLUP1, COLUPF, COLUBK, CTRLPF, REFP0 = 0x06, 0x07, 0x08, 0x09, 0x0A, 0x0B
PF0, PF1, PF2, RESP0, RESP1, RESBL = 0x0D, 0x0E, 0x0F, 0x10, 0x11, 0x14
AUDC0, AUDV1, GRP0, GRP1, ENAM0, ENAM1, ENABL = 0x15, 0x1A, 0x1B, 0x1C, 0x1D, 0x1E, 0x1F
HMP0, HMBL, VDELP0, VDELP1, VDELBL, RESMP0, RESMP1 = 0x20, 0x24, 0x25, 0x26, 0x27, 0x28, 0x29
HMOVE, HMCLR, CXCLR = 0x2A, 0x2B, 0x2C

NUM_REGISTERS = 45

# The objects, as bits of `objects` and `dirty`.
PLAYFIELD, PLAYER0, PLAYER1, MISSILE0, MISSILE1, BALL = 0, 1, 2, 3, 4, 5
ALL_OBJECTS = 0b111111

CLOCKS = 228
"""Colour clocks of a line."""

_BLANK_CLOCKS = 68
"""Of these, before the first pixel."""

_MOVES_UNTIL = 3
"""The last cycle of a line in which HMOVE moves objects as far as it should."""

_LINE = (1 << WIDTH) - 1


MEANING = make_table(
    64, 0xFF,
    {
        COLUP0: 0xFE, COLUP1: 0xFE, COLUPF: 0xFE, COLUBK: 0xFE, REFP0: 0x08, REFP0 + 1: 0x08,
        PF0: 0xF0, ENAM0: 2, ENAM1: 2, ENABL: 2, VDELP0: 1, VDELP1: 1, VDELBL: 1,
        RESMP0: 2, RESMP1: 2, **dict.fromkeys(range(HMP0, HMBL + 1), 0xF0),
    },
)  # fmt: skip
"""The bits of a register that have a meaning."""

CHANGES_OBJECTS = make_table(
    64, 0,
    {
        NUSIZ0: 1 << PLAYER0 | 1 << MISSILE0, NUSIZ1: 1 << PLAYER1 | 1 << MISSILE1,
        CTRLPF: 1 << PLAYFIELD | 1 << BALL, REFP0: 1 << PLAYER0, REFP0 + 1: 1 << PLAYER1,
        ENAM0: 1 << MISSILE0, ENAM1: 1 << MISSILE1,
        VDELP0: 1 << PLAYER0, VDELP1: 1 << PLAYER1, VDELBL: 1 << BALL,
        RESMP0: 1 << MISSILE0, RESMP1: 1 << MISSILE1,
        **{RESP0 + each: 1 << PLAYER0 + each for each in range(5)},
    },
)  # fmt: skip
"""The objects whose pixels a write to a register may change."""

DELAY = make_table(64, 0, {NUSIZ0: 8, NUSIZ1: 8, REFP0: 1, REFP0 + 1: 1})
"""Clocks until a write to a register shows."""

PLAYFIELD_DELAY = (4, 5, 2, 3)
"""The same for PF0, PF1 and PF2, by cycle: the TIA takes four pixels of the playfield at a time."""

_COPIES = (
    (0, 255, 255), (0, 16, 255), (0, 32, 255), (0, 16, 32),
    (0, 64, 255), (0, 255, 255), (0, 32, 64), (0, 255, 255),
)  # fmt: skip
"""By the low bits of NUSIZx: the columns at which a player or missile is drawn again; 255: not."""

_MIDDLE = make_table(8, 4, {5: 8, 7: 16})
"""By the low bits of NUSIZx: the middle of a player, in columns from its left."""

MIRRORED = tuple(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
"""A byte read from the other end."""

_DOUBLED = tuple(sum(3 << 2 * b for b in range(8) if byte >> b & 1) for byte in range(256))
_QUADRUPLED = tuple(sum(15 << 4 * b for b in range(8) if byte >> b & 1) for byte in range(256))
"""A byte whose bits are two, or four, pixels wide."""

_FRONT_TO_BACK = (
    (PLAYER0, MISSILE0, PLAYER1, MISSILE1, BALL, PLAYFIELD),
    (BALL, PLAYFIELD, PLAYER0, MISSILE0, PLAYER1, MISSILE1),
)
"""Which object hides which, by bit 2 of CTRLPF."""

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

FIELD_BACKGROUND = (0, 34, 228)
"""Colours that are background in the field: black, that of play, that of the first frame.

Source: Karpathy, "Pong from Pixels" (2016); `pixelpong.env.preprocess.BACKGROUND_INDICES`.
"""

IS_ACTIVE = tuple(int(colour not in FIELD_BACKGROUND) for colour in range(256))

_EVEN_1, _EVEN_2, _EVEN_4, _EVEN_8, _EVEN_16, _EVEN_32, _EVEN_64 = (
    sum(((1 << n) - 1) << k for k in range(0, 192, 2 * n)) for n in (1, 2, 4, 8, 16, 32, 64)
)
_LOW_96 = (1 << 96) - 1


# Writes.


@inline
def strobed_position(t: Int, is_player: Int) -> Int:
    """The column of an object that is set (RESPx, RESMx, RESBL) at time `t`."""
    clock = t % 76 * 3
    if clock < _BLANK_CLOCKS:
        return 2 + is_player
    return (clock - _BLANK_CLOCKS + 4 + is_player) % WIDTH


def set_register(m: Machine, t: Int, register: Int, value: Int) -> None:
    """Write a new value to a register of colours, shapes or switches: the band ends here."""
    draw_to(m, 3 * t + DELAY[register])
    m.dirty |= CHANGES_OBJECTS[register]
    m.tia[register] = value & MEANING[register]


def set_playfield(m: Machine, t: Int, register: Int, value: Int) -> None:
    """Write to PF0, PF1 or PF2."""
    draw_to(m, 3 * t + PLAYFIELD_DELAY[t & 3])
    m.dirty |= 1 << PLAYFIELD
    m.tia[register] = value & MEANING[register]


def set_player(m: Machine, t: Int, register: Int, value: Int) -> None:
    """Write to GRP0 or GRP1: one player's pixels; the other's, and with GRP1 the ball's, become
    what is drawn if VDEL delays them."""
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


def set_ball(m: Machine, t: Int, value: Int) -> None:
    """Write to ENABL; if VDELBL delays the ball, it shows with the next write to GRP1."""
    if m.tia[VDELBL] == 0:
        draw_to(m, 3 * t)
        m.dirty |= 1 << BALL
    m.tia[ENABL] = value & 2


def set_lock(m: Machine, t: Int, register: Int, value: Int) -> None:
    """Write a new value to RESMPx: it hides a missile, and lets it go at its player's middle."""
    draw_to(m, 3 * t)
    p = register - RESMP0
    if value & 2 == 0:
        m.position[2 + p] = (m.position[p] + _MIDDLE[m.tia[NUSIZ0 + p] & 7]) % WIDTH
    m.dirty |= CHANGES_OBJECTS[register]
    m.tia[register] = value & 2


def set_position(m: Machine, t: Int, register: Int) -> None:
    """RESPx, RESMx, RESBL: an object goes to where the beam is."""
    draw_to(m, 3 * t)
    m.dirty |= CHANGES_OBJECTS[register]
    m.position[register - RESP0] = strobed_position(t, register <= RESP1)


def move_objects(m: Machine, t: Int) -> None:
    """HMOVE: each object by its HM register, −8 … 7 columns to the left.

    So it is at the beginning of a line; later, objects move by less.
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
    """VBLANK: bit 1 darkens the picture; bit 7 empties the paddles' capacitors while it is set."""
    draw_to(m, 3 * t)
    if value & 0x80:
        m.emptied = 1
    elif m.tia[VBLANK] & 0x80:
        m.emptied = 0
        m.emptied_until = t
    m.tia[VBLANK] = value


def clear_collisions(m: Machine, t: Int) -> None:
    """CXCLR."""
    draw_to(m, 3 * t)
    m.collisions = 0


@inline
def hide_or_show_missile(m: Machine, t: Int, register: Int, value: Int) -> None:
    """ENAMx; while RESMPx hides the missile it shows nothing, and need not end the band."""
    if m.tia[register - ENAM0 + RESMP0]:
        m.tia[register] = value & 2
    elif m.tia[register] != value & 2:
        set_register(m, t, register, value)


def write_tia(m: Machine, t: Int, register: Int, value: Int) -> Int:
    """Write to a register.

    Args:
        m: changed.
        t: the cycle, counted from the begin of the line in which the frame began.
        register: 0 to 0x3F.
        value: a byte.

    Returns:
        The cycle after it: later where the write halts the processor.
    """
    if register == WSYNC:
        return (t + 75) // 76 * 76
    if register >= HMP0 and register <= HMBL:
        m.tia[register] = value & 0xF0
    elif register >= RESP0 and register <= RESBL:
        set_position(m, t, register)
    elif register == ENAM0 or register == ENAM1:
        hide_or_show_missile(m, t, register, value)
    elif register == ENABL:
        if m.tia[ENABL] != value & 2:
            set_ball(m, t, value)
    elif register == GRP0 or register == GRP1:
        set_player(m, t, register, value)
    elif register >= NUSIZ0 and register <= RESMP1 and (register < AUDC0 or register > AUDV1):
        if m.tia[register] != value & MEANING[register]:
            if register >= PF0 and register <= PF2:
                set_playfield(m, t, register, value)
            elif register >= RESMP0:
                set_lock(m, t, register, value)
            else:
                set_register(m, t, register, value)
    elif register == VSYNC:
        if (m.tia[VSYNC] | value) & 2:  # a frame may end at instructions that name VSYNC only
            m.stop = NOT_IMPLEMENTED
    elif register == VBLANK:
        set_blank(m, t, value)
    elif register == HMOVE:
        move_objects(m, t)
    elif register == HMCLR:
        for k in range(5):
            m.tia[HMP0 + k] = 0
    elif register == CXCLR:
        clear_collisions(m, t)
    return t


def write_vsync(m: Machine, t: Int, value: Int) -> None:
    """Bit 1 tells the television that a frame ends; the frame ends when it goes, a line later."""
    if value & 2:
        m.vsync_end = t + 76
    elif m.tia[VSYNC] & 2 and t >= m.vsync_end and m.stop == 0:
        m.stop = FRAME_DONE
    m.tia[VSYNC] = value


# Reads.


def read_tia(m: Machine, t: Int, address: Int, bus: Int) -> Int:
    """Read a register: collisions, and whether a paddle's capacitor is charged.

    Args:
        m: drawn up to the beam, if collisions are asked for.
        t: the cycle.
        address: of which the low four bits count.
        bus: what was last on the data bus; it stays on the lines that the TIA does not drive.
    """
    register = address & 15
    bus &= 0x3F
    if register >= 8 and register < 12:
        return bus | is_charged(m, t, register & 3) << 7
    if register >= 12:  # INPT4 and INPT5: triggers of joysticks, not pressed; then nothing
        return bus | (register < 14) << 7
    draw_to(m, 3 * t)
    two = m.collisions >> 2 * register
    return (two & 1) << 7 | (two & 2) << 5 | bus


@inline
def is_charged(m: Machine, t: Int, paddle: Int) -> Int:
    """Whether the capacitor of INPT0 … INPT3 has charged by now."""
    return m.emptied == 0 and t - m.emptied_until > m.charged[paddle]


# The pixels of each object.


@inline
def around(bits: Wide) -> Wide:
    """What sticks out at the right comes in again at the left."""
    return (bits | bits >> WIDTH) & _LINE


def playfield_mask(m: Machine) -> Wide:
    """The playfield: 20 bits of four pixels each, then the same again, or mirrored."""
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
    """A player: eight pixels, mirrored or wide; a missile: a bar. Both in up to three copies."""
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
    return around(bar << m.position[4])


def refresh(m: Machine) -> None:
    """Make the masks of the objects that are dirty."""
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
    """Whether no other object can have a pixel; then nothing can collide either."""
    missile0 = 0 if m.tia[RESMP0] else m.tia[ENAM0]
    missile1 = 0 if m.tia[RESMP1] else m.tia[ENAM1]
    players = m.tia[GRP0] | m.tia[GRP1] | m.old_grp[0] | m.old_grp[1]
    return (players | m.tia[ENABL] | m.old_enabl | missile0 | missile1) == 0


# Drawing.


@inline
def columns(x0: Int, x1: Int) -> Wide:
    """The bits of the columns from x0 to before x1."""
    return (wide(1) << x1) - (wide(1) << x0)


def draw_to(m: Machine, clock: Int) -> None:
    """Draw what has not been drawn yet, up to a colour clock, with the registers as they are."""
    end = min(clock, CLOCKS * (TOP + ROWS))
    if end > m.drawn:
        draw_band(m, end)


def draw_band(m: Machine, end: Int) -> None:
    """Draw from `drawn` to `end`: the rest of a line, whole lines, the begin of a line."""
    begin = m.drawn
    m.drawn = end
    is_above_field = m.draws == DRAW_FIELD and end < CLOCKS * (TOP + FIELD_TOP)
    if (m.draws == DRAW_NOTHING or is_above_field) and shows_playfield_alone(m):
        m.blanks = 0
        return
    if m.dirty:
        refresh(m)
    line = begin // CLOCKS
    x0 = max(begin % CLOCKS - _BLANK_CLOCKS, 0)
    last = end // CLOCKS
    x1 = max(end % CLOCKS - _BLANK_CLOCKS, 0)
    if line < last:
        if x0:
            draw_lines(m, line, x0, WIDTH, 1)
            line += 1
        if line < last:
            draw_lines(m, line, 0, WIDTH, last - line)
        x0 = 0
    draw_lines(m, last, x0, x1, 1)


def draw_lines(m: Machine, line: Int, x0: Int, x1: Int, count: Int) -> None:
    """Draw a part of a line, or several whole lines that are equal."""
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
    """Set the latches of the objects that meet in these columns."""
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
    # "Score": each half in a player's colour; not with the playfield in front.
    if o == PLAYFIELD and m.tia[CTRLPF] & 6 == 2:
        return m.tia[COLUP0 + is_right]
    if o == PLAYFIELD or o == BALL:
        return m.tia[COLUPF]
    return m.tia[COLUP0 + ((o - PLAYER0) & 1)]


def paint(m: Machine, row: Int, x0: Int, x1: Int, count: Int) -> None:
    """Paint into the picture, the objects from back to front; equal rows are copied."""
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
    if m.blanks != 0 and x0 < 8:  # the first of them only
        fill(m.picture, at + x0, 0, min(x1, 8) - x0)


def paint_runs(m: Machine, at: Int, pixels: Wide, colour: Int) -> None:
    """Paint pixels of a row, run by run."""
    while pixels != 0:
        x = lowest_bit(pixels)
        length = lowest_bit(~(pixels >> x))
        fill(m.picture, at + x, colour, length)
        pixels &= ~columns(x, x + length)


def draw_field(m: Machine, row: Int, x0: Int, x1: Int, count: Int) -> None:
    """Note which pixels of the field are drawn in a colour that is not background."""
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
    """The pixels of the line whose colour is not background, from back to front as in `paint`."""
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
    """Every second pixel, closed up: bit 2k becomes bit k."""
    pixels &= _EVEN_1
    pixels = (pixels | pixels >> 1) & _EVEN_2
    pixels = (pixels | pixels >> 2) & _EVEN_4
    pixels = (pixels | pixels >> 4) & _EVEN_8
    pixels = (pixels | pixels >> 8) & _EVEN_16
    pixels = (pixels | pixels >> 16) & _EVEN_32
    pixels = (pixels | pixels >> 32) & _EVEN_64
    return (pixels | pixels >> 64) & _LOW_96
