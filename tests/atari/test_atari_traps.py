"""Each trap that the emulator's makers fell into has a test that fails without its cure.

A cure is a few words of the source. `CURES` takes them out one after the other, compiles what is
left, and sees that the game is another one. So a trap that is opened again does not go unnoticed:
the same games are held to ALE's in ``test_native_exactness.py``.

The traps, and the tests that hold each of them, are listed in ``docs/emulator.md``.
"""

from __future__ import annotations

import itertools
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import machines
import numpy as np
import pytest
from lockstep import outcome, scribble, styles

from pixelpong.atari import console, drawing, tia, translation
from pixelpong.atari import native as machine_code
from pixelpong.atari.machine import DRAW_PICTURE
from pixelpong.env import cartridge, native
from pixelpong.env.cartridge import LEFT_POINTS, RIGHT_POINTS
from pixelpong.env.native import NativeConsole, NativeGame, load_game, make_ir
from pixelpong.env.rom import read_rom
from pixelpong.errors import EmulatorError

CURES = {
    "reads happen in the last cycle": (
        translation, "else: r = read(m, t, q", "else: r = read(m, t - 3, q",
    ),
    "writes happen in the last cycle": (
        translation, "t = write_inline(m, t, {one.operand}",
        "t = 2 + write_inline(m, t - 2, {one.operand}",
    ),
    "hmove blanks eight pixels": (
        drawing, "if m.blanks != 0 and x0 < 8:", "if m.blanks > 1 and x0 < 8:",
    ),
    "hmove above the picture blanks row 0": (
        tia, "    m.blanks = 1\n", "    m.blanks = t >= 76 * 34\n",
    ),
    "grp1 latches the ball": (tia, "    if p == 1:\n        m.old_enabl = m.tia[ENABL]\n", ""),
    "grp0 and grp1 latch each other": (tia, "    m.old_grp[q] = m.tia[GRP0 + q]\n", ""),
    "delay of players": (tia, "draw_to(m, 3 * t + 1)", "draw_to(m, 3 * t)"),
    "delay of the ball, which is none": (
        tia, "3 * t + DELAY[register]", "3 * t + DELAY[register] + (register == ENABL)",
    ),
    "paddles the other way round": (
        cartridge, "LEFT_PADDLE, RIGHT_PADDLE = 0, 1", "LEFT_PADDLE, RIGHT_PADDLE = 1, 0",
    ),
    "paddles charge after so many cycles": (console, "(1904, 100_000)", "(1907, 100_000)"),
    "times: the cycle in the line carries over": (console, "m.cycle = t - lines", "m.cycle = 0"),
    "times: the timer is counted anew": (console, "    m.timer_set -= lines\n", ""),
    "times: the paddles are counted anew": (console, "    m.emptied_until -= lines\n", ""),
    "last frames are drawn, whichever it is": (
        cartridge,
        "k == count or max(m.ram[LEFT_POINTS], m.ram[RIGHT_POINTS]) == LAST_POINT - 1",
        "k == count",
    ),
    "missiles are let go at their player": (
        tia, "(m.position[p] + _MIDDLE[m.tia[NUSIZ0 + p] & 7]) % WIDTH", "m.position[2 + p]",
    ),
    "stale drawing": (console, "m.drawn = CLOCKS * TOP", "m.drawn = max(m.drawn, CLOCKS * TOP)"),
    "stale stop code": (console, "    m.stop = 0\n", ""),
    "rounds in which the first paddle is charged": (
        cartridge, "min(count, left // _ROUND_CYCLES)", "min(count, left // _ROUND_CYCLES + 1)",
    ),
    "rounds in which the second paddle is charged": (
        cartridge, "    if left_second >= -2:", "    if left_second >= 999_999:",
    ),
    "rounds that are noted for the paddles": (
        cartridge, "m.ram[4] = row + 2 * count", "m.ram[4] = row",
    ),
    "rounds behind those in which something changes": (
        cartridge, "players | others | delayed << 1 |", "players | others |",
    ),
    "rounds in which the playfield changes": (
        cartridge, "rounds |= wide(1) << (8 * row - _FIRST_ROW >> 1)", "rounds |= 0",
    ),
    "rounds of the missile, in its rows": (
        cartridge, "_FIRST_ROW - m.ram[0x34]", "_FIRST_ROW + 1 - m.ram[0x34]",
    ),
    "points are drawn if somebody looks": (
        cartridge, "return m.draws != DRAW_PICTURE and shows_playfield_alone(m)",
        "return shows_playfield_alone(m)",
    ),
}  # fmt: skip
"""A cure: the module that has it, what it says there, and what would stand there without it.

The delays of the playfield are not among them: Pong never shows that they differ by cycle. They are
held to numbers in ``test_tia.py``.
"""


