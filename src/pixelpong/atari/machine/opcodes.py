"""The instructions of the processor, the 6507, which is a 6502 with fewer pins.

It has three 8-bit registers (A, X, Y), a stack pointer, a program counter, and flags: N (negative),
V (overflow), Z (zero), C (carry), I and D. An instruction is one byte, the opcode, and up to two
more bytes; its addressing mode says how they give the operand.

Most undocumented instructions combine two documented ones. Twelve opcodes are not instructions:
they halt the processor for ever (02, 12 … 72, 92, B2, D2, F2). Source: MCS6500 Family Programming
Manual (MOS, 1976); the undocumented instructions were measured on ALE
(``tests/atari/test_rules_measured.py``).
"""

from __future__ import annotations

from typing import NamedTuple

# The flags' bits in the byte that PHP pushes. B and the bit without a name are always 1 in it.
NEGATIVE, OVERFLOW, BREAK, DECIMAL, INTERRUPT, ZERO, CARRY = 7, 6, 4, 3, 2, 1, 0
ALWAYS_SET = 1 << 5 | 1 << BREAK

# The length of an instruction in bytes, by addressing mode.
LENGTHS = {
    "imp": 1,  # no operand
    "acc": 1,  # the operand is A
    "imm": 2,  # the operand is the byte that follows
    "zp": 2,  # the operand's address, in the first 256 bytes, is the byte that follows
    "zpx": 2,  # the same, plus X
    "zpy": 2,  # the same, plus Y
    "izx": 2,  # the operand's address is stored at the byte that follows plus X
    "izy": 2,  # the operand's address is stored at the byte that follows; Y is added to it
    "rel": 2,  # a branch by a number of bytes
    "abs": 3,  # the operand's address is the two bytes that follow
    "abx": 3,  # the same, plus X
    "aby": 3,  # the same, plus Y
    "ind": 3,  # a jump to the address stored at the two bytes that follow
}

# The cycles by mode, for instructions that read, write, or read and write back.
_READS = {"imm": 2, "zp": 3, "zpx": 4, "zpy": 4, "abs": 4, "abx": 4, "aby": 4, "izx": 6, "izy": 5}
_WRITES = {"zp": 3, "zpx": 4, "zpy": 4, "abs": 4, "abx": 5, "aby": 5, "izx": 6, "izy": 6}
_CHANGES = {"acc": 2, "zp": 5, "zpx": 6, "abs": 6, "abx": 7}

_OPERANDS = """
ADC imm 69  zp 65  zpx 75  abs 6D  abx 7D  aby 79  izx 61  izy 71
AND imm 29  zp 25  zpx 35  abs 2D  abx 3D  aby 39  izx 21  izy 31
BIT zp 24  abs 2C
CMP imm C9  zp C5  zpx D5  abs CD  abx DD  aby D9  izx C1  izy D1
CPX imm E0  zp E4  abs EC
CPY imm C0  zp C4  abs CC
EOR imm 49  zp 45  zpx 55  abs 4D  abx 5D  aby 59  izx 41  izy 51
LDA imm A9  zp A5  zpx B5  abs AD  abx BD  aby B9  izx A1  izy B1
LDX imm A2  zp A6  zpy B6  abs AE  aby BE
LDY imm A0  zp A4  zpx B4  abs AC  abx BC
ORA imm 09  zp 05  zpx 15  abs 0D  abx 1D  aby 19  izx 01  izy 11
SBC imm E9  zp E5  zpx F5  abs ED  abx FD  aby F9  izx E1  izy F1
STA zp 85  zpx 95  abs 8D  abx 9D  aby 99  izx 81  izy 91
STX zp 86  zpy 96  abs 8E
STY zp 84  zpx 94  abs 8C
ASL acc 0A  zp 06  zpx 16  abs 0E  abx 1E
DEC zp C6  zpx D6  abs CE  abx DE
INC zp E6  zpx F6  abs EE  abx FE
LSR acc 4A  zp 46  zpx 56  abs 4E  abx 5E
ROL acc 2A  zp 26  zpx 36  abs 2E  abx 3E
ROR acc 6A  zp 66  zpx 76  abs 6E  abx 7E
"""

