"""Cartridges without hints: explored, translated, linked to a console that serves for all.

The cartridges are random bytes. However they are played, all must be the same: translated or
interpreted, as one program or linked.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import random
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from machines import compile_program, compiled_quickly, copy_console, short_and_long
from promises import promise
from test_native_hostile import Guarded, in_processes

from pixelpong.atari.machine import build, exploring
from pixelpong.atari.machine import compiled as game
from pixelpong.atari.machine.cache import keep
from pixelpong.atari.machine.cartridge import Cartridge, Select
from pixelpong.atari.machine.compiled import Game
from pixelpong.atari.machine.exploring import Notes
from pixelpong.atari.machine.opcodes import OPCODES
from pixelpong.atari.machine.record import FRAME_DONE, KEPT_SIZE, MACHINE, MOST_OLDER, STATE
from pixelpong.atari.machine.scoring import Scoring

pytestmark = promise("bounds")

SIZES = {
    "2K": 2048, "4K": 4096, "F8": 8192, "F8SC": 8192, "FE": 8192, "E0": 8192,
    "F6": 16384, "F6SC": 16384,
}  # fmt: skip
CODE = 400  # bytes of each bank
COMMON = (0x85, 0xA5, 0xA9, 0xB1, 0x20, 0x60, 0xD0, 0x86)  # STA, LDA, JSR, RTS, BNE, STX


def random_rom(size: int, seed: int) -> bytes:
    """Random instructions, many of them the common ones, at the start of each bank; then RTS."""
    chance, codes = random.Random(seed), sorted(OPCODES)
    rom = bytearray(b"\x60") * size
    for start in range(0, size, 4096):
        for place in range(start, start + CODE):
            rom[place] = chance.choice([chance.choice(codes), *COMMON])
        end = start + min(size, 4096)
        rom[end - 6 : end] = b"\x10\xf0\x20\xf0\x30\xf0"
    return bytes(rom)


def any_state(rng: np.random.Generator, start: np.ndarray) -> np.ndarray:
    """A machine anywhere in its code, with any bytes in its memory and registers."""
    machine = start.copy()
    raw = machine.view(np.uint8)
    raw[: STATE.itemsize] = rng.integers(0, 256, STATE.itemsize, dtype=np.uint8)
    for name in ("cycle", "timer_set", "emptied_until", "begun", "vsync_end", "timer_reset"):
        machine[name] = start[name]
    machine["pc"] = 0xF000 | int(rng.integers(CODE))
    machine["banks"] = start["banks"]
    machine["resistance"] = rng.integers(0, 1_100_000, 4)
    return machine


@pytest.fixture
def folder(tmp_path) -> Path:
    """A cache folder in which the console is, and nothing of any cartridge."""
    return copy_console(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SIZES)
def test_translated_linked_and_interpreted_code_play_the_same_frames(scheme, folder):
    rom = random_rom(SIZES[scheme], seed=len(scheme))
    cartridge = Cartridge("random", "", scheme)
    linked, banked = Game(cartridge, rom, folder), cartridge.banked(rom)
    entries = {
        (place, 0xF000 | place & 0xFFF) for place in range(16, len(rom), 61) if place % 4096 < CODE
    }
    number, pointer = ctypes.c_int32, ctypes.c_void_p
    with compiled_quickly():
        codes = [
            compile_program(build.make_program(cartridge, banked, some), folder)
            for some in ((), entries)
        ]
    plays = [linked.play_on, *(each.function("play", number, pointer, number) for each in codes)]
    rng, start, done = np.random.default_rng(1), linked.power_on(), 0
    for _ in range(400):
        first = any_state(rng, start)
        machines = [first.copy() for _ in plays]
        stops = {play(each.ctypes.data, 2) for play, each in zip(plays, machines, strict=True)}
        assert len(stops) == 1
        done += stops == {FRAME_DONE}
        assert len({each.view(np.uint8)[: STATE.itemsize].tobytes() for each in machines}) == 1
        assert len({each["picture"].tobytes() for each in machines}) == 1
    assert 10 < done < 390


def made(folder: Path, rom: bytes) -> Game:
    """A game of 4 kB."""
    return Game(Cartridge("random", "", "4K"), rom, folder)


def state_after(game: Game, frames: int) -> bytes:
    """What a machine remembers that was switched on so many frames ago."""
    machine = game.power_on()
    game.play_on(machine.ctypes.data, frames)
    return machine.view(np.uint8)[: STATE.itemsize].tobytes()


@pytest.mark.slow
def test_a_cartridge_is_explored_and_compiled_once_and_says_so(folder, monkeypatch):
    told = []
    cartridge, rom = Cartridge("random", "", "4K"), random_rom(4096, 3)
    assert not Game(cartridge, rom, folder, tell=told.append).was_kept
    assert told == ["Compiling random for this processor, once …"]
    assert sorted(path.suffix for path in folder.iterdir()) == [".machine"] * 3 + [".notes"]
    monkeypatch.setattr(game, "explore", None)
    assert Game(cartridge, rom, folder, tell=told.append).was_kept
    assert len(told) == 1


@pytest.mark.slow
def test_damaged_notes_are_made_anew_and_hostile_ones_make_no_wrong_frame(folder, monkeypatch):
    monkeypatch.setattr(exploring, "_GAMES", 1)  # which is done anew each time
    rom = random_rom(4096, 4)
    wanted = state_after(made(folder, rom), 30)
    (path,) = folder.glob("*.notes")
    good = path.read_bytes()
    for content in (b"", good[:-3], good[::-1], bytes(len(good))):
        path.write_bytes(content)
        made(folder, rom)
        assert path.read_bytes() == good
    path.unlink()
    os.mkfifo(path)
    made(folder, rom)
    assert path.read_bytes() == good
    # Their checksum is right, and what they say is not.
    anywhere = np.random.default_rng(0).integers(1 << 28, size=300) | 0x1000
    for numbers in ([7], [0, 0xFFFF_FFFF], [0, 5], [2, *anywhere]):
        keep(path, np.array(numbers, "<u4").tobytes())
        assert state_after(made(folder, rom), 30) == wanted


@pytest.mark.slow
def test_what_is_met_often_is_translated_the_next_time_but_not_for_ever(folder, monkeypatch):
    rom, known, rounds = random_rom(4096, 5), [], []
    monkeypatch.setattr(exploring, "_GAMES", 0)  # so nothing is known at first
    monkeypatch.setattr(exploring, "_OFTEN", 1)
    for _ in range(6):
        both = [made(folder, rom) for _ in range(2)]
        assert state_after(both[0], 60) == state_after(both[1], 60)
        for each in both:  # as two processes that end at once: that is one round
            each.keep_notes()
        notes = Notes(both[0]._banked, both[0]._key("notes"), folder)
        assert notes.read()
        known.append(notes.spots)
        rounds.append(notes._rounds)
    assert known[0]
    assert all(before <= after for before, after in itertools.pairwise(known))
    assert rounds == sorted(rounds)
    assert rounds[0] == 1
    assert rounds[-1] <= 3


def with_all_facts(scheme: str) -> Cartridge:
    """A cartridge whose start and score use all that the facts can say."""
    rules = {
        "n": "count(board, 1, 2) + old.n",
        "points": "dec(xFF, cFF) + n",
        "over": "old.x80 > 9",
    }
    return Cartridge(
        "random",
        "",
        scheme,
        first_actions=((0, 3), (40, 4)),
        select=Select(
            2,
            "x80 == 1 and xFF == mode or cFF == dec(mode)",
            first=1,
            menu=((5, "xFF != old.xFF and old.x80 != mode"), (40, 2), (10, 1)),
        ),
        start_actions=((40, 1), (17, 2)),
        scoring=Scoring(rules, first={"n": 5}, board=(0, 127)),
    )


def play_guarded(scheme: str, folder: Path, count: int) -> int:
    """How many of some records of any bytes played on, between pages that end the process."""
    rng = np.random.default_rng(len(scheme))
    linked = Game(with_all_facts(scheme), random_rom(SIZES[scheme], 7), folder)
    guards = [Guarded(MACHINE.itemsize, is_before) for is_before in (False, True)]
    held = [Guarded(2, is_before) for is_before in (False, True)]
    inner, played = KEPT_SIZE, 0
    for number in range(count):
        guard, actions = guards[number % 2], held[number // 2 % 2]
        guard.bytes[:] = rng.integers(256)
        guard.bytes[:inner] = np.frombuffer(rng.bytes(inner), np.uint8)
        machine = guard.bytes.view(MACHINE)
        machine["older"] %= MOST_OLDER + 2
        if number % 4:  # where it goes on, so that it gets farther
            machine["pc"] = 0xF000 | int(rng.integers(CODE))
        if number % 3 == 0:
            machine["begun"] = machine["cycle"] = 0
        machine["swchb"] = rng.integers(256)
        actions.bytes[:] = rng.integers(0, 256, 2)
        linked.play_frames(guard.place, actions.place, 2, int(rng.integers(3)))
        played += machine["stop"][0] == FRAME_DONE
        if number % 50 == 0:
            linked.play_start(guard.place)
    return int(played)


@pytest.fixture(scope="module")
def process() -> Iterator[ProcessPoolExecutor]:
    """A process that may crash; then the cases after it fail as well."""
    with in_processes(1) as pool:
        yield pool


@pytest.mark.skipif(sys.platform != "linux", reason="forbids pages as Linux does")
@pytest.mark.parametrize("count", short_and_long((1000,), (100_000,)))
@pytest.mark.parametrize("scheme", SIZES)
def test_no_record_makes_a_linked_cartridge_leave_it(process, scheme, count, folder):
    assert process.submit(play_guarded, scheme, folder, count).result() > count / 100