def built_without(cure: str, folder: Path, monkeypatch) -> NativeGame:
    """The game, compiled from sources that lack a cure."""
    module, *words = CURES[cure]
    broken = machines.changed(module, folder, *zip(words[::2], words[1::2], strict=True))
    for level in ("LEVEL", "CODE_LEVEL"):  # to optimise takes three quarters of the time
        monkeypatch.setattr(machine_code, level, 0)
    if module is translation:
        monkeypatch.setattr(native, "Translation", broken.Translation)
    else:
        monkeypatch.setattr(native, module.__name__.split(".")[-1], broken)
    return NativeGame(read_rom(), folder)


def seen_in(game: NativeGame) -> Iterator[tuple]:
    """What is seen of a game: each frame's picture and state, in play and from made-up states."""
    play = NativeConsole(0, game)
    rng = np.random.default_rng(20)
    for kind in ("as it starts", "near its end", "with four paddles"):
        play.reset()
        actions = styles(rng, play.memory)
        if kind == "near its end":
            play.memory[[LEFT_POINTS, RIGHT_POINTS]] = 20, 20
            actions = itertools.cycle([2, 3])
        elif kind == "with four paddles":
            play.machine["resistance"][0, 2:] = 300_000, 500_000
        for _ in range(200 if kind == "near its end" else 400):
            skip = 6 if kind == "near its end" else 1
            yield run(play, bytes([next(actions)]) * skip)
    play.reset()
    rng = np.random.default_rng(21)
    state = play.get_state()
    for _ in range(300):
        made_up = machines.made_up_state(rng)
        for name in ("pc", "s", "timer", "timer_shift", "timer_set"):  # or it would soon stop
            made_up[name] = state[name]
        play.set_state(made_up)
        yield run(play, b"\2")


def run(play: NativeConsole, actions: bytes) -> tuple:
    """Play with scribble in all of the record but the state."""
    scribble(play)
    return *outcome(play, actions, DRAW_PICTURE), zlib.crc32(play.picture)


@pytest.fixture(scope="module")
def as_it_is() -> list:
    return list(seen_in(load_game()))


@pytest.mark.slow
@pytest.mark.parametrize("cure", CURES)
def test_without_its_cure_a_trap_is_noticed(as_it_is, cure, tmp_path, monkeypatch):
    try:
        seen = seen_in(built_without(cure, tmp_path, monkeypatch))
        assert any(each != wanted for each, wanted in zip(seen, as_it_is, strict=True))
    except EmulatorError:  # when switched on
        return


def test_actions_that_there_are_not_do_nothing():
    """A byte has room for sixteen a side; compiled code must not look beyond its tables."""
    play = NativeConsole()
    play.run(b"\0", DRAW_PICTURE)
    wanted = play.get_state().tobytes()
    for action in [6, 7, 9, 12, 13, 14, 15, 0x60, 0xFF]:  # 8, 10, 11 serve
        play.reset()
        play.run(bytes([action]), DRAW_PICTURE)
        assert play.get_state().tobytes() == wanted


def test_no_name_can_be_taken_for_the_c_librarys():
    """A function that was called `write` was bound to the C library's, and looped for ever."""
    ir = make_ir(read_rom())
    names = re.findall(r"^define (internal )?.*?@(\w+)\(", ir, re.M)
    assert len(names) > 30
    assert sorted(name for internal, name in names if not internal) == ["idle", "play_frames"]
    assert set(re.findall(r"^@\w+ = (\w+)", ir, re.M)) == {"private"}  # tables
    assert all(re.findall(r"^declare .*@(llvm\.)?[\w.]+\(", ir, re.M))
