"""The TIA and the console around it: run by Python and compiled, they do the same to every bit.

Then the picture itself, on machines small enough to be counted through by hand.
"""

from __future__ import annotations

from collections.abc import Iterator

import machines
import numpy as np
import pytest
from machines import PlainMachine

from pixelpong.atari import console, drawing, tia
from pixelpong.atari import registers as r
from pixelpong.atari.ir import Program
from pixelpong.atari.lowering import lower_module
from pixelpong.atari.machine import (
    DRAW_FIELD,
    DRAW_NOTHING,
    DRAW_PICTURE,
    FIELD_TOP,
    FRAME_DONE,
    MACHINE,
    NOT_IMPLEMENTED,
    ROWS,
    STATE,
    TIMER_RAN_OUT,
    TOP,
    WIDTH,
    make_machine,
)
from pixelpong.env.preprocess import FIELD_ROWS, IS_ACTIVE

EXPORTS = {
    "begin_frame": 0, "end_frame": 1, "read": 3, "write": 3, "write_vsync": 2, "draw_to": 1,
    "wait_for_timer": 2,
}  # fmt: skip
"""What the processor calls, with the number of arguments besides the machine."""

INTERESTING = (0, 0xFF, 0x80, 0x40, 0x02, 0x01, 0xF0, 0x0F, 0x22, 0x24, 0x35, 0x07)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """TIA and console in machine code; the functions by name."""
    wrapper = "from pixelpong.atari.typed import *\n"
    for name, count in EXPORTS.items():
        given = "".join(f", {each}: Int" for each in "abc"[:count])
        listed = "".join(f", {each}" for each in "abc"[:count])
        pays = name in ("read", "write", "wait_for_timer")
        body = f"return {name}(m{listed})" if pays else f"{name}(m{listed})\n    return 0"
        wrapper += f"def call_{name}(m: Machine{given}) -> Int:\n    {body}\n"
    folder, program = tmp_path_factory.mktemp("code"), Program(MACHINE)
    for module in (drawing, tia, console):
        lower_module(program, module)
    calls = machines.module_from(wrapper, folder, "calls")
    lower_module(program, calls, exports=[f"call_{name}" for name in EXPORTS])
    code = machines.compile_program(program, folder)
    return {
        name: machines.function_of(code, f"call_{name}", count) for name, count in EXPORTS.items()
    }


def random_machine(rng: np.random.Generator) -> np.ndarray:
    """A state of any content that `pixelpong.atari.check` lets pass, with scribble around it."""
    record = np.frombuffer(rng.bytes(MACHINE.itemsize), MACHINE).copy()
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
            yield "wait_for_timer", (t, int(rng.integers(5, 9)))


def call_plainly(name: str, machine: PlainMachine, arguments: tuple[int, ...]) -> int:
    function = getattr(console, name, None) or getattr(tia, name)
    return int(function(machine, *arguments) or 0)


