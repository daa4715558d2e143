"""The native emulator plays what ALE plays: every bit, in every form of playing.

The short part runs in ``make test``; the same over ten million frames is ``make soak ARGS="-k
native_exactness"``, which takes a quarter of an hour on a core of its own.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from consoles import Console, console_in, outcome, shows
from lockstep import Oracle, play_in_lockstep, styles
from machines import changed, compiled_quickly, made_up_state, short_and_long

from pixelpong.atari.machine import build, console, drawing, playing, tia, translation
from pixelpong.atari.machine.compiled import Game
from pixelpong.atari.machine.record import DRAW_PICTURE
from pixelpong.atari.machine.roms import read_rom
from pixelpong.errors import EmulatorError
from pixelpong.pong import cartridge, field, native
from pixelpong.pong.native import PONG


@pytest.fixture(scope="module")
def plain() -> Game:
    """The game compiled so that it skips nothing; its code is kept as that of the game is."""
    return Game(PONG, read_rom(PONG), is_plain=True)


# Against ALE itself.


@pytest.mark.parametrize(
    ("skip", "lead", "read_every"),
    [
        ((1, 1), 0, 0),
        ((2, 4), 0, 0),
        ((7, 7), 20, 0),  # the picture is that of the frame in which a game ends, inside a step
        ((1, 5), 0, 7),  # the record is overwritten, but for what ALE holds: nothing else counts
        ((1, 30), 18, 31),
    ],
)
@pytest.mark.parametrize(
    ("frames", "seed"), short_and_long((10_000, 6), *((250_000, s) for s in range(1000, 1008)))
)
def test_every_frame_is_ales(seed, frames, skip, lead, read_every):
    """Memory, points and ends in every call; the picture or the field; now and then all state."""
    done = play_in_lockstep(
        Oracle(), Console(), seed, frames, skip=skip, lead=lead, read_every=read_every
    )
    assert done["games"] >= 1
    assert done["points"] >= frames // 1000
    assert done["won"] or lead < 20
    assert not read_every or done["states"] >= frames // (skip[1] * read_every)


# Against itself, without skipping.


def play_both(skips: Console, plain: Console, actions: bytes, draws: int) -> list:
    """Play two consoles; what both pay, remember and show is equal. What that was, if played."""
    ours, wanted = outcome(skips, actions, draws), outcome(plain, actions, DRAW_PICTURE)
    # What is skipped may have been all that it would have stopped at: reads without effect.
    assert ours == wanted or len(wanted) == 1
    if len(wanted) == 1:
        return []
    (_, _, frames), _ = wanted
    assert frames == 0 or shows(skips, draws, plain.picture)
    return list(wanted[0])


def play_games(skips: Console, plain: Console, calls: int, seed: int) -> int:
    """Play both in all styles, whatever is drawn; how many games that were."""
    rng, games = np.random.default_rng(seed), 0
    left, right = styles(rng, skips.memory), styles(rng, skips.memory)
    for _ in range(calls):
        actions = bytes([next(left) << 4 | next(right)]) * int(rng.choice([1, 4]))
        _, is_over, _ = play_both(skips, plain, actions, int(rng.integers(3)))
        if is_over:
            games += 1
            skips.reset()
            plain.reset()
    return games


def play_made_up_states(skips: Console, plain: Console, count: int, seed: int) -> tuple[int, int]:
    """Play both from states of random numbers; how many went on, and to their last frame."""
    rng, played, shown = np.random.default_rng(seed), 0, 0
    good = skips.get_state()
    for number in range(count):
        state = made_up_state(rng)
        if number % 4:
            for name in ("pc", "s", "timer", "timer_shift", "timer_set"):
                state[name] = good[name]
        for each in (skips, plain):  # a frame that goes on in the next call is not drawn
            each.set_state(state)
            each.machine["picture"] = each.machine["field"] = 0
        actions = b"\2\3"[: int(rng.integers(1, 3))]
        done = play_both(skips, plain, actions, number % 3)
        played += bool(done)
        shown += done[2:] == [len(actions)]
    return played, shown


@pytest.mark.parametrize(
    ("calls", "seed"), short_and_long((5000, 7), *((400_000, seed) for seed in range(100, 106)))
)
def test_skipping_changes_nothing(plain, calls, seed):
    """In some games the missiles are seen. Those from 13 on need code that is not known."""
    for mode in range(13):
        is_usual = mode in (0, 3, 4)
        consoles = console_in(mode), console_in(mode, plain)
        games = play_games(*consoles, calls if is_usual else calls // 30, seed)
        assert mode or games


@pytest.mark.parametrize(("count", "seed"), short_and_long((2000, 3), (1_000_000, 4)))
def test_a_made_up_state_is_played_the_same_without_skipping(plain, count, seed):
    played, shown = play_made_up_states(Console(), Console(plain), count, seed)
    assert played > count / 6
    assert shown > played / 2


def test_actions_that_there_are_not_do_nothing():
    """A byte has room for sixteen a side; compiled code must not look beyond its tables."""
    play = Console()
    play.run(b"\0", DRAW_PICTURE)
    wanted = play.get_state().tobytes()
    for action in [6, 7, 9, 12, 13, 14, 15, 0x60, 0xFF]:  # 8, 10, 11 serve
        play.reset()
        play.run(bytes([action]), DRAW_PICTURE)
        assert play.get_state().tobytes() == wanted


# Traps: each that its makers fell into is noticed above if its cure is taken out.

CURES = {
    "reads happen in the last cycle": (
        translation, "else: r = read(m, t, q, {bus})", "else: r = read(m, t - 3, q, {bus})",
        "r = read_tia(m, t, q, {bus})", "r = read_tia(m, t - 3, q, {bus})",
        "r = read_port(m, t, {q & 7})", "r = read_port(m, t - 3, {q & 7})",
    ),
    "writes happen in the last cycle": (
        translation, "t = write_tia(m, t, q & 63, {value})",
        "t = write_tia(m, t - 2, q & 63, {value}) + 2",
    ),
    "hmove blanks eight pixels": (
        drawing, "if m.blanks != 0 and x0 < 8:", "if m.blanks > 1 and x0 < 8:",
    ),
    "hmove above the picture blanks row 0": (
        tia, "m.blanks = HAS_COMBS", "m.blanks = t >= 76 * 34",
    ),
    "grp1 latches the ball": (tia, "    if p == 1:\n        m.old_enabl = m.tia[ENABL]\n", ""),
    "grp0 and grp1 latch each other": (tia, "    m.old_grp[q] = m.tia[GRP0 + q]\n", ""),
    "delay of players": (tia, "draw_before(m, 3 * t + 1,", "draw_before(m, 3 * t,"),
    "delay of the ball, which is none": (
        tia, "    clock = 3 * t + DELAY[register]\n",
        "    clock = 3 * t + DELAY[register] + (register == ENABL)\n",
    ),
    "paddles the other way round": (
        cartridge, "LEFT_PADDLE, RIGHT_PADDLE = 0, 1", "LEFT_PADDLE, RIGHT_PADDLE = 1, 0",
    ),
    "paddles charge after so many cycles": (tia, "(1904, 100_000)", "(1907, 100_000)"),
    "times: the cycle in the line carries over": (console, "m.cycle = t - lines", "m.cycle = 0"),
    "times: the timer is counted anew": (console, "    m.timer_set -= lines\n", ""),
    "times: the paddles are counted anew": (console, "    m.emptied_until -= lines\n", ""),
    "last frames are drawn, whichever it is": (
        playing, "m.is_over and m.draws != draws and m.frames", "m.frames < 0",
    ),
    "missiles are let go at their player": (
        tia, "(m.position[p] + _MIDDLE[m.tia[NUSIZ0 + p] & 7]) % WIDTH", "m.position[2 + p]",
    ),
    "stale drawing": (
        console,
        "if m.begun else CLOCKS * TOP\n",
        "if m.begun else max(m.drawn, CLOCKS * TOP)\n",
    ),
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
        cartridge, "return m.draws & DRAW_PICTURE == 0 and shows_playfield_alone(m)",
        "return shows_playfield_alone(m)",
    ),
}  # fmt: skip
"""A cure: the module that has it, what it says there, and what would stand there without it.

