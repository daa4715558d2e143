"""Translates a cartridge's instructions to one compiled function: ``run_translated(m)``.

An emulator usually reads an instruction, decodes it, runs it, and moves on to the next one. Here
all instructions are decoded once. Each becomes a line or two of typed Python that spell out its
operand and addressing mode; a branch becomes a jump to a label. All of this is compiled as one
function. So the console's registers are registers of the real processor, and unused flags are never
computed.

The interpreter runs code that was not found in advance, and rare, complicated instructions: at
``handover``, pc is the instruction that runs next, and the function returns. The function checks
whether the frame takes too long at every jump back, at every return, and wherever it could
otherwise run for too long. So it always ends, whatever the machine's state.

The compiled function contains the cartridge's logic. It exists in memory and in the user's cache,
never in the repository.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping

from pixelpong.atari.machine.banks import LINE, NONE, WHOLE
from pixelpong.atari.machine.disassembly import BankedRom, Instruction, Spot, disassemble
from pixelpong.atari.machine.instructions import (
    CONDITIONS,
    DIFFERENCE,
    FLAGS,
    OPERATIONS,
    PAGE_COSTS,
    SUM,
    address_code,
    instruction_code,
    stored_value,
    unpack_flags,
)
from pixelpong.atari.machine.interpreter import begin, end
from pixelpong.atari.machine.lowering import Lowering
from pixelpong.atari.machine.opcodes import CHANGES, WRITES
from pixelpong.atari.machine.program import INT, NOTHING, Program
from pixelpong.atari.machine.record import MAX_LINES
from pixelpong.atari.machine.registers import WSYNC
from pixelpong.atari.machine.tia_writes import write_register

_BANK = 4096  # size of a bank in bytes
_FEW = 32  # with up to this many entries, comparing pc is as fast as a table
_LINES_LEFT = 14  # number of lines at the end of the longest frame that are interpreted
_INTIM, _TIMINT = 0x284, 0x285  # the timer and its flag, without the address's other bits
_LIMIT = "if t > GUARD: goto(handover)"


class Translation:
    """The translation of one cartridge to ``run_translated``."""

    def __init__(
        self, rom: BankedRom, entries: Iterable[Spot], hints: Mapping[int, str] | None = None
    ) -> None:
        """Find the code that is reachable from `entries`.

        `hints` maps an offset in the ROM to typed Python that is added in front of the instruction.
        Hints use facts about this cartridge to save work, and must leave the machine as the
        cartridge's own code would.
        """
        self._rom, self._hints = rom, hints or {}
        self._code, jumps = disassemble(rom, entries)
        self.entries = sorted(jumps)
        # Without SED, the interpreter handles decimal arithmetic.
        self._has_decimals = any(i.opcode.name == "SED" for i in self._code.values())
        successors = Counter(
            spot for i in self._code.values() if (spot := self._next(i)) is not None
        )
        joints = {spot for spot, count in successors.items() if count > 1}
        targets = {self._spot(i, i.target) for i in self._code.values() if i.target}
        hinted = {spot for spot in self._code if spot[0] in self._hints}
        self._labels = (jumps | joints | targets | hinted) & self._code.keys()
        self._checks = self._find_checks()

    def add_to(self, program: Program) -> None:
        """Add ``run_translated(m)`` and the tables of its entries."""
        number_at, pc_of = [0] * len(self._rom.content), [0] * len(self._rom.content)
        for number, (offset, pc) in enumerate(self.entries, start=1):
            number_at[offset], pc_of[offset] = number, pc
        program.add_names({"ENTRY_AT": tuple(number_at), "ENTRY_PC": tuple(pc_of)})
        program.add_names({"GUARD": 76 * (program.names.get("MAX_LINES", MAX_LINES) - _LINES_LEFT)})
        banks = sorted({self._bank_of(spot) for spot in self._code})
        if len(banks) <= 1:
            self._add_bank(program, "run_translated", [*self._code], number_at)
            return
        for bank in banks:
            spots = [spot for spot in self._code if self._bank_of(spot) == bank]
            self._add_bank(program, f"run_bank_{bank}", spots, number_at, INT)
        out = Lowering(program, "run_translated", "noinline")
        calls = "\n".join(f" if r == {bank}: w = run_bank_{bank}(m)" for bank in banks)
        out.code(f"w = 1\nwhile w:\n r = offset_of(m, m.pc) // {_BANK}\n w = 0\n{calls}")
        out.close()

    def _bank_of(self, spot: Spot) -> int:
        """Return a spot's bank; one function per bank compiles faster, and no jump leaves one."""
        return spot[0] // _BANK if self._rom.scheme == WHOLE else 0

    def _add_bank(
        self, program: Program, name: str, spots: list[Spot], at: list[int], result: str = NOTHING
    ) -> None:
        """Add a function for some code; its result, if any, says whether another bank continues."""
        out = begin(program, name, result)
        out.code("is_elsewhere = 0")
        if not self._has_decimals:
            out.code("if d: goto(out)\nd = 0")
        out.label("dispatch")
        out.code("if t > GUARD: goto(out)")
        if self._rom.scheme == NONE and len(self.entries) <= _FEW:
            out.switch("pc", {spot[1]: _label(spot) for spot in self.entries}, "out")
        else:
            is_known = "pc & 0x1000 and ENTRY_PC[offset_of(m, pc)] == pc"
            out.code(f"if {is_known}: w = ENTRY_AT[offset_of(m, pc)]\nelse: goto(out)")
            own = {*spots}
            known = {at[spot[0]]: _label(spot) for spot in self.entries if spot in own}
            out.switch("w", known, "elsewhere")
        self._add_instructions(out, spots)
        out.label("elsewhere")
        out.code("is_elsewhere = 1\ngoto(out)")
        out.label("handover")
        out.goto("out")
        end(out, "is_elsewhere" if result != NOTHING else "")

    def _add_instructions(self, out: Lowering, spots: list[Spot]) -> None:
        done: set[Spot] = set()
        for start in sorted(spots, key=lambda spot: (spot[1], spot[0])):
            spot: Spot | None = start
            while spot is not None and spot not in done:
                done.add(spot)
                instruction = self._code[spot]
                if spot in self._labels:
                    out.label(_label(spot))
                if spot in self._checks:
                    out.code(f"if t > GUARD: pc = {instruction.pc}; goto(handover)")
                out.code(self._hints.get(spot[0], ""))
                out.code(self._translate(instruction))
                if out.is_closed:
                    break
                spot = self._next(instruction)
                if spot is None:
                    out.code(f"pc = {instruction.after}; goto(handover)")
            else:
                if spot is not None and not out.is_closed:
                    out.goto(_label(spot))

    def _find_checks(self) -> set[Spot]:
        """Find the spots, besides jumps back and returns, that check whether the frame is too long.

        They are placed so that no path uses up the remaining lines without a check.
        """
        checks, spent = set(), Counter[Spot]()
        for spot, instruction in sorted(self._code.items(), key=lambda item: item[1].pc):
            if spent[spot] > 76 * (_LINES_LEFT - 2):
                checks.add(spot)
                spent[spot] = 0
            is_halt = instruction.written_register == WSYNC
            cost = 76 if is_halt else instruction.opcode.cycles + 2
            cost += 76 * _LINES_LEFT if self._skip_loop(instruction) else 0
            for target in (self._next(instruction), self._spot(instruction, instruction.target)):
                if target is not None and target[1] > instruction.pc:
                    spent[target] = max(spent[target], spent[spot] + cost)
        return checks

    def _spot(self, instruction: Instruction, address: int | None) -> Spot | None:
        """Return the spot of an address, as an instruction sees it; None if uncertain."""
        offset = None if address is None else self._rom.offset_of(address, instruction.spot)
        return None if address is None or offset is None else (offset, address)

    def _next(self, instruction: Instruction) -> Spot | None:
        """Return the following instruction's spot, if it may run next and is translated."""
        spot = self._spot(instruction, instruction.after) if instruction.falls_through else None
        return spot if spot in self._code else None

    # Control flow.

    def _translate(self, instruction: Instruction) -> str:
        name, mode, cycles = instruction.opcode
        spend = f"t += {cycles}"
        if mode == "rel":
            cost = 2 if (instruction.after ^ (instruction.target or 0)) & 0xFF00 else 1
            jump = textwrap.indent(f"t += {cost}\n{self._go(instruction)}", " ")
            return f"{spend}\nif {CONDITIONS[name]}:\n{jump}"
        if (name, mode) == ("JMP", "abs"):
            return f"{spend}\n{self._go(instruction)}"
        if name == "JSR" or (name == "BRK" and instruction.target is not None):
            return self._call(instruction)
        if name in ("RTS", "RTI"):
            return self._return(instruction)
        if name == "BRK" or (name, mode) == ("JMP", "ind"):
            return f"{self._alone(instruction)}\ngoto(dispatch)"
        if mode in ("imp", "acc", "imm"):
            check = f"\n{self._check_decimals()}" if name == "PLP" else ""
            return f"{self._skip_loop(instruction)}{self._alone(instruction)}{check}"
        if name in WRITES:
            changes = OPERATIONS.get(name, "")
            return f"{spend}\n{changes}\n{self._write(instruction, stored_value(name))}"
        skip, read = self._skip_loop(instruction).strip(), self._read(instruction)
        lines = [skip, spend, read, self._operation(name)]
        if name in CHANGES:
            if not instruction.is_direct:  # the operation may use q
                lines = [*lines[:-1], "e = q", lines[-1], "q = e"]
            lines.append(self._write(instruction, "r", is_known=True))
        if instruction.is_direct and self._rom.switches(instruction.word):
            lines.append(f"pc = {instruction.after}; goto(dispatch)")
        return "\n".join(line for line in lines if line)

    def _call(self, instruction: Instruction) -> str:
        """Return the code of JSR or BRK, for a stack in memory."""
        count = 3 if instruction.opcode.name == "BRK" else 2
        back = instruction.after - (count == 2) & 0xFFFF
        push = f"m.ram[s & 127] = {back >> 8}; m.ram[s - 1 & 127] = {back & 255}"
        flags = f"; m.ram[s - 2 & 127] = {FLAGS}; i = 1" if count == 3 else ""
        spend = f"s = s - {count}; t += {instruction.opcode.cycles}"
        check = self._unless(f"s > {0x7E + count}", instruction)
        return f"{check}\n{push}{flags}; {spend}\n{self._go(instruction)}"

    def _return(self, instruction: Instruction) -> str:
        """Return the code of RTS or RTI, for a stack in memory."""
        count = 3 if instruction.opcode.name == "RTI" else 2
        flags = f"s = s + 1; r = m.ram[s & 127]; {unpack_flags('r')}; " if count == 3 else ""
        pull = "pc = m.ram[s + 1 & 127] | m.ram[s + 2 & 127] << 8; s = s + 2"
        pull += "; pc = pc + 1 & 0xFFFF" if count == 2 else ""
        condition = f"s >= 0x7F and s < {0x100 - count}"
        spend = f"t += {instruction.opcode.cycles}"
        lines = [self._unless(condition, instruction), f"{flags}{pull}; {spend}"]
        lines += [self._check_decimals()] if count == 3 else []
        return "\n".join([*lines, "goto(dispatch)"])

    def _alone(self, instruction: Instruction) -> str:
        """Return the same code of an instruction as in the interpreter."""
        pc = instruction.after - (instruction.opcode.name == "BRK") & 0xFFFF
        code = instruction_code(instruction.opcode, str(instruction.low), str(instruction.high))
        return f"pc = {pc}\n{code.replace(OPERATIONS['ADC'], self._operation('ADC'))}".replace(
            OPERATIONS["SBC"], self._operation("SBC")
        )

    def _operation(self, name: str) -> str:
        """Return the effect of an instruction on registers and flags."""
        short = {} if self._has_decimals else {"ADC": SUM, "SBC": DIFFERENCE}
        return short.get(name, OPERATIONS[name])

    def _check_decimals(self) -> str:
        """Return the code that follows a pull of the flags."""
        return "" if self._has_decimals else "if d: goto(handover)\nd = 0"

    def _unless(self, condition: str, instruction: Instruction) -> str:
        """Return code that hands an instruction over unless a condition holds."""
        return f"if {condition}: w = 0\nelse:\n pc = {instruction.pc}; goto(handover)"

    def _go(self, instruction: Instruction) -> str:
        """Return the code of a jump; a jump back first checks whether the frame is too long."""
        target, spot = instruction.target, self._spot(instruction, instruction.target)
        assert target is not None
        if spot is None:  # its bank is not certain
            return f"pc = {target}; goto(dispatch)"
        if spot not in self._code:
            return f"pc = {target}; goto(handover)"
        before = f"pc = {target}\n{_LIMIT}\n" if target <= instruction.pc else ""
        return f"{before}goto({_label(spot)})"

    def _skip_loop(self, instruction: Instruction) -> str:
        """Return code that skips to the last iteration of a wait loop of two instructions.

        ``wait: LDA INTIM, BNE wait`` waits for the timer to be 0; with BPL, or with the timer's
        flag, until it has run out. ``wait: DEY, BPL wait`` and ``wait: DEY, BNE wait`` only wait.
        """
        spot = self._next(instruction)
        branch = self._code[spot] if spot is not None else None
        if branch is None or branch.opcode.mode != "rel" or branch.target != instruction.pc:
            return ""
        name, mode, cost = instruction.opcode
        cycles = cost + 3 + ((instruction.pc ^ branch.after) & 0xFF00 > 0)
        port, condition = instruction.word & 0x1287 if mode == "abs" else 0, branch.opcode.name
        is_load, is_count = name in ("LDA", "LDX", "LDY"), name in ("DEX", "DEY")
        if is_load and port == _INTIM and condition == "BNE":
            return f"t = wait_for_timer(m, t, {cycles})\n"
        if condition == "BPL" and (
            (is_load and port in (_INTIM, _TIMINT)) or (name == "BIT" and port == _TIMINT)
        ):
            return f"t = wait_for_end_of_timer(m, t, {cycles})\n"
        register = name[2].lower()
        if is_count and condition == "BPL":
            return f"if {register} < 128: t += {cycles} * {register}; {register} = 0\n"
        if is_count and condition == "BNE":
            return f"t += {cycles} * ({register} - 1 & 255); {register} = 1\n"
        return ""

    # Operands.

    def _read(self, instruction: Instruction) -> str:
        """Return lines that read r; they set q if the address is not in the code."""
        if instruction.is_direct:
            return self._read_direct(instruction)
        address, bus = address_code(instruction.opcode, str(instruction.low), str(instruction.high))
        mode = instruction.opcode.mode
        if mode in ("zpx", "zpy"):
            return f"{address}\nif q & 0x80: r = m.ram[q & 127]\nelse: r = read_tia(m, t, q, {bus})"
        if mode in ("abx", "aby") and self._is_table(instruction.word):
            return f"{address}\nr = read_rom(m, q)"
        lines = [
            address,
            "if is_simple(q): r = read_rom(m, q)",
            "elif q & 0x1280 == 0x80: r = m.ram[q & 127]",
        ]
        if self._rom.scheme in (NONE, LINE):
            lines.append(f"else: r = read(m, t, q, {bus})")
        else:  # such a read may switch banks
            lines.append(f"elif q & 0x1000 == 0: r = read(m, t, q, {bus})\nelse:")
            lines.append(f" t -= {instruction.opcode.cycles}{_undo_cost(instruction)}")
            lines.append(f" pc = {instruction.pc}; goto(handover)")
        return "\n".join(lines)

    def _is_table(self, base: int) -> bool:
        """Return whether an address plus any index up to 255 is ROM without side effects."""
        rom, last = self._rom, (base & 0xFFF) + 255
        return base & 0x1000 != 0 and last < rom.hotspot and not rom.is_memory(base)

    def _read_direct(self, instruction: Instruction) -> str:
        q = instruction.word
        bus = instruction.low if instruction.opcode.mode == "zp" else instruction.high
        if q & 0x1000:
            offset = self._rom.offset_of(q, instruction.spot)
            if self._rom.is_memory(q) or self._rom.switches(q):
                return f"r = read_cartridge(m, {q})"
            return f"r = read_rom(m, {q})" if offset is None else f"r = {self._rom.content[offset]}"
        if q & 0x80 == 0:
            if 8 <= q & 15 < 12:
                return f"r = {bus & 63} | is_charged(m, t, {q & 3}) << 7"
            return f"r = read_tia(m, t, {q & 15}, {bus})"
        if q & 0x200 == 0:
            return f"r = m.ram[{q & 127}]"
        return {0: "r = m.swcha", 2: "r = m.swchb"}.get(q & 7, f"r = read_port(m, t, {q & 7})")

    def _write(self, instruction: Instruction, value: str, *, is_known: bool = False) -> str:
        """Return lines that write a value; with `is_known`, q is already the address."""
        if instruction.is_direct:
            return self._write_direct(instruction, value)
        address, _ = address_code(instruction.opcode, str(instruction.low), str(instruction.high))
        before = "" if is_known else f"{address}\n"
        leave = f" if m.stop:\n  pc = {instruction.after}; goto(out)"
        if instruction.opcode.mode in ("zpx", "zpy"):
            other = f" t = write_tia(m, t, q & 63, {value})\n{leave}"
            return f"{before}if q & 0x80: m.ram[q & 127] = {value}\nelse:\n{other}"
        other = f" t = write(m, t, q, {value})\n{leave}"
        if self._rom.scheme:
            other += f"\n if q & 0x1000:\n  pc = {instruction.after}; goto(dispatch)"
        return f"{before}if q & 0x1280 == 0x80: m.ram[q & 127] = {value}\nelse:\n{other}"

    def _write_direct(self, instruction: Instruction, value: str) -> str:
        q = instruction.word
        if q & 0x1000:
            if self._rom.switches(q):
                return f"switch_bank(m, {q}); pc = {instruction.after}; goto(dispatch)"
            is_memory = self._rom.is_memory(q) and q & 0x80 == 0
            return f"m.extra_ram[{q & 127}] = {value}" if is_memory else ""
        if q & 0x280 == 0x80:
            return f"m.ram[{q & 127}] = {value}"
        if q & 0x80:
            return f"write_port(m, t, {q}, {value})"
        return write_register(q & 0x3F, value, instruction.after)


def _undo_cost(instruction: Instruction) -> str:
    """Return a term for the cycle of a crossed page, so that a rerun does not count it twice."""
    if instruction.opcode.name not in PAGE_COSTS or instruction.opcode.mode == "izx":
        return ""
    if instruction.opcode.mode == "izy":
        return " + ((q - y & 255) + y >> 8)"
    return f" + ({instruction.low} + {instruction.opcode.mode[2]} >> 8)"


def _label(spot: Spot) -> str:
    return f"L{spot[0]:04X}_{spot[1]:04X}"
