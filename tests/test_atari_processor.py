"""The processor: cartridges of our own against a model of the manual, and what it has not."""

from __future__ import annotations

import itertools

import machines
import numpy as np
import pytest
from machines import short_and_long
from processor_model import Elsewhere, Processor, decode, length

from pixelpong.atari.disassembly import SIZE, disassemble, read_instruction
from pixelpong.atari.machine import (
    FRAME_DONE,
    MACHINE,
    NOT_IMPLEMENTED,
    NOT_TRANSLATED,
    TIMER_RAN_OUT,
    TOO_LONG,
    make_machine,
)
from pixelpong.atari.opcodes import LENGTHS, OPCODES
from pixelpong.atari.translation import Translation

KIL = 0x02
"""No documented opcode: the machine stops there, and its registers can be read."""

MODES = {
    "implied": "imp", "accumulator": "acc", "immediate": "imm", "page 0": "zp", "page 0,x": "zpx",
    "page 0,y": "zpy", "(page 0,x)": "izx", "(page 0),y": "izy", "branch": "rel",
    "absolute": "abs", "absolute,x": "abx", "absolute,y": "aby", "address": "abs",
    "pointer": "ind",
}  # fmt: skip
"""The model's names of the addressing modes, and ours."""

CODES = {(name, mode): code for code, (name, mode, _) in OPCODES.items()}


def code(text: str) -> bytes:
    """Instructions as ``NAME mode operand`` in hexadecimal, separated by semicolons."""
    parts = bytearray()
    for line in text.split(";"):
        name, mode, operand, *_ = [*line.split(), *("imp", "0")[len(line.split()) - 1 :]]
        parts.append(CODES[name, mode])
        parts += int(operand, 16).to_bytes(LENGTHS[mode] - 1, "little")
    return bytes(parts)


class Cartridge:
    """A cartridge of our own: pieces of code at known places, all reached through memory."""

    def __init__(self, *pieces: str | bytes, start: int = 0x010, interrupt: int = 0x7E0):
        self.rom = bytearray([KIL]) * SIZE
        self.places: list[int] = []
        self._end = start
        for piece in pieces:
            self.add(piece)
        self.rom[SIZE - 4 :] = (0xF000 | start).to_bytes(2, "little") + (
            0xF000 | interrupt
        ).to_bytes(2, "little")

    def add(self, piece: str | bytes, place: int | None = None) -> int:
        """Put code somewhere; by default behind the newest piece, with a KIL in between."""
        content = code(piece) if isinstance(piece, str) else piece
        place = self._end if place is None else place
        self.rom[place : place + len(content)] = content
        self.places.append(place)
        self._end = max(self._end, place + len(content) + 1)
        return place

    def compile(self, folder):
        return machines.compile_cartridge(bytes(self.rom), self.places, folder)


def started(place: int, **fields) -> np.ndarray:
    """A machine about to go on at a place of the cartridge."""
    machine = make_machine()
    machine["pc"], machine["s"], machine["p"] = place, 0xFF, 0x30
    for name, value in fields.items():
        machine[name] = value
    return machine


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("code")


# Opcodes.


def test_the_documented_opcodes_are_those_that_their_bits_tell():
    documented = {opcode: decode(opcode) for opcode in range(256) if decode(opcode)}
    assert len(documented) == 151
    ours = {opcode: (name, mode) for opcode, (name, mode, _) in OPCODES.items()}
    assert ours == {opcode: (name, MODES[mode]) for opcode, (name, mode) in documented.items()}
    for name, mode in documented.values():
        assert LENGTHS[MODES[mode]] == length(mode), name


# Against the model.


def random_instruction(rng: np.random.Generator, opcode: int) -> bytes:
    """With an operand that mostly stays in memory and cartridge."""
    _, mode = decode(opcode)
    if mode in ("page 0", "page 0,x", "page 0,y", "(page 0,x)", "(page 0),y"):
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
    """Each opcode in a piece of its own, then pieces of several instructions."""
    cartridge = Cartridge(interrupt=int(rng.integers(0x010, 0x700)))
    documented = [opcode for opcode in range(256) if decode(opcode)]
    usual = [opcode for opcode in documented if decode(opcode)[0] not in ("SED", "JMP", "BRK")]
    while cartridge._end < SIZE - 40:
        if len(cartridge.places) < len(documented):
            cartridge.add(random_instruction(rng, documented[len(cartridge.places)]))
        else:
            count = int(rng.integers(2, 6))
            chosen = rng.choice(usual, count).tolist()
            cartridge.add(b"".join(random_instruction(rng, opcode) for opcode in chosen))
    return cartridge


