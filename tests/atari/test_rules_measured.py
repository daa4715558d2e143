"""The rules of the TIA, measured: programs in memory do the same on ALE and here, to every pixel.

Each test goes through all cases of a rule, which is told in ``docs/emulator.md``. What differs is
a state, a picture, or a number of collisions.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import ale_py
import machines
import numpy as np
import pytest
from programs import (
    END_FRAME,
    NOT_PLAYED,
    ROMS,
    Pair,
    assemble,
    changed_state,
    delay,
    find_numbers,
    lines,
    load_ale,
    write_at,
)

from pixelpong.atari.machine import registers as r
from pixelpong.atari.machine.cartridges import facts
from pixelpong.atari.machine.objects import DISTANCES, NUM_COPIES
from pixelpong.atari.machine.record import TOP, WIDTH

pytestmark = pytest.mark.slow

CYCLES = range(76)
FIRST = TOP + 6  # the line in which a program writes
STEADY = {"PF0": 0x50, "PF1": 0xA3, "PF2": 0x2E}
OBJECTS = {
    "GRP0": 0xB1, "GRP1": 0x81, "ENAM0": 2, "ENAM1": 2, "ENABL": 2,
    "NUSIZ0": 0x10, "NUSIZ1": 0x10, "CTRLPF": 0x10,
}  # fmt: skip
APART = [30, 50, 70, 90, 110]


@pytest.fixture(scope="module")
def pair() -> Pair:
    return Pair()


def strobe(*writes: bytes, a: int = 0, rest: int = 0) -> bytes:
    """A program that loads A, makes writes in one line, and ends the frame some lines later."""
    tail = lines(rest) if rest else b""
    return assemble(f"LDA imm {a:02X}") + lines(FIRST) + b"".join(writes) + tail + END_FRAME


def first_change(picture: np.ndarray) -> int:
    """The first column in which a row differs from the one before it, in the first such row."""
    for row in range(3, 20):
        if (picture[row] != picture[row - 1]).any():
            return int((picture[row] != picture[row - 1]).argmax())
    raise AssertionError("nothing changed")


WIDE = {"NUSIZ0": 0x37, "NUSIZ1": 0x37}
DELAYED = [
    # The register, its value, other registers, positions less the column of the write.
    ("COLUBK", 0x44, {}, {}),
    ("VBLANK", 2, {}, {}),
    ("REFP0", 8, WIDE | {"GRP0": 0x0F}, {0: -1}),
    ("NUSIZ0", 0, WIDE | {"GRP0": 0xFF}, {0: -17}),
    ("GRP0", 0xFF, WIDE, {0: -13}),
    ("GRP1", 0xFF, WIDE, {1: -13}),
    ("ENAM0", 2, WIDE, {2: -3}),
    ("ENABL", 2, {"CTRLPF": 0x30}, {4: -3}),
    ("RESP0", 0, WIDE | {"GRP0": 0xFF}, {0: -3}),
    ("PF1", 0xFF, {}, {}),
]


def test_a_write_shows_after_ales_delay(pair):
    """The delays of the table, as the first column that changes on ALE."""
    for name, value, registers, places in DELAYED:
        for cycle in range(32, 36):
            column = 3 * cycle - 68
            positions = [(column + places.get(k, 70)) % WIDTH for k in range(5)]
            program = strobe(write_at(cycle, getattr(r, name)), a=value)
            state = pair.case(program, registers, position=positions)
            _, picture = pair.run_ale(state)
            wanted = {"PF1": r.PLAYFIELD_DELAY[cycle & 3], "RESP0": 11}.get(
                name, r.DELAY[getattr(r, name)]
            )
            assert first_change(picture) - column == wanted, (name, cycle)
            assert not pair.differences(state), (name, cycle)


def scenes() -> Iterator[tuple[dict[str, int], list[int]]]:
    """Registers, and positions: objects in all their forms, mostly where others are."""
    for size, delayed, x in ((0, 0, 10), (0x13, 0, 40), (0x27, 1, 55), (0x35, 1, 20), (6, 1, 13)):
        registers = STEADY | {
            "NUSIZ0": size, "NUSIZ1": size, "CTRLPF": size, "REFP0": 8 * delayed,
            "ENAM0": 2, "ENAM1": 2, "ENABL": 2, "GRP0": 0xC4, "GRP1": 0x99,
            "VDELP0": delayed, "VDELP1": delayed, "VDELBL": delayed, "RESMP1": 2 * delayed,
        }  # fmt: skip
        yield registers, [(x + by) % WIDTH for by in (0, 40, 60, 80, 100)]


@pytest.mark.parametrize("step", [8, pytest.param(4, marks=pytest.mark.soak)])
def test_any_register_may_be_written_in_any_cycle(pair, step):
    """Every register but VSYNC and WSYNC, with two values, in different lines and cycles."""
    registers = (r.VBLANK, *range(r.NUSIZ0, r.HMOVE), r.HMCLR, r.CXCLR, 0x3F)

    def cases():
        for scene, (written, positions) in enumerate(scenes()):
            for register, cycle in itertools.product(registers, CYCLES[scene % step :: step]):
                program = strobe(
                    write_at(cycle, register),
                    assemble(f"STA zp 02; LDA imm {0x35 if scene % 2 else 0:02X}"),
                    write_at((7 * cycle + 11) % 76, register, passed=2),
                    a=0xFF,
                )
                state = pair.case(program, written, position=positions, hm=[7, 1, 2, 9, 8])
                yield (hex(register), cycle, scene), state

    pair.compare(cases(), 15_200 // step)


def test_the_playfield_is_mirrored_at_once_or_from_the_next_line_on(pair):
    def cases():
        for cycle, (before, after) in itertools.product(
            CYCLES, ((0, 1), (1, 0), (0, 0x31), (1, 2), (3, 4), (0x35, 0x30))
        ):
            program = strobe(write_at(cycle, r.CTRLPF), a=after)
            yield (cycle, before, after), pair.case(program, STEADY | {"CTRLPF": before})

        for late, cycle, value in itertools.product(range(46, 76, 3), CYCLES, (0, 1)):
            # A second write, in the line from which on the first one counts.
            change = assemble(f"STA zp 02; LDA imm {value:02X}")
            program = strobe(
                write_at(late, r.CTRLPF), change, write_at(cycle, r.CTRLPF, passed=2), a=1 - value
            )
            yield (late, cycle, value), pair.case(program, STEADY | {"CTRLPF": value})

    pair.compare(cases(), 1900)


# Moving objects.


def gaps(size: int) -> list[int]:
    """Distances of a column to a player that matter: around each copy's beginning and end."""
    width = {5: 16, 7: 32}.get(size, 8)
    edges = (-1, 0, 1, 3, 4, 5, width - 1, width + 3, width + 4, width + 5)
    starts = [DISTANCES[size] * k for k in range(NUM_COPIES[size])]
    return sorted({start + edge for start in starts for edge in edges} | {80})


