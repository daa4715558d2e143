"""The effect of each processor instruction, as lines of typed Python.

The interpreter and the translation use the same lines. In the interpreter, an instruction's operand
bytes are variables; in the translation, they are numbers.

Names in the lines: a x y s are the registers; bit 7 of n is the flag N; z is 0 if the flag Z is
set; c v i d are flags, 0 or 1; t is the cycle; pc is the address of the next instruction; q is an
address; r is the operand; b e u w are intermediate values.

Time: an instruction reads and writes in its last cycle, as in ALE.
"""

from __future__ import annotations

from pixelpong.atari.machine.opcodes import (
    ALWAYS_SET,
    CARRY,
    CHANGES,
    DECIMAL,
    INTERRUPT,
    NEGATIVE,
    OVERFLOW,
    WRITES,
    ZERO,
    Opcode,
)

VARIABLES = "q = b = r = w = e = u = 0"
REGISTERS = ("a", "x", "y", "s")
# The flags as one byte, in the form that PHP pushes.
FLAGS = (
    f"(n & {1 << NEGATIVE} | v << {OVERFLOW} | {ALWAYS_SET} | d << {DECIMAL} | i << {INTERRUPT}"
    f" | (z == 0) << {ZERO} | c << {CARRY})"
)

CONDITIONS = {
    "BCC": "c == 0", "BCS": "c != 0", "BEQ": "z == 0", "BNE": "z != 0",
    "BMI": f"n & {1 << NEGATIVE} != 0", "BPL": f"n & {1 << NEGATIVE} == 0",
    "BVC": "v == 0", "BVS": "v != 0",
}  # fmt: skip

_RESULT = "c = w >> 8 & 1; v = w >> 9; a = n = z = w & 255"
_SUM = "w = a + r + c; v = ((a ^ w) & (r ^ w)) >> 7 & 1; c = w >> 8; a = n = z = w & 255"
SUM, DIFFERENCE = _SUM, f"r = r ^ 255; {_SUM}"  # the operations without decimal mode
_ADD = f"if d: w = add_decimals(a, r, c); {_RESULT}\nelse: {_SUM}"
_SUBTRACT = f"if d: w = subtract_decimals(a, r, c); {_RESULT}\nelse: {DIFFERENCE}"
_ROTATE = """r = a & r; n = z = r >> 1 | c << 7
if d: w = rotate_decimals(r, c)
else: w = n | (n >> 6 & 1) << 8 | ((n >> 6 ^ n >> 5) & 1) << 9
a = w & 255; c = w >> 8 & 1; v = w >> 9"""
_COMPARE = "c = w >= 0; n = z = w & 255"

# The effect of an instruction on registers and flags. r is its operand, which changes if it is
# written back.
OPERATIONS = {
    "LDA": "a = n = z = r", "LDX": "x = n = z = r", "LDY": "y = n = z = r",
    "AND": "a = n = z = a & r", "ORA": "a = n = z = a | r", "EOR": "a = n = z = a ^ r",
    "ADC": _ADD, "SBC": _SUBTRACT,
    "CMP": "w = a - r; " + _COMPARE, "CPX": "w = x - r; " + _COMPARE,
    "CPY": "w = y - r; " + _COMPARE,
    "BIT": "n = r; v = r >> 6 & 1; z = a & r",
    "INC": "r = n = z = r + 1 & 255", "DEC": "r = n = z = r - 1 & 255",
    "ASL": "c = r >> 7; r = n = z = r << 1 & 255", "LSR": "c = r & 1; r = n = z = r >> 1",
    "ROL": "w = r >> 7; r = n = z = (r << 1 | c) & 255; c = w",
    "ROR": "w = r & 1; r = n = z = r >> 1 | c << 7; c = w",
    "INX": "x = n = z = x + 1 & 255", "DEX": "x = n = z = x - 1 & 255",
    "INY": "y = n = z = y + 1 & 255", "DEY": "y = n = z = y - 1 & 255",
    "TAX": "x = n = z = a", "TAY": "y = n = z = a", "TXA": "a = n = z = x",
    "TYA": "a = n = z = y", "TSX": "x = n = z = s", "TXS": "s = x",
    "CLC": "c = 0", "SEC": "c = 1", "CLV": "v = 0", "CLI": "i = 0", "SEI": "i = 1",
    "CLD": "d = 0", "SED": "d = 1", "NOP": "",
    "LAX": "a = x = n = z = r",
    "DCP": "r = r - 1 & 255; w = a - r; " + _COMPARE,
    "SLO": "c = r >> 7; r = r << 1 & 255; a = n = z = a | r",
    "RLA": "w = r >> 7; r = (r << 1 | c) & 255; c = w; a = n = z = a & r",
    "SRE": "c = r & 1; r = r >> 1; a = n = z = a ^ r",
    "ISB": f"r = r + 1 & 255; u = r\n{_SUBTRACT}\nr = u",
    "RRA": f"w = r & 1; r = r >> 1 | c << 7; c = w; u = r\n{_ADD}\nr = u",
    "ANC": "a = n = z = a & r; c = a >> 7", "ASR": "a = a & r; c = a & 1; a = n = z = a >> 1",
    "SBX": "w = (a & x) - r; x = w & 255; " + _COMPARE,
    "ARR": _ROTATE,
    "ANE": "a = n = z = (a | 0xEE) & x & r", "LXA": "a = x = n = z = (a | 0xEE) & r",
    "LAS": "a = x = s = n = z = s & r", "SHS": "s = a & x",
}  # fmt: skip

