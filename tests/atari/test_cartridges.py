"""Cartridges of every kind are played as ALE plays them, from the start of a game on."""

from __future__ import annotations

import os
from pathlib import Path

import cartridge_facts
import numpy as np
import pytest
from machines import copy_console

from pixelpong.atari.games.rules import open_cartridge
from pixelpong.atari.lockstep import STYLES, Lockstep
from pixelpong.atari.machine import cartridges, roms
from pixelpong.atari.machine.cartridges import cartridge
from pixelpong.atari.machine.compiled import Game, load_game
from pixelpong.atari.machine.roms import read_rom
from pixelpong.atari.machine.starting import start
from pixelpong.errors import EmulatorError
from pixelpong.pong.native import PONG

# One for each way in which a cartridge shows its ROM. In the second, a start depends on the game
# before; in the last, the cartridge's own memory is filled at random.
EACH_SCHEME = {
    "2K": "breakout",
    "4K": "seaquest",
    "F8": "beam_rider",
    "F6": "solaris",
    "E0": "montezuma_revenge",
    "FE": "robotank",
    "F8SC": "elevator_action",
    "F6SC": "darkchambers",
}
# Of those that a start does not depend on, a few; of the others most.
STARTS = (
    "double_dunk",
    "elevator_action",
    "surround",
    "space_war",
    "ice_hockey",
    "haunted_house",
    "kung_fu_master",
    "yars_revenge",
)
FOR_TWO = ("combat", "joust", "maze_craze", "warlords")  # ALE does not play them alone
ALONE = [name for name in cartridges.facts() if name not in FOR_TWO]


def few_and_all(names: list[str]) -> list:
    """One game for each scheme; in the soak all the others."""
    few = EACH_SCHEME.values()
    return [
        *few,
        *(pytest.param(name, marks=pytest.mark.soak) for name in names if name not in few),
    ]


def test_there_is_a_game_for_each_scheme():
    assert {cartridge(name).scheme: name for name in EACH_SCHEME.values()} == EACH_SCHEME
    lines = [cartridges.facts()[name] for name in cartridges.names()]
    assert {line["scheme"] for line in lines} == EACH_SCHEME.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", EACH_SCHEME.values(), ids=EACH_SCHEME.keys())
def test_a_cartridge_of_each_scheme_is_ales_in_memory_and_pictures(name):
    lockstep = Lockstep(load_game(name))
    for seed, style in enumerate(STYLES):
        found = lockstep.run(style, 1000, np.random.default_rng(seed))
    assert not found.difference
    assert not found.picture_difference
    assert found.frames == 3000
    assert found.starts >= 4
    assert found.pictures >= 3000 // 8


@pytest.mark.soak
@pytest.mark.parametrize("name", cartridges.names())
def test_every_cartridge_is_ales_for_long(name):
    """As `benchmarks/games.py` compares them, with other moves."""
    lockstep = Lockstep(load_game(name))
    for number, style in enumerate(STYLES):
        found = lockstep.run(style, 20_000, np.random.default_rng([7, number]))
    assert not found.difference
    assert not found.picture_difference


@pytest.mark.slow
@pytest.mark.parametrize("name", STARTS)
def test_a_start_after_a_game_is_ales(name):
    """The first start, those after some play, and one after a memory full of random bytes."""
    rng = np.random.default_rng(3)
    lockstep = Lockstep(load_game(name))
    for _ in range(3):
        lockstep.run("held", int(rng.integers(200)), rng)
    for address in range(128):
        lockstep.poke(address, int(rng.integers(256)))
    lockstep.restart()
    assert lockstep.result.starts >= 5
    assert not lockstep.result.difference


@pytest.mark.slow
def test_a_start_depends_on_what_it_is_given_and_on_nothing_else():
    game = load_game("ice_hockey")
    memory = bytes(range(128))
    starts = [start(game, number, memory).tobytes() for number in (5, 5, 6)]
    assert starts[0] == starts[1] != starts[2]
    assert start(game, 5, bytes(128)).tobytes() != starts[0]
    assert start(game).tobytes() == start(game, 0).tobytes()


@pytest.mark.slow
def test_a_wrong_machine_is_noticed():
    """A byte of memory, and a pixel."""
    game = load_game("breakout")
    lockstep = Lockstep(game)
    lockstep.machine["ram"][0, 5] ^= 1
    lockstep.step(0, draws=False)
    assert lockstep.result.difference
    lockstep = Lockstep(game)
    lockstep.machine["tia"][0, 8] ^= 0x10  # a colour
    lockstep.step(0, draws=True)
    assert "pixels of frame 1" in lockstep.result.picture_difference


# The facts.


@pytest.mark.slow
@pytest.mark.parametrize("name", few_and_all(ALONE))
def test_the_facts_about_a_cartridge_are_those_of_its_rom_in_ale(name):
    line = cartridges.facts()[name]
    measured = cartridge_facts.measure(name)
    assert cartridge_facts.with_defaults(line, measured) == measured


def test_every_rom_of_ale_is_listed():
    folder = roms.rom_path("pong").parent
    assert {path.stem for path in folder.glob("*.bin")} == set(cartridges.facts())
    assert len(cartridges.names()) >= 103
    assert all(reason[0].islower() for reason in cartridges.not_covered().values())


def test_a_name_that_is_unknown_or_not_covered_is_one_line():
    with pytest.raises(EmulatorError, match=r"unknown game 'brekout'; did you mean breakout\?\Z"):
        cartridge("brekout")
    with pytest.raises(EmulatorError, match=r"unknown game 'xyzzy'; use a name of ale-py's.*\Z"):
        cartridge("xyzzy")
    for name, reason in cartridges.not_covered().items():
        with pytest.raises(EmulatorError, match=f"{name} cannot be played exactly: {reason}"):
            cartridge(name)


@pytest.mark.slow
def test_a_line_is_told_before_something_is_compiled(tmp_path: Path):
    copy_console(tmp_path)
    facts, told = cartridge("breakout"), []
    for _ in range(2):
        game = Game(facts, read_rom(facts), tmp_path, tell=told.append)
        assert told == ["Compiling breakout for this processor, once …"]
    assert game.was_kept


def test_a_rom_that_cannot_be_used_is_one_line(tmp_path: Path, monkeypatch):
    facts = cartridge("space_invaders")
    path, rom = tmp_path / "space_invaders.bin", read_rom(facts)
    monkeypatch.setenv("ALE_ROMS_DIR", str(tmp_path))
    for content in (None, b"", rom[:-1], rom + b"\0", bytes([rom[0] ^ 1]) + rom[1:]):
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(EmulatorError, match=r"^cannot use Space Invaders's ROM in the .*\Z"):
            read_rom(facts)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(EmulatorError, match="is not a regular file"):
        read_rom(facts)
    path.unlink()
    path.write_bytes(rom)
    assert read_rom(facts) == rom


@pytest.mark.parametrize("style", STYLES)
def test_pong_as_it_is_compiled_for_the_agent_is_ales(style):
    """Its own `press` knows fewer actions than ALE, and both take the same ones here."""
    lockstep = Lockstep(open_cartridge(PONG))
    lockstep.run(style, 3000, np.random.default_rng(3))
    found = lockstep.result
    assert (found.difference, found.picture_difference) == ("", "")
    assert found.frames == 3000
