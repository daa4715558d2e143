"""Small programs in the console's memory, run by ALE and by our machine from the same state.

ALE's serialised state takes any numbers: another program counter, other memory, other registers.
So 128 bytes of our own run on ALE, without a cartridge, and show what it does in a given cycle.
`Pair` runs a program on both and compares everything: memory, registers, position of the objects,
what the chips keep, and the lines that were drawn.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import ale_py
import machines
import numpy as np

from pixelpong.atari import build
from pixelpong.atari import registers as r
from pixelpong.atari.machine import DRAW_PICTURE, FRAME_DONE, STATE, TOP, WIDTH
from pixelpong.atari.native import NativeCode
from pixelpong.atari.opcodes import DOCUMENTED, LENGTHS, OPCODES
from pixelpong.env import ale_start, frames

TRUE, FALSE = (pattern - (1 << 32) for pattern in (0xFAB1FAB2, 0xBAD1BAD2))
"""How ALE writes truth values."""

NO_PADDLE = 0x7FFFFFFF

COLOURS = {"COLUP0": 0x36, "COLUP1": 0xC8, "COLUPF": 0x0E, "COLUBK": 0x02}

CODES = {
    (name, mode): code for code, (name, mode, _) in [*OPCODES.items(), *DOCUMENTED.items()]
}


def assemble(text: str) -> bytes:
    """Instructions as ``NAME mode operand`` in hexadecimal, separated by semicolons."""
    parts = bytearray()
    for line in filter(str.strip, text.split(";")):
        name, mode, operand = line.split() if " " in line.strip() else (line.strip(), "imp", "0")
        parts.append(CODES[name, mode])
        parts += int(operand, 16).to_bytes(LENGTHS[mode] - 1, "little")
    return bytes(parts)


def delay(cycles: int) -> bytes:
    """Instructions that take so many cycles, and do nothing; one cycle is impossible."""
    assert cycles >= 0 and cycles != 1, cycles
    odd = assemble("LDA zp 80") if cycles % 2 else b""
    return odd + assemble("NOP") * ((cycles - 3 * (cycles % 2)) // 2)


def lines(count: int) -> bytes:
    """Wait for the beginning of the line after `count` more; X is then 0, five cycles are over."""
    return assemble(f"LDX imm {count:02X}; STA zp 02; DEX; BNE rel FB")


LINES_CYCLES = 4
"""How many cycles of the line are over after `lines`."""

END_FRAME = assemble(
    "LDA imm 02; STA zp 00; STA zp 02; STA zp 02; LDA imm 00; STA zp 00"
)


def write_at(cycle: int, register: int) -> bytes:
    """Write A to a register in a cycle of the line, behind `lines`; early ones one line later."""
    wait = cycle - 3 - LINES_CYCLES
    if wait < 0 or wait == 1:
        wait += 76
    return delay(wait) + assemble(f"STA zp {register:02X}")


# Running them.

_LAYOUT = {
    "System": "cycles",
    "M6502Low": "a x y s opcode pc n v b d i not_z c",
    "M6532": "size ram:128 timer timer_shift timer_set timer_reset timer_read directions",
    "TIA": (
        "frame_start clocks:6 vsync_end objects vsync vblank nusiz:2 colup:4 ctrlpf priority "
        "refp:2 pf grp:2 old_grp:2 enam:2 enabl old_enabl hm:5 vdelp:2 vdelbl resmp:2 collisions "
        "position:5 shown_grp:2 hmove blanks stars star emptied emptied_until"
    ),
}


def find_numbers(data: bytes) -> dict[str, int]:
    """Where the numbers of a serialised state are, by name; of several, the first."""
    places = {"left_paddle": 0, "right_paddle": 4}
    for chip, names in _LAYOUT.items():
        mark = struct.pack("<i", len(chip)) + chip.encode()
        at = data.index(mark, 8) + len(mark)
        for word in names.split():
            name, _, count = word.partition(":")
            places[name] = at
            at += 4 * int(count or 1)
    name = data.rindex(b"Cartridge")  # of two letters in a cartridge without banks
    return places | {"is_over": name + len("Cartridge2K") + 8}


_PLAY = """
from pixelpong.atari.typed import Int, Machine

def play_frame(m: Machine) -> Int:
    run_frame(m)
    return m.stop