# These instructions take one more cycle if the index moves the address into the next page of 256
# bytes.
PAGE_COSTS = (
    "ADC", "SBC", "AND", "ORA", "EOR", "CMP", "LDA", "LDX", "LDY", "LAX", "NOP", "LAS",
)  # fmt: skip

# These write the bits that their registers share with the address's high byte plus one.
_HIGH_WRITES = {"SHA": "a & x", "SHS": "s", "SHX": "x", "SHY": "y"}

_STOPS = "if m.stop: goto(out)"


def unpack_flags(byte: str) -> str:
    """Return lines that set the flags from a byte in the form of `FLAGS`."""
    bits = {"v": OVERFLOW, "d": DECIMAL, "i": INTERRUPT, "c": CARRY}
    others = "; ".join(f"{name} = {byte} >> {bit} & 1" for name, bit in bits.items())
    return f"n = {byte}; z = {byte} & {1 << ZERO} == 0; {others}"


def _push(value: str) -> str:
    return f"t = push(m, t, s, {value}); s = s - 1 & 255"


def _pull(name: str, bus: str) -> str:
    return f"s = s + 1 & 255; {name} = pull(m, t, s, {bus})"


def _pull_first(opcode: int) -> str:
    return f"s = s + 1 & 255; r = pull_first(m, t, s, {opcode})"


def _pull_flags(opcode: int) -> str:
    return f"{_pull_first(opcode)}; {unpack_flags('r')}"


_CALL = f"w = pc - 1 & 0xFFFF; {_push('w >> 8')}; {_push('w & 255')}"


def jump_code(opcode: Opcode, low: str, high: str) -> str | None:
    """Return an instruction's code if it changes pc or the stack, else None."""
    target = f"pc = {low} | {high} << 8"
    match opcode.name, opcode.mode:
        case name, "rel":
            jump = f"w = pc + ({low} ^ 128) - 128 & 0xFFFF; t += 1 + ((w ^ pc) >> 8 != 0); pc = w"
            return f"if {CONDITIONS[name]}: {jump}"
        case "JMP", "abs":
            return target
        case "JMP", "ind":
            second = "(q & 0xFF00) | (q + 1 & 255)"
            load = f"r = read(m, t, q, {high}); w = read(m, t, {second}, r)"
            return f"q = {low} | {high} << 8; {load}; pc = r | w << 8"
        case "JSR", _:
            return f"{_CALL}; {target}\n{_STOPS}"
        case "RTS", _:
            return f"{_pull_first(0x60)}; {_pull('w', 'r')}; pc = (r | w << 8) + 1 & 0xFFFF"
        case "RTI", _:
            low_high = f"{_pull('r', 'r')}; {_pull('w', 'r')}"
            return f"{_pull_flags(0x40)}; {low_high}; pc = r | w << 8"
        case "BRK", _:
            vector = "r = read(m, t, 0xFFFE, 0); w = read(m, t, 0xFFFF, 0); pc = r | w << 8"
            flags = f"w = {FLAGS}; {_push('w')}; i = 1"
            return f"pc = pc + 2 & 0xFFFF; {_CALL}; {flags}; {vector}\n{_STOPS}"
        case "PHA", _:
            return f"{_push('a')}\n{_STOPS}"
        case "PHP", _:
            return f"w = {FLAGS}; {_push('w')}\n{_STOPS}"
        case "PLA", _:
            return f"{_pull_first(0x68)}; a = n = z = r"
        case "PLP", _:
            return _pull_flags(0x28)
    return None


