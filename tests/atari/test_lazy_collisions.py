"""A frame that is not drawn leaves the state of the same frame drawn, to every bit.

Without a picture, most of the search for collisions is left out, as
`pixelpong.atari.machine.collisions` tells. Drawing leaves out nothing, so it is the oracle: in
games, and in single lines in which everything is written in every cycle.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import machines
import numpy as np
import pytest

from pixelpong.atari.machine import banks, cartridges, collisions, console, drawing, objects, tia
from pixelpong.atari.machine import registers as r
from pixelpong.atari.machine.cartridges import cartridge
from pixelpong.atari.machine.compiled import load_game
from pixelpong.atari.machine.program import Program
from pixelpong.atari.machine.record import (
    DRAW_NOTHING,
    DRAW_PICTURE,
    FAR,
    FRAME_DONE,
    MACHINE,
    ROWS,
    STATE,
    TOP,
    WIDTH,
    make_machine,
)
from pixelpong.atari.machine.starting import start

pytestmark = pytest.mark.slow

ALL_LATCHES = collisions.ALL_LATCHES
CALLS = {"begin_frame": 0, "read": 3, "write": 3, "finish_picture": 0, "end_frame": 1}
CYCLES = range(76)
LINE = TOP + 20  # the line in which a test writes
LONG = 76 * 262  # cycles of a frame

SWITCH = {r.PLAYER0: r.GRP0, r.PLAYER1: r.GRP1, r.MISSILE0: r.ENAM0, r.MISSILE1: r.ENAM1}
SWITCH |= {r.BALL: r.ENABL, r.PLAYFIELD: r.PF1}
"""The register that switches an object on."""

Writes = Iterable[tuple[int, int, int]]  # cycle in the frame, register, value


# Games.


def first_of_each_scheme() -> list:
    """The first game of each scheme; in the soak all the others."""
    few: dict[str, str] = {}
    for name in cartridges.names():
        few.setdefault(cartridge(name).scheme, name)
    soak = pytest.mark.soak
    return [
        name if name in few.values() else pytest.param(name, marks=soak)
        for name in cartridges.names()
    ]


def disturb(machine: Any, rng: np.random.Generator) -> None:
    """Change some of what collisions and drawing depend on, and sometimes set all latches."""
    machine["collisions"] = ALL_LATCHES & int(rng.choice([0xFFFF, rng.integers(1 << 16)]))
    machine["position"][0, rng.integers(5)] = rng.integers(WIDTH)
    machine["ram"][0, rng.integers(128)] = rng.integers(256)
    for register in rng.choice([*range(r.NUSIZ0, r.PF2 + 1), *range(r.GRP0, r.RESMP1 + 1)], 4):
        machine["tia"][0, register] = rng.integers(256) & r.MEANING[register]
    if rng.random() < 0.3:
        machine["stars"], machine["star"] = rng.integers(2), rng.integers(4)
        machine["star_form"], machine["hidden"] = rng.integers(3), rng.integers(4)
        machine["late_mirror"] = rng.integers(2)


@pytest.mark.parametrize("disturbs", [0, 0.1], ids=["plain", "disturbed"])
@pytest.mark.parametrize("name", first_of_each_scheme())
def test_a_game_without_pictures_has_the_states_of_one_with_pictures(name, disturbs):
    game, rng = load_game(name), np.random.default_rng(len(name))
    machine: Any = start(game)
    size, action, played = STATE.itemsize, 0, 0
    for _ in range(1500):
        if rng.random() < 0.2:
            action = int(rng.choice(game.cartridge.legal_actions))
        if rng.random() < disturbs:
            disturb(machine, rng)
        drawn: Any = machine.copy()
        for each, draws in ((machine, DRAW_NOTHING), (drawn, DRAW_PICTURE)):
            game.play_frames(each.ctypes.data, bytes([action]), 1, draws)
        if machine["stop"] != FRAME_DONE or drawn["stop"] != FRAME_DONE or machine["is_over"]:
            machine = start(game)
            continue
        states = [each.view(np.uint8)[:size].copy().view(STATE) for each in (machine, drawn)]
        assert not machines.differences(*states), played
        assert machine["reward"] == drawn["reward"]
        played += 1
    assert played > 1000


# Lines.


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """The console's functions in machine code, by name."""
    modules = (objects, collisions, drawing, tia, banks, console)
    return machines.compile_calls(Program(MACHINE), modules, CALLS, tmp_path_factory.mktemp("code"))


def scene(registers: dict[int, int], position: Iterable[int], **fields: int) -> Any:
    """A machine at the start of a frame with these registers and positions of the objects."""
    machine: Any = make_machine()
    for register, value in registers.items():
        machine["tia"][0, register] = value
    machine["position"] = list(position)
    for name, value in fields.items():
        machine[name] = value
    return machine


