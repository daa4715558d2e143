"""The TIA and the console around it: run by Python and compiled, they do the same to every bit.

Then the picture itself, on machines small enough to be counted through by hand.
"""

from __future__ import annotations

from collections.abc import Iterator

import machines
import numpy as np
import pytest
from machines import PlainMachine

from pixelpong.atari.machine import banks, collisions, console, drawing, objects, tia
from pixelpong.atari.machine import registers as r
from pixelpong.atari.machine.program import Program
from pixelpong.atari.machine.record import (
    DRAW_NOTHING,
    DRAW_PICTURE,
    FRAME_DONE,
    PADDLE_CENTRE,
    PADDLE_HIGHEST,
    PADDLE_LOWEST,
    PADDLE_TURN,
    ROWS,
    STATE,
    TOP,
    WIDTH,
    make_machine,
)
from pixelpong.pong import field
from pixelpong.pong.field import DRAW_FIELD, FIELD_TOP, PONG_MACHINE

EXPORTS = {
    "begin_frame": 0, "end_frame": 1, "read": 3, "write": 3, "write_vsync": 2, "draw_to": 1,
    "wait_for_timer": 2, "wait_for_end_of_timer": 2,
}  # fmt: skip
"""What the processor calls, with the number of arguments besides the machine."""

INTERESTING = (0, 0xFF, 0x80, 0x40, 0x02, 0x01, 0xF0, 0x0F, 0x22, 0x24, 0x35, 0x07)


OWN = {"FIRST_OWN_ROW": FIELD_TOP}


@pytest.fixture(autouse=True)
def draws_fields(monkeypatch):
    """Drawing as Pong's cartridge has it."""
    monkeypatch.setattr(drawing, "draw_own", field.draw_own)
    monkeypatch.setattr(drawing, "FIRST_OWN_ROW", OWN["FIRST_OWN_ROW"])


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """TIA and console in machine code; the functions by name."""
    modules = (objects, collisions, drawing, tia, banks, console, field)
    program = Program(PONG_MACHINE, OWN)
    return machines.compile_calls(program, modules, EXPORTS, tmp_path_factory.mktemp("code"))


def random_machine(rng: np.random.Generator) -> np.ndarray:
    """A state of any content, with scribble around it."""
    record = np.frombuffer(rng.bytes(PONG_MACHINE.itemsize), PONG_MACHINE).copy()
    record.view(np.uint8)[: STATE.itemsize] = machines.made_up_state(rng).view(np.uint8)
    record["draws"] = rng.integers(3)
    record["mask"] = 0
    return record