The delays of the playfield are not among them: Pong never shows that they differ by cycle. They are
held to numbers in ``test_tia.py``.
"""


def built_without(cure: str, folder: Path, monkeypatch) -> Game:
    """The game, compiled from sources that lack a cure."""
    module, *words = CURES[cure]
    broken = changed(module, folder, *zip(words[::2], words[1::2], strict=True))
    if module is translation:
        monkeypatch.setattr(build, "Translation", broken.Translation)
    elif module is playing:
        monkeypatch.setattr(build, "playing", broken)
    elif module is cartridge:
        own = replace(native.PONG, hints=broken.HINTS, modules=(field, broken))
        monkeypatch.setattr(native, "PONG", own)
    else:
        modules = [broken if each is module else each for each in build.CONSOLE]
        monkeypatch.setattr(build, "CONSOLE", modules)
    return built_quickly(folder)


def built_quickly(folder: Path) -> Game:
    """The game from the sources as they are now."""
    with compiled_quickly():
        return Game(native.PONG, read_rom(PONG), folder)


def play_over_traps(game: Game, plain: Game) -> None:
    """Raise if a game is noticed to be not ALE's, or not what it is without skipping.

    The lockstep comes first: a game that never ends a frame would be started for ever.
    """
    play_in_lockstep(Oracle(), Console(game), 5, 2000, skip=(1, 5), read_every=7)
    play_games(console_in(4, game), console_in(4, plain), 1000, 7)
    play_made_up_states(Console(game), Console(plain), 2000, 3)


NOTICED = (
    "reads happen in the last cycle",
    "hmove blanks eight pixels",
    "times: the timer is counted anew",
    "last frames are drawn, whichever it is",
    "missiles are let go at their player",
    "rounds in which the second paddle is charged",
)
"""A cure of each module, noticed in lockstep, in games or in states that are made up."""


@pytest.mark.parametrize("cure", CURES)
def test_a_cure_is_in_its_source(cure, tmp_path):
    """Those that only the soak takes out as well."""
    module, *words = CURES[cure]
    changed(module, tmp_path, *zip(words[::2], words[1::2], strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    "cure",
    [
        *NOTICED,
        *(pytest.param(cure, marks=pytest.mark.soak) for cure in CURES if cure not in NOTICED),
    ],
)
def test_without_its_cure_a_trap_is_noticed(plain, cure, tmp_path, monkeypatch):
    """So a trap that is opened again does not go unnoticed. They are told in docs/emulator.md."""
    broken = built_without(cure, tmp_path, monkeypatch)
    with pytest.raises((AssertionError, EmulatorError)):
        play_over_traps(broken, plain)


@pytest.mark.slow
def test_with_all_cures_nothing_is_noticed(plain, tmp_path):
    """Otherwise the test above would pass, whatever is broken."""
    play_over_traps(built_quickly(tmp_path), plain)