@pytest.mark.parametrize(
    ("frames", "seed"), machines.short_and_long((40, 0), *((500, seed) for seed in range(100, 120)))
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
                wanted = call_plainly(name, plain, arguments)
                assert compiled[name](record, *arguments) == wanted, (frame, name, arguments)
                if number % 50 == 0:
                    assert not machines.differences(record, plain.record()), (frame, number, name)
                calls += 1
            assert not machines.differences(record, plain.record()), frame
    assert calls > 600 * frames


class Screen:
    """A machine drawn by Python, a write after the other."""

    def __init__(self, draws: int = DRAW_PICTURE, **writes: int):
        """Begin a frame, and write to registers by name: ``GRP0=0xFF``."""
        self.machine = PlainMachine(make_machine())
        self.machine.draws = draws
        self.begin()
        colours = {"COLUBK": 0x02, "COLUPF": 0x0E, "COLUP0": 0x36, "COLUP1": 0xC8}
        for name, value in (colours | writes).items():
            self.write(0, NAMES[name], value)

    def begin(self) -> None:
        console.begin_frame(self.machine)

    def write(self, t: int, register: int, value: int) -> int:
        return tia.write_tia(self.machine, t, register, value)

    def place(self, **columns: int) -> None:
        """Where objects are, by name: ``player0=20``."""
        names = ["player0", "player1", "missile0", "missile1", "ball"]
        for name, column in columns.items():
            self.machine.position[names.index(name)] = column

    def rows(self) -> np.ndarray:
        """The whole picture."""
        tia.draw_to(self.machine, 228 * (TOP + ROWS))
        return np.array(self.machine.picture, np.uint8).reshape(ROWS, WIDTH)


NAMES = {**vars(r), "COLUP1": r.COLUP0 + 1}


def at(row: int, cycle: int = 0) -> int:
    """A time: a cycle of the line that a row of the picture is."""
    return 76 * (TOP + row) + cycle


def bars(width: int, *starts: int) -> list[int]:
    return sorted((start + x) % WIDTH for start in starts for x in range(width))


def pictures():
    """Registers, where objects are, later writes; which columns of row 100 then have a colour."""
    # The playfield is twenty bits of four pixels, repeated or mirrored. Of PF0 the high bits count,
    # the lowest first; of PF1 the highest is first; of PF2 the lowest.
    for mirrors, starts in ((0, (0, 20, 48, 80, 100, 128)), (1, (0, 20, 48, 108, 136, 156))):
        registers = {"PF0": 0x10, "PF1": 0x40, "PF2": 0x01, "CTRLPF": mirrors}
        yield registers, {}, [], {0x0E: bars(4, *starts)}
    # Trap: a change of it shows after two to five clocks, depending on the cycle.
    for cycle, delay in enumerate((4, 5, 2, 3, 4, 5, 2, 3), start=28):
        writes = [(cycle, register, 0xFF) for register in (r.PF0, r.PF1, r.PF2)]
        first = 3 * cycle + delay - 68
        yield {}, {}, writes, {0x0E: bars(WIDTH - first, first)}
    # In the score each half has its player's colour; in front, its own.
    halves = {0x36: bars(32, 16), 0xC8: bars(32, 96), 0x0E: []}
    yield {"PF1": 0xFF, "CTRLPF": 2}, {}, [], halves
    yield {"PF1": 0xFF, "CTRLPF": 6}, {}, [], {0x36: [], 0xC8: [], 0x0E: bars(32, 16, 96)}
    # Which object hides which.
    for switches, columns in ((0, bars(8, 20)), (4, []), (6, [])):
        registers = {"PF1": 0xFF, "CTRLPF": switches, "GRP0": 0xFF}
        yield registers, {"player0": 20}, [], {0x36: columns}
    # A player is eight pixels, copied and mirrored, and comes in again at the left.
    copies = {0: [0], 1: [0, 16], 2: [0, 32], 3: [0, 16, 32], 4: [0, 64], 6: [0, 32, 64]}
    for number, starts in copies.items():
        for mirrored, pixels in ((0, (0, 6, 7)), (8, (0, 1, 7))):
            registers = {"NUSIZ0": number, "GRP0": 0b1000_0011, "REFP0": mirrored}
            columns = sorted(27 + start + x for start in starts for x in pixels)
            yield registers, {"player0": 27}, [], {0x36: columns}
    yield {"GRP0": 0xFF}, {"player0": 156}, [], {0x36: bars(8, 156)}
    # Stretched, it comes a pixel later.
    for number, width in ((5, 2), (7, 4)):
        registers = {"NUSIZ0": number, "GRP0": 0b1100_0000}
        yield registers, {"player0": 27}, [], {0x36: bars(2 * width, 28)}
    # Missiles and ball are bars of one to eight pixels.
    for size in range(4):
        registers = {"CTRLPF": size << 4, "NUSIZ0": size << 4, "ENABL": 2, "ENAM0": 2}
        columns = {0x0E: bars(1 << size, 26), 0x36: bars(1 << size, 56)}
        yield registers, {"ball": 26, "missile0": 56}, [], columns
    # Trap: a player shows a clock after it is written, here in column 22, the ball at once, in 61.
    writes = [(30, r.GRP0, 0xFF), (43, r.ENABL, 2)]
    columns = {0x36: bars(5, 23), 0x0E: bars(7, 61)}
    yield {"CTRLPF": 0x30}, {"player0": 20, "ball": 60}, writes, columns


def test_a_row_of_the_picture():
    for number, (registers, places, writes, wanted) in enumerate(pictures()):
        screen = Screen(**registers)
        screen.place(**places)
        for cycle, register, value in writes:
            screen.write(at(100, cycle), register, value)
        row = screen.rows()[100]
        seen = {colour: np.flatnonzero(row == colour).tolist() for colour in wanted}
        assert seen == wanted, (number, registers, places)


@pytest.mark.parametrize(("cycle", "columns"), [(10, [3, 3, 2, 2, 2]), (30, [27, 27, 26, 26, 26])])
def test_an_object_is_set_to_the_beam_or_to_the_left_while_it_flies_back(cycle, columns):
    """Of cycle 30 the beam is at 3 · 30 − 68 = 22."""
    screen = Screen()
    for k in range(5):
        screen.write(at(0, cycle), r.RESP0 + k, 0)
    assert list(screen.machine.position) == columns


def test_hmove_moves_up_to_seven_columns_left_and_eight_right():
    screen = Screen()
    for k, motion in enumerate((0x70, 0x10, 0x00, 0xF0, 0x80)):
        screen.write(0, r.HMP0 + k, motion)
        screen.machine.position[k] = 80
    screen.write(at(50, 3), r.HMOVE, 0)
    assert list(screen.machine.position) == [73, 79, 80, 81, 88]
    screen.place(player0=3, ball=155)
    screen.write(at(51, 3), r.HMOVE, 0)
    assert (screen.machine.position[0], screen.machine.position[4]) == (156, 3)
    assert screen.machine.stop == 0


def test_a_late_hmove_is_not_covered():
    """It moves objects by less. Without motions there is nothing to move."""
    screen, stops = Screen(), []
    for motion in (0, 0x10):
        screen.write(0, r.HMBL, motion)
        screen.write(at(50, 4), r.HMOVE, 0)
        stops.append(screen.machine.stop)
    assert stops == [0, NOT_IMPLEMENTED]


def test_hmove_blanks_eight_pixels_of_the_next_line_that_is_drawn():
    """Trap: that is row 0, if HMOVE comes in a line above the picture, be it seven lines before."""
    for line, row in ((27, 0), (TOP + 60, 60)):
        screen = Screen()
        screen.write(76 * line + 3, r.HMOVE, 0)
        blank = np.argwhere(screen.rows() == 0).tolist()
        assert blank == [[row, x] for x in range(8)]


def test_delayed_players_and_ball_show_what_was_written_before_the_other_player():
    """Trap: a write to GRP1 makes the ball that was written before the one that is drawn."""
    screen = Screen(VDELBL=1, VDELP0=1)
    screen.place(ball=100, player0=20)
    for row, register, value in (
        (10, r.ENABL, 2), (20, r.GRP0, 0x80),
        (30, r.GRP1, 0),  # now both are seen
        (40, r.ENABL, 0), (50, r.GRP0, 0),
        (60, r.GRP0, 0),  # which does nothing to either
        (70, r.GRP1, 0),
    ):  # fmt: skip
        screen.write(at(row), register, value)
    rows = screen.rows()
    assert np.flatnonzero(rows[:, 100] == 0x0E).tolist() == list(range(30, 70))
    assert np.flatnonzero(rows[:, 20] == 0x36).tolist() == list(range(30, 70))


@pytest.mark.parametrize(("number", "middle"), [(0, 4), (3, 4), (5, 8), (7, 16)])
def test_resmp_hides_a_missile_and_lets_it_go_at_its_players_middle(number, middle):
    screen = Screen(NUSIZ0=number, ENAM0=2)
    screen.place(player0=150, missile0=60)
    screen.write(at(10), r.RESMP0, 2)
    screen.write(at(20), r.RESMP0, 0)
    rows = screen.rows()
    assert (rows[:10, 60] == 0x36).all()
    assert not (rows[10:20] == 0x36).any()
    assert rows[20, (150 + middle) % WIDTH] == 0x36


def test_nothing_that_the_last_frame_left_is_drawn():
    """Trap: masks and the list of objects are stale when a frame begins."""
    screen = Screen(GRP0=0xFF)
    screen.place(player0=20)
    screen.rows()
    machine = screen.machine
    machine.mask[0:6] = [(1 << 160) - 1] * 6
    machine.objects, machine.dirty, machine.drawn = 0x3F, 0, 228 * 10
    machine.stop, machine.vsync_end = 5, 0
    screen.begin()
    wanted = np.full((ROWS, WIDTH), 0x02, np.uint8)
    wanted[:, 20:28] = 0x36
    assert np.array_equal(screen.rows(), wanted)
    assert machine.stop == 0


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
        screen.machine.position[0:5] = [20] * 5
        for row, value in ((100, 0xFF), (102, 0)):
            for name in (pair[:2], pair[2:]):
                screen.write(at(row), objects[name], value)
        t = at(103)
        reads = [console.read(screen.machine, t, k, 0x3F) & 0xC0 for k in range(8)]
        assert reads == [bit if k == number // 2 else 0 for k in range(8)], pair
        screen.write(t, 0x2C, 0)  # CXCLR
        assert [console.read(screen.machine, t, k, 0) for k in range(8)] == [0] * 8


def test_what_is_not_drawn_yet_has_not_collided():
    screen = Screen()
    screen.place(player0=80, ball=80)
    screen.write(at(100), r.GRP0, 0xFF)
    screen.write(at(100), r.ENABL, 2)
    assert console.read(screen.machine, at(100, 49), 2, 0) == 0  # column 79
    assert console.read(screen.machine, at(100, 50), 2, 0) == 0x40  # column 82


def test_in_the_dark_nothing_is_seen_and_nothing_collides():
    screen = Screen()
    for register, value in ((r.VBLANK, 2), (r.GRP0, 0xFF), (r.ENABL, 2)):
        screen.write(at(50), register, value)
    rows = screen.rows()
    assert (set(np.unique(rows[:50])), set(np.unique(rows[50:]))) == ({0x02}, {0})
    assert screen.machine.collisions == 0


DRAWN = [r.PF0, r.PF1, r.PF2, r.GRP0, r.GRP1, r.ENABL, r.COLUPF, r.COLUBK, r.CTRLPF]


def test_the_field_is_every_second_pixel_that_is_not_background():
    rng = np.random.default_rng(3)
    for _ in range(20):
        picture, field = Screen(), Screen(DRAW_FIELD)
        for k in range(5):
            picture.machine.position[k] = field.machine.position[k] = int(rng.integers(WIDTH))
        times = sorted(rng.integers(at(10), at(209), 60).tolist())
        for t in times:
            register = int(rng.choice(DRAWN))
            value = int(rng.choice([0, 0xFF, 0x22, 0x55, 0xE4, 0x0E]))
            for screen in (picture, field):
                screen.write(t, register, value)
        rows = picture.rows()[FIELD_ROWS][::2, ::2]
        field.rows()
        bits = [[row >> x & 1 for x in range(80)] for row in field.machine.field]
        assert np.array_equal(IS_ACTIVE[rows], np.array(bits))
        assert FIELD_TOP == FIELD_ROWS.start


def test_wsync_halts_the_processor_until_the_next_line():
    screen = Screen()
    assert [screen.write(t, r.WSYNC, 0) for t in (0, 1, 75, 76, 77)] == [0, 76, 76, 76, 152]


@pytest.mark.parametrize(
    ("wait", "stop"), [(75, 0), (76, FRAME_DONE), (500, FRAME_DONE), (None, 0)]
)
def test_a_frame_ends_when_vsync_goes_a_line_after_it_came(wait, stop):
    """Trap: not after so many lines; nor if the frame before has left it on."""
    machine = Screen().machine
    if wait is None:
        machine.tia[r.VSYNC] = 2
    else:
        tia.write_vsync(machine, 1000, 2)
    tia.write_vsync(machine, 1000 + (wait or 0), 0)
    assert machine.stop == stop


def test_the_time_in_the_line_carries_over_to_the_next_frame():
    """Trap: so do the timer and the paddles, counted from the line in which the frame ended."""
    machine = PlainMachine(make_machine())
    machine.timer_set, machine.emptied_until = 19_000, 5_000
    console.end_frame(machine, 262 * 76 + 3)
    assert machine.cycle == 3
    assert machine.timer_set == 19_000 - 262 * 76
    assert machine.emptied_until == 5_000 - 262 * 76


def test_vsync_through_an_indexed_address_is_not_covered():
    for value, stop in ((0, 0), (2, NOT_IMPLEMENTED)):
        screen = Screen()
        screen.write(5, r.VSYNC, value)
        assert screen.machine.stop == stop


@pytest.mark.parametrize(("register", "shift"), [(0x294, 0), (0x295, 3), (0x296, 6), (0x297, 10)])
def test_the_timer_counts_down_once_in_so_many_cycles(register, shift):
    machine = PlainMachine(make_machine())
    console.write(machine, 100, register, 20)
    for rounds in range(20):
        for t in ((rounds << shift) + 1, (rounds + 1 << shift)):
            assert console.read(machine, 100 + t, 0x284, 0) == 19 - rounds
            assert console.read(machine, 100 + t, 0x285, 0) == 0
    assert machine.stop == 0
    for address in (0x284, 0x285):  # how long ago, and whether, are not covered once it has run out
        machine.stop = 0
        console.read(machine, 101 + (20 << shift), address, 0)
        assert machine.stop == TIMER_RAN_OUT


def test_waiting_for_the_timer_is_skipped_to_the_very_round_that_ends_it():
    rng = np.random.default_rng(4)
    for _ in range(200):
        machine = PlainMachine(make_machine())
        machine.timer, machine.timer_shift = int(rng.integers(256)), int(rng.choice([0, 3, 6]))
        machine.timer_set, cycles = int(rng.integers(-500, 500)), int(rng.integers(5, 9))
        begin = t = machine.timer_set + int(rng.integers(1, 400))
        while machine.stop == 0 and console.read(machine, t + 4, 0x284, 0):
            t += cycles
        if machine.stop == 0:
            skipped = console.wait_for_timer(machine, begin, cycles)
            assert skipped == (t if 1 << machine.timer_shift >= cycles else begin)


def test_paddles_charge_after_their_capacitors_are_let_go():
    screen = Screen()
    screen.machine.resistance[0], screen.machine.resistance[1] = 27_450, 790_196
    screen.begin()
    screen.write(100, r.VBLANK, 0x80)
    assert console.read(screen.machine, 30_000, 0x38, 0) == 0
    screen.write(1000, r.VBLANK, 0)
    for paddle, cycles in ((0, 522), (1, 15_045)):  # 27,450 Ω · 1.6 · 10 nF · 1.19 MHz
        reads = [
            console.read(screen.machine, 1000 + cycles + k, 0x38 + paddle, 0xFF) for k in (0, 1)
        ]
        assert reads == [0x3F, 0xBF]


def test_the_addresses_are_told_apart_by_a_few_lines_of_the_bus():
    machine = PlainMachine(make_machine())
    for address in (0x80, 0x180, 0xD80, 0x580):
        console.write(machine, 0, address, address >> 4)
        assert machine.ram[0] == address >> 4 & 255
        assert console.read(machine, 0, 0x80, 0) == machine.ram[0]
    console.write(machine, 0, 0x1080, 77)  # the cartridge
    assert machine.ram[0] != 77
    machine.swcha, machine.swchb = 0xBF, 0x3E
    for first, bus, wanted in ((0x280, 0, [0xBF, 0, 0x3E, 0]), (0x0C, 0xFF, [0xBF, 0xBF, 63, 63])):
        assert [console.read(machine, 0, first + k, bus) for k in range(4)] == wanted
