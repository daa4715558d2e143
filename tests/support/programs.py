"""Small programs in the console's memory, run by ALE and by our machine from the same state.

ALE's serialised state takes any numbers: another program counter, other memory, other registers.
So 128 bytes of our own run on ALE, without a cartridge, and show what it does in a given cycle.
`Pair` runs a program on both and compares everything: memory, registers, position of the objects,
what the chips keep, and the lines that were drawn.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import ale_py
import ale_start
import machines
import numpy as np

from pixelpong.atari import lockstep
from pixelpong.atari.machine import build
from pixelpong.atari.machine import registers as r
from pixelpong.atari.machine.cartridge import Cartridge
from pixelpong.atari.machine.native import NativeCode, Source
from pixelpong.atari.machine.opcodes import DOCUMENTED, LENGTHS, OPCODES
from pixelpong.atari.machine.record import DRAW_NOTHING, DRAW_PICTURE, FRAME_DONE, STATE, TOP, WIDTH

TRUE, FALSE = (pattern - (1 << 32) for pattern in (0xFAB1FAB2, 0xBAD1BAD2))
"""How ALE writes truth values."""

LONGEST = 350  # lines; a frame that has more was abandoned
NO_PADDLE = 0x7FFFFFFF

COLOURS = {"COLUP0": 0x36, "COLUP1": 0xC8, "COLUPF": 0x0E, "COLUBK": 0x02}

CODES = {(name, mode): code for code, (name, mode, _) in [*OPCODES.items(), *DOCUMENTED.items()]}


def assemble(text: str) -> bytes:
    """Instructions as ``NAME mode operand`` in hexadecimal, separated by semicolons."""
    parts = bytearray()
    for line in filter(str.strip, text.split(";")):
        name, mode, operand = line.split() if " " in line.strip() else (line.strip(), "imp", "0")
        parts.append(CODES[name, mode])
        parts += int(operand, 16).to_bytes(LENGTHS[mode] - 1, "little")
    return bytes(parts)


def delay(cycles: int) -> bytes:
    """Instructions that take so many cycles; they change flags, and Y if they are a loop."""
    assert cycles == 0 or cycles > 1, cycles
    parts = []
    while cycles > 20:
        rounds = min((cycles - 3) // 5, 255)
        parts.append(assemble(f"LDY imm {rounds:02X}; DEY; BNE rel FD"))
        cycles -= 5 * rounds + 1
        if cycles == 1:
            parts[-1] = assemble(f"LDY imm {rounds - 1:02X}; DEY; BNE rel FD")
            cycles = 6
    if cycles % 2:
        parts.append(assemble("BIT zp 80"))
    return b"".join(parts) + assemble("NOP") * ((cycles - 3 * (cycles % 2)) // 2)


def lines(count: int) -> bytes:
    """Wait for the beginning of a line, `count` times: 4 cycles of it are over then, and X is 0."""
    return assemble(f"LDX imm {count:02X}; STA zp 02; DEX; BNE rel FB")


AFTER_LINES = 4

# Two lines of VSYNC: the frame ends.
END_FRAME = assemble("LDA imm 02; STA zp 00; STA zp 02; STA zp 02; LDA imm 00; STA zp 00")


def write_at(cycle: int, register: int, passed: int = AFTER_LINES) -> bytes:
    """Write A in a cycle of the line of which some have passed, or else of the next line."""
    wait = cycle - 3 - passed
    return delay(wait + 76 if wait < 0 or wait == 1 else wait) + assemble(f"STA zp {register:02X}")


# Running them.


def find_numbers(data: bytes) -> dict[str, int]:
    """Where the numbers of a serialised state are, by name; of several, the first."""
    places = {"left_paddle": 0, "right_paddle": 4}
    for chip, names in ale_start.PARTS.items():
        mark = struct.pack("<i", len(chip)) + chip.encode()
        at = data.index(mark, 8) + len(mark)
        for word in names.split():
            name, _, count = word.partition(":")
            places[name] = at
            at += 4 * int(count or 1)
    rest = data.rindex(b"Cartridge")  # of which a game that just began is not over
    return places | {"is_over": data.index(struct.pack("<i", FALSE), rest)}


def changed_state(
    data: bytes, places: Mapping[str, int], program: bytes, **numbers: int | list[int]
) -> bytes:
    """A state of ALE in which a program in memory begins; other numbers of it by name."""
    assert len(program) <= 128, len(program)
    changed = bytearray(data)
    given = {"pc": 0x80, "s": 0xFF, "ram": list(program), "d": FALSE, "is_over": FALSE} | numbers
    for name, value in given.items():
        values = value if isinstance(value, list) else [value]
        struct.pack_into(f"<{len(values)}i", changed, places[name], *values)
    return bytes(changed)


ROMS = Path(ale_py.__file__).parent / "roms"
NOT_PLAYED = ("combat", "joust", "maze_craze", "warlords")  # by ALE, for two only


def load_ale(name: str) -> Any:
    """ALE with a cartridge that was just switched on."""
    ale = lockstep.load_ale(name)
    ale.reset_game()
    return ale


@functools.cache
def _console() -> str:
    """The part that all cartridges share."""
    return build.make_console().to_ir()


class Pair:
    """ALE and our machine with the same cartridge, whose code only runs if a program calls it."""

    def __init__(self, name: str = "othello") -> None:
        """Load a cartridge by its name in ale-py; compile our machine for it, and link them.

        In "othello", the vector of BRK is an address in memory, B0, so a program can follow it.
        """
        path = ROMS / f"{name}.bin"
        self.rom = path.read_bytes()
        self.ale = load_ale(name)
        self.base = self.ale.cloneState().serialize()
        self.places = find_numbers(self.base)
        self.prepared: dict[tuple[tuple[str, int], ...], bytes] = {}
        self.is_unfinished = False
        scheme, facts = ale_start.find_cartridge(self.base)
        self.cartridge = Cartridge(
            name, "", scheme, facts["TOP"], facts["ROWS"], facts["MAX_LINES"]
        )
        self.banked, self.rows = self.cartridge.banked(self.rom), self.cartridge.rows
        game = build.make_game(self.cartridge, self.banked, []).to_ir()
        code = NativeCode(
            [Source(text.encode(), lambda text=text: text) for text in (game, _console())]
        )
        play = machines.function_of(code, "play", 1)
        self.play_frame = lambda machine: play(machine, 1)

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

    def case(self, program: bytes, registers: Mapping[str, int], **numbers: Any) -> bytes:
        """A state after these writes, in which a program begins.

        ALE looks at positions that a state has only after the next writes to these three.
        """
        again = "".join(
            f"LDA imm {registers.get(name, 0):02X}; STA zp {getattr(r, name):02X};"
            for name in ("NUSIZ0", "NUSIZ1", "CTRLPF")
        )
        return self.state(assemble(again) + program, self.prepare(**registers), **numbers)

    def state(self, program: bytes, base: bytes | None = None, **numbers: int | list[int]) -> bytes:
        """A state of ALE in which a program in memory begins; other numbers of it by name."""
        return changed_state(base or self.base, self.places, program, **numbers)

    def run_ale(self, state: bytes, count: int = 1, action: int = 0) -> tuple[bytes, np.ndarray]:
        """What ALE makes of a state in some frames: a state, a picture."""
        if self.is_unfinished:  # which ALE remembers outside its state
            self.ale.restoreState(ale_py.ALEState(self.state(END_FRAME)))
            self.ale.act(0)
        self.ale.restoreState(ale_py.ALEState(state))
        for _ in range(count):
            self.ale.act(action)
        after = self.ale.cloneState().serialize()
        self.is_unfinished = self.lines_of(after) > LONGEST
        return after, self.ale.getScreen()

    def run_ours(
        self,
        state: bytes,
        draws: Iterable[int] = (DRAW_PICTURE,),
        count: int = 1,
        resistance: int | list[int] = NO_PADDLE,
    ) -> list[Any]:
        """Our machine's records after it played a state, for each kind of drawing."""
        start: Any = ale_start.read_machine(state, self.banked)
        start["resistance"] = resistance
        machines = []
        for each in draws:
            machine = start.copy()
            machine["draws"] = each
            for _ in range(count):
                stop = self.play_frame(machine)
                assert stop == FRAME_DONE, (stop, hex(machine["pc"][0]))
            machines.append(machine)
        return machines

    def differences(self, state: bytes, count: int = 1) -> dict[str, Any]:
        """Play a state on both, and here without a picture too; all in which they then differ."""
        after, theirs = self.run_ale(state, count)
        wanted: Any = ale_start.read_machine(after, self.banked)
        drawn, undrawn = self.run_ours(state, (DRAW_PICTURE, DRAW_NOTHING), count)
        found = _differences(wanted, drawn)
        found |= {
            f"{name}, not drawn": each for name, each in _differences(wanted, undrawn).items()
        }
        rows = min(max(self.lines_of(after) - TOP, 0), self.rows)
        ours = drawn["picture"][0, : rows * WIDTH].reshape(rows, WIDTH)
        if not np.array_equal(theirs[:rows], ours):
            row = int(np.argwhere(theirs[:rows] != ours)[0, 0])
            found["picture"] = (row, np.flatnonzero(theirs[row] != ours[row]).tolist())
        return found

    def compare(self, cases: Iterable[tuple[Any, bytes]], at_least: int) -> None:
        """Play labelled states on both, and raise at the first after which they differ."""
        number = 0
        for label, state in cases:
            found = self.differences(state)
            assert not found, (label, found)
            number += 1
        assert number >= at_least, number

    def lines_of(self, after: bytes) -> int:
        """How many complete lines the frame had that a state of ALE follows."""
        cycles, frame_start = (
            struct.unpack_from("<i", after, self.places[name])[0]
            for name in ("cycles", "frame_start")
        )
        return (cycles - frame_start // 3) // 76


def _differences(wanted: Any, machine: Any) -> dict[str, Any]:
    for name in _NOT_STORED:
        wanted[name] = machine[name]
    size = STATE.itemsize
    if wanted.view(np.uint8)[:size].tobytes() == machine.view(np.uint8)[:size].tobytes():
        return {}
    return {
        name: (wanted[name].tolist(), machine[name].tolist())
        for name in STATE.names or ()
        if wanted[name].tobytes() != machine[name].tobytes()
    }


_NOT_STORED = ("resistance", "hidden", "late_mirror", "star_form", "is_grey")
"""What ALE does not keep in a state: inputs, what ends with a line, the colours of a television."""