@pytest.mark.parametrize("step", [13, pytest.param(1, marks=pytest.mark.soak)])
def test_a_player_is_set_before_inside_and_behind_its_copies(pair, step):
    """In each cycle, at each gap that matters (soak: at each of 160) to the player before."""

    def cases():
        for size, cycle in itertools.product(range(8), CYCLES):
            registers = {"NUSIZ0": size, "NUSIZ1": size, "GRP0": 0xA5, "GRP1": 0xC9}
            column = 3 if cycle < 23 else (3 * cycle - 63) % WIDTH
            matter = gaps(size)[cycle % 3 :: 3] if step > 1 else range(0, WIDTH, step)
            for gap in matter:
                positions = [(column - gap) % WIDTH, (column + 9 - gap) % WIDTH, 0, 0, 0]
                program = strobe(write_at(cycle, r.RESP0), assemble("NOP; NOP; STA zp 11"))
                state = pair.case(program, registers, position=positions)
                yield (size, cycle, gap), state

    pair.compare(cases(), 3000)


def test_hmove_moves_as_far_as_it_does_in_each_cycle(pair):
    """All 76 cycles and 16 motions, by five objects at once; then the same in two lines."""

    def cases():
        for cycle, motion in itertools.product(CYCLES, range(16)):
            motions = [motion + k & 15 for k in range(5)]
            once, places = strobe(write_at(cycle, r.HMOVE)), [80, 60, 100, 2, 5]
            yield (cycle, motion), pair.case(once, OBJECTS, hm=motions, position=places)
        for cycle, wait, skip in itertools.product(CYCLES, (2, 10, 20, 40, 55, 69), (1, 2)):
            again = assemble("STA zp 02") * skip + delay(wait) + assemble("STA zp 2A")
            twice = strobe(write_at(cycle, r.HMOVE), again)
            state = pair.case(twice, OBJECTS, hm=[1, 15, 7, 8, 0], position=APART)
            yield (cycle, wait, skip), state

    pair.compare(cases(), 2100)


