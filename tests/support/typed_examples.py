"""Typed Python for tests: a function for each construct of the language.

Each takes the machine and two numbers, writes what comes out into the machine, returns a number.
Tables, `fill` and `copy` are not here: `test_tia` compares the code that needs them.
"""

from __future__ import annotations

import numpy as np

from pixelpong.atari.machine.typed import Int, Machine, Wide, columns, inline, lowest_bit, wide

MACHINE = np.dtype(
    [
        ("byte", "u1"), ("small", "<i2"), ("word", "<u2"), ("number", "<i4"), ("tiny", "i1"),
        ("bytes", "u1", 16), ("smalls", "<i2", 4), ("numbers", "<i4", 24), ("gap", "u1", 3),
        ("wide", "<u8", 3), ("wides", "<u8", (4, 3)), ("doubles", "<u8", (2, 2)), ("end", "u1", 5),
    ]
)  # fmt: skip
"""Nothing in it is aligned."""

LARGE = (1 << 150) + (1 << 70) + 5
LINE = (1 << 160) - 1


def calculates(m: Machine, a: Int, b: Int) -> Int:
    m.numbers[0] = a + b
    m.numbers[1] = a - b
    m.numbers[2] = a * b
    m.numbers[3] = a & b
    m.numbers[4] = a | b
    m.numbers[5] = a ^ b
    m.numbers[6] = -a
    m.numbers[7] = ~a
    m.numbers[8] = a << (b & 7)
    m.numbers[9] = a >> (b & 7)
    m.numbers[10] = (2 + 3 * 4 - 1) // 2 % 4 << 3 | 1
    m.numbers[11] = (a & 0xFFFF) // ((b & 0xFF) + 1)
    m.numbers[12] = (a & 0xFFFF) % ((b & 0xFF) + 1)
    return a + 2 * b - (a - b) * 3


def compares(m: Machine, a: Int, b: Int) -> Int:
    m.numbers[0] = a == b
    m.numbers[1] = a != b
    m.numbers[2] = a < b
    m.numbers[3] = a <= b
    m.numbers[4] = a > b
    m.numbers[5] = a >= b
    m.numbers[6] = (a < b) << 3 | ~a & -(a == b)
    return (a < b) == (b > a)


def chooses(m: Machine, a: Int, b: Int) -> Int:
    m.numbers[0] = a if a < b else b
    m.numbers[1] = 1 if a else 2 if b else 3
    m.numbers[2] = max(a, min(b, 10))
    m.numbers[3] = a < b and b < 20 and a > -20
    m.wide = LARGE if a < b else wide(7)
    return (a > 3 and b > 3) or a < -3


def noted(m: Machine, k: Int) -> Int:
    """Whether k is odd; and that it was asked."""
    m.numbers[k & 7] += 1
    m.number = m.number * 3 + k & 0xFFFF
    return k & 1


def asks_no_more_than_needed(m: Machine, a: Int, b: Int) -> Int:
    if noted(m, a) and noted(m, b):
        m.byte = 1
    elif noted(m, a + 1) or (noted(m, b + 1) and noted(m, a ^ b)):
        m.byte = 2
    if noted(m, a) or noted(m, b):
        m.small = 5
    while noted(m, a) and m.word < 9:
        m.word = m.word + 1
        a += m.word
    return m.byte


def loops(m: Machine, a: Int, b: Int) -> Int:
    total = 0
    for k in range(b & 15):
        total += k * k
    for k in range(a, b, 7):
        total = total * 3 + k & 0xFFFFF
    for k in range(a, b, -3):
        total = total * 5 + k & 0xFFFFF
    for k in range(5, -1, -1):
        m.numbers[k] = total + k
    end = b & 7
    for k in range(end):  # the end is looked at once
        end = 0
        m.numbers[6] = k
    return total


def keeps_signs(m: Machine, a: Int, b: Int) -> Int:
    m.byte = a & 255
    m.tiny = (a & 255) - 128
    m.small = (b & 0xFFFF) - 0x8000
    m.word = b & 0xFFFF
    m.number = a * 1000
    m.smalls[a & 3] = -(b & 0x7FFF)
    m.bytes[b & 15] = 200
    m.numbers[b & 15] = -5
    return m.tiny + m.small + m.smalls[a & 3] + m.number + m.bytes[b & 15] + m.word + m.byte


def changes_in_place(m: Machine, a: Int, b: Int) -> Int:
    x = y = m.number = a & 0xFFF
    x += b
    x -= 3
    x *= 5
    x &= 0xFFFFFF
    x |= 1
    x ^= 0x55
    x <<= 2
    x >>= 1
    y //= 3
    y %= 100
    m.number += 7
    m.bytes[a & 7] ^= 0xFF
    m.numbers[noted(m, b)] += 1000  # asked once
    m.wides[b & 3] |= LARGE
    m.wides[b & 3] &= LARGE - 1
    return x + y


def is_wide(m: Machine, a: Int, b: Int) -> Int:
    x = wide(a & 0xFFFF) << (b & 127)
    y = LARGE ^ wide(b & 0xFF) << 100
    m.wides[0] = x | y
    m.wides[1] = x & y | x << 9
    m.wides[2] = (x ^ y) >> (a & 63)
    m.wides[3] = y & ~x & LINE
    m.wide = (x + y - (x & y)) & LINE
    m.doubles[a & 1] = m.wides[0] & ((1 << 128) - 1)
    m.numbers[0] = x == y
    m.numbers[1] = x != 0
    m.numbers[4] = (x << 40) <= (y << 40)
    m.numbers[6] = lowest_bit(x | wide(1) << 191)
    m.numbers[7] = 1 if x else 2
    far = wide(1) << 191 | x  # the highest bit is no sign
    m.numbers[8] = (far > y) + 2 * (far < y) + 4 * (far >= y) + 8 * (far <= y)
    count = 0
    while y != 0:
        y &= y - 1
        count += 1
    return count + lowest_bit((a & 0xFF) | 0x100)


@inline
def halved(w: Wide) -> Wide:
    return w >> 1


def doubled(w: Wide, times: Int) -> Wide:
    for _ in range(times):
        w = (w << 1) & LINE
    return w


def sets_byte(m: Machine, value: Int) -> None:
    if value > 100:
        m.byte = 100
        return
    m.byte = max(value, 0)


def calls(m: Machine, a: Int, b: Int) -> Int:
    sets_byte(m, a)
    m.wide = halved(doubled(LARGE, b & 7)) | halved(wide(a & 0xFF))
    return noted(m, noted(m, a) + noted(m, b)) + m.byte


def marks_columns(m: Machine, a: Int, b: Int) -> Int:
    """Columns from a variable to another, and between two constants."""
    begin = (a & 1023) % 193
    end = begin + (b & 1023) % (193 - begin)
    m.wide = columns(begin, end)
    m.wides[0] = columns(80, 160)
    m.wides[1] = columns(begin, 192)
    return begin
