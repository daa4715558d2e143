"""The cartridge's side of the bus: ROM in banks; the processor sees four quarters of 1 kB.

The processor has 4 kB of addresses for a cartridge. Larger cartridges map a part of their ROM; a
read or write at certain addresses, whatever the value, maps another part:

    NONE     2 or 4 kB, all of it mapped
    WHOLE    F8, F6: banks of 4 kB, each with its own address
    QUARTERS E0: 1 kB banks in the first three quarters, each with its own eight addresses
    LINE     FE: bit 13 of the address chooses one of two banks

Written in typed Python. The constants here are for a cartridge without banks; other cartridges
replace them. Source: ALE's behaviour, measured by tests.
"""

from __future__ import annotations

from pixelpong.atari.machine.typed import Int, Machine, inline

NONE, WHOLE, QUARTERS, LINE = range(4)
SCHEME = NONE
ROM_SIZE = 2048
HOTSPOT = 0x1000  # the first of the addresses that switch banks
HAS_RAM = 0  # whether 128 addresses for writing, then 128 for reading, access extra memory


@inline
def offset_of(m: Machine, address: Int) -> Int:
    """Return the offset in the ROM that an address maps to."""
    if SCHEME == NONE:
        return address & ROM_SIZE - 1
    if SCHEME == LINE:
        return address & 0xFFF | (0 if address & 0x2000 else 0x1000)
    return m.banks[address >> 10 & 3] << 10 & ROM_SIZE - 1 | address & 0x3FF


@inline
def is_simple(address: Int) -> Int:
    """Return whether an address is ROM that can be read without side effects."""
    if address & 0x1000 == 0 or (HAS_RAM and address & 0xF00 == 0):
        return 0
    return address & 0xFFF < HOTSPOT


@inline
def read_rom(m: Machine, address: Int) -> Int:
    """Read a byte from the ROM."""
    return rom[offset_of(m, address)]  # type: ignore[name-defined]


def switch_bank(m: Machine, address: Int) -> None:
    """Switch banks if an access to this address does."""
    q = address & 0xFFF
    if SCHEME == WHOLE and q >= HOTSPOT and q < HOTSPOT + ROM_SIZE // 4096:
        for k in range(4):
            m.banks[k] = 4 * (q - HOTSPOT) + k
    if SCHEME == QUARTERS and q >= HOTSPOT and q < HOTSPOT + 24:
        m.banks[q - HOTSPOT >> 3] = q & 7


def read_cartridge(m: Machine, address: Int) -> Int:
    """Read a byte from the cartridge."""
    if HAS_RAM and address & 0xF80 == 0x80:
        return m.extra_ram[address & 127]
    switch_bank(m, address)
    return read_rom(m, address)


def write_cartridge(m: Machine, address: Int, value: Int) -> None:
    """Write a byte to the cartridge's memory, if it has any."""
    if HAS_RAM and address & 0xF80 == 0:
        m.extra_ram[address & 127] = value
    switch_bank(m, address)
