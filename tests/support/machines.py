"""Machines for the tests of the emulator: as plain Python, compiled, or with a line changed."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import inspect
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from pixelpong.atari.machine import build, native
from pixelpong.atari.machine import compiled as game
from pixelpong.atari.machine import registers as r
from pixelpong.atari.machine.cache import cache_folder
from pixelpong.atari.machine.cartridge import Cartridge
from pixelpong.atari.machine.compiled import load_game
from pixelpong.atari.machine.lowering import Lowering, lower_modules
from pixelpong.atari.machine.native import NativeCode, Source
from pixelpong.atari.machine.program import NOTHING, POINTER, Program
from pixelpong.atari.machine.record import PADDLE_CENTRE, PADDLE_TURN, STATE

_ANNOTATIONS = "from __future__ import annotations"


class Cells:
    """Numbers of a record; an index outside them, or a number that does not fit, raises.

    Words of 64 bits are the parts of one wide number, as `pixelpong.atari.machine.lowering` has it.
    """

    def __init__(self, values: np.ndarray):
        self._values, self._is_wide = values, values.dtype == np.uint64

    def __getitem__(self, at):
        if isinstance(at, slice):
            return [self[k] for k in range(at.start, at.stop)]
        if not 0 <= at < len(self._values):
            raise IndexError(at)
        value = self._values[at]
        return int.from_bytes(value.tobytes(), "little") if self._is_wide else int(value)

    def __setitem__(self, at, value):
        if isinstance(at, slice):
            for k, each in zip(range(at.start, at.stop), list(value), strict=True):
                self[k] = each
            return
        if not 0 <= at < len(self._values):
            raise IndexError(at)
        if self._is_wide:
            value = np.frombuffer(value.to_bytes(self._values[at].nbytes, "little"), "<u8")
        self._values[at] = value


class PlainMachine:
    """A copy of a record as a Python object, strict: what compiled code would cut off raises."""

    def __init__(self, record: np.ndarray):
        self.__dict__["record"] = record.copy()

    def __getattr__(self, name: str):
        values = self.record[name]
        is_single = values.ndim == (2 if values.dtype == np.uint64 else 1)
        return Cells(values)[0] if is_single else Cells(values[0])

    def __setattr__(self, name: str, value: int) -> None:
        Cells(self.record[name])[0] = value


def differences(a: np.ndarray, b: np.ndarray) -> dict[str, tuple]:
    """The fields in which two records differ."""
    names = [name for name in a.dtype.names or () if a[name].tobytes() != b[name].tobytes()]
    return {name: (a[name].tolist(), b[name].tolist()) for name in names}


_BITS = {
    "emptied": 0x01, "old_enabl": 0x02, "blanks": 0x01, "collisions": 0xDFFF,
    "timer_read": 1, "hidden": 3, "late_mirror": 1, "stars": 1, "star": 3,
}  # fmt: skip
_ORDERS = (r.WSYNC, r.RSYNC, *range(r.RESP0, r.AUDV1 + 1), r.HMOVE, r.HMCLR, r.CXCLR)
"""Registers of the TIA that keep nothing: a write to them is an order, or the sound."""


def made_up_state(rng: np.random.Generator) -> np.ndarray:
    """Random numbers in every field, in the form that a state between two frames has: [1] STATE."""
    state = np.frombuffer(rng.bytes(STATE.itemsize), STATE).copy()
    for name, bits in _BITS.items():
        state[name] &= bits
    state["p"] = state["p"] & 0xCF | 0x30
    state["pc"] |= 0xF000
    state["tia"] &= np.array(r.MEANING[: state["tia"].shape[1]], np.uint8)
    state["tia"][0, _ORDERS] = 0
    state["tia"][0, r.VSYNC] &= 0xFD
    state["cycle"] %= 76
    state["position"] %= 160
    state["timer_shift"] = rng.choice([0, 3, 6, 10])
    state["begun"] = state["vsync_end"] = state["timer_reset"] = state["is_grey"] = 0
    state["star_form"] %= 3
    state["hmove_age"] %= 100
    for name in ("timer_set", "emptied_until"):
        state[name] = rng.integers(-30_000, 76)
    turns = rng.integers(-16, 17, 2)
    state["resistance"] = [*(PADDLE_CENTRE + PADDLE_TURN * turns).tolist(), 0, 0]
    state["emptied"] = state["tia"][:, r.VBLANK] >> 7
    return state


def short_and_long(short: tuple, *long: tuple) -> list:
    """Parameters of a test: some for `make test`, and more that take hours, for `make soak`."""
    hours = [pytest.mark.soak, pytest.mark.timeout(3600)]
    return [
        pytest.param(*short, marks=pytest.mark.slow),
        *(pytest.param(*each, marks=hours) for each in long),
    ]


@contextlib.contextmanager
def compiled_quickly() -> Iterator[None]:
    """Within it LLVM does what it must, not what makes code fast: that takes most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "CODE_LEVEL", 0)
        patch.setattr(native, "PASSES", ("always_inliner", "sroa"))
        yield