@pytest.mark.parametrize("step", [15, pytest.param(1, marks=pytest.mark.soak)])
def test_hmove_blanks_eight_columns_in_all_cartridges_but_four(step):
    """ALE shows these four without (soak: all its cartridges; else these and every 15th)."""
    combless = {name for name, each in facts().items() if not each.get("has_combs", True)}
    program = assemble("LDA imm 44; STA zp 09; LDA imm 00; STA zp 01; LDX imm 2C")
    program += assemble("STA zp 02; STA zp 2A; DEX; BNE rel F9") + END_FRAME
    without, played = set(), [p for p in sorted(ROMS.glob("*.bin")) if p.stem not in NOT_PLAYED]
    paths = [path for path in played if path.stem in combless or path in played[::step]]
    for path in paths:
        ale = load_ale(path.stem)
        ale.act(0)  # some begin in the middle of a frame
        data = ale.cloneState().serialize()
        state = changed_state(data, find_numbers(data), program, objects=0, vblank=0)
        ale.restoreState(ale_py.ALEState(state))
        ale.act(0)
        row = ale.getScreen()[5] & 0xFE
        assert (row[8:] == 0x44).all(), path.stem
        if row[:8].any():
            assert (row == 0x44).all()
            without.add(path.stem)
    assert len(paths) > 100 // step
    assert len(combless) == 4
    assert without == combless


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.soak)])
def test_objects_are_set_shortly_after_hmove(pair, step):
    """RESM0, RESM1, RESBL and RESPx, 3 and 5 … 31 cycles after HMOVE (soak: in each cycle)."""
    orders = ("12; STA zp 13; STA zp 14", "14; STA zp 12; STA zp 10", "13; STA zp 14; STA zp 11")

    def cases():
        for gap, cycle in ((k, c) for k in (3, *range(5, 32)) for c in CYCLES[k % step :: step]):
            order = orders[gap % 3] if gap > 8 else orders[cycle % 2]
            program = strobe(write_at(cycle, r.HMOVE), delay(gap - 3), assemble(f"STA zp {order}"))
            yield (cycle, gap), pair.case(program, OBJECTS, hm=[1, 2, 3, 4, 5], position=APART)
        for gap, register in itertools.product((3, 6, 7, 18, 20), range(r.RESP0, r.RESBL + 1)):
            for cycle in CYCLES:  # exactly these gaps, for each of them
                order = assemble(f"STA zp {register:02X}")
                program = strobe(write_at(cycle, r.HMOVE), delay(gap - 3), order)
                yield (cycle, gap, register), pair.case(program, OBJECTS, position=APART)

    pair.compare(cases(), 1900 + 2000 // step)


def stars(cycle: int, gap: int, value: int, register: int = r.HMP0 + 2, then: bytes = b"") -> bytes:
    change = delay(gap - 3) + assemble(f"STA zp {register:02X}")
    return strobe(write_at(cycle, r.HMOVE), change, then, a=value, rest=9)


def test_missile_0_becomes_a_field_of_stars(pair):
    """Cycles, motions before and after, other objects; what ends it; and that it happens."""

    def cases():
        for cycle, gap in itertools.product(CYCLES, (19, 20, 21, 22, 23)):
            yield (cycle, gap), (stars(cycle, gap, 0x60), [1, 2, 7, 4, 5], OBJECTS)
        for before, after in itertools.product(range(16), range(16)):
            yield (before, after), (stars(3, 21, after << 4), [1, 2, before, 4, 5], OBJECTS)
        for register, before in itertools.product(range(r.HMP0, r.HMBL + 1), (7, 6)):
            yield register, (stars(3, 21, 0x60, register), [before] * 5, OBJECTS)
        for size in range(64):
            written = OBJECTS | {"NUSIZ0": size}
            yield ("size", size), (stars(3, 21, 0x60), [0, 0, 7, 0, 0], written)
        for register, value, wait in itertools.product(
            (*range(r.NUSIZ0, r.RESBL + 1), *range(r.GRP0, r.CXCLR + 1)), (0, 0x70), (4, 21, 50)
        ):
            ends = assemble("STA zp 02; " * 4 + f"LDA imm {value:02X}") + delay(wait)
            ends += assemble(f"STA zp {register:02X}")
            yield (register, value, wait), (stars(3, 21, 0x60, then=ends), [1, 2, 7, 4, 5], OBJECTS)
        for count in range(1, 6):  # its size again, as the first thing in a line
            ends = assemble("STA zp 02; " * count + "LDA imm 10; STA zp 04")
            yield ("again", count), (stars(3, 21, 0x60, then=ends), [1, 2, 7, 4, 5], OBJECTS)

    states = [
        (label, pair.case(program, written, hm=motions, position=APART))
        for label, (program, motions, written) in cases()
    ]
    pair.compare(states, 900)
    (machine,) = pair.run_ours(dict(states)[7, 6])
    assert machine["stars"] == 1


# Colours, and what ends a frame.


@pytest.mark.parametrize("control", [0, 2, 4, 6])
def test_objects_cover_each_other(pair, control):
    """Each object is off, elsewhere in the line, or here; in the left half and in the right."""
    cases = []
    for off_there_here in itertools.product(range(3), repeat=6):
        on = [int(each > 0) for each in off_there_here]
        registers = {
            "CTRLPF": control, "GRP0": 0x80 * on[0], "GRP1": 0x80 * on[1], "ENAM0": 2 * on[2],
            "ENAM1": 2 * on[3], "ENABL": 2 * on[4],
            "PF1": 0xFF * (off_there_here[5] == 2), "PF0": 0xF0 * (off_there_here[5] == 1),
        }  # fmt: skip
        for half in (0, 80) if control in (2, 6) else (80 * (sum(on) & 1),):
            here = [(20 if each == 2 else 60) + half for each in off_there_here[:5]]
            program = lines(TOP + 2) + END_FRAME
            cases.append(((*off_there_here, half), pair.case(program, registers, position=here)))
    pair.compare(cases, 729)


def test_collisions_that_were_cleared_come_again_only_after_it(pair):
    """All fifteen latches are set, so that nothing need be drawn, when CXCLR clears them."""
    here = {"GRP0": 0xFF, "GRP1": 0xFF, "ENAM0": 2, "ENAM1": 2, "ENABL": 2, "PF1": 0xFF, "PF2": 1}

    def cases():
        for column, cycle in itertools.product(range(0, WIDTH, 3), range(0, 76, 5)):
            off = b"".join(assemble(f"STA zp {register:02X}") for register in (0x1B, 0x1D, 0x0E))
            program = strobe(write_at(cycle, r.CXCLR), off)
            state = pair.case(program, here, position=[column] * 5, collisions=0x7FFF)
            yield (column, cycle), state

    pair.compare(cases(), 800)


def test_a_frame_ends_with_vsync_that_was_on_for_a_line(pair):
    """On and off after some cycles, or on twice; then a VSYNC that is long enough."""

    def cases():
        for cycle, length, value in itertools.product(
            range(5, 76, 7), (5, 7, *range(70, 85), 152), (2, 0xFF, 1)
        ):
            program = lines(3) + write_at(cycle, 0x3F) + assemble(f"LDA imm {value:02X}")
            program += assemble("STA zp 00") + delay(length - 5) + assemble("LDA imm 00; STA zp 00")
            yield (cycle, length, value), program
        for first, second in itertools.product((5, 30, 60, 74, 80), (7, 20, *range(66, 80))):
            twice = assemble("LDA imm 02; STA zp 00") + delay(first) + assemble("STA zp 00")
            twice += delay(second - 5) + assemble("LDA imm 00; STA zp 00")
            yield (first, second), lines(3) + twice

    wait = assemble("STA zp 02; STA zp 02")
    states = ((label, pair.state(program + wait + END_FRAME)) for label, program in cases())
    pair.compare(states, 600)


def test_a_frame_of_more_than_290_lines_ends_at_the_next_write_to_the_tia(pair):
    """Whatever is written, but not at a read, or at a write to memory or timer."""
    writes = (
        "STA zp 2D", "STA zp 3F", "INC zp 85", "LDA zp 01", "STA abs 0285", "STA zp 15",
        "STA zp 02", "STA abs 0102", "STA zp 2B", "STA zp 09", "PHA",
    )  # fmt: skip

    def cases():
        for wait, write in itertools.product(range(70, 160), writes):
            stack = 0x1F if write == "PHA" else 0xFF
            program = lines(0x90) + lines(0x91) + delay(wait) + assemble(write)
            program += assemble("NOP; NOP; LDA zp 09; NOP; STA zp 09") + END_FRAME
            yield (wait, write), pair.case(program, OBJECTS, position=APART, s=stack)

    pair.compare(cases(), 990)


def test_a_frame_of_25000_instructions_is_left_and_goes_on(pair):
    """Of three to six instructions a round, so that it is left at another one each time."""
    for filler, count in itertools.product(("", "INX;", "INX; INY;", "INX; INY; NOP;"), (1, 2, 3)):
        program = assemble(f"INC zp F0; {filler} LDA zp 08; JMP abs 008C")
        state = pair.case(program, OBJECTS)
        assert not pair.differences(state, count), (filler, count)


# Everything at once.


def random_program(rng: np.random.Generator) -> bytes:
    """Writes to the TIA at random cycles: orders more often than values."""
    registers = [*range(r.NUSIZ0, r.RESBL + 1), *range(r.GRP0, r.CXCLR + 1), r.VBLANK]
    registers += [r.HMOVE] * 3 + [*range(r.RESP0, r.RESBL + 1)] + [r.HMP0 + 2] * 3
    values = (0, 0xFF, 0x80, 0x70, 0x60, 0x10, 0x90, 2, 1, 0x35, 0x27, 0x13)
    parts = [lines(int(rng.integers(TOP - 4, TOP + 8)))]
    while sum(map(len, parts)) < 128 - 12 - len(END_FRAME) - 12:
        kind = rng.random()
        if kind < 0.25:
            parts.append(assemble(f"LDA imm {int(rng.choice(values)):02X}"))
        elif kind < 0.45:
            parts.append(delay(int(rng.integers(2, 26))))
        elif kind < 0.52:
            parts.append(assemble("STA zp 02"))
        else:
            parts.append(assemble(f"STA zp {int(rng.choice(registers)):02X}"))
    return b"".join(parts) + END_FRAME


def random_scene(rng: np.random.Generator) -> dict[str, int]:
    names = "PF0 PF1 PF2 GRP0 GRP1 VDELP0 VDELP1 VDELBL ENAM0 ENAM1 ENABL REFP0 RESMP0 RESMP1"
    scene = {name: int(rng.integers(256)) for name in names.split()}
    scene |= {name: int(rng.integers(64)) for name in ("NUSIZ0", "NUSIZ1", "CTRLPF")}
    return scene | {name: 0 for name in ("RESMP0", "RESMP1") if rng.random() < 0.7}


@pytest.mark.parametrize(("scenes", "seed"), machines.short_and_long((40, 1), (4000, 2)))
def test_random_programs_do_the_same(pair, scenes, seed):
    rng = np.random.default_rng(seed)

    def cases():
        for number in range(scenes):
            registers = random_scene(rng)
            pair.prepared.clear()
            for _ in range(50):
                program = random_program(rng)
                positions, motions = rng.integers(0, WIDTH, 5), rng.integers(0, 16, 5)
                state = pair.case(
                    program, registers, position=positions.tolist(), hm=motions.tolist()
                )
                yield (number, registers, program.hex()), state

    pair.compare(cases(), 50 * scenes)