def play(calls, machine: Any, writes: Writes, draws: int, end: int = LONG) -> tuple[list, Any]:
    """Play a frame of writes, and reads of collisions where the value is negative."""
    machine = machine.copy()
    machine["draws"], machine["draws_until"] = draws, FAR
    calls["begin_frame"](machine)
    seen = []
    for t, register, value in writes:
        if value < 0:
            seen.append(calls["read"](machine, t, register, 0))
        else:
            calls["write"](machine, t, register, value)
    machine["now"] = end
    calls["finish_picture"](machine)
    calls["end_frame"](machine, end)
    return seen, machine.view(np.uint8)[: STATE.itemsize].copy().view(STATE)


def require_equal(calls, machine: Any, writes: Writes, label: Any, end: int = LONG) -> Any:
    """Play it without and with a picture, and return the state."""
    writes = list(writes)
    seen, state = play(calls, machine, writes, DRAW_NOTHING, end)
    wanted_seen, wanted = play(calls, machine, writes, DRAW_PICTURE, end)
    assert seen == wanted_seen, label
    assert not machines.differences(state, wanted), label
    return state


def pairs() -> Iterator[tuple[tuple[int, int], bool, Any]]:
    """Each pair of objects, near each other or not, the others off: with their scene."""
    for pair, is_near in itertools.product(itertools.combinations(range(6), 2), (True, False)):
        registers = {SWITCH[o]: 2 if o in (r.MISSILE0, r.MISSILE1, r.BALL) else 0x81 for o in pair}
        registers |= {r.NUSIZ0: 0x10, r.NUSIZ1: 0x20, r.CTRLPF: 0x10}
        # PF1 as above has its pixels in columns 16 and 44, and in 96 and 124.
        columns = [96] * 5 if is_near else [60 + 10 * k for k in range(5)]
        yield pair, is_near, scene(registers, columns)


WRITTEN = [each for each in range(0x40) if each not in (r.VSYNC, r.WSYNC)]


@pytest.mark.parametrize("value", [0x00, 0x07, 0x35, 0xFF])
@pytest.mark.parametrize("step", [12, pytest.param(1, marks=pytest.mark.soak)])
def test_any_register_may_be_written_in_any_cycle_of_a_frame_that_is_not_drawn(calls, value, step):
    """Each register, with each pair; then another value, later in the same line or the next one."""
    found = set()
    for number, case in enumerate(itertools.product(pairs(), WRITTEN)):
        (pair, is_near, machine), register = case
        for cycle in CYCLES[number % step :: step]:
            t = 76 * LINE + cycle
            writes = [
                (t, register, value),
                (t + 3 + 7 * cycle % 80, register, 0x46),
                (t + 90, SWITCH[pair[0]], 0),
                (t + 95, SWITCH[pair[0]], 0xFF),
                (t + 110, r.VBLANK, 2),
            ]
            state = require_equal(calls, machine, writes, (pair, is_near, register, cycle))
            found |= {(pair, int(state["collisions"][0]))}
    assert len(found) > 40


def random_writes(rng: np.random.Generator) -> Iterator[tuple[int, int, int]]:
    """Writes and reads of collisions, in bursts, with values that matter."""
    t = 76 * int(rng.integers(TOP - 2, TOP + 10))
    often = rng.choice(WRITTEN, 6)  # a program writes mostly to a few
    for _ in range(int(rng.integers(5, 70))):
        t += int(rng.integers(3, rng.choice([6, 12, 40, 120, 3000])))
        register = int(rng.choice(often) if rng.random() < 0.7 else rng.choice(WRITTEN))
        value = int(rng.choice([0, 2, 0xFF, 0x10, rng.integers(256)]))
        if rng.random() < 0.05:
            yield t, int(rng.integers(8)), -1
        elif register == r.HMOVE and rng.random() < 0.3:
            yield t, r.HMM0, 0x70
            yield t + 3, register, value
            yield t + 24, r.HMM0, 0x60
            t += 24
        else:
            yield t, register, value


@pytest.mark.parametrize(
    ("count", "seed"),
    machines.short_and_long((2500, 0), *((100_000, seed) for seed in range(100, 104))),
)
def test_random_writes_leave_the_same_state(calls, count, seed):
    """Any state, and programs that write at random, up to any time."""
    rng, found = np.random.default_rng(seed), set()
    for number in range(count):
        machine: Any = make_machine()
        machine.view(np.uint8)[: STATE.itemsize] = machines.made_up_state(rng).view(np.uint8)
        if rng.random() < 0.8:
            machine["collisions"] = 0
        if rng.random() < 0.8:
            machine["stars"] = machine["star_form"] = machine["hidden"] = 0
        if rng.random() < 0.7:  # otherwise most objects are on
            machine["tia"][0, r.GRP0 : r.VDELBL + 1] = 0
        machine["tia"][0, r.VBLANK] = 0
        writes = list(random_writes(rng))
        end = writes[-1][0] + int(rng.choice([3, 50, 20_000]))
        state = require_equal(calls, machine, writes, (seed, number), end)
        found.add(int(state["collisions"][0]))
    assert len(found) > count / 50


