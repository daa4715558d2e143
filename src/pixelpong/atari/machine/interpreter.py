"""Runs instructions one after the other from any address: ``interpret(m)``.

It plays what has no translation: code that was not found in advance, code in memory, and frames
that are too long. It starts at ``m.pc`` and returns at the next translated instruction (`ENTRY_PC`)
or when the frame ends. It contains no cartridge's code, so all cartridges share one interpreter.

It records where jumps led, in `seen`, indexed by ROM offset: the address in the low 16 bits, a
count in the high 16. So the translation can start there the next time.
"""

from __future__ import annotations

from pixelpong.atari.machine.instructions import (
    FLAGS,
    REGISTERS,
    VARIABLES,
    instruction_code,
    unpack_flags,
)
from pixelpong.atari.machine.lowering import Lowering
from pixelpong.atari.machine.opcodes import LENGTHS, OPCODES
from pixelpong.atari.machine.program import NOTHING, POINTER, Program
from pixelpong.atari.machine.record import INSTRUCTIONS, LONG_FRAME, NOT_IMPLEMENTED, TOO_MANY

MOST_TIMES = 0x7FFF  # the largest count

_LONG = 76 * 400  # a frame's instructions are counted after this many cycles
_STOPS = {"unknown": NOT_IMPLEMENTED, "long": LONG_FRAME, "too_many": TOO_MANY}
_LEAPS = ("ind", "abs", "abx", "aby", "izy")  # modes after which the translation may continue
_LENGTH = tuple(LENGTHS[OPCODES[code].mode] if code in OPCODES else 0 for code in range(256))

_FETCH = """
if is_simple(pc) and is_simple(pc + 2):
 w = offset_of(m, pc)
 op = rom[w]; o1 = rom[w + 1]; o2 = rom[w + 2]
 if (pc & 0x3FF) > 0x3FD: o1 = read_rom(m, pc + 1); o2 = read_rom(m, pc + 2)
else:
 op = read(m, t, pc, 0)
 if INSTRUCTION_LENGTH[op] > 1: o1 = read(m, t, pc + 1 & 0xFFFF, op)
 if INSTRUCTION_LENGTH[op] > 2: o2 = read(m, t, pc + 2 & 0xFFFF, o1)
"""

# The condition under which the translation may continue at pc, and the code to record a spot.
_IS_FREE = f"pc & 0x1000 and t <= GUARD and m.left > {INSTRUCTIONS}"
_NOTE = f"seen[w] = min(seen[w] >> 16, {MOST_TIMES - 1}) + 1 << 16 | pc"


def begin(program: Program, name: str, result: str = NOTHING) -> Lowering:
    """Start a function that runs instructions, with the registers as variables."""
    program.declare(name, {"m": POINTER}, result)
    # Next to a complete translation in one program, it hardly ever runs, so it is not optimized.
    is_rare = name == "interpret" and not program.is_linked
    out = Lowering(program, name, "noinline optnone" if is_rare else "noinline")
    out.code(f"t = m.now; pc = m.pc; {VARIABLES}; p = m.p")
    out.code("; ".join(f"{name} = m.{name}" for name in REGISTERS))
    out.code(unpack_flags("p"))
    return out


def end(out: Lowering, result: str = "") -> None:
    """End a function that `begin` started: write the registers back to the record."""
    out.label("out")
    out.code(f"m.pc = pc; m.p = {FLAGS}; m.now = t")
    out.code("; ".join(f"m.{name} = {name}" for name in REGISTERS))
    if result:
        out.code(f"return {result}")
    out.close()


def add_interpreter(program: Program) -> None:
    """Add the function ``interpret(m)`` to a program.

    The program has `ENTRY_PC`, the pc of translated code by offset in the ROM; `GUARD`, the cycle
    after which a frame is interpreted to its end; and `seen`.
    """
    program.add_names({"INSTRUCTION_LENGTH": _LENGTH})
    out = begin(program, "interpret")
    out.code("op = o1 = o2 = 0; is_led = 1")
    out.code(f"if {_IS_FREE}:\n w = offset_of(m, pc)\n if ENTRY_PC[w] != pc: {_NOTE}")
    out.goto("first")
    out.label("led")
    out.code("is_led = 1")
    out.label("next")
    out.code(
        f"if {_IS_FREE}:\n w = offset_of(m, pc)\n if ENTRY_PC[w] == pc: goto(out)\n"
        f" if is_led: {_NOTE}\nis_led = 0"
    )
    out.label("first")
    out.code(f"if t > {_LONG} and m.left > {INSTRUCTIONS}: goto(long)")
    out.code("if m.left == 0: goto(too_many)")
    out.code(f"m.left -= 1\n{_FETCH}\npc = pc + INSTRUCTION_LENGTH[op] & 0xFFFF")
    out.switch("op", {code: f"op_{code:02X}" for code in OPCODES}, "unknown")
    for code, opcode in OPCODES.items():
        out.label(f"op_{code:02X}")
        out.code(instruction_code(opcode, "o1", "o2"))
        leaps = opcode.name in ("RTS", "RTI", "BRK") or opcode.mode in _LEAPS
        if not out.is_closed:
            out.goto("led" if leaps else "next")
    for label, stop in _STOPS.items():
        out.label(label)
        out.code(f"if m.stop == 0: m.stop = {stop}\ngoto(out)")
    end(out)
