"""Helpers for the facts about points and lives: numbers in the forms that programs store.

Written in typed Python, compiled with each cartridge (`atari.machine.scoring`).
"""

from __future__ import annotations

from pixelpong.atari.machine.typed import Int, Machine, inline

BOARD = (0,)  # the addresses of a board's cells, from 0 on; facts of the cartridge
CELLS = len(BOARD)


@inline
def dec(byte: Int) -> Int:
    """Return the number whose two decimal digits take four bits each."""
    return 10 * (byte >> 4) + (byte & 15)


@inline
def hi(byte: Int) -> Int:
    """Return the upper four bits."""
    return byte >> 4


@inline
def lo(byte: Int) -> Int:
    """Return the lower four bits."""
    return byte & 15


@inline
def digit(number: Int) -> Int:
    """Return a digit, or 0 for a blank, which is stored as 10."""
    return 0 if number == 10 else number


@inline
def eighth(address: Int) -> Int:
    """Return the digit whose eight-byte picture is at an address, or 0 for a blank, 0x80."""
    return 0 if address == 0x80 else address >> 3


@inline
def digit8(address: Int) -> Int:
    """Return the same, or 0 for every address that is not a digit's."""
    return address >> 3 if address <= 72 and address & 7 == 0 else 0


@inline
def sign(byte: Int) -> Int:
    """Return a byte as a signed number."""
    return byte - 256 if byte > 127 else byte


@inline
def wrap(change: Int, size: Int) -> Int:
    """Return the change of a counter that wraps around after `size` values."""
    return change + size if change < 0 else change


def count(m: Machine, value: Int) -> Int:
    """Count the board's cells that have a value."""
    cells = 0
    for k in range(CELLS):
        if m.ram[BOARD[k]] == value:
            cells += 1
    return cells


def total(m: Machine, side: Int) -> Int:
    """Add up the board's cells with a sign, 1 or -1, as positive numbers; cells are signed."""
    pieces = 0
    for k in range(CELLS):
        pieces += max(side * sign(m.ram[BOARD[k]]), 0)
    return pieces


def alike(m: Machine, size: Int) -> Int:
    """Count the groups of `size` cells of the board, one after another, whose cells are equal."""
    groups = 0
    for start in range(CELLS // size):
        same = 0
        for k in range(size):
            same += m.ram[BOARD[start * size + k]] == m.ram[BOARD[start * size]]
        groups += same == size
    return groups
