"""The console around the TIA: the bus, memory and timer, the paddles, the start of a frame.

The processor sees 8 kB of addresses (13 lines of the bus). Three bits choose the chip:

    bit 12 set                  the cartridge
    bits 12 and 7 clear         the TIA
    bit 7 set, bit 9 clear      128 bytes of memory, including the stack
    bits 7 and 9 set            timer and ports

A paddle is a knob on a resistor. The program empties a capacitor, lets it charge through the
resistor, and counts lines until it is charged. The farther the knob is turned, the longer it takes.

`t` is the cycle since the start of the line in which the frame began, `bus` the last byte on the
data bus. Not covered: the timer once it has run out; a machine that reads it stops and says why.

Written in typed Python. Sources: the data sheet of the 6532; for paddles ALE, compared by tests.
"""

from __future__ import annotations

from pixelpong.atari.machine import MAX_CYCLES, TIMER_RAN_OUT, TOP
from pixelpong.atari.registers import ALL_OBJECTS, CLOCKS
from pixelpong.atari.tia import read_tia, write_tia
from pixelpong.atari.typed import Int, Machine, inline

# For TIM1T, TIM8T, TIM64T, T1024T: the timer counts down once every 1 << shift cycles.
_TIMER_SHIFTS = (0, 3, 6, 10)
# Cycles to charge a capacitor: 1.6 · 10 nF · 1.19 MHz, as a fraction. Source: ALE.
_CYCLES_PER_OHM = (1904, 100_000)


@inline
def read(m: Machine, t: Int, address: Int, bus: Int) -> Int:
    """Read a byte from outside the cartridge."""
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
    if register == 2:
        return m.swchb
    if register & 4 == 0:
        return 0  # directions of the ports: all are inputs
    left = m.timer - (t - 1 - m.timer_set >> (m.timer_shift & 15)) - 1
    if left < 0 and m.stop == 0:
        m.stop = TIMER_RAN_OUT
    return left & 0xFF if register & 1 == 0 else 0


@inline
def write_inline(m: Machine, t: Int, address: Int, value: Int) -> Int:
    """Write a byte and return the cycle after it, as `pixelpong.atari.tia.write_tia` does.

    If the address is known at compile time, little remains of this.
    """
    if address & 0x1000:
        return t
    if address & 0x80 == 0:
        return write_tia(m, t, address & 0x3F, value)
    if address & 0x200 == 0:
        m.ram[address & 127] = value
    else:
        write_port(m, t, address, value)
    return t


def write(m: Machine, t: Int, address: Int, value: Int) -> Int:
    """Do the same as `write_inline`, but as a call."""
    return write_inline(m, t, address, value)


def write_port(m: Machine, t: Int, address: Int, value: Int) -> None:
    """Set the timer; ignore the directions of the ports."""
    if address & 0x14 == 0x14:
        m.timer = value
        m.timer_shift = _TIMER_SHIFTS[address & 3]
        m.timer_set = t


@inline
def wait_for_timer(m: Machine, t: Int, cycles: Int) -> Int:
    """Skip the rounds of ``wait: LDA INTIM, BNE wait`` in which the timer is not yet 0.

    Each round only reads the timer, so the processor's state is the same in all of them. Returns
    the cycle in which the round that reads 0 begins, or `t` if it is unknown.
    """
    shift = m.timer_shift & 15
    zero = m.timer_set + 1 + (m.timer - 1 << shift)  # the first cycle that reads 0
    if t + 4 < zero and 1 << shift >= cycles:
        t += (zero - t - 5 + cycles) // cycles * cycles
    return t


@inline
def begin_frame(m: Machine) -> None:
    """Restart the cycle count at the start of the line in which the last frame ended."""
    m.stop = 0
    m.vsync_end = 2 * MAX_CYCLES
    m.drawn = CLOCKS * TOP
    m.dirty = ALL_OBJECTS
    m.objects = 0
    for k in range(4):
        m.charged[k] = m.resistance[k] * _CYCLES_PER_OHM[0] // _CYCLES_PER_OHM[1]


@inline
def end_frame(m: Machine, t: Int) -> None:
    """Convert the record to the form that the next frame, or another emulator, expects."""
    lines = t // 76 * 76
    m.cycle = t - lines
    m.timer_set -= lines
    m.emptied_until -= lines