def copy_console(folder: Path) -> Path:
    """Put the console's machine code, which all cartridges share, into an own cache folder."""
    load_game("breakout")  # so the user's cache folder has it
    users = cache_folder()
    assert users is not None
    name = f"{native._Compiler().name_of(game._console())}.machine"
    shutil.copy(users / name, folder / name)
    return folder


def compile_program(program: Program, folder: Path) -> NativeCode:
    """Machine code that no cache keeps for long."""
    ir = program.to_ir()
    return NativeCode([Source(ir.encode(), lambda: ir)], folder)


def function_of(code: NativeCode, name: str, num_arguments: int) -> Callable[..., int]:
    """An exported ``name(machine, …) -> Int``; it takes a record, and numbers."""
    numbers = [ctypes.c_int32] * num_arguments
    call = code.function(name, ctypes.c_int32, ctypes.c_void_p, *numbers)
    return lambda record, *arguments: call(record.ctypes.data, *arguments)


def compile_calls(
    program: Program, modules: Iterable[ModuleType], calls: dict[str, int], folder: Path
) -> dict[str, Callable[..., int]]:
    """Modules without a processor; functions of them by name, with their numbers of arguments."""
    wrapper = "from pixelpong.atari.machine.typed import *\n"
    signatures = {
        name: inspect.signature(value)
        for module in modules
        for name, value in vars(module).items()
        if name in calls
    }
    for name, count in calls.items():
        given = "".join(f", {each}: Int" for each in "abc"[:count])
        listed = "".join(f", {each}" for each in "abc"[:count])
        pays = signatures[name].return_annotation == "Int"
        body = f"return {name}(m{listed})" if pays else f"{name}(m{listed})\n    return 0"
        wrapper += f"def call_{name}(m: Machine{given}) -> Int:\n    {body}\n"
    program.add_names({"rom": (0,) * 2048})
    for name in ("run_translated", "interpret"):  # nothing here
        program.declare(name, {"m": POINTER}, NOTHING)
        Lowering(program, name).close()
    exports = [f"call_{name}" for name in calls]
    lower_modules(program, (*modules, module_from(wrapper, folder, "calls")), exports)
    code = compile_program(program, folder)
    return {name: function_of(code, f"call_{name}", count) for name, count in calls.items()}


def compile_cartridge(
    rom: bytes, entries: Iterable[int], folder: Path
) -> Callable[[np.ndarray], int]:
    """A cartridge of 2 kB as ``play_frame(machine)``, which returns the stop code."""
    spots = [(place, 0xF000 | place) for place in entries]
    cartridge = Cartridge("ours", "", "2K")
    program = build.make_program(cartridge, cartridge.banked(rom), spots)
    play = function_of(compile_program(program, folder), "play", 1)
    return lambda machine: play(machine, 1)


def changed(module: ModuleType, folder: Path, *changes: tuple[str, str]) -> ModuleType:
    """A module of which a few pieces of text are others, each of which it has just once."""
    text = Path(module.__file__).read_text()
    for old, new in changes:
        assert text.count(old) == 1, (module.__name__, old, text.count(old))
        text = text.replace(old, new)
    return module_from(text, folder, module.__name__.replace(".", "_") + "_changed")


def module_from(text: str, folder: Path, name: str) -> ModuleType:
    """A module made of this text; its functions' source can be read."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    path.write_text(text if _ANNOTATIONS in text else f"{_ANNOTATIONS}\n{text}")
    spec = importlib.util.spec_from_file_location(f"{name}_{abs(hash(str(folder)))}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # which `inspect.getsource` asks for
    spec.loader.exec_module(module)
    return module
