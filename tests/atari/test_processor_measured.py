"""The rules of processor, timer, ports and cartridges, measured by programs in memory.

As `test_rules_measured`, which is about the TIA. The rules are told in ``docs/emulator.md``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from ale_start import read_numbers
from programs import END_FRAME, FALSE, NO_PADDLE, TRUE, Pair, assemble, delay, lines

from pixelpong.atari.machine import banks, console
from pixelpong.atari.machine.opcodes import OPCODES

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pair() -> Pair:
    return Pair()


def memory_after(pair: Pair, state: bytes) -> list[int]:
    after, _ = pair.run_ale(state)
    return read_numbers(after)["ram"]


# Decimal arithmetic.


@pytest.mark.parametrize(
    ("name", "compute"), [("ADC", console.add_decimals), ("SBC", console.subtract_decimals)]
)
def test_decimal_arithmetic_is_ales_for_all_operands(pair, name, compute):
    """All 131,072 sums or differences, of invalid digits too, and N, V, Z, C; 32 a program."""
    program = assemble(
        f"LDX imm 1F; SED; LDA zp AA; PHA; PLP; LDA zp A9; {name} zp A8; CLD; STA zpx C0; PHP; PLA;"
        "STA zpx E0; INC zp A8; DEX; BPL rel EC"
    )
    base, number = pair.prepare(), 0
    for carry, a, first in itertools.product((0, 1), range(256), range(0, 256, 32)):
        memory = (program + END_FRAME).ljust(40, b"\0") + bytes([first, a, 0x38 | carry])
        state = pair.state(memory, base, s=0xBF)
        ale = memory_after(pair, state)
        for k in range(32):
            result = compute(a, first + 31 - k, carry)
            flags = result & 0x80 | (result >> 9 & 1) << 6 | (result & 0xFF == 0) << 1
            flags |= result >> 8 & 1
            wanted = (ale[0x40 + k], ale[0x60 + k] & 0xC3)
            assert (result & 0xFF, flags) == wanted, (a, first + 31 - k, carry)
            number += 1
        if first == 128:
            assert not pair.differences(state), (carry, a)
    assert number == 131_072


# Each opcode.

HALTS = (*range(0x02, 0x80, 0x10), 0x92, 0xB2, 0xD2, 0xF2)  # the processor, for ever
BEHIND = 0xB0  # where each program goes on, and BRK in "othello"
STORE = assemble(
    "STA zp E0; PHP; STX zp E1; STY zp E2; LDA imm 02; STA zp 00; LDY imm 14; DEY; BNE rel FD;"
    "LDA imm 00; STA zp 00"
)
"""What stores all registers and flags, then ends the frame without a halt: cycles are counted."""

NEAR = (0xE4, 0xE8, 0xEF, 0x06, 0x0A, 0x1B, 0x05, 0x0C, 0x31, 0x7D)
FAR_AWAY = (
    0x00E4, 0x01EA, 0x00EF, 0xF0FF, 0xF3E3, 0x1402, 0x0006, 0x000A, 0x0108, 0x0F0C, 0x0284, 0x0280,
    0x10FE, 0x0281,
)  # fmt: skip
STACKS = (0xFB, 0xF9, 0xFF, 0x7F, 0x1F, 0x80, 0x05, 0x0C)


def operand(rng: np.random.Generator, code: int, x: int, y: int, memory: bytearray) -> bytes:
    """An operand that leads to memory, TIA, timer or ROM, over the end of a page or not."""
    name, mode, _ = OPCODES[code]
    index = {"x": x, "y": y}.get(mode[-1], 0)
    far = int(rng.choice(FAR_AWAY[:3] if name == "LAS" else FAR_AWAY))
    if mode == "rel":
        return bytes([BEHIND - 0x82])
    if mode == "ind":
        memory[0x64:0x66] = BEHIND, 0
        return bytes([0xE4, 0])
    if name in ("JMP", "JSR"):
        return bytes([BEHIND, 0])
    if mode == "imm":
        return bytes([rng.integers(256)])
    if mode in ("zp", "zpx", "zpy"):
        return bytes([int(rng.choice(NEAR)) - index & 0xFF])
    if mode in ("abs", "abx", "aby"):
        return (far - index & 0xFFFF).to_bytes(2, "little")
    if mode == "izx":
        memory[0x70:0x72] = far.to_bytes(2, "little")
        return bytes([0xF0 - x & 0xFF])
    if mode == "izy":
        memory[0x70:0x72] = (far - y & 0xFFFF).to_bytes(2, "little")
        return bytes([0xF0])
    return b""


def instruction(rng: np.random.Generator, code: int) -> dict[str, Any]:
    """A state with an instruction, then a jump to `BEHIND`; all else of it is random."""
    name = OPCODES[code].name
    memory = bytearray(rng.bytes(128))
    x, y = (int(rng.choice([0, 1, 5, 0xF0, 0xFF, rng.integers(256)])) for _ in range(2))
    a, s = int(rng.integers(256)), 0xF8
    if name in ("PLA", "PLP", "PHA", "PHP"):
        s = int(rng.choice(STACKS))
    elif name == "TXS":
        x = int(rng.choice(STACKS))
    elif name == "SHS":
        a, x = a | 0xF8, x | 0xF8  # the stack stays where no code is
    elif name == "LAS":
        memory[0x64:0x70] = bytes([int(rng.choice([0xF8, 0x70, 0xFB]))]) * 12
    code_and_operand = bytes([code]) + operand(rng, code, x, y, memory)
    jump = assemble(f"JMP abs {BEHIND:04X}")
    memory[: len(code_and_operand) + 3] = code_and_operand + jump
    memory[BEHIND & 127 : (BEHIND & 127) + len(STORE)] = STORE
    if name == "RTS":
        memory[0x79:0x7B] = BEHIND - 1, 0
    elif name == "RTI":
        memory[0x7A:0x7C] = BEHIND, 0
    flags = {flag: (FALSE, TRUE)[rng.integers(2)] for flag in ("n", "v", "d", "i", "not_z", "c")}
    return {"ram": list(memory), "a": a, "x": x, "y": y, "s": s} | flags


@pytest.mark.parametrize("times", [10, pytest.param(1000, marks=pytest.mark.soak)])
def test_each_opcode_does_what_it_does_on_ale(pair, times):
    """Registers, flags, memory and cycles of all opcodes but the twelve that halt."""
    rng, base = np.random.default_rng(times), pair.prepare()
    assert len(OPCODES) + len(HALTS) == 256
    assert not set(OPCODES) & set(HALTS)

    def cases() -> Iterator[tuple[Any, bytes]]:
        for code, number in itertools.product(OPCODES, range(times)):
            given = instruction(rng, code)
            yield (f"{code:02X}", OPCODES[code], number), pair.state(b"", base, **given)

    pair.compare(cases(), 244 * times)


def test_arr_rotates_decimals_as_ale_does(pair):
    """All values and carries, with D and without."""

    def cases() -> Iterator[tuple[Any, bytes]]:
        for value, carry, decimal in itertools.product(range(256), (0, 1), (0, 1)):
            flags = 0x30 | decimal << 3 | carry
            program = f"LDA imm {flags:02X}; PHA; PLP; LDA imm FF; ARR imm {value:02X};"
            program = assemble(program + "STA zp E0; PHP; CLD") + END_FRAME
            yield (value, carry, decimal), pair.state(program, s=0xF8)

    pair.compare(cases(), 1024)


def test_a_jump_through_a_pages_last_byte_stays_in_the_page(pair):
    """In "othello", F2FF and F200 lead to DD in memory, F3FF and F300 to C0."""
    assert pair.rom[0x2FF] | pair.rom[0x200] << 8 == 0x2DDD
    for target, pointer in ((0xDD, "F2FF"), (0xC0, "F3FF")):
        memory = bytearray(assemble(f"JMP ind {pointer}").ljust(128, b"\0"))
        code = assemble("INC zp B0") + END_FRAME
        memory[target & 127 : (target & 127) + len(code)] = code
        state = pair.state(bytes(memory))
        assert memory_after(pair, state)[0x30] == 1
        assert not pair.differences(state)


# What the bus reads.


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.soak)])
def test_every_address_can_be_read_and_written(pair, step):
    """What is read, twice, and what timer and ports hold after a write (soak: at all 8,192)."""

    def cases() -> Iterator[tuple[Any, bytes]]:
        for address in range(0, 0x2000, step):
            read = f"LDA abs {address:04X}"
            program = assemble(f"{read}; STA zp F0; {read}; STA zp F1; PHP; PLA; STA zp F2")
            yield ("read", hex(address)), pair.state(program + END_FRAME)
            is_code = address & 0x1280 == 0x80 and address & 0x7F < 0x30
            if is_code or address & 0x10BF == 0:
                continue
            program = assemble(
                f"LDA imm 5A; STA abs {address:04X}; LDA abs 0284; STA zp F0; LDA abs 0281;"
                "STA zp F1; LDA abs 0283; STA zp F2; LDA abs 0280; STA zp F3"
            )
            yield ("write", hex(address)), pair.state(program + END_FRAME)

    pair.compare(cases(), 2 * 8192 // step - 1200 // step)


def test_the_ports_directions_are_kept(pair):
    """SWACNT reads as it was written, SWBCNT as 0, and neither changes what the port reads."""

    def cases() -> Iterator[tuple[Any, bytes]]:
        for first, second in itertools.product(range(0x280, 0x284), repeat=2):
            for a, b in itertools.product((0, 0xFF, 0xF0, 0x5A), (0, 0xFF, 0x3C)):
                program = f"LDA imm {a:02X}; STA abs {first:04X}; LDA imm {b:02X};"
                program += f"STA abs {second:04X};"
                program += "".join(f"LDA abs {0x280 + k:04X}; STA zp F{k};" for k in range(4))
                yield (first, second, a, b), pair.state(assemble(program) + END_FRAME)

    pair.compare(cases(), 192)


# The timer.

TIMERS = {0x294: 0, 0x295: 3, 0x296: 6, 0x297: 10}
READS = (
    (0x284, 0x284, 0x284), (0x285, 0x285, 0x285), (0x284, 0x285, 0x284), (0x285, 0x284, 0x285),
    (0x286, 0x287, 0x284),
)  # fmt: skip


@pytest.mark.parametrize(("register", "shift"), TIMERS.items())
def test_the_timer_goes_on_after_its_end(pair, register, shift):
    """Read in every cycle around the end, long after, and again after a read of either kind."""
    values = (0, 1) if shift == 10 else (0, 1, 2, 5)

    def cases() -> Iterator[tuple[Any, bytes]]:
        for value, reads, gap in itertools.product(values, READS, (0, 3)):
            end = value << shift
            near = range(max(end - 12, 2), end + 14)
            late = [end + by for by in (100, 255, 256, 257, 1023, 1024, 1025, 3000)]
            for wait in (*near, *late):
                program = assemble(f"LDA imm {value:02X}; STA abs {register:04X}") + delay(wait)
                for k, address in enumerate(reads):
                    program += assemble(f"LDA abs {address:04X}; STA zp F{k}") + delay(gap)
                yield (value, reads, gap, wait), pair.state(program + END_FRAME)

    pair.compare(cases(), 500)


# Cartridges.

SCHEMES = {
    "seaquest": (banks.NONE, False), "asterix": (banks.WHOLE, False),
    "solaris": (banks.WHOLE, False), "elevator_action": (banks.WHOLE, True),
    "klax": (banks.WHOLE, True), "montezuma_revenge": (banks.QUARTERS, False),
    "robotank": (banks.LINE, False),
}  # fmt: skip
_BASES = (0x1000, 0x3000, 0xD000, 0xF000)


@pytest.mark.parametrize("name", SCHEMES)
def test_banks_switch_as_ales_do(name):
    """A read or write of each of the last 64 addresses, then nine bytes of ROM or of its memory."""
    pair = Pair(name)
    assert (pair.banked.scheme, pair.banked.has_ram) == SCHEMES[name]
    rng, seen = np.random.default_rng(1), set()

    def cases() -> Iterator[tuple[Any, bytes]]:
        for address, verb, high in itertools.product(range(0xFC0, 0x1000), ("LDA", "STA"), _BASES):
            program = b""
            if pair.banked.scheme == banks.QUARTERS:  # which ALE's states do not restore
                spots = [0x1FE0 + 8 * k + int(rng.integers(8)) for k in range(3)]
                program = assemble("".join(f"LDA abs {spot:04X};" for spot in spots))
            program += assemble(f"LDA imm 5A; {verb} abs {high | address:04X}")
            places = rng.integers(0, 0xFC0, 9)
            if pair.banked.has_ram:
                places[:3] = rng.integers(0, 0x100, 3)
            for k, place in enumerate(places.tolist()):
                base = int(rng.choice(_BASES))
                program += assemble(f"LDA abs {base | place:04X}; STA zp F{k}")
            state = pair.state(program + END_FRAME)
            seen.add(bytes(memory_after(pair, state)[0x70:0x79]))
            yield (hex(address), verb, hex(high)), state
        for place in range(0, 256 * pair.banked.has_ram, 3):  # its memory
            other = place + 1 & 255
            program = assemble(
                f"LDA imm 5A; STA abs {0x1000 | place:04X}; LDA abs {0x1000 | place ^ 0x80:04X};"
                f"STA zp F0; LDA imm 33; STA abs {0xF000 | other:04X};"
                f"LDA abs {0x1000 | place:04X}; STA zp F1; LDA abs {0x1080 | other:04X}; STA zp F2"
            )
            yield hex(place), pair.state(program + END_FRAME)

    pair.compare(cases(), 512)
    assert len(seen) > 400


# Inputs.

INPUTS = (0x280, 0x282, 0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D)


def read_inputs(vblank: int = 2) -> bytes:
    """A program that empties capacitors, holds them so or not, and reads all inputs later."""
    program = f"LDA imm 82; STA zp 01; LDA imm {vblank:02X}; STA zp 01"
    reads = "".join(f"LDA abs {address:04X}; STA zp F{k};" for k, address in enumerate(INPUTS))
    return assemble(program) + lines(240) + assemble(reads) + END_FRAME


def inputs(pair: Pair, state: bytes, action: int = 0) -> list[int]:
    """What such a program reads from SWCHA, SWCHB, INPT0 … INPT5 on ALE while an action is held."""
    after, _ = pair.run_ale(state, action=action)
    return read_numbers(after)["ram"][0x70:0x78]


@pytest.mark.parametrize(("name", "is_right"), [("othello", False), ("surround", True)])
def test_a_joystick_is_four_bits_and_a_button(name, is_right):
    """ALE's 18 actions in the left port, or in the right one; a port without one reads 1s."""
    pair = Pair(name)
    pushed = "_ F U R L D UR UL DR DL UF RF LF DF URF ULF DRF DLF"
    for action, keys in enumerate(pushed.split()):
        stick = sum(0x10 << "UDLR".index(key) for key in keys if key in "UDLR")
        if is_right:
            stick >>= 4
        fire = [0x80, 0x80]
        fire[is_right] -= 0x80 * ("F" in keys)
        state = pair.state(read_inputs())
        assert inputs(pair, state, action) == [0xFF - stick, 0x3F, 0, 0, 0, 0, *fire], keys