def random_start(rng: np.random.Generator, cartridge: Cartridge) -> np.ndarray:
    """Registers and memory of any content, in which addresses and flags lie on the stack."""
    ram = rng.integers(0, 256, 128, np.uint8)
    stack = int(rng.integers(0x88, 0xF8))
    step = int(rng.integers(2, 4))
    places = rng.choice(cartridge.places, (2, 40)) - rng.integers(0, 2, 40)
    ram[: 40 * step : step] = places[0] & 0xFF
    ram[1 : 40 * step : step] = places[1] >> 8 | 0xF0
    return started(
        int(places[0, 0]),
        a=rng.integers(256), x=rng.integers(256), y=rng.integers(256), s=stack,
        p=0x30 | rng.integers(256) & 0xC7, ram=ram, cycle=rng.integers(76),
    )  # fmt: skip


_PATIENCE = 2000
"""Cycles after which the model is left alone; it takes a second for a hundred thousand."""


def run_model(rom: bytes, machine: np.ndarray, entries: set[int]) -> tuple[Processor, int]:
    """Let the model go on until it stops; the stop code.

    Raises:
        Elsewhere: the model does not cover it.
    """
    registers = {name: int(machine[name][0]) for name in ("pc", "a", "x", "y", "s")}
    model = Processor(rom, bytearray(machine["ram"][0].tobytes()), **registers)
    model.flags = int(machine["p"][0])
    model.cycles = int(machine["cycle"][0])
    while (instruction := model.instruction()) is not None:
        if model.cycles > _PATIENCE:
            raise Elsewhere("loops")
        model.step()
        name, mode = instruction
        if (name in ("RTS", "RTI") or mode == "pointer") and model.pc not in entries:
            break
    return model, NOT_TRANSLATED


