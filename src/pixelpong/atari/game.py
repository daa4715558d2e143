"""A cartridge in native code, for any number of machines: compiled on first use, then cached."""

from __future__ import annotations

import ctypes
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari import build
from pixelpong.atari.cartridge import Cartridge
from pixelpong.atari.disassembly import Spot, read_vector
from pixelpong.atari.machine import FRAME_DONE, NOT_IMPLEMENTED
from pixelpong.atari.native import NativeCode
from pixelpong.errors import EmulatorError

_REASONS = {NOT_IMPLEMENTED: "the game used an instruction that is not covered"}


def not_covered(stop: int) -> EmulatorError:
    """Make the error for a machine that stopped with a code other than FRAME_DONE."""
    return EmulatorError(f"The emulated game failed: {_REASONS[stop]}; start it again.")


class Game:
    """A compiled cartridge. Its functions hold no lock of Python's.

    Attributes:
        address: of ``play_frames`` (`pixelpong.atari.playing`), for other compiled code:
            ``void play_frames(machine *, const uint8 *actions, int32 count, int32 draws)``.
        was_kept: the machine code came from the cache.
    """

    def __init__(
        self,
        cartridge: Cartridge,
        rom: bytes,
        folder: Path | None = None,
        *,
        is_plain: bool = False,
    ) -> None:
        """Compile a cartridge, or take its code from the cache; with `is_plain` without hints."""
        self.cartridge, self._rom, self._folder = cartridge, rom, folder
        banked = cartridge.banked(rom)

        def make_ir() -> str:
            entries = self._entries()
            return build.make_program(cartridge, banked, entries, with_hints=not is_plain).to_ir()

        try:
            self._code = NativeCode(_key(cartridge, rom, is_plain), make_ir, folder)
        except (RuntimeError, OSError) as error:
            advice = "use a machine that numba supports"
            raise EmulatorError(f"LLVM cannot compile the game: {error}; {advice}") from error
        self.was_kept = self._code.was_kept
        self.address = self._code.address("play_frames")
        number, pointer = ctypes.c_int32, ctypes.c_void_p
        self.play_frames = self._code.function(
            "play_frames", None, pointer, pointer, number, number
        )
        self._idle = self._code.function("idle", None, pointer, number, number)

    def _entries(self) -> list[Spot]:
        """Where the code begins: at a reset, an interrupt, and behind jumps through memory."""
        size = len(self._rom)
        vectors = [read_vector(self._rom, size - k) for k in (4, 2)]
        places = [0xF000 | place for place in self.cartridge.entries]
        return [(address % size, address) for address in (*vectors, *places)]

    def with_facts(self, **changes: Any) -> Game:
        """The same program, compiled for a console for which other facts hold."""
        return Game(replace(self.cartridge, **changes), self._rom, self._folder)

    def power_on(self) -> NDArray[np.void]:
        """A machine that has just been switched on, [1] of the cartridge's record."""
        return self.cartridge.power_on(self._rom)

    def play(self, machine: NDArray[np.void], actions: bytes, draws: int) -> None:
        """Play frames, one action byte each, and draw the last one; fewer if the game ends."""
        self.play_frames(machine.ctypes.data, actions, len(actions), draws)
        stop = int(machine["stop"][0])
        if stop != FRAME_DONE:
            raise not_covered(stop)

    def idle(self, machine: NDArray[np.void], switches: int, count: int) -> None:
        """Play frames with switches held and nothing else pressed."""
        self._idle(machine.ctypes.data, switches, count)
        stop = int(machine["stop"][0])
        if stop != FRAME_DONE:
            raise not_covered(stop)


def _key(cartridge: Cartridge, rom: bytes, is_plain: bool) -> bytes:
    """Hash what the code depends on besides the processor and LLVM: ROM, form, sources."""
    files = [*sorted(Path(build.__file__).parent.glob("*.py"))]
    files += [Path(str(module.__file__)) for module in cartridge.modules]
    form = repr((cartridge.scheme, cartridge.top, cartridge.rows, cartridge.max_lines))
    form += repr((cartridge.has_combs, cartridge.entries, dict(cartridge.hints), is_plain))
    form += repr((dict(cartridge.constants), cartridge.record.descr))
    sources = b"".join(path.read_bytes() for path in files)
    return hashlib.sha256(rom + sources + form.encode()).digest()
