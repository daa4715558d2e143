"""A cartridge's program: the console, the interpreter, and what could be translated.

There are two forms. A cartridge with typed functions of its own is one program, in which all that
is short is inlined. Of the others, each is a small program, linked to one that serves for all.
"""

from __future__ import annotations

from collections.abc import Iterable

from pixelpong.atari import banks, console, drawing, playing, tia
from pixelpong.atari.cartridge import Cartridge
from pixelpong.atari.disassembly import BankedRom, Spot
from pixelpong.atari.interpreter import EXPLORER, add_interpreter
from pixelpong.atari.ir import INT, NOTHING, POINTER, Program
from pixelpong.atari.lowering import Lowering, lower_modules
from pixelpong.atari.machine import MACHINE
from pixelpong.atari.translation import Translation

CONSOLE = (drawing, tia, banks, console)
EXPORTS = ("play_frames", "idle", "play")

# What the console does not know of a cartridge when it is compiled alone.
_OUTSIDE = {
    **dict.fromkeys(
        (
            "SCHEME", "ROM_SIZE", "HOTSPOT", "HAS_RAM", "TOP", "ROWS", "MAX_LINES", "HAS_COMBS",
            "GUARD",
        ),
        INT,
    ),
    "rom": "i8", "ENTRY_PC": "i16",
}  # fmt: skip


def make_program(
    cartridge: Cartridge, rom: BankedRom, entries: Iterable[Spot], *, with_hints: bool = True
) -> Program:
    """Make the program that plays a cartridge, as one."""
    hints = cartridge.hints if with_hints else {}
    translation = Translation(rom, entries, hints)
    program = Program(cartridge.record, cartridge.all_constants(rom))
    _begin(program, rom)
    lower_modules(program, (*CONSOLE, playing, *cartridge.modules), EXPORTS)
    translation.add_to(program)
    add_interpreter(program)
    return program


def make_console(*, notes: bool = False) -> Program:
    """Make the part that serves for all cartridges: the console and the interpreter."""
    program = Program(EXPLORER if notes else MACHINE, outside=_OUTSIDE, is_linked=True)
    _declare(program)
    lower_modules(program, CONSOLE, outside=_OUTSIDE)
    add_interpreter(program, notes=notes)
    program.functions.append("declare void @atari.run_translated(ptr)")
    return program


def make_game(cartridge: Cartridge, rom: BankedRom, entries: Iterable[Spot] | None) -> Program:
    """Make the other part: a cartridge; nothing is translated if `entries` is None."""
    program = Program(
        EXPLORER if entries is None else MACHINE,
        cartridge.all_constants(rom),
        outside=_OUTSIDE,
        is_linked=True,
        has_functions=False,
    )
    _begin(program, rom)
    lower_modules(program, CONSOLE)
    program.has_functions = True
    lower_modules(program, (playing, *cartridge.modules), EXPORTS)
    program.has_functions = False
    if entries is None:
        program.add_names({"ENTRY_PC": (0,), "GUARD": 0})
        Lowering(program, "run_translated").close()
    else:
        Translation(rom, entries).add_to(program)
    program.functions.append("declare void @atari.interpret(ptr)")
    program.define_outside()
    return program


def _begin(program: Program, rom: BankedRom) -> None:
    _declare(program)
    program.add_names({"rom": (*rom.content, 0, 0)})


def _declare(program: Program) -> None:
    for name in ("run_translated", "interpret"):
        program.declare(name, {"m": POINTER}, NOTHING)
