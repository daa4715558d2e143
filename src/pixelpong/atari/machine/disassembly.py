"""Finding the instructions of a cartridge that can be reached from some entries.

A cartridge mixes code and data, and nothing marks which is which. So the code is followed from its
entries, through branches, jumps and calls. The code does not tell where a jump through memory
(``JMP (address)``) goes or, if the cartridge has banks, which of them is mapped. The interpreter
runs the instructions that are not found here.

An instruction is identified by its spot: its offset in the ROM, and the address that it is mapped
to, which jumps and calls depend on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from pixelpong.atari.machine.banks import LINE, NONE, QUARTERS, WHOLE
from pixelpong.atari.machine.opcodes import LENGTHS, OPCODES, WRITES, Opcode
from pixelpong.atari.machine.registers import VSYNC

Spot = tuple[int, int]  # offset in the ROM, address


@dataclass(frozen=True)
class BankedRom:
    """A cartridge's ROM and the way its banks are switched."""

    content: bytes
    scheme: int = NONE
    has_ram: bool = False

    @property
    def hotspot(self) -> int:
        """The first of the addresses that switch banks."""
        if self.scheme == WHOLE:
            return 0xFF6 if len(self.content) > 8192 else 0xFF8
        return 0xFE0 if self.scheme == QUARTERS else 0x1000

    def bank_of(self, address: int) -> int | None:
        """Return the bank that an access to an address switches to, or None."""
        bank = (address & 0xFFF) - self.hotspot
        is_switch = self.scheme == WHOLE and 0 <= bank < len(self.content) // 4096
        return bank if is_switch and address & 0x1000 else None

    def switches(self, address: int) -> bool:
        """Return whether an access to an address changes what other addresses map to."""
        is_quarter = self.scheme == QUARTERS and 0 <= (address & 0xFFF) - self.hotspot < 24
        return self.bank_of(address) is not None or (is_quarter and address & 0x1000 != 0)

    def is_memory(self, address: int) -> bool:
        """Return whether an address is in the cartridge's memory."""
        return self.has_ram and address & 0xF00 == 0

    def offset_of(self, address: int, spot: Spot) -> int | None:
        """Return the ROM offset of an address, as seen by code at a spot; None if uncertain."""
        offset, pc = spot
        if address & 0x1000 == 0:
            return None
        if self.scheme == NONE:
            return address % len(self.content)
        if self.scheme == WHOLE:
            return offset // 4096 * 4096 | address & 0xFFF
        if self.scheme == LINE:
            return address & 0xFFF | (0 if address & 0x2000 else 0x1000)
        if address & 0xC00 == 0xC00:  # the last quarter is fixed
            return 7 * 1024 | address & 0x3FF
        return offset // 1024 * 1024 | address & 0x3FF if (address ^ pc) & 0xC00 == 0 else None


class Instruction(NamedTuple):
    """An instruction of a cartridge."""

    spot: Spot
    opcode: Opcode
    low: int  # the first byte after the opcode, or 0
    high: int
    after: int  # the address after the instruction
    target: int | None  # the address that it jumps to, if the code determines it

    @property
    def word(self) -> int:
        """The operand as an address."""
        return self.low | self.high << 8

    @property
    def pc(self) -> int:
        """The instruction's address."""
        return self.spot[1]

    @property
    def is_call(self) -> bool:
        """Whether a later return continues after this instruction."""
        return self.opcode.name in ("JSR", "BRK")

    @property
    def falls_through(self) -> bool:
        """Whether execution may continue with the next instruction in memory."""
        return self.opcode.name not in ("JMP", "RTS", "RTI", "JSR", "BRK")

    @property
    def is_direct(self) -> bool:
        """Whether the code contains the operand's address."""
        return self.opcode.mode in ("zp", "abs") and self.opcode.name not in ("JMP", "JSR")

    @property
    def written_register(self) -> int | None:
        """The TIA register that it writes; None if there is none, or the code does not show it."""
        writes = self.is_direct and self.opcode.name in WRITES and self.word & 0x1080 == 0
        return self.word & 0x3F if writes else None


def read_vector(content: bytes, offset: int) -> int:
    """Read the address in a vector at the end of the cartridge."""
    return content[offset] | content[offset + 1] << 8


def read_instruction(rom: BankedRom, spot: Spot) -> Instruction | None:
    """Read the instruction at a spot; return None if it cannot be translated."""
    offset, pc = spot
    opcode = OPCODES.get(rom.content[offset])
    if opcode is None or pc & 0x1000 == 0 or rom.is_memory(pc):
        return None
    length = LENGTHS[opcode.mode]
    last = pc + length - 1
    crosses = rom.scheme == QUARTERS and (pc ^ last) & 0xC00
    reaches_switch = last & 0xFFF >= rom.hotspot
    if crosses or reaches_switch or (last ^ pc) & 0x1000 or offset + length > len(rom.content):
        return None
    low, high = [*rom.content[offset + 1 : offset + length], 0, 0][:2]
    length += opcode.name == "BRK"  # BRK skips a byte
    after, target = pc + length & 0xFFFF, None
    if opcode.mode == "rel":
        target = after + (low ^ 0x80) - 0x80 & 0xFFFF
    elif opcode.name == "JSR" or (opcode.name, opcode.mode) == ("JMP", "abs"):
        target = low | high << 8
    elif opcode.name == "BRK" and rom.scheme == NONE:
        target = read_vector(rom.content, len(rom.content) - 2)
    return Instruction(spot, opcode, low, high, after, target)


def disassemble(
    rom: BankedRom, entries: Iterable[Spot]
) -> tuple[dict[Spot, Instruction], set[Spot]]:
    """Find the reachable instructions, by spot, and the spots that returns or frames start at.

    >>> content = bytes.fromhex("a207 ca d0fd").ljust(2048, b"\\2")
    >>> [i.opcode.name for i in disassemble(BankedRom(content), [(0, 0xF000)])[0].values()]
    ['LDX', 'DEX', 'BNE']
    """
    code: dict[Spot, Instruction] = {}
    todo, jumps = list(entries), set(entries)
    while todo:
        spot = todo.pop()
        instruction = None if spot in code else read_instruction(rom, spot)
        if instruction is None:
            continue
        code[spot] = instruction
        targets = [instruction.target] if instruction.target is not None else []
        bank = rom.bank_of(instruction.word) if instruction.is_direct else None
        is_end = instruction.written_register == VSYNC
        if bank is not None:  # the code continues in another bank
            jumps.add((bank * 4096 | instruction.after & 0xFFF, instruction.after))
            todo.append((bank * 4096 | instruction.after & 0xFFF, instruction.after))
        elif instruction.falls_through or instruction.is_call:
            targets.append(instruction.after)
        for address in targets:
            offset = rom.offset_of(address, spot)
            if offset is not None:
                todo.append((offset, address))
                if address == instruction.after and (is_end or instruction.is_call):
                    jumps.add((offset, address))  # a frame starts here, or a return leads here
    return code, jumps & code.keys()
