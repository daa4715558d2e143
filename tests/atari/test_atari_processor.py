"""The processor: cartridges of our own against a model of the manual, and what it has not."""

from __future__ import annotations

from collections import Counter

import machines
import numpy as np
import pytest
from machines import short_and_long
from processor_model import Elsewhere, Processor, decode, length

from pixelpong.atari.machine.opcodes import DOCUMENTED as DOCUMENTED_OPCODES
from pixelpong.atari.machine.opcodes import LENGTHS, OPCODES
from pixelpong.atari.machine.record import (
    FRAME_DONE,
    NOT_IMPLEMENTED,
    format_registers,
    make_machine,
)

SIZE = 2048
KIL = 0x02  # no instruction at all: the machine stops there, and its registers can be read

DOCUMENTED = [opcode for opcode in range(256) if decode(opcode)]
WAITS = ("DEY; BPL rel FD", "DEX; BPL rel FD")
CODES = {(name, mode): code for code, (name, mode, _) in OPCODES.items()}


def code(text: str) -> bytes:
    """Instructions as ``NAME mode operand`` in hexadecimal, separated by semicolons."""
    parts = bytearray()
    for line in text.split(";"):
        name, mode, operand = line.split() if " " in line.strip() else (line.strip(), "imp", "0")
        parts.append(CODES[name, mode])
        parts += int(operand, 16).to_bytes(LENGTHS[mode] - 1, "little")
    return bytes(parts)


class Cartridge:
    """A cartridge of our own: pieces of code at known places, all reached through memory."""

    def __init__(self, *pieces: str | bytes, interrupt: int = 0x7E0):
        self.rom, self.places, self.end = bytearray([KIL]) * SIZE, [], 0x010
        for piece in pieces:
            self.add(piece)
        self.rom[SIZE - 4 :] = b"\x10\xf0" + (0xF000 | interrupt).to_bytes(2, "little")

    def add(self, piece: str | bytes, place: int | None = None) -> int:
        """Put code somewhere; by default behind the last piece, with a KIL in between."""
        content = code(piece) if isinstance(piece, str) else piece
        place = self.end if place is None else place
        self.rom[place : place + len(content)] = content
        self.places.append(place)
        self.end = max(self.end, place + len(content) + 1)
        return place

    def compile(self, folder):
        return machines.compile_cartridge(bytes(self.rom), self.places, folder)


def started(place: int, **fields) -> np.ndarray:
    """A machine about to go on at a place of the cartridge."""
    machine = make_machine()
    machine["pc"], machine["s"], machine["p"] = 0xF000 | place, 0xFF, 0x30
    for name, value in fields.items():
        machine[name] = value
    return machine


# Against the model.


def random_instruction(rng: np.random.Generator, opcode: int) -> bytes:
    """With an operand that mostly stays in memory and cartridge."""
    _, mode = decode(opcode)
    if mode.startswith(("page 0", "(page 0")):
        operand = int(rng.integers(0x80, 0x100))
    elif mode in ("address", "absolute", "absolute,x", "absolute,y"):
        page = int(rng.choice([0x0000, 0x0100, 0xF000, 0xF300, 0xF600]))
        operand = page + int(rng.integers(0x80, 0x100))
        if mode == "address":
            operand |= 0xF000
    elif mode == "pointer":
        operand = int(rng.choice([0x0080, 0x0180, 0x00FF, 0x0005, 0xF080])) + int(rng.integers(8))
    else:
        operand = int(rng.integers(0x100))
    return bytes([opcode]) + operand.to_bytes(3, "little")[: length(mode) - 1]


def random_cartridge(rng: np.random.Generator) -> Cartridge:
    """Loops that are skipped, which cross a page; each opcode alone; then several instructions."""
    cartridge = Cartridge(*WAITS, interrupt=int(rng.integers(0x010, 0x700)))
    for place, wait in zip((0x0FD, 0x1FF), WAITS, strict=True):
        cartridge.add(wait, place)
    for opcode in DOCUMENTED:
        cartridge.add(random_instruction(rng, opcode))
    usual = [opcode for opcode in DOCUMENTED if decode(opcode)[0] not in ("SED", "JMP", "BRK")]
    while cartridge.end < SIZE - 40:
        chosen = rng.choice(usual, rng.integers(2, 6)).tolist()
        cartridge.add(b"".join(random_instruction(rng, opcode) for opcode in chosen))
    return cartridge


ENDS = (0x00, 0x10, 0x1F, 0x7E, 0x7F, 0x80, 0x81, 0x82, 0xFC, 0xFD, 0xFE, 0xFF)
"""Stack pointers at the ends of the memory, and outside it."""


def random_start(rng: np.random.Generator, cartridge: Cartridge) -> np.ndarray:
    """Registers and memory of any content, in which addresses and flags lie on the stack."""
    ram = rng.integers(0, 256, 128, np.uint8)
    stack = int(rng.integers(0x88, 0xF8) if rng.random() < 0.8 else rng.choice(ENDS))
    step = int(rng.integers(2, 4))
    places = rng.choice(cartridge.places, (2, 40)) - rng.integers(0, 2, 40)
    ram[: 40 * step : step] = places[0] & 0xFF
    ram[1 : 40 * step : step] = places[1] >> 8 | 0xF0
    return started(
        int(places[0, 0]),
        a=rng.integers(256), x=rng.integers(256), y=rng.integers(256), s=stack,
        p=0x30 | rng.integers(256) & 0xC7, ram=ram, cycle=rng.integers(76),
    )  # fmt: skip


