"""A cartridge's whole program: the console, the interpreter, and what could be translated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType

from pixelpong.atari import banks, console, drawing, tia
from pixelpong.atari.disassembly import Cartridge, Spot
from pixelpong.atari.interpreter import EXPLORER, add_interpreter
from pixelpong.atari.ir import INT, NOTHING, POINTER, Program
from pixelpong.atari.lowering import Lowering, lower_module
from pixelpong.atari.machine import MACHINE
from pixelpong.atari.translation import Translation

MODULES = (drawing, tia, banks, console)


def constants_of(cartridge: Cartridge) -> dict[str, int]:
    """The constants of `pixelpong.atari.banks` for a cartridge."""
    return {
        "SCHEME": cartridge.scheme,
        "ROM_SIZE": len(cartridge.rom),
        "HOTSPOT": cartridge.hotspot,
        "HAS_RAM": int(cartridge.has_ram),
    }


def make_program(
    cartridge: Cartridge,
    entries: Iterable[Spot],
    hints: Mapping[int, str] | None = None,
    constants: Mapping[str, int] | None = None,
    faces: Mapping[ModuleType, Sequence[str]] | None = None,
) -> Program:
    """Make the program that plays a cartridge: ``run_frame(m)``.

    `constants` are those in which the game differs from the machine's own, such as `TOP`, `ROWS`;
    `faces` modules of functions about the game, with the names of those that others call.
    """
    translation = Translation(cartridge, entries, hints)
    program = _begin(MACHINE, cartridge, constants)
    for module, exports in (faces or {}).items():
        lower_module(program, module, exports)
    translation.add_to(program)
    add_interpreter(program)
    return program


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


def make_console(*, notes: bool = False) -> Program:
    """Make the part that serves for all cartridges: the console and the interpreter."""
    program = Program(EXPLORER if notes else MACHINE, outside=_OUTSIDE, is_linked=True)
    _declare(program)
    for module in MODULES:
        lower_module(program, module, outside=_OUTSIDE)
    add_interpreter(program, notes=notes)
    program.functions.append("declare void @atari.run_translated(ptr)")
    return program


def make_game(
    cartridge: Cartridge,
    entries: Iterable[Spot] | None,
    constants: Mapping[str, int],
    faces: Mapping[ModuleType, Sequence[str]],
) -> Program:
    """Make the other part: a cartridge; nothing is translated if `entries` is None."""
    program = Program(
        EXPLORER if entries is None else MACHINE,
        constants_of(cartridge) | dict(constants),
        outside=_OUTSIDE,
        is_linked=True,
        has_functions=False,
    )
    _declare(program)
    program.add_names({"rom": (*cartridge.rom, 0, 0)})
    for module in MODULES:
        lower_module(program, module)
    program.has_functions = True
    for module, exports in faces.items():
        lower_module(program, module, exports)
    program.has_functions = False
    if entries is None:
        program.add_names({"ENTRY_PC": (0,), "GUARD": 0})
        Lowering(program, "run_translated").close()
    else:
        Translation(cartridge, entries).add_to(program)
    program.functions.append("declare void @atari.interpret(ptr)")
    program.define_outside()
    return program


def _declare(program: Program) -> None:
    for name in ("run_translated", "interpret"):
        program.declare(name, {"m": POINTER}, NOTHING)


def _begin(dtype, cartridge, constants) -> Program:  # type: ignore[no-untyped-def]
    program = Program(dtype, constants_of(cartridge) | dict(constants or {}))
    _declare(program)
    program.add_names({"rom": (*cartridge.rom, 0, 0)})
    for module in MODULES:
        lower_module(program, module)
    return program
