"""Finding the instructions of a cartridge: all that can be reached from its start.

A cartridge mixes code and data, and nothing marks which is which. So the code is followed from the
reset vector, through branches, jumps and calls. The code does not show where a jump through memory
(``JMP (address)``) goes; the caller must name these targets. There is no bank switching.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pixelpong.atari.opcodes import LENGTHS, OPCODES

SIZE = 2048  # bytes of a cartridge


class Instruction(NamedTuple):
    """An instruction of a cartridge; `place` and `after` are its offset and that of the next."""

    place: int
    name: str
    mode: str
    cycles: int
    operand: int  # the byte or two that follow; for a branch, the offset it jumps to
    after: int

    @property
    def target(self) -> int | None:
        """The offset that it jumps to, if it is a jump and the code shows the target."""
        if self.mode == "rel":
            return self.operand
        if self.name == "JSR" or (self.name, self.mode) == ("JMP", "abs"):
            return self.operand % SIZE
        return None

    @property
    def goes_on(self) -> bool:
        """Whether the instruction after it can run next, at once or after a return."""
        return self.name not in ("JMP", "RTS", "RTI")

    @property
    def is_call(self) -> bool:
        """Whether the instruction after it is reached by a return."""
        return self.name in ("JSR", "BRK")


def read_vector(rom: bytes, place: int) -> int:
    """Read the offset that a vector at the cartridge's end points to."""
    return (rom[place] | rom[place + 1] << 8) % SIZE


def read_instruction(rom: bytes, place: int) -> Instruction | None:
    """Read the instruction at an offset; None if the opcode is not documented."""
    if rom[place] not in OPCODES:
        return None
    name, mode, cycles = OPCODES[rom[place]]
    length = LENGTHS[mode]
    operand = int.from_bytes((rom + rom)[place + 1 : place + length], "little")
    after = (place + length) % SIZE
    if mode == "rel":
        operand = (after + (operand ^ 0x80) - 0x80) % SIZE
    if name == "BRK":  # it skips a byte
        after = (place + 2) % SIZE
    return Instruction(place, name, mode, cycles, operand, after)


def disassemble(rom: bytes, entries: Iterable[int] = ()) -> dict[int, Instruction]:
    """Find the reachable instructions, by offset; `entries` are offsets reached through memory.

    >>> rom = bytes.fromhex("a207 ca d0fd").ljust(SIZE - 4, b"\\0") + bytes(4)
    >>> [each.name for each in disassemble(rom).values()][:3]
    ['LDX', 'DEX', 'BNE']
    """
    assert len(rom) == SIZE, len(rom)
    reset, interrupt = read_vector(rom, SIZE - 4), read_vector(rom, SIZE - 2)
    found: dict[int, Instruction] = {}
    todo = [reset, *entries]
    while todo:
        place = todo.pop()
        instruction = read_instruction(rom, place)
        if place in found or instruction is None:
            continue
        found[place] = instruction
        if instruction.name == "BRK":
            todo.append(interrupt)
        if instruction.target is not None:
            todo.append(instruction.target)
        if instruction.goes_on:
            todo.append(instruction.after)
    return found