def run_model(rom: bytes, machine: np.ndarray) -> Processor:
    """Let the model go on until it stops, or raises that it does not cover it."""
    registers = {name: int(machine[name][0]) for name in ("pc", "a", "x", "y", "s")}
    registers["pc"] &= 0x7FF
    model = Processor(rom, bytearray(machine["ram"][0].tobytes()), **registers)
    model.flags = int(machine["p"][0])
    model.cycles = int(machine["cycle"][0])
    while decode(rom[model.pc]) is not None:
        if model.cycles > 2000:
            raise Elsewhere("loops")
        model.step()
    if rom[model.pc] in OPCODES:
        raise Elsewhere("an undocumented instruction")
    return model


def seen_of(machine: np.ndarray | Processor) -> dict:
    """Registers, flags, cycle in the line, and memory."""
    if isinstance(machine, Processor):
        registers = {name: getattr(machine, name) for name in ("pc", *"axys")}
        rest = {"p": machine.flags, "cycle": machine.cycles % 76, "ram": bytes(machine.ram)}
        return registers | rest
    registers = {name: int(machine[name][0]) for name in ("pc", *"axys", "p", "cycle")}
    registers["pc"] &= 0x7FF
    return registers | {"ram": machine["ram"].tobytes()}


@pytest.mark.parametrize(
    ("runs", "seed"), short_and_long((4000, 0), *((20_000, seed) for seed in range(100, 160)))
)
def test_each_instruction_does_what_the_manual_says(tmp_path, runs, seed):
    """Registers, flags, memory, stack, cycles, and where it goes on: of all 151 opcodes."""
    assert sorted(DOCUMENTED_OPCODES) == DOCUMENTED
    rng = np.random.default_rng(seed)
    cartridge = random_cartridge(rng)
    rom = bytes(cartridge.rom)
    play_frame = cartridge.compile(tmp_path)
    compared, others = 0, Counter()
    for number in range(runs):
        machine = random_start(rng, cartridge)
        if number < 3 * len(cartridge.places):
            machine["pc"] = 0xF000 | cartridge.places[number // 3]
        before = machine.copy()
        stop = play_frame(machine)
        try:
            model = run_model(rom, before)
        except Elsewhere as why:
            others[str(why).split()[0]] += 1
            continue
        compared += 1
        assert (stop, seen_of(machine)) == (NOT_IMPLEMENTED, seen_of(model)), before
    assert compared > 0.2 * runs, others


# What the model has not.


@pytest.mark.slow
def test_an_endless_loop_ends(tmp_path):
    """Be it of jumps, of calls, of jumps through memory, or once around the cartridge.

    ALE abandons such a frame after 25,000 instructions, and goes on with it in the next call.
    """
    cartridge = Cartridge(
        "JMP abs F010", "LDA imm 00; BEQ rel FC", "JMP ind 0080", "NOP; BNE rel FD",
    )  # fmt: skip
    cartridge.add("JSR abs F040; JMP abs F030", 0x030)
    loops = list(cartridge.places)
    cartridge.add("JSR abs F044; RTS", 0x040)
    cartridge.add("RTS", 0x044)
    play_frame = cartridge.compile(tmp_path)
    around = machines.compile_cartridge(bytes([CODES["NOP", "imp"]] * SIZE), [0x2EA], tmp_path)
    for play, place in [*((play_frame, place) for place in loops), (around, 0x2EA)]:
        machine = started(place, s=0xF0)
        machine["ram"][0, :2] = loops[2], 0xF0
        for count in (1, 2):
            assert play(machine) == FRAME_DONE
            if place == loops[0]:
                assert machine["begun"] == 3 * 25_000 * count


def test_what_is_not_found_ahead_is_interpreted(tmp_path):
    """Code behind jumps through memory, code in memory, and pointers that are not in memory."""
    cartridge = Cartridge("JMP ind 0080", "LDA izy 7F", "LDA izy FF", "JMP ind 00FF")
    hidden = cartridge.end + 5
    cartridge.rom[hidden : hidden + 3] = code("LDX imm 07") + bytes([KIL])
    play_frame = cartridge.compile(tmp_path)
    machine = started(cartridge.places[0])
    machine["ram"][0, :2] = hidden & 255, 0xF0 | hidden >> 8
    assert play_frame(machine) == NOT_IMPLEMENTED
    assert (machine["x"][0], machine["pc"][0]) == (7, 0xF000 + hidden + 2)
    machine["ram"][0, :5] = *code("LDY imm 09"), KIL, 0, 0
    machine["pc"] = 0x0080
    assert play_frame(machine) == NOT_IMPLEMENTED
    assert machine["y"] == 9


@pytest.mark.slow
def test_code_that_overlaps_is_translated_twice(tmp_path):
    """``BIT`` in front of two bytes hides an instruction, which others jump to."""
    hides = bytes([CODES["BIT", "abs"], CODES["LDA", "imm"], 0x80])
    cartridge = Cartridge(code("LDA imm 05; LDX imm 01; BNE rel 01") + hides + code("LDY imm 09"))
    play_frame = cartridge.compile(tmp_path)
    machine = started(0x010)
    assert play_frame(machine) == NOT_IMPLEMENTED
    assert [int(machine[name][0]) for name in "axy"] == [0x80, 1, 9]
    machine = started(0x014, p=0x32)  # not taken: the BIT is run
    cartridge.places.append(0x014)
    assert cartridge.compile(tmp_path)(machine) == NOT_IMPLEMENTED
    assert [int(machine[name][0]) for name in "axy"] == [0, 0, 9]


def test_registers_are_printed_in_hexadecimal_and_flags_as_bits():
    machine = make_machine()
    machine["pc"], machine["s"], machine["p"] = 0xF05E, 0xFD, 0xB1
    machine["a"], machine["x"], machine["y"] = 0x80, 0x0A, 0x7F
    wanted = "  PC AC XR YR SP NV-BDIZC\nF05E 80 0A 7F FD 10110001"
    assert format_registers(machine) == wanted