_OTHERS = """
BCC rel 90 2  BCS rel B0 2  BEQ rel F0 2  BMI rel 30 2  BNE rel D0 2  BPL rel 10 2  BVC rel 50 2
BVS rel 70 2  BRK imp 00 7  CLC imp 18 2  CLD imp D8 2  CLI imp 58 2  CLV imp B8 2  DEX imp CA 2
DEY imp 88 2  INX imp E8 2  INY imp C8 2  JMP abs 4C 3  JMP ind 6C 5  JSR abs 20 6  NOP imp EA 2
PHA imp 48 3  PHP imp 08 3  PLA imp 68 4  PLP imp 28 4  RTI imp 40 6  RTS imp 60 6  SEC imp 38 2
SED imp F8 2  SEI imp 78 2  TAX imp AA 2  TAY imp A8 2  TSX imp BA 2  TXA imp 8A 2  TXS imp 9A 2
TYA imp 98 2
"""

_UNDOCUMENTED = """
LAX zp A7 4  zpy B7 4  abs AF 4  aby BF 4  izx A3 6  izy B3 5
SAX zp 87 3  zpy 97 4  abs 8F 4  izx 83 6
DCP zp C7 5  zpx D7 6  abs CF 6  abx DF 7  aby DB 7  izx C3 8  izy D3 8
ISB zp E7 5  zpx F7 6  abs EF 6  abx FF 7  aby FB 7  izx E3 8  izy F3 8
SLO zp 07 5  zpx 17 6  abs 0F 6  abx 1F 7  aby 1B 7  izx 03 8  izy 13 8
RLA zp 27 5  zpx 37 6  abs 2F 6  abx 3F 7  aby 3B 7  izx 23 8  izy 33 8
SRE zp 47 5  zpx 57 6  abs 4F 6  abx 5F 7  aby 5B 7  izx 43 8  izy 53 8
RRA zp 67 5  zpx 77 6  abs 6F 6  abx 7F 7  aby 7B 7  izx 63 8  izy 73 8
NOP imp 1A 2  imp 3A 2  imp 5A 2  imp 7A 2  imp DA 2  imp FA 2
NOP imm 80 2  imm 82 2  imm 89 2  imm C2 2  imm E2 2  zp 04 3  zp 44 3  zp 64 3
NOP zpx 14 4  zpx 34 4  zpx 54 4  zpx 74 4  zpx D4 4  zpx F4 4
NOP abs 0C 4  abx 1C 4  abx 3C 4  abx 5C 4  abx 7C 4  abx DC 4  abx FC 4
ANC imm 0B 2  imm 2B 2
ASR imm 4B 2
SBX imm CB 2
SBC imm EB 2
ARR imm 6B 2
ANE imm 8B 2
LXA imm AB 2
LAS aby BB 4
SHA aby 9F 5  izy 93 6
SHS aby 9B 5
SHX aby 9E 5
SHY abx 9C 5
"""

WRITES = ("STA", "STX", "STY", "SAX", "SHA", "SHS", "SHX", "SHY")  # these only write
# These instructions read and write back.
CHANGES = (
    "ASL", "DEC", "INC", "LSR", "ROL", "ROR", "DCP", "ISB", "SLO", "RLA", "SRE", "RRA",
)  # fmt: skip


class Opcode(NamedTuple):
    """The meaning of an opcode; crossed pages and taken branches add to its `cycles`."""

    name: str
    mode: str
    cycles: int


def _read_tables() -> dict[int, Opcode]:
    opcodes = {}
    for line in _OPERANDS.strip().splitlines():
        name, *words = line.split()
        table = _WRITES if name in WRITES else _CHANGES if name in CHANGES else _READS
        for mode, code in zip(words[::2], words[1::2], strict=True):
            opcodes[int(code, 16)] = Opcode(name, mode, table[mode])
    words = _OTHERS.split()
    for name, mode, code, cycles in zip(*(words[k::4] for k in range(4)), strict=True):
        opcodes[int(code, 16)] = Opcode(name, mode, int(cycles))
    return opcodes


def _read_undocumented() -> dict[int, Opcode]:
    opcodes = {}
    for line in _UNDOCUMENTED.strip().splitlines():
        name, *words = line.split()
        for mode, code, cycles in zip(words[::3], words[1::3], words[2::3], strict=True):
            opcodes[int(code, 16)] = Opcode(name, mode, int(cycles))
    return opcodes


DOCUMENTED = _read_tables()
OPCODES = {**DOCUMENTED, **_read_undocumented()}
