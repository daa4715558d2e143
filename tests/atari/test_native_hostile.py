"""What the machine lacks and what goes wrong on it: any bytes as a state, caches, ROMs, compilers.

Whatever bytes a record has, compiled code stays inside it and ends.
"""

from __future__ import annotations

import ctypes
import dataclasses
import gc
import mmap
import multiprocessing
import os
import re
import sys
import threading
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from consoles import Console
from machines import made_up_state, short_and_long
from promises import promise
from waiting import join, wait_until

from pixelpong.atari.games.rules import open_cartridge
from pixelpong.atari.machine import cache, tia
from pixelpong.atari.machine import native as machine_code
from pixelpong.atari.machine.compiled import Game
from pixelpong.atari.machine.native import NativeCode, Source
from pixelpong.atari.machine.record import (
    DRAW_NOTHING,
    DRAW_PICTURE,
    FRAME_DONE,
    NOT_IMPLEMENTED,
    STATE,
)
from pixelpong.atari.machine.roms import read_rom
from pixelpong.errors import EmulatorError
from pixelpong.pong import cartridge, field
from pixelpong.pong.field import PONG_MACHINE
from pixelpong.pong.native import PONG

pytestmark = promise("bounds")


def in_processes(count: int) -> ProcessPoolExecutor:
    """Processes of their own, so that one may crash."""
    return ProcessPoolExecutor(count, multiprocessing.get_context("spawn"))


# States.