def test_a_star_reaches_a_player_that_stands_behind_it(calls):
    """Missile 0 moves from line to line until it meets a player to which nobody writes."""
    hits = 0
    for column, cycle in itertools.product(range(0, WIDTH, 3), (0, 30, 75)):
        registers = {r.GRP0: 0, r.GRP1: 0x80, r.ENAM0: 2, r.HMM0: 0x70}
        machine = scene(registers, [0, column, 100, 0, 0])
        t = 76 * LINE + 3
        writes = [(t, r.HMOVE, 0), (t + 21, r.HMM0, 0x60)]
        far = t + 76 * 12 + cycle
        writes += [(far, r.CXCLR, 0), (far + 100, 0, -1), (far + 900, r.GRP1, 0)]
        state = require_equal(calls, machine, writes, (column, cycle))
        assert state["stars"] == 1
        hits += state["collisions"][0] != 0
    assert hits > 5


def test_what_ends_a_star_is_noticed_whatever_else_is_on(calls):
    """A write that gives missile 0 its form again, also while it is off, and the frame's end."""
    ends = (r.NUSIZ0, r.RESP0 + 2, r.RESMP0, r.HMOVE, r.HMM0, r.ENAM0)
    for register, cycle, is_on, line in itertools.product(ends, CYCLES, (0, 2), range(4)):
        machine = scene({r.ENAM0: is_on, r.GRP1: 0x80}, [0, 9, 100, 0, 0], stars=1, star=line)
        t = 76 * (LINE + line) + cycle
        writes = [(t, register, 0), (t + 200, register, 2)]
        for end in (t + 3, t + 203, LONG):
            given = [each for each in writes if each[0] < end]
            require_equal(calls, machine, given, (register, cycle, is_on, line, end), end)


def test_a_late_mirror_reaches_a_player_at_the_edge(calls):
    """Mirrored late in a line, the playfield meets a player only from the next line on."""
    hits = 0
    for cycle, bits, column in itertools.product(range(40, 76), (0, 1), (80, 150, 156)):
        registers = {r.PF0: 0x10, r.GRP0: 0xFF, r.CTRLPF: 1 - bits}
        machine = scene(registers, [column, 0, 0, 0, 0])
        t = 76 * LINE + cycle
        for after in (20, 60, 100):
            writes = [(t - 400, r.CXCLR, 0), (t, r.CTRLPF, bits)]
            # Reads: after the first one, what is near is known for the rest of the line.
            writes += [(t + 4, 2, -1), (t + after, 2, -1), (t + after + 3, r.GRP0, 0)]
            state = require_equal(calls, machine, writes, (cycle, bits, column, after))
            hits += state["collisions"][0] != 0
            end = t + after
            require_equal(calls, machine, writes[:2], (cycle, bits, column, after, "end"), end)
    assert hits > 20


def test_a_player_may_be_set_twice_in_a_line(calls):
    """The first copy is hidden until the line ends, in a frame in which it may matter or not."""
    sizes, latches = (0, 3, 7), (0, ALL_LATCHES)
    for cycle, size, latch, gap in itertools.product(CYCLES, sizes, latches, (3, 9, 40, 76, 90)):
        machine = scene(
            {r.GRP0: 0xFF, r.GRP1: 0xFF, r.NUSIZ0: size}, [20, 40, 0, 0, 0], collisions=latch
        )
        t = 76 * LINE + cycle
        writes = [(t, r.RESP0, 0), (t + gap, r.RESP0, 0), (t + gap + 5, r.RESP1, 0)]
        for end in (t + gap + 8, LONG):
            require_equal(calls, machine, writes, (cycle, size, latch, gap, end), end)


def test_a_blank_that_no_line_has_shown_is_kept_for_the_next_picture(calls):
    """HMOVE that moves nothing, around the top and the bottom, with latches that matter or not."""
    kept = set()
    for latch, cycle in itertools.product((0, ALL_LATCHES), CYCLES):
        machine = scene({r.GRP0: 0xFF, r.GRP1: 0xFF}, [20, 40, 0, 0, 0], collisions=latch)
        for line in (TOP - 2, TOP - 1, TOP, TOP + ROWS - 2, TOP + ROWS - 1, TOP + ROWS):
            t = 76 * line + cycle
            for end in (t + 3, t + 40, t + 90, LONG):
                state = require_equal(
                    calls, machine, [(t, r.HMOVE, 0)], (latch, cycle, line, end), max(end, t + 3)
                )
                kept.add((line, int(state["blanks"][0])))
    assert {(TOP + ROWS, 1), (TOP, 0), (TOP + ROWS - 1, 1)} <= kept


def test_what_was_known_of_an_earlier_frame_does_not_count(calls):
    """Everything behind the state may be rubbish."""
    rng = np.random.default_rng(5)
    for _ in range(300):
        machine = scene({r.GRP0: 0xFF, r.GRP1: 0x11}, rng.integers(0, WIDTH, 5))
        writes = list(random_writes(rng))
        wanted = play(calls, machine, writes, DRAW_NOTHING)
        rubbish: Any = machine.copy()
        rubbish.view(np.uint8)[STATE.itemsize :] = rng.integers(256)
        for name in ("shades", "draws", "swcha", "swchb", "fire", "turn"):
            rubbish[name] = machine[name]
        seen, state = play(calls, rubbish, writes, DRAW_NOTHING)
        assert seen == wanted[0]
        assert not machines.differences(state, wanted[1])
