"""The 6502 once more, as the manual tells it: slow, literal, and independent of the package.

What the emulator is held to, instruction by instruction.

Covered: documented instructions without decimal arithmetic; memory of 128 bytes, which is the stack
as well, and a cartridge of 2 kB. Anything else on the bus raises `Elsewhere`.

Source: MCS6500 Family Programming Manual (MOS, 1976), appendices A and B.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_CYCLES = bytes.fromhex(
    "07060208030305050302020204040606" "02050208040406060204020704040707"
    "06060208030305050402020204040606" "02050208040406060204020704040707"
    "06060208030305050302020203040606" "02050208040406060204020704040707"
    "06060208030305050402020205040606" "02050208040406060204020704040707"
    "02060206030303030202020204040404" "02060206040404040205020505050505"
    "02060206030303030202020204040404" "02050205040404040204020404040404"
    "02060208030305050202020204040606" "02050208040406060204020704040707"
    "02060208030305050202020204040606" "02050208040406060204020704040707"
)  # fmt: skip
"""By opcode, without crossed pages and branches taken."""

_OPCODES = """
implied: BRK 00 PHP 08 CLC 18 PLP 28 SEC 38 RTI 40 PHA 48 CLI 58 RTS 60 PLA 68 SEI 78 DEY 88 TXA 8A
implied: TYA 98 TXS 9A TAY A8 TAX AA CLV B8 TSX BA INY C8 DEX CA CLD D8 INX E8 NOP EA SED F8
accumulator: ASL 0A ROL 2A LSR 4A ROR 6A
immediate: ORA 09 AND 29 EOR 49 ADC 69 LDY A0 LDX A2 LDA A9 CPY C0 CMP C9 CPX E0 SBC E9
page 0: ORA 05 ASL 06 BIT 24 AND 25 ROL 26 EOR 45 LSR 46 ADC 65 ROR 66 STY 84 STA 85 STX 86 LDY A4
page 0: LDA A5 LDX A6 CPY C4 CMP C5 DEC C6 CPX E4 SBC E5 INC E6
page 0,x: ORA 15 ASL 16 AND 35 ROL 36 EOR 55 LSR 56 ADC 75 ROR 76 STY 94 STA 95 LDY B4 LDA B5
page 0,x: CMP D5 DEC D6 SBC F5 INC F6
page 0,y: STX 96 LDX B6
(page 0,x): ORA 01 AND 21 EOR 41 ADC 61 STA 81 LDA A1 CMP C1 SBC E1
(page 0),y: ORA 11 AND 31 EOR 51 ADC 71 STA 91 LDA B1 CMP D1 SBC F1
absolute: ORA 0D ASL 0E BIT 2C AND 2D ROL 2E EOR 4D LSR 4E ADC 6D ROR 6E STY 8C STA 8D STX 8E
absolute: LDY AC LDA AD LDX AE CPY CC CMP CD DEC CE CPX EC SBC ED INC EE
absolute,x: ORA 1D ASL 1E AND 3D ROL 3E EOR 5D LSR 5E ADC 7D ROR 7E STA 9D LDY BC LDA BD CMP DD
absolute,x: DEC DE SBC FD INC FE
absolute,y: ORA 19 AND 39 EOR 59 ADC 79 STA 99 LDA B9 LDX BE CMP D9 SBC F9
branch: BPL 10 BMI 30 BVC 50 BVS 70 BCC 90 BCS B0 BNE D0 BEQ F0
address: JSR 20 JMP 4C
pointer: JMP 6C
"""
"""The documented ones: an addressing mode, and names with their opcodes."""

_DECODED = {
    int(opcode, 16): (name, mode)
    for mode, pairs in (line.split(": ") for line in _OPCODES.strip().splitlines())
    for name, opcode in re.findall(r"(\w+) (\w+)", pairs)
}


class Elsewhere(Exception):  # noqa: N818 - it is no error
    """The processor left what the model covers."""


def decode(opcode: int) -> tuple[str, str] | None:
    """Name and addressing mode; None if the opcode is not documented."""
    return _DECODED.get(opcode)


def length(mode: str) -> int:
    """Bytes of an instruction."""
    if mode in ("implied", "accumulator"):
        return 1
    return 3 if mode in ("address", "pointer") or mode.startswith("absolute") else 2


@dataclass
class Processor:
    """Registers, flags, memory, cartridge, and the cycles so far; the cartridge lies at 0xF000."""

    rom: bytes
    ram: bytearray
    pc: int
    a: int = 0
    x: int = 0
    y: int = 0
    s: int = 0xFF
    n: bool = False
    v: bool = False
    i: bool = False
    z: bool = False
    c: bool = False
    cycles: int = 0

    # The bus.

    def read(self, address: int) -> int:
        address &= 0x1FFF
        if address & 0x1000:
            return self.rom[address & 0x7FF]
        if address & 0x280 != 0x80:
            raise Elsewhere(f"reads {address:#06x}")
        return self.ram[address & 0x7F]

    def write(self, address: int, value: int) -> None:
        address &= 0x1FFF
        if address & 0x1000:
            return
        if address & 0x280 != 0x80:
            raise Elsewhere(f"writes {address:#06x}")
        self.ram[address & 0x7F] = value

    def push(self, value: int) -> None:
        self.write(0x100 | self.s, value)
        self.s = (self.s - 1) % 256

    def pull(self) -> int:
        self.s = (self.s + 1) % 256
        self.check_stack()
        return self.read(0x100 | self.s)

    def check_stack(self) -> None:
        if self.s < 0x80:
            raise Elsewhere("the stack is outside the memory")

    # Flags.

    @property
    def flags(self) -> int:
        """As a byte on the stack has them."""
        names = ((7, self.n), (6, self.v), (5, True), (4, True), (2, self.i), (1, self.z))
        return sum(is_set << bit for bit, is_set in names) + self.c

    @flags.setter
    def flags(self, byte: int) -> None:
        if byte & 8:
            raise Elsewhere("counts in decimals")
        self.n, self.v, self.i = byte >= 128, byte & 64 != 0, byte & 4 != 0
        self.z, self.c = byte & 2 != 0, byte & 1 != 0

    def result(self, value: int) -> int:
        self.n, self.z = value >= 128, value == 0
        return value

    # Instructions.

    def step(self) -> None:
        """Carry out one documented instruction."""
        opcode = self.rom[self.pc]
        name, mode = decode(opcode)
        operand = int.from_bytes((self.rom * 2)[self.pc + 1 : self.pc + length(mode)], "little")
        here, self.pc = self.pc, (self.pc + length(mode)) % 2048
        self.cycles += _CYCLES[opcode]
        if mode == "branch":
            self.branch(name, operand)
        elif name in ("JMP", "JSR", "RTS", "RTI", "BRK"):
            self.jump(name, mode, operand, here)
        else:
            address = self.address(name, mode, operand)
            self.carry_out(name, address)

    def branch(self, name: str, operand: int) -> None:
        flag = {"PL": "n", "MI": "n", "VC": "v", "VS": "v", "CC": "c", "CS": "c"}
        wanted = name in ("BMI", "BVS", "BCS", "BEQ")
        if getattr(self, flag.get(name[1:], "z")) != wanted:
            return
        target = (self.pc + (operand - 256 if operand > 127 else operand)) % 2048
        self.cycles += 1 + (target // 256 != self.pc // 256)
        self.pc = target

    def jump(self, name: str, mode: str, operand: int, here: int) -> None:
        if name in ("JSR", "BRK"):
            back = (here + 2) | 0xF000
            for byte in (back >> 8, back & 255):
                self.check_stack()
                self.push(byte)
        if name == "BRK":
            self.check_stack()
            self.push(self.flags)
            self.i = True
            operand = self.rom[0x7FE] | self.rom[0x7FF] << 8
        if name == "RTI":
            self.flags = self.pull()
        if name in ("RTS", "RTI"):
            operand = self.pull() | self.pull() << 8
            operand += name == "RTS"
        elif mode == "pointer":
            if operand & 255 == 255:
                raise Elsewhere("a pointer over the end of a page")
            operand = self.read_memory(operand) | self.read_memory(operand + 1) << 8
        if name in ("RTS", "RTI", "JMP") and mode != "address" and operand & 0xF800 != 0xF000:
            raise Elsewhere(f"goes to {operand:#06x}")
        self.pc = operand % 2048

    def read_memory(self, address: int) -> int:
        if address & 0x1280 != 0x80:
            raise Elsewhere(f"a pointer at {address:#06x}")
        return self.read(address)

    def address(self, name: str, mode: str, operand: int) -> int | None:
        """Of the operand; None for the accumulator. An immediate operand is at −1 − value."""
        if mode == "immediate":
            return -1 - operand
        if mode in ("implied", "accumulator"):
            return None
        if mode in ("page 0", "absolute"):
            return operand
        index = self.y if mode.endswith("y") else self.x
        if mode.startswith("page 0"):
            return (operand + index) % 256
        if mode == "(page 0,x)":
            raise Elsewhere("a pointer in page 0, indexed")
        if mode == "(page 0),y":
            if operand == 255:
                raise Elsewhere("a pointer over the end of page 0")
            operand = self.read_memory(operand) | self.read_memory(operand + 1) << 8
        if name not in ("STA", "ASL", "LSR", "ROL", "ROR", "INC", "DEC"):
            self.cycles += (operand & 255) + index > 255
        return operand + index

    def value(self, address: int) -> int:
        return -1 - address if address < 0 else self.read(address)

    def carry_out(self, name: str, address: int | None) -> None:
        """What is neither a branch nor a jump."""
        register = name[2].lower()
        match name:
            case "LDA" | "LDX" | "LDY":
                setattr(self, register, self.result(self.value(address)))
            case "STA" | "STX" | "STY":
                self.write(address, getattr(self, register))
            case "TAX" | "TAY" | "TXA" | "TYA" | "TSX":
                setattr(self, register, self.result(getattr(self, name[1].lower())))
            case "TXS":
                self.s = self.x
            case "INX" | "INY" | "DEX" | "DEY":
                step = 1 if name[0] == "I" else -1
                setattr(self, register, self.result((getattr(self, register) + step) % 256))
            case "CLC" | "CLV" | "CLI" | "SEC" | "SEI":
                setattr(self, register, name[0] == "S")
            case "CLD" | "NOP":
                pass
            case "SED":
                raise Elsewhere("counts in decimals")
            case "PHA":
                self.push(self.a)
            case "PHP":
                self.push(self.flags)
            case "PLA":
                self.a = self.result(self.pull())
            case "PLP":
                self.flags = self.pull()
            case "ASL" | "ROL" | "LSR" | "ROR" | "INC" | "DEC":
                self.change(name, address)
            case _:
                self.calculate(name, self.value(address))

    def change(self, name: str, address: int | None) -> None:
        """Read and write back."""
        value = self.a if address is None else self.read(address)
        comes_in = int(self.c) if name in ("ROL", "ROR") else 0
        match name:
            case "INC" | "DEC":
                value = value + 1 if name == "INC" else value - 1
            case "ASL" | "ROL":
                self.c, value = value >= 128, value * 2 + comes_in
            case "LSR" | "ROR":
                self.c, value = value % 2 == 1, value // 2 + 128 * comes_in
        value = self.result(value % 256)
        if address is None:
            self.a = value
        else:
            self.write(address, value)

    def calculate(self, name: str, value: int) -> None:
        """With the operand's value."""
        match name:
            case "AND":
                self.a = self.result(self.a & value)
            case "ORA":
                self.a = self.result(self.a | value)
            case "EOR":
                self.a = self.result(self.a ^ value)
            case "BIT":
                self.n, self.v, self.z = value >= 128, value & 64 != 0, value & self.a == 0
            case "ADC" | "SBC":
                value = value if name == "ADC" else 255 - value
                total = self.a + value + self.c
                signed = (self.a ^ 128) - 128 + (value ^ 128) - 128 + self.c
                self.v, self.c = not -128 <= signed < 128, total > 255
                self.a = self.result(total % 256)
            case "CMP" | "CPX" | "CPY":
                register = {"CMP": self.a, "CPX": self.x, "CPY": self.y}[name]
                self.c = register >= value
                self.result((register - value) % 256)
            case _:
                raise AssertionError(name)