class Guarded:
    """Bytes that touch a forbidden page, behind them or before them."""

    def __init__(self, size: int, is_before: bool):
        pages = -(-size // mmap.PAGESIZE)
        self._memory = mmap.mmap(-1, (pages + 2) * mmap.PAGESIZE)
        whole = np.frombuffer(self._memory, np.uint8)
        start = mmap.PAGESIZE if is_before else (pages + 1) * mmap.PAGESIZE - size
        self.bytes = whole[start : start + size]
        self.place = self.bytes.ctypes.data
        for page in (0, pages + 1):
            place = ctypes.c_void_p(whole.ctypes.data + page * mmap.PAGESIZE)
            no_access = 0
            assert ctypes.CDLL(None).mprotect(place, ctypes.c_size_t(mmap.PAGESIZE), no_access) == 0


def play_guarded(seed: int, count: int, missing: int) -> Counter:
    """How often the game played on and stopped, with states of any bytes, between such pages.

    If bytes are missing, the record has so many less than it should.
    """
    rng, console, seen = np.random.default_rng(seed), Console(), Counter()
    console.run(b"\2" * 300, DRAW_NOTHING)
    good = console.get_state()
    guards = [Guarded(PONG_MACHINE.itemsize, is_before) for is_before in (False, True)]
    buttons = [Guarded(3, is_before) for is_before in (False, True)]
    for number in range(count):
        guard, held = guards[number % 2], buttons[number // 2 % 2]
        guard.bytes[:] = rng.integers(0, 256, dtype=np.uint8)
        state = state_for(rng, number, good).view(np.uint8)
        guard.bytes[missing : missing + state.size] = state
        if not missing:
            guard.bytes.view(PONG_MACHINE)["swchb"] = rng.choice([0x3F, rng.integers(256)])
        held.bytes[:] = rng.integers(0, 256, 3)
        draws = int(rng.integers(3))
        open_cartridge(PONG).play_frames(guard.place + missing, held.place, 3, draws)
        stop = 0 if missing else int(guard.bytes.view(PONG_MACHINE)["stop"][0])
        seen["played" if stop == FRAME_DONE else stop] += 1
    return seen


def state_for(rng: np.random.Generator, number: int, good: np.ndarray) -> np.ndarray:
    """Any bytes; real ones with bits flipped; or any bytes where Pong goes on."""
    if number % 3 == 0:
        return np.frombuffer(rng.bytes(STATE.itemsize), STATE)
    state = good.copy() if number % 3 == 1 else made_up_state(rng)
    raw = state.view(np.uint8)
    if number % 3 == 1:
        for _ in range(int(rng.integers(1, 40))):
            raw[rng.integers(STATE.itemsize)] ^= 1 << rng.integers(8)
    elif number % 4:
        raw[:] = np.frombuffer(rng.bytes(STATE.itemsize), np.uint8)
    state["pc"] = good["pc"]
    if number % 2:
        for name in ("timer", "timer_shift", "timer_set", "s", "cycle"):
            state[name] = good[name]
    return state


@pytest.mark.skipif(sys.platform != "linux", reason="forbids pages as Linux does")
@pytest.mark.parametrize(
    ("count", "seed"), short_and_long((4000, 0), *((100_000, seed) for seed in range(100, 110)))
)
def test_no_state_makes_compiled_code_leave_the_record(count, seed):
    """On both sides of the record lies a page that ends the process if it is touched."""
    with in_processes(1) as pool:
        seen = pool.submit(play_guarded, seed, count, 0).result()
        assert {"played", NOT_IMPLEMENTED} <= set(seen)
        with pytest.raises(BrokenProcessPool):  # its guard works: it knows of a missing byte
            pool.submit(play_guarded, 0, 30, 1).result()


def test_points_may_be_any_bytes():
    """A made-up state's points run over, and the reward says by how much."""
    console = Console()
    console.run(b"\2" * 300, DRAW_NOTHING)
    console.memory[cartridge.LEFT_POINTS] = 255
    assert console.run(b"\2" * 200, DRAW_NOTHING)[0] == 255  # in which the left side wins one


# The compiler, the ROM.


def test_without_a_compiler_for_this_processor_it_is_one_line(tmp_path, monkeypatch):
    refuse = Mock(side_effect=RuntimeError("Unable to find target (no targets are registered)"))
    monkeypatch.setattr(machine_code.llvm.Target, "from_triple", refuse)
    with pytest.raises(EmulatorError, match="LLVM cannot compile the game: Unable to"):
        Game(PONG, read_rom(PONG), tmp_path)


def test_another_rom_is_one_line(tmp_path, monkeypatch):
    path, rom = tmp_path / "pong.bin", read_rom(PONG)
    monkeypatch.setenv("ALE_ROMS_DIR", str(tmp_path))
    flipped = rom[:100] + bytes([rom[100] ^ 1]) + rom[101:]
    for content in (None, b"", bytes(2048), rom[:-1], rom + b"\0", flipped, "a folder"):
        if content == "a folder":
            path.unlink()
            path.mkdir()
        elif content is not None:
            path.write_bytes(content)
        with pytest.raises(EmulatorError, match=r"cannot use Pong's ROM in the folder ALE.*\Z"):
            read_rom(PONG)
    path.rmdir()
    os.mkfifo(path)
    with pytest.raises(EmulatorError, match="is not a regular file"):
        read_rom(PONG)
    path.unlink()
    path.write_bytes(rom)
    assert read_rom(PONG) == rom


def test_the_advice_for_another_rom_installs_the_one_that_was_measured(tmp_path, monkeypatch):
    monkeypatch.delenv("ALE_ROMS_DIR", raising=False)
    monkeypatch.setattr("pixelpong.atari.machine.roms.rom_path", lambda name: tmp_path / "pong.bin")
    (tmp_path / "pong.bin").write_bytes(bytes(2048))
    constraints = Path(__file__).parents[2].joinpath("constraints.txt").read_text("utf-8")
    (pin,) = re.findall(r"^ale-py==.*$", constraints, flags=re.M)
    with pytest.raises(EmulatorError, match=f"pip install --no-deps {pin}$"):
        read_rom(PONG)


# The cache of machine code.


def made(folder: Path | None, key: bytes = b"key", answer: int = 42) -> bool:
    """Whether the machine code of a small program was kept."""
    ir = f"define i32 @answer() {{\n ret i32 {answer}\n}}\n"
    code = NativeCode([Source(key, lambda: ir)], folder)
    gc.collect()
    assert code.function("answer", ctypes.c_int32)() == (42 if code.was_kept else answer)
    return code.was_kept


@pytest.mark.slow
def test_damaged_machine_code_is_made_anew(tmp_path):
    folder = tmp_path / "not" / "yet" / "there"
    assert [made(folder) for _ in range(3)] == [False, True, True]
    (path,) = folder.iterdir()
    content = path.read_bytes()
    made(tmp_path / "other", b"another key")
    (other,) = (tmp_path / "other").iterdir()
    flipped = content[:-9] + bytes([content[-9] ^ 0x10]) + content[-8:]
    path.unlink()
    os.mkfifo(path)
    assert [made(folder) for _ in range(2)] == [False, True]
    for damaged in (b"", content[:-7], bytes(len(content)), other.read_bytes(), flipped):
        path.write_bytes(damaged)
        assert [made(folder) for _ in range(2)] == [False, True], damaged[:20]
        assert path.read_bytes() == content


@pytest.mark.slow
def test_machine_code_is_for_this_program_this_processor_and_this_llvm(tmp_path, monkeypatch):
    assert [made(tmp_path), made(tmp_path)] == [False, True]
    for owner, name, value in (
        (machine_code, "CODE_LEVEL", 1),
        (machine_code, "PASSES", machine_code.PASSES[:2]),
        (machine_code.llvmlite, "__version__", "0.0.0"),
        (machine_code.llvm, "get_host_cpu_name", lambda: "x86-64"),
        (machine_code.llvm, "get_host_cpu_features", lambda: SimpleNamespace(flatten=str)),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, value)
            assert not made(tmp_path, answer=3), name
    assert not made(tmp_path, b"another key", answer=3)


def test_the_key_knows_the_rom_the_form_and_every_source(monkeypatch):
    pong, rom, made = PONG, read_rom(PONG), open_cartridge(PONG)
    folder = Path(tia.__file__).parent
    sources = [*folder.glob("*.py"), Path(cartridge.__file__), Path(field.__file__)]
    other = dataclasses.replace(pong, rows=pong.rows + 1)
    keys = {made._key(form) for form in ("whole True", "whole False")}
    for name, value in (("_rom", rom[:-1] + b"\0"), ("cartridge", other)):
        with monkeypatch.context() as patch:
            patch.setattr(made, name, value)
            keys.add(made._key("whole False"))
    for changed in sources:
        contents = {changed: str(changed).encode()}
        monkeypatch.setattr(Path, "read_bytes", lambda path, new=contents: new.get(path, b""))
        keys.add(made._key("whole False"))
    assert len(keys) == 4 + len(sources)


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_costs_time_alone(tmp_path, monkeypatch):
    (tmp_path / "a file").touch()
    for folder in (tmp_path / "a file", tmp_path / "a file" / "cache", Path("/proc/pixelpong")):
        assert [made(folder) for _ in range(2)] == [False, False]
    full = Mock(side_effect=OSError(28, "No space left on device"))
    monkeypatch.setattr(cache.os, "fdopen", full)
    assert [made(tmp_path / "full") for _ in range(2)] == [False, False]
    assert list((tmp_path / "full").iterdir()) == []


def test_where_machine_code_is_kept(monkeypatch, tmp_path):
    """An empty variable is not the folder that one happens to be in.

    Without a home there is none: others could put theirs into a folder for everybody.
    """
    home = Path.home()
    for platform, values, wanted in (
        ("win32", {"LOCALAPPDATA": str(tmp_path)}, tmp_path / "pixelpong"),
        ("darwin", {}, home / "Library" / "Caches" / "pixelpong"),
        ("linux", {"PIXELPONG_CACHE_DIR": str(tmp_path)}, tmp_path),
        ("linux", {"PIXELPONG_CACHE_DIR": "~/xx"}, home / "xx"),
        ("linux", {"PIXELPONG_CACHE_DIR": "", "XDG_CACHE_HOME": "/xdg"}, Path("/xdg/pixelpong")),
        ("linux", {}, home / ".cache" / "pixelpong"),
    ):
        monkeypatch.setattr(cache.sys, "platform", platform)
        for name in ("PIXELPONG_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
            monkeypatch.delenv(name, raising=False)
        for name, value in values.items():
            monkeypatch.setenv(name, value)
        assert cache.cache_folder() == wanted, (platform, values)
    monkeypatch.setattr(Path, "home", lambda: Path("~no such user").expanduser())
    assert cache.cache_folder() is None
    assert [made(None) for _ in range(2)] == [False, False]


# Several processes and threads.


def play_alone(seed: int, folder: Path | None) -> tuple[bytes, bool]:
    """What the machine shows and remembers in the end; whether its code came from the cache."""
    game = Game(PONG, read_rom(PONG), folder)
    console = Console(game)
    for k in range(300):
        console.run(bytes([(k * k >> seed) % 6] * 8), DRAW_PICTURE)
    return console.picture.tobytes() + console.get_state().tobytes(), game.was_kept


@pytest.mark.slow
@pytest.mark.parametrize("make_pool", [in_processes, ThreadPoolExecutor])
def test_two_that_compile_at_the_same_moment_do_not_disturb_each_other(make_pool, tmp_path):
    """Nor does what a process left that was killed while it wrote."""
    (tmp_path / ".abc.part").write_bytes(b"half")
    with make_pool(2) as pool:
        together = [found for found, _ in pool.map(play_alone, range(2), [tmp_path] * 2)]
    assert together == [play_alone(seed, None)[0] for seed in range(2)]
    assert len(set(together)) == 2
    assert play_alone(0, tmp_path) == (together[0], True)
    (kept,) = tmp_path.glob("*.machine")
    assert sorted(tmp_path.iterdir()) == [tmp_path / ".abc.part", kept]


def test_a_call_lets_other_threads_run():
    console, before = Console(), sys.getswitchinterval()
    go, has_run = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: wait_until(go.is_set) and has_run.set())
    sys.setswitchinterval(3600.0)  # from now on, a thread runs until it gives up the lock
    try:
        thread.start()
        go.set()
        assert sum(range(1_000_000)) > 0
        assert not has_run.is_set()  # that has held it
        for _ in range(20_000):
            if not has_run.is_set():
                console.reset()
                console.run(b"\2\3" * 100, DRAW_PICTURE)
        assert has_run.is_set()
    finally:
        sys.setswitchinterval(before)
        join(thread)
