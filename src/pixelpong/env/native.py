"""Atari Pong in native code: the console that plays all games.

On first use the cartridge is read from the ROM in ale-py, translated and compiled, which takes a
second; later processes load the code from the cache in milliseconds. The compiled code contains the
game's logic and stays on the user's machine.

Other compiled code can call the same functions without Python's lock, through `NativeGame.address`
and with its own machine (`pixelpong.kernels.records.GAME`).
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari import build, tia
from pixelpong.atari.disassembly import Cartridge, Spot, read_vector
from pixelpong.atari.machine import (
    NOT_IMPLEMENTED,
    PADDLE_CENTRE,
    ROWS,
    STATE,
    WIDTH,
    make_machine,
)
from pixelpong.atari.native import NativeCode
from pixelpong.env import cartridge
from pixelpong.env.preprocess import pack_field
from pixelpong.env.rom import read_rom
from pixelpong.errors import EmulatorError

_REASONS = {
    NOT_IMPLEMENTED: "the game used an instruction that is not covered",
}

# The console's switches: none held, RESET held, SELECT held; both difficulties easy, colour.
_NO_SWITCH, _RESET, _SELECT = 0x3F, 0x3E, 0x3D
_MAX_FRAMES = 0x7FFF  # in one call: more would not fit into the result of `play_frames`
_NUM_MODES = 50  # games on the cartridge
# Frames after switching on, and frames with RESET held, before a game starts. Source: ALE.
_IDLE_FRAMES, _RESET_FRAMES = 60, 12


def not_covered(code: int) -> EmulatorError:
    """Make the error for a machine that stopped with a code other than FRAME_DONE."""
    return EmulatorError(f"The emulated game failed: {_REASONS[code]}; start it again.")


class NativeGame:
    """Compiled Pong, for any number of machines; with `is_plain` it skips no rounds."""

    def __init__(self, rom: bytes, folder: Path | None = None, *, is_plain: bool = False) -> None:
        self._rom = rom
        try:
            make = functools.partial(make_ir, rom, is_plain=is_plain)
            self._code = NativeCode(_key(rom, is_plain), make, folder)
        except (RuntimeError, OSError) as error:
            advice = "use a machine that numba supports"
            raise EmulatorError(f"LLVM cannot compile the game: {error}; {advice}") from error
        self.was_kept = self._code.was_kept  # the machine code came from the cache
        self.address = self._code.address("play_frames")  # of `cartridge.play_frames`, compiled
        number, pointer = ctypes.c_int32, ctypes.c_void_p
        self.play_frames = self._code.function(
            "play_frames", number, pointer, pointer, number, number
        )
        self._idle = self._code.function("idle", number, pointer, number, number)

    def switch_on(self, mode: int = 0) -> NDArray[np.void]:
        """Return a machine at the start of a game, with picture and field drawn: [1] MACHINE.

        `mode` is ALE's number of the game on the cartridge: 0 for one player; 3 and 4 for two.
        """
        machine = make_machine()
        machine["pc"] = read_vector(self._rom, len(self._rom) - 4)
        machine["s"], machine["p"], machine["fire"] = 0xFF, 0x30, 0x80
        # The cartridge reads four paddles. The two unused ones are at 0 in ale-py and in the middle
        # in multi-agent-ale-py; one picture in a hundred shows the difference.
        machine["resistance"] = [PADDLE_CENTRE] * 4 if mode else [PADDLE_CENTRE] * 2 + [0] * 2
        self.idle(machine, _NO_SWITCH, _IDLE_FRAMES)
        if mode == 0:
            self.idle(machine, _RESET, _RESET_FRAMES)
        else:
            self._choose(machine, mode)
        machine["swchb"] = _NO_SWITCH
        machine["field"][0] = pack_field(machine["picture"][0, : ROWS * WIDTH].reshape(ROWS, WIDTH))
        return machine

    def _choose(self, machine: NDArray[np.void], mode: int) -> None:
        """Choose a game with SELECT, as multi-agent-ale-py does."""
        assert 0 < mode <= _NUM_MODES, mode
        self.idle(machine, _RESET, 4)
        while machine["ram"][0, cartridge.MODE] != mode - 1:
            self.idle(machine, _SELECT, 2)
            self.idle(machine, _NO_SWITCH, 1)
        self.idle(machine, _RESET, 8)
        self.idle(machine, _NO_SWITCH, 2)

    def idle(self, machine: NDArray[np.void], switches: int, count: int) -> None:
        """Play frames with switches held and idle paddles."""
        stop = self._idle(machine.ctypes.data, switches, count)
        if stop:
            raise not_covered(stop)


class NativeConsole:
    """A console with Pong in it, reused for every game; `mode` as in `NativeGame.switch_on`."""

    def __init__(self, mode: int = 0, game: NativeGame | None = None) -> None:
        self._game = game = game or load_game()  # keeps the machine code alive
        self._play_frames, self._start = game.play_frames, start_of(game, mode)
        self.mode = mode
        self.machine = self._start.copy()  # [1] MACHINE, for compiled code that plays on it
        self._pointer = self.machine.ctypes.data
        self._state = self.machine.view(np.uint8)[: STATE.itemsize]  # as bytes, which is faster
        # Palette indices of the last frame drawn.
        picture = self.machine["picture"][0, : ROWS * WIDTH]
        self.picture: NDArray[np.uint8] = picture.reshape(ROWS, WIDTH)

    @property
    def memory(self) -> NDArray[np.uint8]:
        """The console's memory, [128] uint8."""
        memory: NDArray[np.uint8] = self.machine["ram"][0]
        return memory

    @property
    def is_over(self) -> bool:
        """Whether a side has 21 points."""
        points = self.memory[cartridge.LEFT_POINTS], self.memory[cartridge.RIGHT_POINTS]
        return cartridge.LAST_POINT in points

    def reset(self) -> None:
        """Start a game; picture and field are those of its first frame."""
        self.machine[:] = self._start

    def run(self, actions: bytes, draws: int) -> tuple[int, bool, int]:
        """Play frames, one action byte each, up to the one in which a side reaches 21 points.

        Return the points won minus the points lost, whether the game is over, and the frames
        played. `picture` changes only with DRAW_PICTURE.
        """
        assert len(actions) <= _MAX_FRAMES, len(actions)
        result = self._play_frames(self._pointer, actions, len(actions), draws)
        if result < 0:
            raise not_covered(-result)
        return (result & 0xFF) - 128, bool(result >> 8 & 1), result >> 16

    def get_state(self) -> NDArray[np.void]:
        """Everything the future depends on: [1] STATE."""
        return self._state.copy().view(STATE)

    def set_state(self, state: NDArray[np.void]) -> None:
        """Continue from a state, [1] STATE. `picture` does not change before the next frame.

        Compiled code stays inside its record, whatever the state.
        """
        self._state[:] = state.view(np.uint8)