@pytest.mark.parametrize(
    ("runs", "seed"), short_and_long((5000, 0), *((20_000, seed) for seed in range(100, 160)))
)
def test_each_instruction_does_what_the_manual_says(folder, runs, seed):
    """Registers, flags, memory, stack, cycles, and where it goes on: of all 151 opcodes."""
    rng = np.random.default_rng(seed)
    cartridge = random_cartridge(rng)
    rom = bytes(cartridge.rom)
    play_frame = cartridge.compile(folder)
    entries = set(Translation(rom, cartridge.places, {}).entries)
    compared = 0
    for number in range(runs):
        machine = random_start(rng, cartridge)
        if number < 3 * len(cartridge.places):
            machine["pc"] = cartridge.places[number // 3]
        before = machine.copy()
        stop = play_frame(machine)
        try:
            model, wanted = run_model(rom, before, entries)
        except Elsewhere as why:
            if any(word in str(why) for word in ("decimals", "pointer")):
                assert stop == NOT_IMPLEMENTED, why
            assert stop == NOT_TRANSLATED or "goes to" not in str(why), why
            continue
        compared += 1
        place = hex(int(before["pc"][0]))
        assert stop == wanted, place
        got = {name: int(machine[name][0]) for name in ("pc", *"axysp")}
        assert got == {name: getattr(model, name) for name in "axys"} | {
            "pc": model.pc, "p": model.flags,
        }, place  # fmt: skip
        assert machine["ram"][0].tobytes() == bytes(model.ram), place
        assert machine["cycle"][0] == model.cycles % 76, place
    assert compared > 0.3 * runs


# Stops.


@pytest.fixture(scope="module")
def by_hand(folder):
    """Run one of a few instructions, by name; the stop code, and the bytes it went forward."""
    pieces = {
        "sed": "SED", "izx": "LDA izx 80", "izy": "LDA izy 10", "izy over": "LDA izy FF",
        "ind": "JMP ind 0090", "ind in the cartridge": "JMP ind F090", "jsr": "JSR abs F000",
        "brk": "BRK", "rti": "RTI", "pla": "PLA", "plp": "PLP", "nop": "NOP",
    }  # fmt: skip
    cartridge = Cartridge(*pieces.values())
    places = dict(zip(pieces, cartridge.places, strict=True))
    play_frame = cartridge.compile(folder)

    def run(name: str, high: int = 0, **fields) -> tuple[int, int]:
        """With the address of "nop", but this high byte, at 0x90 for "ind"."""
        machine = started(places[name], **fields)
        machine["ram"][0, 0x10:0x12] = places["nop"], high
        return play_frame(machine), int(machine["pc"][0]) - places[name]

    run.to_nop = places["nop"] - places["ind"]
    return run


@pytest.mark.parametrize("name", ["sed", "izx", "izy", "izy over", "ind in the cartridge"])
def test_what_is_not_covered_stops_where_it_is(by_hand, name):
    assert by_hand(name) == (NOT_IMPLEMENTED, 0)


def test_a_stack_outside_the_memory_is_not_covered(by_hand):
    for name, stack in (
        ("jsr", 0x80), ("jsr", 0x1F), ("brk", 0x81), ("brk", 0x00), ("rti", 0xFD), ("rti", 0x7E),
        ("pla", 0xFF), ("pla", 0x10), ("plp", 0xFF),
    ):  # fmt: skip
        assert by_hand(name, s=stack)[0] == NOT_IMPLEMENTED, (name, stack)


def test_an_address_outside_the_cartridge_is_not_translated(by_hand):
    """Memory can be run as well, and the cartridge be seen elsewhere; neither is translated."""
    for high in (0xF0, 0xF8, 0xD0, 0):
        stop, forward = by_hand("ind", high)
        assert (stop, forward == by_hand.to_nop + 1) == (NOT_TRANSLATED, high == 0xF0)


VSYNC_FRAME = "LDA imm 02; STA zp 00; STA zp 02; STA zp 02; LDA imm 00; STA zp 00"
"""VSYNC for two lines."""


def test_a_frame_ends_behind_the_write_that_ends_vsync(folder):
    cartridge = Cartridge(f"INC zp 80; {VSYNC_FRAME}; INC zp 81; JMP abs F010")
    play_frame = cartridge.compile(folder)
    machine = started(0x010)
    for frame in range(5):
        assert play_frame(machine) == FRAME_DONE
        assert machine["ram"][0, :2].tolist() == [frame + 1, frame]
        # STA WSYNC ends at a line; LDA and STA take five cycles of the next one.
        assert machine["cycle"][0] == 5
        assert machine["pc"][0] == 0x010 + len(code(f"INC zp 80; {VSYNC_FRAME}"))


@pytest.mark.slow
def test_an_endless_loop_ends(folder):
    """Be it of jumps, of calls, of jumps through memory, or once around the cartridge."""
    cartridge = Cartridge(
        "JMP abs F010", "LDA imm 00; BEQ rel FC", "JMP ind 0080", "NOP; BNE rel FD",
    )  # fmt: skip
    call = cartridge.add("JSR abs F040; JMP abs F030", 0x030)
    cartridge.add("JSR abs F044; RTS", 0x040)
    cartridge.add("RTS", 0x044)
    play_frame = cartridge.compile(folder)
    for place in [*cartridge.places[:4], call]:
        machine = started(place, s=0xF0)
        machine["ram"][0, :2] = cartridge.places[2], 0xF0
        assert play_frame(machine) == TOO_LONG
    around = machines.compile_cartridge(bytes([CODES["NOP", "imp"]] * SIZE), [], folder)
    assert around(started(0x2EA)) == TOO_LONG


def test_a_timer_that_ran_out_stops_the_machine_at_the_frames_end_or_before(folder):
    wait = "LDA imm 05; STA abs 0294; LDX abs 0284; LDX abs 0284; "
    cartridge = Cartridge(wait + VSYNC_FRAME, wait + "JMP abs F010")
    play_frame = cartridge.compile(folder)
    assert [play_frame(started(place)) for place in cartridge.places] == [TIMER_RAN_OUT] * 2


def test_undocumented_opcodes_and_untranslated_places_stop(folder):
    cartridge = Cartridge("LDA imm 01", "JMP ind 0080")
    play_frame = cartridge.compile(folder)
    machine = started(cartridge.places[0])
    assert play_frame(machine) == NOT_TRANSLATED
    assert (machine["a"][0], machine["pc"][0]) == (1, cartridge.places[0] + 2)
    for target in (0x012, 0x700):  # data; nothing that anybody named
        machine = started(cartridge.places[1])
        machine["ram"][0, :2] = target & 255, target >> 8 | 0xF0
        assert play_frame(machine) == NOT_TRANSLATED
    assert play_frame(started(0x123)) == NOT_TRANSLATED


# Loops that are skipped.


@pytest.mark.parametrize("place", [0x010, 0x0FD, 0x0FF])  # two of them cross a page
def test_a_counting_loop_is_skipped_to_the_same_state_and_cycle(folder, place):
    cartridge = Cartridge(start=place)
    cartridge.add("DEY; BPL rel FD", place)
    cartridge.add("DEX; BPL rel FD", place + 0x20)
    play_frame = cartridge.compile(folder)
    rom = bytes(cartridge.rom)
    for start, count in itertools.product(cartridge.places, (0, 1, 2, 100, 127, 128, 129, 255)):
        machine = started(start, x=count, y=count)
        model, _ = run_model(rom, machine, set())
        assert play_frame(machine) == NOT_TRANSLATED
        got = [int(machine[name][0]) for name in ("x", "y", "p", "pc", "cycle")]
        assert got == [model.x, model.y, model.flags, model.pc, model.cycles % 76], count


@pytest.mark.parametrize("timer", [0x294, 0x295, 0x296])
def test_a_wait_for_the_timer_is_skipped_to_the_same_cycle(folder, timer):
    """A loop with an instruction more, which is not skipped, is the measure: it polls as well."""
    wait = f"LDA imm 40; STA abs {timer:04X}; {{}}"
    cartridge = Cartridge(start=0x010)
    skipped = cartridge.add(wait.format("LDA abs 0284; BNE rel FB"), 0x010)
    plain = cartridge.add(wait.format("LDX abs 0284; BNE rel FB"), 0x040)
    play_frame = cartridge.compile(folder)
    seen = []
    for place in (skipped, plain):
        machine = started(place)
        stop = play_frame(machine)
        assert stop == (NOT_TRANSLATED if timer > 0x294 else TIMER_RAN_OUT)  # missed by a cycle
        seen.append([int(machine[name][0]) for name in ("cycle", "p", "timer_set")])
    assert seen[0] == seen[1]


# Which bytes are code.


def test_code_is_followed_through_branches_jumps_and_calls():
    cartridge = Cartridge("LDA imm 00; BEQ rel 10; JSR abs F100; JMP abs F200")
    cartridge.add("RTS", 0x100)
    cartridge.add("NOP; RTI", 0x200)
    cartridge.add("BRK", 0x010 + 4 + 0x10)
    cartridge.add("LDY imm 00", 0x7E0)  # the interrupt
    found = disassemble(bytes(cartridge.rom))
    names = {place: each.name for place, each in found.items()}
    assert names == {
        0x010: "LDA", 0x012: "BEQ", 0x014: "JSR", 0x017: "JMP", 0x100: "RTS", 0x200: "NOP",
        0x201: "RTI", 0x024: "BRK", 0x7E0: "LDY",
    }  # fmt: skip
    assert found[0x024].after == 0x026


def test_code_ends_at_jumps_through_memory_and_undocumented_opcodes():
    """Where the former lead must be named."""
    cartridge = Cartridge("JMP ind 0080")
    cartridge.add("NOP", 0x300)
    rom = bytes(cartridge.rom)
    assert set(disassemble(rom)) == {0x010}
    assert set(disassemble(rom, [0x300])) == {0x010, 0x300}
    assert [read_instruction(bytes([code]) * SIZE, 0) for code in (0x02, 0x1A, 0xFF)] == [None] * 3


def test_branches_lead_forwards_and_backwards_and_around_the_cartridge():
    rom = bytearray([KIL]) * SIZE
    for place, operand, target in (
        (0x100, 0x7F, 0x181), (0x200, 0x80, 0x182), (0x005, 0x80, 0x787),
    ):  # fmt: skip
        rom[place : place + 2] = bytes([CODES["BNE", "rel"], operand])
        assert read_instruction(bytes(rom), place).target == target


@pytest.mark.slow
def test_code_that_overlaps_is_translated_twice(folder):
    """``BIT`` in front of two bytes hides an instruction, which others jump to."""
    hides = bytes([CODES["BIT", "abs"], CODES["LDA", "imm"], 0x80])
    cartridge = Cartridge(code("LDA imm 05; LDX imm 01; BNE rel 01") + hides + code("LDY imm 09"))
    play_frame = cartridge.compile(folder)
    machine = started(0x010)
    assert play_frame(machine) == NOT_TRANSLATED
    assert [int(machine[name][0]) for name in "axy"] == [0x80, 1, 9]
    machine = started(0x014, p=0x32)  # not taken: the BIT is run
    cartridge.places.append(0x014)
    assert cartridge.compile(folder)(machine) == NOT_TRANSLATED
    assert [int(machine[name][0]) for name in "axy"] == [0, 0, 9]


def test_the_record_of_a_machine_has_no_gaps_and_no_pointers():
    ends = [offset + dtype.itemsize for dtype, offset, *_ in MACHINE.fields.values()]
    starts = [offset for _, offset, *_ in MACHINE.fields.values()]
    assert starts == [0, *ends[:-1]]
    assert ends[-1] == MACHINE.itemsize
