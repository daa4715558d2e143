"""Any cartridge in native code.

Where its code is, a second of play in the interpreter shows; what that misses, the interpreter
plays later.
"""

from __future__ import annotations

import ctypes
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pixelpong.atari import build
from pixelpong.atari.cartridge import Cartridge
from pixelpong.atari.disassembly import Spot
from pixelpong.atari.game import Game
from pixelpong.atari.interpreter import EXPLORER
from pixelpong.atari.machine import DRAW_NOTHING, FRAME_DONE, MACHINE
from pixelpong.atari.native import NativeCode

EXPLORED = 600  # frames


class LinkedGame(Game):
    """A compiled cartridge, linked to the console."""

    def __init__(self, cartridge: Cartridge, rom: bytes, folder: Path | None = None) -> None:
        """Find a game's code, translate and compile it."""
        self.cartridge, self._rom, self._folder = cartridge, rom, folder
        self._banked = cartridge.banked(rom)
        self._code = self._compile(None, folder)
        spots = self._explore()
        self._code = self._compile(spots, folder)
        self.was_kept = self._code.was_kept
        self.address = self._code.address("play_frames")

    def with_facts(self, **changes: Any) -> LinkedGame:
        """The same program on a console for which other facts hold."""
        return LinkedGame(replace(self.cartridge, **changes), self._rom, self._folder)

    def _compile(self, spots: list[Spot] | None, folder: Path | None) -> NativeCode:
        form = repr((self.cartridge, spots)).encode()
        console = (
            _key(b"console" + bytes([spots is None])),
            lambda: build.make_console(notes=spots is None).to_ir(),
        )
        code = NativeCode(
            _key(form),
            lambda: build.make_game(self.cartridge, self._banked, spots).to_ir(),
            folder,
            [console],
            is_quick=True,
        )
        number, pointer = ctypes.c_int32, ctypes.c_void_p
        self.play_frames = code.function("play_frames", None, pointer, pointer, number, number)
        self._idle = code.function("idle", None, pointer, number, number)
        return code

    def _explore(self) -> list[Spot]:
        """Play in the interpreter; the spots that jumps led to."""
        machine: Any = np.zeros(1, EXPLORER)
        start = self.power_on()
        for field in MACHINE.names or ():
            machine[field] = start[field]
        self._idle(machine.ctypes.data, 0x3F, 60)
        self._idle(machine.ctypes.data, 0x3E, 12)
        machine["swchb"] = 0x3F
        actions = np.random.RandomState(9).randint(18, size=EXPLORED // 9)
        for action in actions.tolist():
            self.play_frames(machine.ctypes.data, bytes([action] * 9), 9, DRAW_NOTHING)
            if machine["stop"][0] != FRAME_DONE:
                break
        seen = machine["seen"][0]
        return [(int(place), int(seen[place])) for place in np.flatnonzero(seen)]


def _key(form: bytes) -> bytes:
    folder = Path(build.__file__).parent
    sources = [*sorted(folder.glob("*.py")), Path(__file__)]
    return hashlib.sha256(form + b"".join(path.read_bytes() for path in sources)).digest()
