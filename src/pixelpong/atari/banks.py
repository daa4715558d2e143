"""The cartridge's side of the bus: ROM in banks, of which the processor sees four quarters of 1 kB.

The processor has 4 kB of addresses for a cartridge. Larger ones show a part of their ROM, and a
read or write of certain addresses, whatever the value, shows another:

    NONE     2 or 4 kB, all of it
    WHOLE    F8, F6: banks of 4 kB, each with an address of its own
    QUARTERS E0: 1 kB banks in the first three quarters, each with its own eight addresses
    LINE     FE: the address's bit 13 chooses one of two

Written in typed Python; the constants are those of a cartridge without banks, others have others.
Source: how ALE plays them, by tests.
"""

from __future__ import annotations

from pixelpong.atari.typed import Int, Machine, inline

NONE, WHOLE, QUARTERS, LINE = range(4)
SCHEME = NONE
ROM_SIZE = 2048
HOTSPOT = 0xFF8  # the first of the addresses that switch whole banks
HAS_RAM = 0  # whether the first 256 addresses are 128 bytes of memory, to write and to read


@inline
def place_of(m: Machine, address: Int) -> Int:
    """The place in the ROM that an address shows."""
    if SCHEME == NONE:
        return address & ROM_SIZE - 1
    if SCHEME == LINE:
        return address & 0xFFF | (0 if address & 0x2000 else 0x1000)
    return m.banks[address >> 10 & 3] << 10 & ROM_SIZE - 1 | address & 0x3FF


@inline
def is_simple(address: Int) -> Int:
    """Whether an address is ROM, and a read there does nothing else."""
    if address & 0x1000 == 0 or (HAS_RAM and address & 0xF00 == 0):
        return 0
    return SCHEME in (NONE, LINE) or address & 0xFFF < 0xFE0


@inline
def read_rom(m: Machine, address: Int) -> Int:
    """Read the ROM."""
    return rom[place_of(m, address)]  # type: ignore[name-defined]


def switch_bank(m: Machine, address: Int) -> None:
    """Do what an access to an address means for the banks."""
    q = address & 0xFFF
    if SCHEME == WHOLE and q >= HOTSPOT and q < HOTSPOT + ROM_SIZE // 4096:
        for k in range(4):
            m.banks[k] = 4 * (q - HOTSPOT) + k
    if SCHEME == QUARTERS and q >= 0xFE0 and q < 0xFF8:
        m.banks[q - 0xFE0 >> 3] = q & 7


def read_cartridge(m: Machine, address: Int) -> Int:
    """Read a byte of the cartridge."""
    if HAS_RAM and address & 0xF80 == 0x80:
        return m.extra_ram[address & 127]
    switch_bank(m, address)
    return read_rom(m, address)


def write_cartridge(m: Machine, address: Int, value: Int) -> None:
    """Write a byte to the cartridge: to its memory, if it has any."""
    if HAS_RAM and address & 0xF80 == 0:
        m.extra_ram[address & 127] = value
    switch_bank(m, address)
