"""Any cartridge that ale-py plays, in native code.

What a game is like (its banks, its rows, where it starts) ALE says when it is loaded. Where its
code is, a second of play in the interpreter shows; what that misses, the interpreter plays later.
"""

from __future__ import annotations

import ctypes
import hashlib
from pathlib import Path
from typing import Any

import ale_py
import numpy as np

from pixelpong.atari import build
from pixelpong.atari.disassembly import Spot
from pixelpong.atari.interpreter import EXPLORER
from pixelpong.atari.machine import FRAME_DONE, MACHINE, STATE
from pixelpong.atari.native import NativeCode
from pixelpong.atari.translation import Translation
from pixelpong.env import frames
from pixelpong.env.ale_start import find_cartridge, read_machine

EXPLORED = 600  # frames
WITHOUT_COMBS = ("asteroids", "battle_zone", "darkchambers", "ms_pacman")
_RIGHT_PORT = ("surround", "wizard_of_wor")
NO_PADDLE, PADDLE_TURN = 0x7FFFFFFF, 23_000
# Of ALE's eighteen actions: 1 fire, 2 up, 4 right, 8 left, 16 down.
PRESSES = (0, 1, 2, 4, 8, 16, 6, 10, 20, 24, 3, 5, 9, 17, 7, 11, 21, 25)


def load_ale(name: str) -> Any:
    """ALE with a game at its start."""
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    ale.setInt("frame_skip", 1)
    ale.setInt("max_num_frames_per_episode", 0)
    ale.loadROM(str(Path(ale_py.__file__).parent / "roms" / f"{name}.bin"))
    ale.reset_game()
    return ale


class Controller:
    """What ALE's actions do to a machine's inputs."""

    def __init__(self, name: str, data: bytes, *, has_paddles: bool) -> None:
        """Begin as a serialised state of ALE has it."""
        self.has_paddles = has_paddles
        self.paddles = list(np.frombuffer(data, "<i4", 2).astype(int))
        self.lowest, self.highest = np.frombuffer(data[-8:], "<i4").tolist()
        self.is_swapped, self.is_right = name == "pong", name in _RIGHT_PORT
        self.others = 0

    def press(self, m: Any, action: int) -> None:
        """Set a machine's inputs for a frame."""
        pressed = PRESSES[action]
        if self.has_paddles:
            turn = PADDLE_TURN * ((pressed >> 3 & 1) - (pressed >> 2 & 1))
            self.paddles[0] = min(max(self.paddles[0] + turn, self.lowest), self.highest)
            first, second = self.paddles[:: -1 if self.is_swapped else 1]
            m["resistance"] = [first, second, self.others, self.others]
            m["swcha"] = 0xFF - (0x40 if self.is_swapped else 0x80) * (pressed & 1)
            return
        directions = (
            (pressed & 2) << 3 | (pressed & 16) << 1 | (pressed & 8) << 3 | (pressed & 4) << 5
        )
        fire, swcha = 0x80 - 0x80 * (pressed & 1), 0xFF - directions
        m["resistance"] = NO_PADDLE
        m["swcha"] = (swcha << 4 | swcha >> 4) & 0xFF if self.is_right else swcha
        m["fire"] = [0x80, fire] if self.is_right else [fire, 0x80]


class NativeGame:
    """A compiled game, and its start."""

    def __init__(self, name: str, *, folder: Path | None = None, is_quick: bool = True) -> None:
        """Load a game, find its code, translate and compile it."""
        self.name, ale = name, load_ale(name)
        self.data = ale.cloneState().serialize()
        ale.act(4)  # which turns a paddle, if there is one
        self.has_paddles = ale.cloneState().serialize()[:8] != self.data[:8]
        rom = (Path(ale_py.__file__).parent / "roms" / f"{name}.bin").read_bytes()
        self.cartridge, self.constants = find_cartridge(self.data, rom)
        self.constants["HAS_COMBS"] = int(name not in WITHOUT_COMBS)
        self.rows = self.constants["ROWS"]
        self.start = read_machine(self.data, self.cartridge)
        self.folder = folder
        self.spots = spots = self.explore()
        self.translation = Translation(self.cartridge, spots)
        faces = {frames: ("play",)}
        game = lambda: build.make_game(  # noqa: E731
            self.cartridge, spots, self.constants, faces
        ).to_ir()
        form = repr((name, sorted(self.constants.items()), sorted(spots))).encode()
        console = _key(b"console"), lambda: build.make_console().to_ir()
        self.code = NativeCode(_key(form), game, folder, [console], is_quick=is_quick)
        self.play = self.code.function("play", ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32)

    def make_controller(self) -> Controller:
        """A controller at the start of a game."""
        return Controller(self.name, self.data, has_paddles=self.has_paddles)

    def explore(self) -> list[Spot]:
        """Play in the interpreter; the spots that jumps led to."""
        game = lambda: build.make_game(  # noqa: E731
            self.cartridge, None, self.constants | {"GUARD": 0}, {frames: ("play",)}
        ).to_ir()
        console = _key(b"explorer"), lambda: build.make_console(notes=True).to_ir()
        form = b"explore" + self.name.encode()
        code = NativeCode(_key(form), game, self.folder, [console], is_quick=True)
        play = code.function("play", ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32)
        machine: Any = np.zeros(1, EXPLORER)
        for field in MACHINE.names or ():
            machine[field] = self.start[field]
        controller, rng = self.make_controller(), np.random.default_rng(9)
        for frame in range(EXPLORED):
            if frame % 9 == 0:
                action = int(rng.integers(18))
            controller.press(machine[0], action)
            if play(machine.ctypes.data, 1) != FRAME_DONE:
                break
        seen = machine["seen"][0]
        return [(int(place), int(seen[place])) for place in np.flatnonzero(seen)]


def _key(form: bytes) -> bytes:
    folder = Path(build.__file__).parent
    sources = [*sorted(folder.glob("*.py")), Path(frames.__file__), Path(__file__)]
    return hashlib.sha256(form + b"".join(path.read_bytes() for path in sources)).digest()


STATE_SIZE = STATE.itemsize