@functools.cache
def load_game() -> NativeGame:
    """Load Pong, once per process."""
    return NativeGame(read_rom())


@functools.cache
def start_of(game: NativeGame, mode: int) -> NDArray[np.void]:
    """A machine at the start of a game, [1] MACHINE; not to be changed."""
    return game.switch_on(mode)


def make_ir(rom: bytes, *, is_plain: bool = False) -> str:
    """Make the game's LLVM IR; it contains the ROM's logic, so only the user's cache keeps it."""
    hints = {} if is_plain else cartridge.HINTS
    faces = {cartridge: ("play_frames", "idle")}
    program = build.make_program(Cartridge(rom), entries_of(rom), hints, faces=faces)
    return program.to_ir()


def entries_of(rom: bytes) -> list[Spot]:
    """Where the code begins: at a reset, an interrupt, and behind jumps through memory."""
    vectors = [read_vector(rom, len(rom) - k) for k in (4, 2)]
    places = [0xF000 | place for place in cartridge.ENTRIES]
    return [(address % len(rom), address) for address in (*vectors, *places)]


def _key(rom: bytes, is_plain: bool) -> bytes:
    """Hash what the code depends on besides the processor and LLVM: ROM, form, sources."""
    folder = Path(tia.__file__).parent
    sources = [*sorted(folder.glob("*.py")), Path(cartridge.__file__), Path(__file__)]
    form = b"plain" if is_plain else b""
    return hashlib.sha256(rom + form + b"".join(path.read_bytes() for path in sources)).digest()