def test_a_paddle_of_0_ohm_is_always_charged_and_none_never():
    """Pong has 0 ohm at INPT2 and INPT3, Breakout nothing: while held empty, and long after."""
    for name, others in (("pong", 0x80), ("breakout", 0)):
        pair = Pair(name)
        for vblank, charged in ((0x82, 0), (0x02, 0x80)):
            state = pair.state(read_inputs(vblank))
            seen = inputs(pair, state)
            assert seen[2:6] == [charged, charged, others, others], (name, vblank)
            ohm = [408_823, 408_823, *[0 if others else NO_PADDLE] * 2]
            (machine,) = pair.run_ours(state, resistance=ohm)
            assert machine["ram"][0, 0x72:0x76].tolist() == seen[2:6], (name, vblank)


def test_a_paddle_charges_in_so_many_cycles():
    """Pong's paddle at some of its positions: not charged in a cycle, and in the next one."""
    pair = Pair("pong")
    for ohm in (27_450, 50_450, 224_823, 408_823, 592_823, 767_196, 790_196):
        cycles = ohm * 1904 // 100_000
        for late in (-1, 0, 1, 2):
            program = assemble("LDA imm 82; STA zp 01; LDA imm 02; STA zp 01")
            program += delay(cycles + late - 3) + assemble("LDA zp 09; STA zp F0")
            state = pair.state(program + END_FRAME, left_paddle=ohm, right_paddle=ohm)
            (machine,) = pair.run_ours(state, resistance=[ohm] * 4)
            assert machine["ram"][0, 0x70] & 0x80 == memory_after(pair, state)[0x70] & 0x80
            assert memory_after(pair, state)[0x70] & 0x80 == 0x80 * (late > 0), (ohm, late)


def test_a_paddle_that_was_charged_before_the_frame_began_never_is():
    """Until VBLANK has emptied it again: around the first cycle of a frame, and long before it."""
    pair = Pair("pong")
    began = read_numbers(pair.base)["cycles"]
    program = assemble("LDA zp 09; STA zp F0; LDA imm 82; STA zp 01; LDA imm 02; STA zp 01")
    program += lines(220) + assemble("LDA zp 09; STA zp F1") + END_FRAME
    for ohm, ago in itertools.product((27_450, 408_823, 790_196), (-1, 0, 1, 5000, 50_000)):
        until = -(ohm * 1904 // 100_000) - ago
        paddles = {"left_paddle": ohm, "right_paddle": ohm, "emptied": FALSE}
        state = pair.state(program, emptied_until=began + until, **paddles)
        (machine,) = pair.run_ours(state, resistance=[ohm] * 4)
        seen = [memory_after(pair, state)[at] & 0x80 for at in (0x70, 0x71)]
        assert (machine["ram"][0, 0x70:0x72] & 0x80).tolist() == seen
        assert seen == [0x80 * (ago <= 0), 0x80], (ohm, ago)
