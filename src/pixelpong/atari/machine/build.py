"""A cartridge's program: the console, the interpreter, and the translated code.

There are two forms. A cartridge with hints is one program, in which short functions are inlined.
Any other cartridge is a small program, linked to a program that all of them share.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType

from pixelpong.atari.machine import (
    banks,
    choosing,
    collisions,
    console,
    digits,
    drawing,
    objects,
    past,
    playing,
    resetting,
    scoring,
    tia,
)
from pixelpong.atari.machine.cartridge import Cartridge
from pixelpong.atari.machine.disassembly import BankedRom, Spot
from pixelpong.atari.machine.interpreter import add_interpreter
from pixelpong.atari.machine.lowering import lower_modules
from pixelpong.atari.machine.program import INT, NOTHING, POINTER, Program
from pixelpong.atari.machine.record import MACHINE
from pixelpong.atari.machine.translation import Translation

CONSOLE = (objects, collisions, drawing, tia, banks, console, past)
EXPORTS = ("play_frames", "start_game", "idle", "play")

# The facts about a cartridge that are unknown when the console is compiled alone.
_NUMBERS = (
    "SCHEME", "ROM_SIZE", "HOTSPOT", "HAS_RAM", "TOP", "ROWS", "MAX_LINES", "HAS_COMBS", "GUARD",
)  # fmt: skip
_OUTSIDE = {**dict.fromkeys(_NUMBERS, INT), "rom": "i8", "ENTRY_PC": "i16"}


def make_program(
    cartridge: Cartridge, rom: BankedRom, entries: Iterable[Spot], *, with_hints: bool = True
) -> Program:
    """Make a single program that plays a cartridge."""
    hints = cartridge.hints if with_hints else {}
    translation = Translation(rom, entries, hints)
    program = Program(cartridge.record, cartridge.all_constants(rom))
    _add_cartridge(program, rom)
    lower_modules(program, (*CONSOLE, *_own_modules(cartridge)), EXPORTS)
    translation.add_to(program)
    add_interpreter(program)
    return program


def make_console() -> Program:
    """Make the part that all cartridges share: console and interpreter."""
    program = Program(MACHINE, outside=_OUTSIDE, memory={"seen": 0}, is_linked=True)
    _declare(program)
    lower_modules(program, CONSOLE, outside=_OUTSIDE)
    add_interpreter(program)
    program.functions.append("declare void @atari.run_translated(ptr)")
    return program


def make_game(cartridge: Cartridge, rom: BankedRom, entries: Iterable[Spot]) -> Program:
    """Make one cartridge's part; without entries, all its code is interpreted."""
    program = Program(
        cartridge.record,
        cartridge.all_constants(rom),
        outside=_OUTSIDE,
        is_linked=True,
        has_functions=False,
    )
    _add_cartridge(program, rom)
    lower_modules(program, CONSOLE)
    program.has_functions = True
    lower_modules(program, _own_modules(cartridge), EXPORTS)
    program.has_functions = False
    Translation(rom, entries).add_to(program)
    program.functions.append("declare void @atari.interpret(ptr)")
    program.define_outside()
    return program


def _own_modules(cartridge: Cartridge) -> tuple[ModuleType, ...]:
    """Return the modules that are compiled for each cartridge."""
    own: tuple[ModuleType, ...] = (playing, resetting, digits)
    if cartridge.select:
        own += (choosing.make_choosing(cartridge.name, cartridge.select),)
    if cartridge.scoring:
        own += (scoring.make_scoring(cartridge.name, cartridge.scoring),)
    return (*own, *cartridge.modules)


def _add_cartridge(program: Program, rom: BankedRom) -> None:
    _declare(program)
    program.add_names({"rom": (*rom.content, 0, 0)})
    program.memory["seen"] = len(rom.content)


def _declare(program: Program) -> None:
    for name in ("run_translated", "interpret"):
        program.declare(name, {"m": POINTER}, NOTHING)
