"""The console around the TIA: the bus, memory and timer, the paddles, the begin of a frame.

The processor sees 8 kB of addresses (13 lines of the bus), of which little is told apart:

    bit 12 set          the cartridge
    bits 12 and 7 not   the TIA
    bit 7, bit 9 not    128 bytes of memory, which are the stack as well
    bits 7 and 9        timer and ports

A paddle is a knob on a resistor. The program empties a capacitor, lets it charge through the
resistor, and counts lines until it reads as charged: the farther the knob is turned, the later.

Written in typed Python (`pixelpong.atari.typed`). Covered: what Pong reads and writes. Not covered:
the timer once it has run out, keypads, light pens; a machine that meets them stops and says so.
Sources: the data sheet of the 6532; paddles as in ALE, which tests hold it to.
"""

from __future__ import annotations

from pixelpong.atari.machine import MAX_CYCLES, TIMER_RAN_OUT, TOP
from pixelpong.atari.registers import ALL_OBJECTS, CLOCKS
from pixelpong.atari.tia import read_tia, write_tia
from pixelpong.atari.typed import Int, Machine, inline

_TIMER_SHIFTS = (0, 3, 6, 10)
"""By register, TIM1T, TIM8T, TIM64T, T1024T: the timer counts once in 1 << shift cycles."""

_CYCLES_PER_OHM = (1904, 100_000)
"""Until a capacitor has charged: 1.6 · 10 nF · 1.19 MHz, as a fraction. Source: ALE."""


def read(m: Machine, t: Int, address: Int, bus: Int) -> Int:
    """Read a byte from outside the cartridge.

    Args:
        m: may be drawn up to the beam.
        t: the cycle, counted from the begin of the line in which the frame began.
        address: whatever the processor puts on the bus.
        bus: what was last on the data bus.
    """
    if address & 0x80 == 0:
        return read_tia(m, t, address, bus)
    if address & 0x200 == 0:
        return m.ram[address & 127]
    return read_port(m, t, address)


def read_port(m: Machine, t: Int, address: Int) -> Int:
    """Read buttons (SWCHA), switches (SWCHB) the timer (INTIM), or whether it has run out."""
    register = address & 7
    if register == 0:
        return m.swcha
    if register == 2:
        return m.swchb
    if register & 4 == 0:
        return 0  # directions of the ports: all are inputs
    left = m.timer - (t - 1 - m.timer_set >> m.timer_shift) - 1
    if left < 0 and m.stop == 0:
        m.stop = TIMER_RAN_OUT
    return left & 0xFF if register & 1 == 0 else 0


def write(m: Machine, t: Int, address: Int, value: Int) -> Int:
    """Write a byte; the cycle after it, see `pixelpong.atari.tia.write_tia`."""
    if address & 0x1000:
        return t
    if address & 0x80 == 0:
        return write_tia(m, t, address & 0x3F, value)
    if address & 0x200 == 0:
        m.ram[address & 127] = value
    else:
        write_port(m, t, address, value)
    return t


def write_port(m: Machine, t: Int, address: Int, value: Int) -> None:
    """Set the timer; the ports' directions are left alone."""
    if address & 0x14 == 0x14:
        m.timer = value
        m.timer_shift = _TIMER_SHIFTS[address & 3]
        m.timer_set = t


@inline
def wait_for_timer(m: Machine, t: Int, cycles: Int) -> Int:
    """Skip the rounds of ``wait: LDA INTIM, BNE wait`` in which the timer is not 0 yet.

    Each round reads the timer, and does nothing else. So it is enough to know in which one the
    timer reads 0, and to go on there: the processor's state is the same in all of them.

    Args:
        m: not changed.
        t: the cycle in which the round begins.
        cycles: of a round.

    Returns:
        The cycle in which that round begins; `t` if it can't be told.
    """
    zero = m.timer_set + 1 + (m.timer - 1 << m.timer_shift)  # from then on it reads 0
    if t + 4 < zero and 1 << m.timer_shift >= cycles:
        t += (zero - t - 5 + cycles) // cycles * cycles
    return t


@inline
def begin_frame(m: Machine) -> None:
    """Count cycles anew, from the begin of the line that the last frame ended in."""
    m.stop = 0
    m.vsync_end = 2 * MAX_CYCLES
    m.drawn = CLOCKS * TOP
    m.dirty = ALL_OBJECTS
    m.objects = 0
    for k in range(4):
        m.charged[k] = m.resistance[k] * _CYCLES_PER_OHM[0] // _CYCLES_PER_OHM[1]


@inline
def end_frame(m: Machine, t: Int) -> None:
    """Leave the record as the next frame, or another emulator, wants it."""
    lines = t // 76 * 76
    m.cycle = t - lines
    m.timer_set -= lines
    m.emptied_until -= lines
