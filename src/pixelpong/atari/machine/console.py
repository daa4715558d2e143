"""The console around the TIA: the bus, the memory and timer, the paddles, the start of a frame.

The processor sees 8 kB of addresses (13 lines of the bus). Three bits choose the chip:

    bit 12 set                  the cartridge
    bits 12 and 7 clear         the TIA
    bit 7 set, bit 9 clear      128 bytes of memory, including the stack
    bits 7 and 9 set            timer and ports

A paddle is a knob on a resistor. The program empties a capacitor, lets it charge through the
resistor, and counts lines until it is charged. The farther the knob is turned, the longer this
takes.

`t` is the cycle since the start of the line in which the frame started; `bus` is the last byte on
the data bus. Keypads and light pens are not covered.

Written in typed Python. Sources: the data sheet of the 6532; for paddles, ALE, compared by tests.
"""

from __future__ import annotations

from pixelpong.atari.machine.banks import read_cartridge, write_cartridge
from pixelpong.atari.machine.collisions import begin_pairs
from pixelpong.atari.machine.drawing import draw_to, end_blanks
from pixelpong.atari.machine.record import (
    ASIDE,
    FAR,
    FRAME_DONE,
    HAS_PAST,
    INSTRUCTIONS,
    MAX_LINES,
    ROWS,
    STATE_SIZE,
    TOO_MANY,
    TOP,
)
from pixelpong.atari.machine.registers import ALL_OBJECTS, BLANK_CLOCKS, CLOCKS, CTRLPF
from pixelpong.atari.machine.tia import charge_paddles, read_tia, write_tia
from pixelpong.atari.machine.typed import Int, Machine, copy, inline

# The shifts for TIM1T, TIM8T, TIM64T and T1024T: the timer counts down every 1 << shift cycles.
_TIMER_SHIFTS = (0, 3, 6, 10)
AMERICAN_LINES = 290  # number of lines in the longest frame
_LONG_AGO = 100  # the time since HMOVE does not matter after this many cycles


def read(m: Machine, t: Int, address: Int, bus: Int) -> Int:
    """Read a byte."""
    if address & 0x1000:
        return read_cartridge(m, address)
    if address & 0x80 == 0:
        return read_tia(m, t, address, bus)
    if address & 0x200 == 0:
        return m.ram[address & 127]
    return read_port(m, t, address)


def read_port(m: Machine, t: Int, address: Int) -> Int:
    """Read the buttons (SWCHA), the switches (SWCHB), the timer (INTIM) or its flag (TIMINT)."""
    register = address & 7
    if register == 0:
        return m.swcha
    if register == 1:
        return m.directions
    if register == 2:
        return m.swchb
    if register == 3:
        return 0
    past = t - 1 - m.timer_set
    shift = m.timer_shift & 15
    left = m.timer - (past >> shift) - 1
    if register & 1:
        return 0 if left >= 0 or m.timer_read else 0x80
    if left >= 0:
        return left & 0xFF
    # The timer has run out. Now it counts cycles, until a read makes it count as before.
    end = m.timer_set + (m.timer << shift)
    if end - past - 1 - m.timer_set <= -2 and m.timer_read == 0:
        m.timer_read = 1
        m.timer_reset = t
    if m.timer_read:
        return m.timer - (past >> shift) - (m.timer_reset - end) & 0xFF
    return end - past - 1 - m.timer_set & 0xFF


def write(m: Machine, t: Int, address: Int, value: Int) -> Int:
    """Write a byte and return the cycle after the write, like `atari.machine.tia.write_tia`."""
    if address & 0x1000:
        write_cartridge(m, address, value)
        return t
    if address & 0x80 == 0:
        return write_tia(m, t, address & 0x3F, value)
    if address & 0x200 == 0:
        m.ram[address & 127] = value
    else:
        write_port(m, t, address, value)
    return t


def write_port(m: Machine, t: Int, address: Int, value: Int) -> None:
    """Set the timer or the directions of the port's pins."""
    if address & 0x14 == 0x14:
        m.timer = value
        m.timer_shift = _TIMER_SHIFTS[address & 3]
        m.timer_set = t
        m.timer_read = 0
        m.timer_reset = 0
    elif address & 7 == 1:
        m.directions = value


# Decimal arithmetic. Bit 8 of a result is the carry, bit 9 the overflow.


def add_decimals(a: Int, r: Int, c: Int) -> Int:
    """Add two numbers of two decimal digits and a carry."""
    w = (a >> 4) * 10 + (a & 15) + (r >> 4) * 10 + (r & 15) + c
    carry = w > 99
    w = w & 255
    w = w % 100 // 10 << 4 | w % 10
    return w | carry << 8 | ((a ^ w) & (w ^ r)) >> 7 << 9


def subtract_decimals(a: Int, r: Int, c: Int) -> Int:
    """Subtract two numbers of two decimal digits; a carry means that nothing is borrowed."""
    w = (a >> 4) * 10 + (a & 15) - (r >> 4) * 10 - (r & 15) - 1 + c
    if w < 0:
        w += 100
    if w < 0:  # possible with digits above 9; the byte is read as such digits
        w = (w >> 4 & 15) * 10 + (w & 15)
    else:
        w = w % 100 // 10 << 4 | w % 10
    carry = a >= r + 1 - c
    return w | carry << 8 | ((a ^ w) & (w ^ r)) >> 7 << 9


def rotate_decimals(a: Int, c: Int) -> Int:
    """Rotate two digits to the right through a carry, like ARR, which corrects digits above 4."""
    w = a >> 1 | c << 7
    carry = (a >> 4) + (a >> 4 & 1) > 5
    low = w + 6 * ((a & 15) + (a & 1) > 5) & 15
    return w + 0x60 * carry & 0xF0 | low | carry << 8 | ((a ^ w) >> 6 & 1) << 9


