"""The 6502 once more, as the manual tells it: slow, literal, and independent of the package.

What the emulator is held to, instruction by instruction. An opcode is read off its bits: aaabbbcc.

Covered: documented instructions without decimal arithmetic; memory of 128 bytes, which is the stack
as well, and a cartridge of 2 kB. Anything else on the bus raises `Elsewhere`.

Source: MCS6500 Family Programming Manual (MOS, 1976), appendices A and B.
"""

from __future__ import annotations

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

_IMPLIED = {
    0x00: "BRK", 0x08: "PHP", 0x0A: "ASL", 0x18: "CLC", 0x28: "PLP", 0x2A: "ROL", 0x38: "SEC",
    0x40: "RTI", 0x48: "PHA", 0x4A: "LSR", 0x58: "CLI", 0x60: "RTS", 0x68: "PLA", 0x6A: "ROR",
    0x78: "SEI", 0x88: "DEY", 0x8A: "TXA", 0x98: "TYA", 0x9A: "TXS", 0xA8: "TAY", 0xAA: "TAX",
    0xB8: "CLV", 0xBA: "TSX", 0xC8: "INY", 0xCA: "DEX", 0xD8: "CLD", 0xE8: "INX", 0xEA: "NOP",
    0xF8: "SED",
}  # fmt: skip

_OTHERS = {0x20: ("JSR", "address"), 0x4C: ("JMP", "address"), 0x6C: ("JMP", "pointer")}

_GROUPS = {
    0: ("", "BIT", "", "", "STY", "LDY", "CPY", "CPX"),
    1: ("ORA", "AND", "EOR", "ADC", "STA", "LDA", "CMP", "SBC"),
    2: ("ASL", "ROL", "LSR", "ROR", "STX", "LDX", "DEC", "INC"),
}

_MODES = {
    0: {0: "immediate", 1: "page 0", 3: "absolute", 5: "page 0,x", 7: "absolute,x"},
    1: {
        0: "(page 0,x)", 1: "page 0", 2: "immediate", 3: "absolute", 4: "(page 0),y",
        5: "page 0,x", 6: "absolute,y", 7: "absolute,x",
    },
    2: {0: "immediate", 1: "page 0", 3: "absolute", 5: "page 0,x", 7: "absolute,x"},
}  # fmt: skip


class Elsewhere(Exception):  # noqa: N818 - it is no error
    """The processor left what the model covers."""


def decode(opcode: int) -> tuple[str, str] | None:
    """Name and addressing mode; None if the opcode is not documented."""
    if opcode in _IMPLIED:
        return _IMPLIED[opcode], "accumulator" if opcode & 0x9F == 0x0A else "implied"
    if opcode in _OTHERS:
        return _OTHERS[opcode]
    if opcode & 0x1F == 0x10:
        return ["BPL", "BMI", "BVC", "BVS", "BCC", "BCS", "BNE", "BEQ"][opcode >> 5], "branch"
    group, mode = _GROUPS.get(opcode & 3), _MODES.get(opcode & 3, {}).get(opcode >> 2 & 7)
    name = group[opcode >> 5] if group else ""
    if not name or not mode or not _exists(name, mode):
        return None
    if name in ("STX", "LDX"):
        mode = mode.replace(",x", ",y")
    return name, mode


def _exists(name: str, mode: str) -> bool:
    if mode == "immediate":
        return name in ["LDY", "CPY", "CPX", "LDX", "ORA", "AND", "EOR", "ADC", "LDA", "CMP", "SBC"]
    if mode == "absolute,x":
        return name not in ("STY", "BIT", "CPY", "CPX", "STX")
    return mode != "page 0,x" or name not in ("BIT", "CPY", "CPX")


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

    def instruction(self) -> tuple[str, str] | None:
        return decode(self.rom[self.pc])

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
