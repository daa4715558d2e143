"""Numbers as programs keep them in memory: helpers for the facts about points and lives.

Written in typed Python, compiled with each cartridge (`atari.machine.scoring`).
"""

from __future__ import annotations

from pixelpong.atari.machine.typed import Int, Machine, inline

BOARD = (0,)  # the addresses of a board's cells, from 0 on; facts of the cartridge
CELLS = len(BOARD)


@inline
def dec(byte: Int) -> Int:
    """Two decimal digits, each in four bits."""
    return 10 * (byte >> 4) + (byte & 15)


@inline
def hi(byte: Int) -> Int:
    """The upper four bits."""
    return byte >> 4


@inline
def lo(byte: Int) -> Int:
    """The lower four bits."""
    return byte & 15


@inline
def digit(number: Int) -> Int:
    """A digit, for which 10 is an empty place."""
    return 0 if number == 10 else number


@inline
def eighth(address: Int) -> Int:
    """A digit as the address of its picture of eight bytes; 0x80 is an empty place."""
    return 0 if address == 0x80 else address >> 3


@inline
def digit8(address: Int) -> Int:
    """The same; every address that is not a digit's is an empty place."""
    return address >> 3 if address <= 72 and address & 7 == 0 else 0


@inline
def sign(byte: Int) -> Int:
    """A byte with its sign."""
    return byte - 256 if byte > 127 else byte


@inline
def wrap(change: Int, size: Int) -> Int:
    """The change of a counter that begins again at 0 after `size` values."""
    return change + size if change < 0 else change


def count(m: Machine, value: Int) -> Int:
    """The number of the board's cells that have a value."""
    cells = 0
    for k in range(CELLS):
        if m.ram[BOARD[k]] == value:
            cells += 1
    return cells