def accesses(rng: np.random.Generator, count: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """What a program does in a frame, at random: the functions' names and arguments."""
    t = 0
    for _ in range(count):
        t += int(rng.integers(0, 120 if rng.random() < 0.5 else 12))
        value = int(rng.choice(INTERESTING) if rng.random() < 0.5 else rng.integers(256))
        kind = rng.random()
        if kind < 0.75:  # a register of the TIA, sometimes through its mirrors
            address = int(rng.integers(0x40)) | int(rng.choice([0, 0x40, 0x100, 0xF00, 0xE40]))
            yield "write", (t, address & 0x1FFF & ~0x80 & ~0x1000, value)
            if address & 0x3F == r.WSYNC:
                t = (t + 75) // 76 * 76
        elif kind < 0.85:
            yield "read", (t, int(rng.integers(0x1000)), int(rng.integers(256)))
        elif kind < 0.93:  # memory, timer, ports
            yield "write", (t, int(rng.integers(0x2000)), value)
        elif kind < 0.96:
            yield "write_vsync", (t, value)
        elif kind < 0.98:
            yield "draw_to", (3 * t,)
        else:
            name = "wait_for_timer" if kind < 0.99 else "wait_for_end_of_timer"
            yield name, (t, int(rng.integers(5, 9)))


@pytest.mark.parametrize(
    ("frames", "seed"), machines.short_and_long((25, 0), *((500, seed) for seed in range(100, 120)))
)
def test_compiled_it_does_what_python_does(compiled, frames, seed):
    """Whole frames of writes and reads at random, to all registers, in all kinds of drawing."""
    rng = np.random.default_rng(seed)
    calls = 0
    for frame in range(frames):
        record = random_machine(rng)
        plain = PlainMachine(record)
        for _ in range(2):
            done = [("begin_frame", ()), *accesses(rng, 300)]
            end = done[-1][1][0] % 30_000
            done += [("draw_to", (228 * (TOP + ROWS),)), ("end_frame", (end,))]
            for number, (name, arguments) in enumerate(done):
                function = getattr(console, name, None) or getattr(tia, name)
                wanted = int(function(plain, *arguments) or 0)
                assert compiled[name](record, *arguments) == wanted, (frame, name, arguments)
                if number % 50 == 0:
                    assert not machines.differences(record, plain.record), (frame, number, name)
                calls += 1
            assert not machines.differences(record, plain.record), frame
    assert calls > 600 * frames


class Screen:
    """A machine drawn by Python, a write after the other."""

    def __init__(self, draws: int = DRAW_PICTURE, **writes: int):
        """Begin a frame, and write to registers by name: ``GRP0=0xFF``."""
        self.machine = PlainMachine(make_machine(PONG_MACHINE))
        self.machine.draws = draws
        console.begin_frame(self.machine)
        colours = {"COLUBK": 0x02, "COLUPF": 0x0E, "COLUP0": 0x36, "COLUP1": 0xC8}
        for name, value in (colours | writes).items():
            self.write(0, getattr(r, name), value)

    def write(self, t: int, register: int, value: int) -> int:
        return tia.write_tia(self.machine, t, register, value)

    def read(self, t: int, address: int, bus: int = 0) -> int:
        return console.read(self.machine, t, address, bus)

    def place(self, **columns: int) -> None:
        """Where objects are, by name: ``player0=20``."""
        names = ["player0", "player1", "missile0", "missile1", "ball"]
        for name, column in columns.items():
            self.machine.position[names.index(name)] = column

    def rows(self) -> np.ndarray:
        """The whole picture."""
        tia.draw_to(self.machine, 228 * (TOP + ROWS))
        return self.machine.record["picture"][0, : ROWS * WIDTH].reshape(ROWS, WIDTH)


def at(row: int, cycle: int = 0) -> int:
    """A time: a cycle of the line that a row of the picture is."""
    return 76 * (TOP + row) + cycle


def bars(width: int, *starts: int) -> list[int]:
    return sorted((start + x) % WIDTH for start in starts for x in range(width))


def pictures():
    """Registers, where objects are, later writes; which columns of a row then have a colour."""
    # The playfield is twenty bits of four pixels, repeated or mirrored. Of PF0 the high bits count,
    # the lowest first; of PF1 the highest is first; of PF2 the lowest.
    for mirrors, starts in ((0, (0, 20, 48, 80, 100, 128)), (1, (0, 20, 48, 108, 136, 156))):
        registers = {"PF0": 0x10, "PF1": 0x40, "PF2": 0x01, "CTRLPF": mirrors}
        yield registers, {}, [], {100: {0x0E: bars(4, *starts)}}
    # Trap: a change of it shows after two to five clocks, depending on the cycle.
    for cycle, delay in enumerate((4, 5, 2, 3, 4, 5, 2, 3), start=28):
        writes = [(100, cycle, register, 0xFF) for register in (r.PF0, r.PF1, r.PF2)]
        first = 3 * cycle + delay - 68
        yield {}, {}, writes, {100: {0x0E: bars(WIDTH - first, first)}}
    # In the score each half has its player's colour; in front too, if there is nothing else.
    halves = {0x36: bars(32, 16), 0xC8: bars(32, 96), 0x0E: []}
    yield {"PF1": 0xFF, "CTRLPF": 2}, {}, [], {100: halves}
    yield {"PF1": 0xFF, "CTRLPF": 6}, {}, [], {100: halves}
    own = {0xC8: [], 0x0E: bars(1, 1) + bars(32, 16, 96)}
    yield {"PF1": 0xFF, "CTRLPF": 6, "ENABL": 2}, {"ball": 1}, [], {100: own}
    # There, each half is in front of the other player, and of the ball.
    hidden = {0x36: bars(32, 16), 0xC8: bars(32, 96), 0x0E: bars(1, 2)}
    yield {"PF1": 0xFF, "CTRLPF": 2, "GRP1": 0xFF}, {"player1": 20}, [], {100: halves}
    yield {"PF1": 0xFF, "CTRLPF": 2, "ENABL": 2}, {"ball": 20}, [], {100: halves}
    yield {"PF1": 0xFF, "CTRLPF": 2, "ENABL": 2}, {"ball": 2}, [], {100: hidden}
    # Which object hides which.
    for switches, columns in ((0, bars(8, 20)), (4, []), (6, [])):
        registers = {"PF1": 0xFF, "CTRLPF": switches, "GRP0": 0xFF}
        yield registers, {"player0": 20}, [], {100: {0x36: columns}}
    # A player is eight pixels, copied and mirrored, and comes in again at the left.
    copies = {0: [0], 1: [0, 16], 2: [0, 32], 3: [0, 16, 32], 4: [0, 64], 6: [0, 32, 64]}
    for number, starts in copies.items():
        for mirrored, pixels in ((0, (0, 6, 7)), (8, (0, 1, 7))):
            registers = {"NUSIZ0": number, "GRP0": 0b1000_0011, "REFP0": mirrored}
            columns = sorted(27 + start + x for start in starts for x in pixels)
            yield registers, {"player0": 27}, [], {100: {0x36: columns}}
    yield {"GRP0": 0xFF}, {"player0": 156}, [], {100: {0x36: bars(8, 156)}}
    # Stretched, it comes a pixel later.
    for number, width in ((5, 2), (7, 4)):
        registers = {"NUSIZ0": number, "GRP0": 0b1100_0000}
        yield registers, {"player0": 27}, [], {100: {0x36: bars(2 * width, 28)}}
    # Missiles and ball are bars of one to eight pixels.
    for size in range(4):
        registers = {"CTRLPF": size << 4, "NUSIZ0": size << 4, "ENABL": 2, "ENAM0": 2}
        columns = {0x0E: bars(1 << size, 26), 0x36: bars(1 << size, 56)}
        yield registers, {"ball": 26, "missile0": 56}, [], {100: columns}
    # Trap: a player shows a clock after it is written, here in column 22, the ball at once, in 61.
    writes = [(100, 30, r.GRP0, 0xFF), (100, 43, r.ENABL, 2)]
    columns = {0x36: bars(5, 23), 0x0E: bars(7, 61)}
    yield {"CTRLPF": 0x30}, {"player0": 20, "ball": 60}, writes, {100: columns}
    # Trap: HMOVE blanks eight pixels of the next line that is drawn, be it seven lines later.
    for row, blanked in ((-7, 0), (60, 60)):
        seen = {other: {0: bars(8, 0) if other == blanked else []} for other in (0, 1, 60, 61)}
        yield {}, {}, [(row, 3, r.HMOVE, 0)], seen
    # Trap: with VDEL an object shows what was written before the other player; GRP1 is for two.
    writes = [
        (10, 0, r.ENABL, 2), (20, 0, r.GRP0, 0x80),
        (30, 0, r.GRP1, 0),  # now both are seen
        (40, 0, r.ENABL, 0), (50, 0, r.GRP0, 0),
        (60, 0, r.GRP0, 0),  # which does nothing to either
        (70, 0, r.GRP1, 0),
    ]  # fmt: skip
    both = {0x0E: [100], 0x36: [20]}
    seen = {29: {0x0E: [], 0x36: []}, 30: both, 69: both, 70: {0x0E: [], 0x36: []}}
    yield {"VDELBL": 1, "VDELP0": 1}, {"ball": 100, "player0": 20}, writes, seen
    # RESMP hides a missile, and lets it go at its player's middle.
    for number, middle in ((0, 4), (5, 8), (7, 16)):
        seen = {9: {0x36: [60]}, 10: {0x36: []}, 19: {0x36: []}, 20: {0x36: [(150 + middle) % 160]}}
        writes = [(10, 0, r.RESMP0, 2), (20, 0, r.RESMP0, 0)]
        yield {"NUSIZ0": number, "ENAM0": 2}, {"player0": 150, "missile0": 60}, writes, seen
    # In the dark nothing is seen.
    writes = [(50, 0, r.VBLANK, 2), (50, 0, r.GRP0, 0xFF), (50, 0, r.ENABL, 2)]
    yield {}, {}, writes, {49: {0x02: bars(WIDTH, 0)}, 50: {0: bars(WIDTH, 0)}}


def test_the_picture_is_what_was_written_and_when():
    for number, (registers, places, writes, wanted) in enumerate(pictures()):
        screen = Screen(**registers)
        screen.place(**places)
        for row, cycle, register, value in writes:
            screen.write(at(row, cycle), register, value)
        rows = screen.rows()
        seen = {
            row: {colour: np.flatnonzero(rows[row] == colour).tolist() for colour in colours}
            for row, colours in wanted.items()
        }
        assert seen == wanted, (number, registers, places)
    assert number > 30


def test_objects_are_set_to_the_beam_and_moved_by_hmove():
    """Of cycle 30 the beam is at 3 · 30 − 68 = 22; of cycle 10 it flies back."""
    for cycle, columns in ((10, [3, 3, 2, 2, 2]), (30, [27, 27, 26, 26, 26])):
        screen = Screen()
        for k in range(5):
            screen.write(at(0, cycle), r.RESP0 + k, 0)
        assert list(screen.machine.position) == columns
    for k, motion in enumerate((0x70, 0x10, 0x00, 0xF0, 0x80)):
        screen.write(0, r.HMP0 + k, motion)
    screen.place(player0=3, player1=80, missile0=80, missile1=80, ball=155)
    screen.write(at(50, 3), r.HMOVE, 0)
    assert list(screen.machine.position) == [156, 79, 80, 81, 3]
    assert screen.machine.stop == 0


@pytest.mark.parametrize("draws", [DRAW_NOTHING, DRAW_FIELD, DRAW_PICTURE])
def test_objects_collide_where_pixels_of_both_are_drawn(draws):
    objects = {"m0": r.ENAM0, "m1": r.ENAM0 + 1, "p0": r.GRP0, "p1": r.GRP1, "bl": r.ENABL}
    objects["pf"] = r.PF1
    latches = "m0p1 m0p0 m1p0 m1p1 p0pf p0bl p1pf p1bl m0pf m0bl m1pf m1bl blpf - p0p1 m0m1"
    for number, pair in enumerate(latches.split()):  # in the order of the reads
        if pair == "-":
            continue
        bit = 0x40 if number % 2 else 0x80
        screen = Screen(draws)
        screen.place(player0=100, player1=100, missile0=100, missile1=100, ball=100)
        for name in (pair[:2], pair[2:]):
            screen.write(at(100), objects[name], 0xFF)
        assert screen.read(at(100, 56), number // 2) == 0  # up to column 99 it is drawn
        t = at(100, 58)
        reads = [screen.read(t, k, 0x3F) & 0xC0 for k in range(8)]
        assert reads == [bit if k == number // 2 else 0 for k in range(8)], pair
        for register in (r.CXCLR, r.VBLANK):  # in the dark nothing collides
            screen.write(at(101, 60), register, 2)
        assert [screen.read(at(103), k) for k in range(8)] == [0] * 8


def test_hmove_moves_less_later_in_the_line():
    """The distance to the right at some cycles, as measured on ALE, of motions −8, 0 and 7."""
    for cycle, columns in ((3, (8, 0, -7)), (19, (8, 5, 5)), (60, (0, 0, -5)), (75, (8, 0, -7))):
        screen = Screen(HMP0=0x80, HMBL=0x70)
        screen.place(player0=80, player1=80, ball=80)
        screen.write(at(50, cycle), r.HMOVE, 0)
        seen = [screen.machine.position[k] - 80 for k in (0, 1, 4)]
        assert seen == list(columns), (cycle, seen)


def test_a_frame_ends_with_vsync_or_at_a_write_after_its_longest():
    screen = Screen()
    for t, register, value, stop in (
        (100, r.VSYNC, 2, 0), (150, r.VSYNC, 0, 0), (176, r.VSYNC, 0, FRAME_DONE),
    ):  # fmt: skip
        screen.write(t, register, value)
        assert screen.machine.stop == stop
    screen = Screen()
    screen.write(76 * 291 - 1, r.COLUBK, 0)
    assert screen.machine.stop == 0
    screen.write(76 * 291, r.COLUBK, 0)
    assert screen.machine.stop == FRAME_DONE


def test_the_timer_counts_down_once_in_so_many_cycles():
    for register, shift in ((0x294, 0), (0x295, 3), (0x296, 6), (0x297, 10)):
        screen = Screen()
        console.write(screen.machine, 100, register, 20)
        for rounds in range(20):
            for t in ((rounds << shift) + 1, (rounds + 1 << shift)):
                assert screen.read(100 + t, 0x284) == 19 - rounds
                assert screen.read(100 + t, 0x285) == 0
        end = 101 + (20 << shift)
        assert screen.read(end, 0x285) == 0x80
        assert screen.read(end, 0x284) == 0xFF
        assert screen.machine.stop == 0


def test_capacitors_charge_in_ales_cycles_for_every_resistance_there_is(compiled):
    """ALE computes them in doubles and cuts them off."""
    turns = range(PADDLE_CENTRE % PADDLE_TURN, PADDLE_HIGHEST, PADDLE_TURN)
    reached = {*turns, *range(PADDLE_LOWEST, PADDLE_HIGHEST, PADDLE_TURN), 0}
    reached |= set(range(PADDLE_HIGHEST, PADDLE_LOWEST, -PADDLE_TURN))
    assert len(reached) > 90
    for resistance in reached:
        record = make_machine()
        record["resistance"] = resistance
        compiled["begin_frame"](record)
        cycles = int(1.6 * resistance * 0.01e-6 * 1.19e6)
        assert record["charged"].tolist() == [[cycles] * 4], resistance
