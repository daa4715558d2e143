"""Translating a cartridge's instructions to one compiled function: ``run_frame(m)``.

An emulator usually reads an instruction, decodes it, runs it, and goes to the next one. Here all
decoding is done once. Each instruction becomes a line or two of typed Python that spell out operand
and addressing mode; a branch becomes a jump to a label. All of it is compiled as one function. So
the console's registers are registers of the real processor, and unused flags are never computed.

Names in the lines: a x y s, the registers; n, whose bit 7 is the flag N; z, which is 0 if the flag
Z is set; c v i, 0 or 1; t, the cycle; q, an address; r and w, intermediate values.

Time: an instruction reads and writes in its last cycle, as in ALE. Every jump back checks whether
the frame takes too long, so a frame always ends, whatever the machine's state.

The compiled function contains the cartridge's logic. It exists in memory and in the user's cache,
never in the repository.

Not covered: decimal arithmetic (SED), the addressing mode "(address, X)", pointers outside the
memory. A machine that meets them, or jumps to an unknown place, stops and says why.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping

from pixelpong.atari import registers
from pixelpong.atari.disassembly import SIZE, Instruction, disassemble, read_vector
from pixelpong.atari.ir import NOTHING, POINTER, Program
from pixelpong.atari.lowering import Lowering
from pixelpong.atari.machine import MAX_CYCLES, NOT_IMPLEMENTED, NOT_TRANSLATED, ROWS, TOO_LONG, TOP
from pixelpong.atari.opcodes import CHANGES, WRITES

_REGISTERS = ("a", "x", "y", "s")

# The flags as one byte, as PHP pushes them. The flag D, decimal arithmetic, is not covered.
_FLAGS = "(n & 128 | v << 6 | 0x30 | i << 2 | (z == 0) << 1 | c)"
_SET_FLAGS = "n = {0}; z = {0} & 2 == 0; v = {0} >> 6 & 1; c = {0} & 1; i = {0} >> 2 & 1"
_PULL_FLAGS = f"""s = s + 1 & 255; r = m.ram[s & 127]
if r & 8: goto(not_covered)
{_SET_FLAGS.format("r")}"""

_BRANCH_IF = {
    "BCC": "c == 0", "BCS": "c != 0", "BEQ": "z == 0", "BNE": "z != 0",
    "BMI": "n & 128 != 0", "BPL": "n & 128 == 0", "BVC": "v == 0", "BVS": "v != 0",
}  # fmt: skip

_ADD = "w = a + r + c; v = ((a ^ w) & (r ^ w)) >> 7 & 1; c = w >> 8; a = n = z = w & 255"

_RETURN = "s = s + 2 & 255; pc = m.ram[s - 1 & 127] | m.ram[s & 127] << 8"
# Jump to an address from memory, which may lie outside the cartridge.
_GO_TO_PC = "if pc & 0xF800 != 0xF000: goto(unknown)\npc = pc & 0x7FF; goto(dispatch)"

_STOPS = {"unknown": NOT_TRANSLATED, "too_long": TOO_LONG, "not_covered": NOT_IMPLEMENTED}
_LIMIT = f"if t > {MAX_CYCLES}: goto(too_long)"

# What an instruction does to registers and flags; {v} is its operand's value.
_OPERATIONS = {
    "LDA": "a = n = z = {v}", "LDX": "x = n = z = {v}", "LDY": "y = n = z = {v}",
    "AND": "a = n = z = a & {v}", "ORA": "a = n = z = a | {v}", "EOR": "a = n = z = a ^ {v}",
    "ADC": "r = {v}; " + _ADD, "SBC": "r = {v} ^ 255; " + _ADD,
    "CMP": "w = a - {v}; c = w >= 0; n = z = w & 255",
    "CPX": "w = x - {v}; c = w >= 0; n = z = w & 255",
    "CPY": "w = y - {v}; c = w >= 0; n = z = w & 255",
    "BIT": "n = {v}; v = n >> 6 & 1; z = a & n",
    "INC": "n = z = {v} + 1 & 255", "DEC": "n = z = {v} - 1 & 255",
    "ASL": "r = {v}; c = r >> 7; n = z = r << 1 & 255",
    "LSR": "r = {v}; c = r & 1; n = z = r >> 1",
    "ROL": "r = {v}; n = z = (r << 1 | c) & 255; c = r >> 7",
    "ROR": "r = {v}; n = z = r >> 1 | c << 7; c = r & 1",
    "INX": "x = n = z = x + 1 & 255", "DEX": "x = n = z = x - 1 & 255",
    "INY": "y = n = z = y + 1 & 255", "DEY": "y = n = z = y - 1 & 255",
    "TAX": "x = n = z = a", "TAY": "y = n = z = a", "TXA": "a = n = z = x",
    "TYA": "a = n = z = y", "TSX": "x = n = z = s", "TXS": "s = x",
    "CLC": "c = 0", "SEC": "c = 1", "CLV": "v = 0", "CLI": "i = 0", "SEI": "i = 1",
    "CLD": "", "NOP": "",
    "PHA": "t = write_inline(m, t, s, a); s = s - 1 & 255",
    "PHP": f"t = write_inline(m, t, s, {_FLAGS}); s = s - 1 & 255",
    "PLA": "s = s + 1 & 255; a = n = z = m.ram[s & 127]",
    "PLP": _PULL_FLAGS,
}  # fmt: skip

# Bytes that an instruction pushes onto the stack, or pulls from it.
_PUSHES = {"JSR": 2, "BRK": 3}
_PULLS = {"RTS": 2, "RTI": 3, "PLA": 1, "PLP": 1}
# These take one more cycle if the index moves the address into the next page of 256 bytes.
_PAGE_COSTS = ("ADC", "SBC", "AND", "ORA", "EOR", "CMP", "LDA", "LDX", "LDY")


class Translation:
    """The translation of one cartridge to ``run_frame``."""

    def __init__(self, rom: bytes, entries: Iterable[int], hints: Mapping[int, str]) -> None:
        """Find the code; `entries` are offsets reached through memory.

        `hints` are typed Python by offset, added in front of the instruction there. They use facts
        about this cartridge to save work, and must leave the machine as its own code would.
        """
        self._hints = hints
        code = disassemble(rom, entries)
        # A frame ends after a write to VSYNC, and the next one begins there.
        frames = [each.after for each in code.values() if _writes_vsync(each)]
        self._code = code = disassemble(rom, [*entries, *frames])
        self._interrupt = read_vector(rom, SIZE - 2)
        returns = [each.after for each in code.values() if each.is_call]
        start = read_vector(rom, SIZE - 4)
        self.entries = sorted({start, *entries, *frames, *returns} & code.keys())
        targets = {each.target for each in code.values() if each.target is not None}
        # Overlapping code, and code that continues from the cartridge's end at its beginning.
        afters = Counter(each.after for each in code.values() if each.goes_on)
        joints = {place for place, count in afters.items() if count > 1}
        joints |= {each.after for each in code.values() if each.after < each.place}
        labels = {*self.entries, *targets, *joints, *hints, self._interrupt}
        self._labels = labels & code.keys()

    def add_to(self, program: Program) -> None:
        """Add ``run_frame(m)``, which plays a frame on the record; ``m.stop`` says why it ended."""
        program.declare("run_frame", {"m": POINTER}, NOTHING)
        out = Lowering(program, "run_frame")
        out.code("begin_frame(m); t = m.cycle; pc = m.pc; q = b = r = w = 0; p = m.p")
        out.code("; ".join(f"{name} = m.{name}" for name in _REGISTERS))
        out.code(_SET_FLAGS.format("p"))
        out.label("dispatch")
        out.code(_LIMIT)
        out.switch("pc", {place: _label(place) for place in self.entries}, "unknown")
        self._add_instructions(out)
        for label, code in _STOPS.items():
            out.label(label)
            out.code(f"if m.stop == 0: m.stop = {code}\ngoto(out)")
        out.label("out")
        out.code(f"draw_to(m, {registers.CLOCKS * (TOP + ROWS)}); m.pc = pc; m.p = {_FLAGS}")
        out.code("; ".join(f"m.{name} = {name}" for name in _REGISTERS) + "; end_frame(m, t)")
        out.close()

    def _add_instructions(self, out: Lowering) -> None:
        done: set[int] = set()
        for start in sorted(self._code):
            place = start
            while place not in done:
                done.add(place)
                if place in self._labels:
                    out.label(_label(place))
                out.code(self._hints.get(place, ""))
                instruction = self._code[place]
                out.code(self._translate(instruction))
                if out.is_closed:
                    break
                place = instruction.after
                if place < instruction.place:  # from the cartridge's end to its beginning
                    out.code(f"pc = {place}\n{_LIMIT}")
                if place not in self._code:
                    out.code(f"pc = {place}; goto(unknown)")
                    break
            else:
                if not out.is_closed:
                    out.goto(_label(place))

    def _translate(self, one: Instruction) -> str:
        if one.name == "SED" or one.mode == "izx" or _is_pointer_elsewhere(one):
            return f"pc = {one.place}; goto(not_covered)"
        lines = [self._skip_loop(one), _check_stack(one), f"t += {one.cycles}", self._control(one)]
        if lines[-1] is None:
            before, value = ("", "") if one.name in WRITES else self._read(one)
            lines[-1] = before
            if one.name in _OPERATIONS:
                lines.append(_OPERATIONS[one.name].format(v=value))
            if one.name in CHANGES:
                lines.append("a = n" if one.mode == "acc" else self._write(one, "n"))
            if one.name in WRITES:
                lines.append(self._write(one, one.name[2].lower()))
        return "\n".join(line for line in lines if line)

    # Control.

    def _control(self, one: Instruction) -> str | None:
        """The code of a jump, a branch, a call or a return; None for other instructions."""
        if one.mode == "rel":
            cost = 2 if (one.after ^ one.operand) & 0x700 else 1
            jump = textwrap.indent(f"t += {cost}\n{self._go(one)}", " ")
            return f"if {_BRANCH_IF[one.name]}:\n{jump}"
        back = one.place + 2
        call = f"m.ram[s & 127] = {(back | 0xF000) >> 8}; m.ram[s - 1 & 127] = {back & 255}"
        match one.name, one.mode:
            case "JMP", "abs":
                return self._go(one)
            case "JMP", _:
                low, high = one.operand & 127, one.operand + 1 & 127
                return f"pc = m.ram[{low}] | m.ram[{high}] << 8\n{_GO_TO_PC}"
            case "JSR", _:
                return f"{call}; s = s - 2 & 255\n{self._go(one)}"
            case "BRK", _:
                push = f"s = s - 2 & 255; m.ram[s & 127] = {_FLAGS}; s = s - 1 & 255; i = 1"
                return f"{call}; {push}\n{self._go(one)}"
            case "RTS", _:
                return f"{_RETURN}; pc = pc + 1 & 0xFFFF\n{_GO_TO_PC}"
            case "RTI", _:
                return f"{_PULL_FLAGS}\n{_RETURN}\n{_GO_TO_PC}"
        return None

    def _go(self, one: Instruction) -> str:
        """The code of a jump; a jump back first checks that the frame is not too long."""
        target = self._interrupt if one.name == "BRK" else one.target
        assert target is not None
        jump = f"pc = {target}; goto({_label(target) if target in self._code else 'unknown'})"
        if target <= one.place:
            jump = f"pc = {target}\n{_LIMIT}\n{jump}"
        return jump

    def _skip_loop(self, one: Instruction) -> str:
        """The code that skips to the last round of a waiting loop of two instructions.

        ``wait: LDA INTIM, BNE wait`` waits for the timer; ``wait: DEY, BPL wait`` only waits.
        """
        branch = self._code.get(one.after)
        if branch is None or branch.operand != one.place or branch.after < branch.place:
            return ""
        cycles = one.cycles + 3 + ((one.place ^ branch.after) & 0x700 > 0)
        if (one.name, one.mode, one.operand, branch.name) == ("LDA", "abs", 0x284, "BNE"):
            return f"t = wait_for_timer(m, t, {cycles})"
        if one.name in ("DEX", "DEY") and branch.name == "BPL":
            register = one.name[2].lower()
            return f"if {register} < 128: t += {cycles} * {register}; {register} = 0"
        return ""

    # Operands.

    def _read(self, one: Instruction) -> tuple[str, str]:
        """The lines to run first, and an expression for the operand's value."""
        match one.mode:
            case "imp":
                return "", ""
            case "acc":
                return "", "a"
            case "imm":
                return "", str(one.operand)
        before, bus = self._address(one)
        return f"{before}\nif q & 0x1000: r = rom[q & 0x7FF]\nelse: r = read(m, t, q, {bus})", "r"

    def _address(self, one: Instruction) -> tuple[str, str]:
        """The lines that set q to the address, and the byte that is then on the bus."""
        costs, operand = one.name in _PAGE_COSTS, one.operand
        match one.mode:
            case "zp":
                return f"q = {operand}", str(operand)
            case "abs":
                return f"q = {operand}", str(operand >> 8)
            case "zpx" | "zpy":
                return f"q = {operand} + {one.mode[2]} & 255", str(operand)
            case "abx" | "aby":
                index = one.mode[2]
                cost = f"\nt += {operand & 255} + {index} >> 8" if costs and operand & 255 else ""
                return f"q = {operand} + {index} & 0x1FFF{cost}", str(operand >> 8)
        cost = "t += q + y >> 8\n" if costs else ""
        load = f"q = m.ram[{operand & 127}]; b = m.ram[{operand + 1 & 127}]"
        return f"{load}\n{cost}q = (q | b << 8) + y & 0x1FFF", "b"

    def _write(self, one: Instruction, value: str) -> str:
        if one.mode not in ("zp", "abs"):
            before = "" if one.name in CHANGES else self._address(one)[0] + "\n"
            return f"{before}t = write(m, t, q, {value})"
        if _writes_vsync(one):
            return f"write_vsync(m, t, {value})\nif m.stop: pc = {one.after}; goto(out)"
        return f"t = write_inline(m, t, {one.operand}, {value})"


def _label(place: int) -> str:
    return f"L{place:03X}"


def _check_stack(one: Instruction) -> str:
    """The code that stops if a push or pull leaves the memory (one byte may go to the TIA)."""
    if one.name in _PUSHES:
        return f"if s < {0x7F + _PUSHES[one.name]}: goto(not_covered)"
    if one.name in _PULLS:
        return f"if s < 0x7F or s > {0xFF - _PULLS[one.name]}: goto(not_covered)"
    return ""


def _is_pointer_elsewhere(one: Instruction) -> bool:
    places = one.operand, one.operand + 1
    return one.mode in ("izy", "ind") and not all(map(_is_memory, places))


def _is_memory(address: int) -> bool:
    return address & 0x1280 == 0x80


def _writes_vsync(one: Instruction) -> bool:
    is_write = one.name in WRITES and one.mode in ("zp", "abs")
    return is_write and one.operand & 0x10BF == registers.VSYNC