"""


class Pair:
    """ALE and our machine, with the same cartridge: its own code runs only if a program asks for it."""

    def __init__(self, folder: Path, name: str = "othello") -> None:
        """Load a cartridge by its name in ale-py; compile our machine for it, and link them.

        In "othello", the vector of BRK is an address in memory, B0, so a program can follow it.
        """
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self.ale: Any = ale_py.ALEInterface()
        self.ale.setFloat("repeat_action_probability", 0.0)
        self.ale.setInt("frame_skip", 1)
        self.ale.setInt("max_num_frames_per_episode", 0)
        path = Path(ale_py.__file__).parent / "roms" / f"{name}.bin"
        self.rom = path.read_bytes()
        self.ale.loadROM(str(path))
        self.ale.reset_game()
        self.base = self.ale.cloneState().serialize()
        self.places = find_numbers(self.base)
        self.prepared: dict[tuple[tuple[str, int], ...], bytes] = {}
        self.cartridge, constants = ale_start.find_cartridge(self.base, self.rom)
        self.rows = constants["ROWS"]
        play = machines.module_from(_PLAY, folder, "play")
        game = build.make_game(self.cartridge, [], constants, {play: ("play_frame",)}).to_ir()
        console = build.make_console().to_ir()
        code = NativeCode(
            game.encode(), lambda: game, folder, [(console.encode(), lambda: console)],
            is_quick=True,
        )
        self.play_frame = machines.function_of(code, "play_frame", 0)

    def prepare(self, **registers: int) -> bytes:
        """A state of ALE after a program has written the TIA's registers, by name; others are 0."""
        key = tuple(registers.items())
        if key not in self.prepared:
            data = self.base
            parts = [assemble("LDX imm 29; LDA imm 00; STA zpx 00; DEX; CPX imm 03; BNE rel F9")]
            for name, value in {"CXCLR": 0, "VBLANK": 0, **COLOURS, **registers}.items():
                register = getattr(r, name)
                parts.append(assemble(f"LDA imm {value:02X}; STA zp {register:02X}"))
            for at in range(0, len(parts), 20):
                program = b"".join(parts[at : at + 20]) + END_FRAME
                data, _ = self.run_ale(self.state(program, data))
            self.prepared[key] = data
        return self.prepared[key]

    def state(
        self, program: bytes, base: bytes | None = None, **numbers: int | list[int]
    ) -> bytes:
        """A state of ALE in which a program in memory begins; other numbers of it by name."""
        assert len(program) <= 128, len(program)
        data = bytearray(base or self.base)
        given = {"pc": 0x80, "s": 0xFF, "ram": list(program), "d": FALSE} | numbers
        for name, value in given.items():
            values = value if isinstance(value, list) else [value]
            struct.pack_into(f"<{len(values)}i", data, self.places[name], *values)
        struct.pack_into("<i", data, self.places["is_over"], FALSE)
        return bytes(data)

    def run_ale(self, state: bytes, count: int = 1) -> tuple[bytes, np.ndarray]:
        """What ALE makes of a state in some frames: a state, a picture."""
        self.ale.restoreState(ale_py.ALEState(state))
        for _ in range(count):
            self.ale.act(0)
        return self.ale.cloneState().serialize(), self.ale.getScreen()

    def run_ours(self, state: bytes, count: int = 1, **fields: Any) -> tuple[Any, np.ndarray]:
        """What our machine makes of it: its record, a picture; with its inputs as fields."""
        machine: Any = ale_start.read_machine(state, self.cartridge)
        machine["draws"] = DRAW_PICTURE
        machine["resistance"] = NO_PADDLE
        for name, value in fields.items():
            machine[name] = value
        for _ in range(count):
            stop = self.play_frame(machine)
            if stop != FRAME_DONE:
                raise AssertionError((stop, hex(machine["pc"][0])))
        picture = machine["picture"][0][: self.rows * WIDTH].reshape(self.rows, WIDTH)
        return machine, picture

    def differences(
        self, state: bytes, count: int = 1, **fields: Any
    ) -> dict[str, Any]:
        """Play a state on both; all in which they then differ, by field, and the first row."""
        after, theirs = self.run_ale(state, count)
        machine, ours = self.run_ours(state, count, **fields)
        wanted: Any = ale_start.read_machine(after, self.cartridge)
        found = {
            name: (wanted[name].tolist(), machine[name].tolist())
            for name in STATE.names or ()
            if name not in _NOT_STORED and wanted[name].tobytes() != machine[name].tobytes()
        }
        rows = min(max(self.lines_of(after) - TOP, 0), self.rows)
        if not np.array_equal(theirs[:rows], ours[:rows]):
            row, column = np.argwhere(theirs[:rows] != ours[:rows])[0].tolist()
            pixels = np.flatnonzero(theirs[row] != ours[row]).tolist()
            found["picture"] = (row, pixels, theirs[row, column], ours[row, column])
        return found

    def lines_of(self, after: bytes) -> int:
        """How many complete lines the frame had that a state of ALE follows."""
        numbers = ale_start.read_numbers(after)
        return (numbers["cycles"] - numbers["frame_start"] // 3) // 76


_NOT_STORED = ("resistance", "hidden", "late_mirror", "star_form")
"""What ALE does not keep in a state: inputs, and what ends with a line."""