# The stack, which is part of the first 256 bytes: memory, or the TIA below 0x80.


@inline
def push(m: Machine, t: Int, s: Int, value: Int) -> Int:
    """Push a byte; return the cycle after the push."""
    if s & 0x80:
        m.ram[s & 127] = value
        return t
    return write_tia(m, t, s & 63, value)


@inline
def pull_first(m: Machine, t: Int, s: Int, opcode: Int) -> Int:
    """Pull an instruction's first byte at `s`; the byte below it is read first."""
    if s & 0x80:
        return m.ram[s & 127]
    return read_tia(m, t, s, opcode if s else m.ram[127])


@inline
def pull(m: Machine, t: Int, s: Int, bus: Int) -> Int:
    """Pull the byte at `s`."""
    if s & 0x80:
        return m.ram[s & 127]
    return read_tia(m, t, s, bus)


@inline
def wait_for_timer(m: Machine, t: Int, cycles: Int) -> Int:
    """Skip the iterations of ``wait: LDA INTIM, BNE wait`` before the timer is 0.

    Each iteration only reads the timer, so the processor's state is the same in all of them. Return
    the cycle in which the iteration that reads 0 starts, or `t` if it is unknown.
    """
    shift = m.timer_shift & 15
    zero = m.timer_set + 1 + (m.timer - 1 << shift)  # the first cycle that reads 0
    if m.timer != 0 and t + 4 < zero and 1 << shift >= cycles:
        t += (zero - t - 5 + cycles) // cycles * cycles
    return t


@inline
def wait_for_end_of_timer(m: Machine, t: Int, cycles: Int) -> Int:
    """Skip the iterations of ``wait: LDA INTIM, BPL wait`` before the timer has run out.

    Until then, a read changes nothing, and bit 7 of a timer that started with 128 or less is 0, as
    is that of its flag. The last iteration reads again. Return the cycle in which it starts.
    """
    end = m.timer_set + 1 + (m.timer << (m.timer_shift & 15))  # the first cycle after its end
    if m.timer <= 128 and m.timer_read == 0 and t + 4 < end:
        t += (end - t - 5 + cycles) // cycles * cycles
    return t


def begin_frame(m: Machine) -> None:
    """Restart the cycle count at the start of the line in which the last frame ended."""
    m.stop = 0
    m.now = min(max(m.begun, 0), FAR) if m.begun else m.cycle
    m.drawn = CLOCKS * (TOP + ROWS) if m.begun else CLOCKS * TOP
    m.unseen_until = FAR if m.begun else CLOCKS * TOP + BLANK_CLOCKS
    m.blanks_from = m.drawn
    m.dirty = ALL_OBJECTS
    m.objects = 0
    m.meets = 0
    m.mirrors = m.tia[CTRLPF] & 1 ^ m.late_mirror
    begin_pairs(m)
    m.hmove_at = m.now - m.hmove_age if m.hmove_age else -FAR
    if m.vsync_end == 0:
        m.vsync_end = FAR
    charge_paddles(m)


def finish_picture(m: Machine) -> None:
    """Draw the rest of the picture; only some pictures continue below a short frame's end."""
    bottom = CLOCKS * (TOP + ROWS)
    if HAS_PAST:
        bottom = min(m.draws_until, bottom)
    draw_to(m, min(3 * m.now, bottom))
    if m.draws == 0 and m.blanks:
        end_blanks(m, m.blanks_from, min(m.drawn, bottom))
    if HAS_PAST == 0 and m.drawn < bottom:
        mirrors = m.mirrors
        copy(m, ASIDE, 0, STATE_SIZE)
        draw_to(m, bottom)
        copy(m, 0, ASIDE, STATE_SIZE)
        m.mirrors = mirrors


def end_frame(m: Machine, t: Int) -> None:
    """Convert the record to the form that the next frame, or another emulator, expects."""
    m.late_mirror = m.tia[CTRLPF] & 1 ^ m.mirrors
    age = t - m.hmove_at
    m.hmove_age = age if age >= 0 and age < _LONG_AGO else 0
    lines = 0
    m.begun = t
    if m.stop != TOO_MANY:
        lines = t // 76 * 76
        m.begun = 0
        if MAX_LINES > AMERICAN_LINES:
            m.is_grey = t // 76 & 1
    m.cycle = t - lines if m.begun == 0 else 0
    m.timer_set -= lines
    m.emptied_until -= lines
    if m.timer_read:
        m.timer_reset -= lines
    if m.vsync_end == FAR:
        m.vsync_end = 0
    else:
        m.vsync_end -= lines
        m.vsync_end -= m.vsync_end == 0  # because 0 means that VSYNC has not started


def run_frame(m: Machine, counts: Int) -> None:
    """Play a frame; ``m.stop`` says why it ended.

    Translated code runs, with the interpreter in between. ALE leaves a frame after a number of
    instructions, which only the interpreter counts. So if the frame is long, it stops with
    `LONG_FRAME` and must be played again from the previous state, with `counts`.
    """
    begin_frame(m)
    m.left = INSTRUCTIONS if counts else FAR
    while m.stop == 0:
        if counts == 0:
            run_translated(m)  # type: ignore[name-defined]
        if m.stop == 0:
            interpret(m)  # type: ignore[name-defined]
    finish_picture(m)
    end_frame(m, m.now)
    if m.stop == TOO_MANY:
        m.stop = FRAME_DONE
