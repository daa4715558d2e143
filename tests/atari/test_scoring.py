"""Points, lives and ends are ALE's: in memories that are made up, in play, and after a snapshot."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from machines import PlainMachine, compile_program, differences
from made_up_memory import Asked

from pixelpong.atari.lockstep import STYLES, Lockstep, moves
from pixelpong.atari.machine import cartridges, digits, scoring
from pixelpong.atari.machine.cartridges import cartridge
from pixelpong.atari.machine.compiled import load_game
from pixelpong.atari.machine.lowering import lower_modules
from pixelpong.atari.machine.native import NativeCode
from pixelpong.atari.machine.program import Program
from pixelpong.atari.machine.record import (
    DRAW_NOTHING,
    DRAW_PICTURE,
    MACHINE,
    MOST_NOTED,
    PADDLE_TURN,
    STATE,
    make_machine,
)
from pixelpong.atari.machine.scoring import Scoring
from pixelpong.atari.machine.starting import start

NAMES = cartridges.scored_names()
# A game in which nothing of the frame before counts but the points; games in which more does; and
# a game with a board, in the cartridge's own memory.
FEW = ("breakout", "qbert", "beam_rider", "tennis", "klax")
# Games whose ends are so rare in play that they show in made-up memories alone.
RARE = ("backgammon", "casino", "miniature_golf", "video_cube")


def few_and_all(names: list[str] = NAMES) -> list:
    """Some games; in the soak all the others."""
    others = [name for name in names if name not in FEW]
    return [*FEW, *(pytest.param(name, marks=pytest.mark.soak) for name in others)]


# Against ALE.


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FEW, *RARE])
def test_in_made_up_memories_the_score_is_ales(name):
    asked, count = Asked(load_game(name)), 200 if name in RARE else 60
    asked.play_made_up(count, np.random.default_rng(1))
    assert not asked.result.difference
    assert asked.result.frames == count
    assert name in FEW or (asked.result.ends and asked.result.rewards)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if cartridge(name).scoring.first])
def test_the_first_frame_of_a_game_continues_from_the_values_at_its_start(name):
    asked, rng = Asked(load_game(name)), np.random.default_rng(10)
    for _ in range(40):
        asked.play_made_up(1, rng)
        asked.restart()
    assert not asked.result.difference


@pytest.mark.soak
@pytest.mark.parametrize("name", NAMES)
def test_in_thousands_of_made_up_memories_the_score_is_ales(name):
    asked = Asked(load_game(name))
    asked.play_made_up(2000, np.random.default_rng(2))
    assert not asked.result.difference
    assert asked.result.rewards >= 20
    assert asked.result.ends >= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", few_and_all())
def test_in_play_the_score_is_ales_over_several_games(name):
    """`Lockstep` compares rewards, lives and ends after each frame."""
    lockstep = Lockstep(load_game(name))
    for number, style in enumerate(STYLES):
        found = lockstep.run(style, 1000, np.random.default_rng([3, number]))
    assert not found.difference
    assert found.frames == 3000


@pytest.mark.slow
@pytest.mark.parametrize("name", few_and_all())
def test_a_snapshot_in_mid_game_continues_with_ales_score(name):
    """All else in the record is rubbish after each frame."""
    game = load_game(name)
    lockstep, rng = Lockstep(game), np.random.default_rng(4)
    actions, size = moves("purposeful", game.cartridge.legal_actions, rng), game.cartridge.kept_size
    for _ in range(1000):
        other = np.frombuffer(rng.bytes(MACHINE.itemsize), MACHINE).copy()
        other.view(np.uint8)[:size] = lockstep.machine.view(np.uint8)[:size]
        other["shades"], other["turn"] = range(256), PADDLE_TURN
        lockstep.machine = other
        lockstep.step(next(actions), draws=False)
        if lockstep.machine["is_over"][0]:
            lockstep.restart()
    assert not lockstep.result.difference


@pytest.mark.slow
@pytest.mark.parametrize("name", few_and_all())
def test_the_score_of_several_frames_is_that_of_each(name):
    """Also if a frame is played once more, because it was the last one of a game."""
    game, rng = load_game(name), np.random.default_rng(5)
    actions = moves("held", game.cartridge.legal_actions, rng)
    machine, ends = start(game), 0
    for number in range(600):
        each, held = machine.copy(), bytes(next(actions) for _ in range(rng.integers(1, 9)))
        game.play(machine, held, (DRAW_NOTHING, DRAW_PICTURE)[number % 2])
        reward = frames = 0
        while frames < len(held) and not (frames and each["is_over"][0]):
            game.play(each, held[frames : frames + 1], DRAW_NOTHING)
            reward += int(each["reward"][0])
            frames += 1
        assert (machine["reward"][0], machine["frames"][0]) == (reward, frames)
        assert machine["lives"][0] == each["lives"][0]
        assert machine["is_over"][0] == each["is_over"][0]
        for name in (*STATE.names, "noted"):
            assert np.array_equal(machine[name], each[name])
        if machine["is_over"][0]:
            ends += 1
            machine = start(game, ends)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["breakout", "haunted_house"])
def test_a_wrong_score_is_noticed(name):
    """A game with other rules, in the same memories."""
    game = load_game(name)
    rules = dict(game.cartridge.scoring.rules)
    for wrong in ({"over": "0"}, {"lives": f"1 + {rules['lives']}"}, {"reward": "0"}):
        asked = Asked(game.with_facts(scoring=Scoring(rules | wrong)))
        asked.play_made_up(1000, np.random.default_rng(6))
        assert asked.result.difference


# The facts, and the functions that are made of them.


def test_each_game_has_a_score_or_a_reason():
    others = cartridges.not_covered()
    assert sorted([*NAMES, *others]) == sorted(cartridges.facts())
    assert len(NAMES) == 103
    assert all(reason[0].islower() and reason[-1] != "." for reason in others.values())
    for name in NAMES:
        assert len(cartridge(name).scoring.noted) <= MOST_NOTED


def compile_score(facts: Scoring, folder: Path) -> tuple[ModuleType, NativeCode]:
    """The functions of a score as Python and as machine code, without the game."""
    module = scoring.make_scoring("a test", facts)
    board = {"BOARD": facts.board, "CELLS": len(facts.board)} if facts.board else {}
    program = Program(MACHINE, board)
    lower_modules(program, [digits, module], ["score", "begin_score"])
    return module, compile_program(program, folder)


@pytest.mark.parametrize("name", NAMES)
def test_compiled_a_score_is_what_it_is_as_python(name, tmp_path, monkeypatch):
    facts, rng = cartridge(name).scoring, np.random.default_rng(7)
    module, code = compile_score(facts, tmp_path)
    if facts.board:
        monkeypatch.setattr(digits, "BOARD", facts.board)
        monkeypatch.setattr(digits, "CELLS", len(facts.board))
    record = make_machine()
    for number in range(60):
        record["ram"] = rng.integers(0, 256, 128) if number % 2 else rng.integers(0, 2, 128)
        record["extra_ram"] = rng.integers(0, 256, 128)
        function = "score" if number % 8 else "begin_score"
        plain = PlainMachine(record)
        getattr(module, function)(plain)
        code.function(function, None, ctypes.c_void_p)(record.ctypes.data)
        assert not differences(record, plain.record), (number, differences(record, plain.record))


@pytest.mark.parametrize("rule", ["xB", "later", "old.nothing", "points.x80", "print(x80)"])
def test_a_rule_names_bytes_helpers_and_what_comes_before_it(rule, tmp_path):
    """So nothing else of Python can be in it."""
    with pytest.raises((SyntaxError, AssertionError)):
        compile_score(Scoring({"points": rule, "over": "0", "later": "1"}), tmp_path)


def test_digits_are_read_as_programs_keep_them():
    assert [digits.dec(byte) for byte in (0, 0x42, 0x99)] == [0, 42, 99]
    assert (digits.hi(0xAB), digits.lo(0xAB)) == (10, 11)
    assert [digits.digit(number) for number in (0, 9, 10)] == [0, 9, 0]
    assert [digits.eighth(address) for address in (0, 72, 0x80)] == [0, 9, 0]
    assert [digits.digit8(address) for address in (0, 8, 9, 72, 80)] == [0, 1, 0, 9, 0]
    assert [digits.sign(byte) for byte in (0, 127, 128, 255)] == [0, 127, -128, -1]
    assert [digits.wrap(change, 1000) for change in (5, -990)] == [5, 10]


def test_a_board_is_counted_by_signs_and_by_groups(monkeypatch):
    monkeypatch.setattr(digits, "BOARD", tuple(range(6)))
    monkeypatch.setattr(digits, "CELLS", 6)
    record = make_machine()
    record["ram"][0, :7] = [3, 0, 250, 250, 250, 5, 9]  # 250 is -6
    machine = PlainMachine(record)
    assert [digits.total(machine, side) for side in (1, -1)] == [8, 18]
    assert [digits.alike(machine, size) for size in (1, 2, 3, 6)] == [6, 1, 0, 0]
    machine.ram[3:6] = [7, 7, 7]
    assert digits.alike(machine, 3) == 1


def test_rules_become_lines_of_typed_python():
    facts = Scoring(
        {"is_on": "old.is_on or xB9 == 5", "points": "dec(xCC, cCD)", "over": "is_on and xB9 == 0"},
        first={"is_on": 1},
    )
    source = scoring.to_source(facts)
    for line in (
        "is_on = m.noted[0] or m.ram[57] == 5",
        "points = 100 * dec(m.ram[76]) + dec(m.extra_ram[77])",
        "over = 1 if is_on and m.ram[57] == 0 else 0",
        "reward = points - m.noted[1]",
        "m.points += reward",
    ):
        assert f"    {line}\n" in source


def test_the_documented_facts_are_those_of_the_file():
    root = Path(__file__).parents[2]
    page = (root / "docs/emulator.md").read_text("utf-8").partition("## Points, lives, ends")[2]
    lines = (root / "src/pixelpong/atari/machine/cartridges.json").read_text("utf-8")
    shown = re.findall(r'`("\w+": ".*?")`', page.partition("\n## ")[0])
    assert len(shown) == 10
    assert all(each in lines for each in shown)
