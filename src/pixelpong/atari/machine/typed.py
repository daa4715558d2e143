"""Typed Python, the small language of the machine, which can run in two ways.

The functions in `atari.machine.tia` and related modules are plain Python: they run slowly, and a
debugger can step through them. `atari.machine.lowering` compiles the same source to native code.
A test runs both on the same machine and compares every bit.

The language has only what the machine needs:

- numbers: `Int`, signed 32-bit, and `Wide`, unsigned 192-bit, which can hold a line of the picture
    with one bit for each of its 160 pixels;
- ``m.name``, ``m.name[k]``: the machine's fields (`atari.machine.record.MACHINE`); ``TABLE[k]``,
  ``TABLE[j][k]``: constants of the module;
- assignments, ``if``, ``while``, ``for … in range(…)``, ``return``;
- integer operators, comparisons, ``in (…)``, ``and``, ``or``, ``a if b else c``;
- calls of functions of the same program, and of the functions below.

It differs from Python: `Int` wraps around at 32 bits; ``//``, ``%`` and shifts need nonnegative
operands; an `Int` must not be shifted by 32 or more, nor a `Wide` by 192 or more; a table holds no
negative numbers. Lines that visibly break these rules are refused. As values, ``and`` and ``or``
are 0 or 1, and all their operands are computed; as conditions, they stop at the first decisive
operand. Both sides of ``a if b else c`` are computed, so a side that calls a function with the
machine, or divides by anything but a constant, is refused. So is an assignment to a ``for`` loop's
variable inside the loop; after the loop, the variable must not be used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Int = int
Wide = int
Machine = Any  # in plain Python, an object with the fields of the record
Bytes = Any  # bytes from the caller

WIDE_BITS = 192


def make_table(size: int, default: int, values: dict[int, int]) -> tuple[int, ...]:
    """Make a table of numbers when a module is loaded; indices not in `values` get the default."""
    return tuple(values.get(index, default) for index in range(size))


def inline(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function to be inlined in all its calls."""
    function.is_inline = True  # type: ignore[attr-defined]
    return function


def wide(value: Int) -> Wide:
    """Convert a number to a `Wide`."""
    return value


def lowest_bit(value: Int | Wide) -> Int:
    """Return the index of the lowest set bit; `value` must not be 0.

    >>> lowest_bit(0b1000)
    3
    """
    return (value & -value).bit_length() - 1


def rounds_that_meet(start: Int, step: Int, mask: Int) -> Wide:
    """Return the iterations in which a byte, incremented by `step`, has no bit of `mask` set.

    Bit k is set if ``(start + step·k) & mask & 0xFF == 0``, for k from 0 to 191. The compiled code
    computes all rounds at once, as one vector. `step` must be a constant.

    >>> bin(rounds_that_meet(254, 2, 0xFC) & 0b1111)
    '0b110'
    """
    return sum(1 << k for k in range(WIDE_BITS) if not (start + step * k) & mask & 0xFF)


def columns(begin: Int, end: Int) -> Wide:
    """Return a `Wide` with the bits from `begin` up to, but not including, `end` set.

    Compiled, this takes no shifts.

    >>> bin(columns(1, 4))
    '0b1110'
    """
    return (1 << end) - (1 << begin)


def fill(array: Bytes, at: Int, value: Int, count: Int) -> None:
    """Set `count` bytes, starting at `at`, to `value`."""
    array[at : at + count] = bytes([value]) * count


def copy(array: Bytes, to: Int, at: Int, count: Int) -> None:
    """Copy `count` bytes from `at` to `to` inside one array."""
    array[to : to + count] = array[at : at + count]


def blend(array: Bytes, at: Int, mask: Wide, value: Int) -> None:
    """Set each of the 160 bytes starting at `at` to `value` if its bit in `mask` is set."""
    while mask != 0:
        array[at + lowest_bit(mask)] = value
        mask &= mask - 1