def address_code(opcode: Opcode, low: str, high: str) -> tuple[str, str]:
    """Return lines that set q to the operand's address, and the byte then on the bus."""
    costs = opcode.name in PAGE_COSTS
    match opcode.mode:
        case "zp":
            return f"q = {low}", low
        case "zpx" | "zpy":
            return f"q = {low} + {opcode.mode[2]} & 255", low
        case "abs":
            return f"q = {low} | {high} << 8", high
        case "abx" | "aby":
            index = opcode.mode[2]
            cost = f"t += {low} + {index} >> 8\n" if costs else ""
            return f"{cost}q = ({low} | {high} << 8) + {index} & 0xFFFF", high
        case "izx":
            load = f"r = read(m, t, q, {low}); b = read(m, t, q + 1 & 255, r)"
            return f"q = {low} + x & 255; {load}; q = r | b << 8", "b"
        case "izy":
            memory = f"r = m.ram[{low} & 127]; b = m.ram[{low} + 1 & 127]"
            other = f"r = read(m, t, {low}, {low}); b = read(m, t, {low} + 1 & 255, r)"
            load = f"if {low} > 127 and {low} < 255: {memory}\nelse: {other}\n"
            cost = "t += r + y >> 8\n" if costs else ""
            return f"{load}{cost}q = (r | b << 8) + y & 0xFFFF", "b"
    raise AssertionError(opcode)


def read_code(mode: str, bus: str) -> str:
    """Return lines that read r at the address q."""
    if mode in ("zp", "zpx", "zpy"):
        return f"if q & 0x80: r = m.ram[q & 127]\nelse: r = read_tia(m, t, q, {bus})"
    return (
        "if is_simple(q): r = read_rom(m, q)\n"
        "elif q & 0x1280 == 0x80: r = m.ram[q & 127]\n"
        f"else: r = read(m, t, q, {bus})"
    )


def write_code(mode: str, value: str) -> str:
    """Return lines that write a value at the address q."""
    if mode in ("zp", "zpx", "zpy"):
        other = f" t = write_tia(m, t, q & 63, {value})\n {_STOPS}"
        return f"if q & 0x80: m.ram[q & 127] = {value}\nelse:\n{other}"
    other = f" t = write(m, t, q, {value})\n {_STOPS}"
    return f"if q & 0x1280 == 0x80: m.ram[q & 127] = {value}\nelse:\n{other}"


def stored_value(name: str) -> str:
    """Return the value that a write-only instruction writes."""
    if name in _HIGH_WRITES:
        return f"({_HIGH_WRITES[name]} & (q >> 8) + 1)"
    return "(a & x)" if name == "SAX" else name[2].lower()


def instruction_code(opcode: Opcode, low: str, high: str) -> str:
    """Return an instruction's code; pc is already the next address (for BRK, its own)."""
    lines = [f"t += {opcode.cycles}"]
    jump = jump_code(opcode, low, high)
    if jump is not None:
        return f"{lines[0]}\n{jump}"
    match opcode.mode:
        case "imp":
            lines.append(OPERATIONS[opcode.name])
        case "acc":
            lines += ["r = a", OPERATIONS[opcode.name], "a = r"]
        case "imm":
            lines += [f"r = {low}", OPERATIONS[opcode.name]]
        case _:
            address, bus = address_code(opcode, low, high)
            lines.append(address)
            if opcode.name in WRITES:
                lines.append(OPERATIONS.get(opcode.name, ""))
                lines.append(write_code(opcode.mode, stored_value(opcode.name)))
            elif opcode.name in CHANGES:
                lines += ["e = q", read_code(opcode.mode, bus), OPERATIONS[opcode.name]]
                lines += ["q = e", write_code(opcode.mode, "r")]
            else:
                lines += [read_code(opcode.mode, bus), OPERATIONS[opcode.name]]
    return "\n".join(line for line in lines if line)
