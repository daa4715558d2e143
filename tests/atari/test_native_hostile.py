"""What the machine lacks and what goes wrong on it: any bytes as a state, caches, ROMs, compilers.

Whatever bytes a record has, compiled code stays inside it and ends.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import guarded_machine
import numpy as np
import played_alone
import pytest
from lockstep import shows
from machines import made_up_state, short_and_long
from played_alone import play_alone
from promises import promise

from pixelpong.atari import native as machine_code
from pixelpong.atari import tia
from pixelpong.atari.machine import DRAW_FIELD, DRAW_NOTHING, DRAW_PICTURE
from pixelpong.atari.native import NativeCode, cache_folder
from pixelpong.env import cartridge, native
from pixelpong.env.native import NativeConsole, NativeGame
from pixelpong.env.rom import ROM_SIZE, read_rom
from pixelpong.errors import EmulatorError

pytestmark = promise("bounds")


# States.


@pytest.mark.parametrize(("count", "seed"), short_and_long((4000, 3), (1_000_000, 4)))
def test_a_made_up_state_is_played_the_same_without_skipping(tmp_path, count, seed):
    rng = np.random.default_rng(seed)
    plain = NativeGame(read_rom(), tmp_path, is_plain=True)
    skips, plain = NativeConsole(), NativeConsole(0, plain)
    good, played, shown = skips.get_state(), 0, 0
    for number in range(count):
        state = made_up_state(rng)
        if number % 4:
            for name in ("pc", "s", "timer", "timer_shift", "timer_set"):
                state[name] = good[name]
        draws = (DRAW_NOTHING, DRAW_FIELD, DRAW_PICTURE)[number % 3]
        outcomes: list[tuple] = []
        for console, drawn in ((skips, draws), (plain, DRAW_PICTURE)):
            console.set_state(state)
            try:
                done = console.run(b"\2\3", drawn)
                outcomes.append((done, console.get_state().tobytes()))
            except EmulatorError as error:
                outcomes.append((str(error),))
        # What is skipped may have been all that it would have stopped at: reads without effect.
        assert outcomes[0] == outcomes[1] or len(outcomes[1]) == 1, number
        if len(outcomes[1]) > 1:
            played += 1
            if done[2]:
                shown += 1
                assert shows(skips, draws, plain.picture), number
    assert played > count / 6
    assert shown > played / 2


GUARDED = pytest.mark.skipif(sys.platform != "linux", reason="forbids pages as Linux does")


def play_guarded(*arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, guarded_machine.__file__, *arguments]
    return subprocess.run(command, capture_output=True, text=True)


@GUARDED
@pytest.mark.parametrize(
    ("count", "seed"), short_and_long((4000, 0), *((100_000, seed) for seed in range(100, 110)))
)
def test_no_state_makes_compiled_code_leave_the_record(count, seed):
    """On both sides of the record lies a page that ends the process if it is touched."""
    done = play_guarded(str(seed), str(count))
    assert done.returncode == 0, done.stderr
    assert {"played", "stop 2", "stop 3", "stop 5"} <= set(json.loads(done.stdout))


@pytest.mark.slow
@GUARDED
def test_a_byte_outside_the_record_ends_the_process():
    """Of the test above: its guard works."""
    assert play_guarded("0", "30", "short").returncode < 0


def test_hundreds_of_points_are_not_mistaken_for_something_else():
    """What a call returns has a byte for the points."""
    console, refused = NativeConsole(), 0
    console.run(b"\2" * 300, DRAW_NOTHING)
    state = console.get_state()
    for points in range(0, 256, 5):
        state["ram"][0, 13:15] = points, 255 - points
        console.set_state(state)
        try:
            reward, _, frames = console.run(b"\2\2\2", DRAW_NOTHING)
            assert (-128 <= reward <= 127, frames in (0, 3)) == (True, True)
        except EmulatorError:
            assert console.get_state().tobytes() == state.tobytes()
            refused += 1
    assert 0 < refused < 50


# The compiler, the ROM.


@pytest.fixture
def no_game_loaded():
    """Let the game be loaded anew, and leave the process's own alone."""
    native.load_game.cache_clear()
    yield
    native.load_game.cache_clear()


def test_without_a_compiler_for_this_processor_it_is_one_line(no_game_loaded, monkeypatch):
    def refuse(*arguments):
        raise RuntimeError("Unable to find target for this triple (no targets are registered)")

    monkeypatch.setattr(machine_code.llvm.Target, "from_triple", refuse)
    with pytest.raises(EmulatorError, match="LLVM cannot compile the game: Unable to"):
        NativeConsole()


def test_another_rom_is_one_line(tmp_path, monkeypatch, no_game_loaded, capsys):
    path, rom = tmp_path / "pong.bin", read_rom()
    monkeypatch.setenv("ALE_ROMS_DIR", str(tmp_path))
    flipped = rom[:100] + bytes([rom[100] ^ 1]) + rom[101:]
    for content in (None, b"", bytes(ROM_SIZE), rom[:-1], rom + b"\0", flipped, "a folder"):
        if content == "a folder":
            path.unlink()
            path.mkdir()
        elif content is not None:
            path.write_bytes(content)
        for use in (read_rom, NativeConsole):
            with pytest.raises(EmulatorError, match=r"cannot use Pong's ROM in the folder ALE.*\Z"):
                use()
    path.rmdir()
    path.write_bytes(rom)
    assert read_rom() == rom
    assert capsys.readouterr().out == ""


# The cache of machine code.


def made(folder: Path | None, key: bytes = b"key", answer: int = 42) -> bool:
    """Whether the machine code of a small program was kept."""
    ir = f"define i32 @answer() {{\n ret i32 {answer}\n}}\n"
    code = NativeCode(key, lambda: ir, folder)
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
    bits = [bytearray(content) for _ in range(5)]
    for k, each in enumerate(bits):
        each[k * len(content) // 5] ^= 0x10
    for damaged in (b"", content[:-7], bytes(len(content)), other.read_bytes(), *bits):
        path.write_bytes(damaged)
        assert [made(folder) for _ in range(2)] == [False, True], bytes(damaged[:20])
        assert path.read_bytes() == content
    path.unlink()
    path.mkdir()
    assert not made(folder)


@pytest.mark.slow
def test_machine_code_is_for_this_program_this_processor_and_this_llvm(tmp_path, monkeypatch):
    assert [made(tmp_path), made(tmp_path)] == [False, True]
    for owner, name, value in (
        (machine_code, "LEVEL", 2),
        (machine_code.llvmlite, "__version__", "0.0.0"),
        (machine_code.llvm, "get_host_cpu_name", lambda: "x86-64"),
        (machine_code.llvm, "get_host_cpu_features", lambda: SimpleNamespace(flatten=str)),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, value)
            assert not made(tmp_path, answer=3), name
    assert not made(tmp_path, b"another key", answer=3)


def test_the_key_knows_the_rom_the_form_and_every_source(tmp_path, monkeypatch):
    rom = read_rom()
    keys = {native._key(*each) for each in ((rom, False), (rom, True), (rom[:-1] + b"\0", False))}
    assert len(keys) == 3
    sources = tmp_path / "atari"
    shutil.copytree(Path(tia.__file__).parent, sources)
    shutil.copy(cartridge.__file__, tmp_path)
    for name, path in (("tia", sources / "tia.py"), ("cartridge", tmp_path / "cartridge.py")):
        monkeypatch.setattr(native, name, SimpleNamespace(__file__=str(path)))
    assert native._key(rom, False) in keys
    for path in [*sorted(sources.glob("*.py")), tmp_path / "cartridge.py"]:
        path.write_text(path.read_text() + "\n# changed\n")
        key = native._key(rom, False)
        assert key not in keys, path
        keys.add(key)


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_costs_time_alone(tmp_path, monkeypatch):
    (tmp_path / "a file").touch()
    for folder in (tmp_path / "a file", tmp_path / "a file" / "cache", Path("/proc/pixelpong")):
        assert [made(folder) for _ in range(2)] == [False, False]

    def refuse(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(machine_code.os, "fdopen", refuse)
    assert [made(tmp_path / "full") for _ in range(2)] == [False, False]
    assert list((tmp_path / "full").iterdir()) == []


def test_where_machine_code_is_kept(monkeypatch, tmp_path):
    """An empty variable is not the folder that one happens to be in; without a home, nowhere.

    Others could put their machine code into a folder for everybody.
    """

    def refuse():
        raise RuntimeError("Could not determine home directory.")

    home = Path.home()
    names = ("PIXELPONG_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA")
    for platform, values, wanted in (
        ("win32", {"LOCALAPPDATA": str(tmp_path)}, tmp_path / "pixelpong"),
        ("darwin", {}, home / "Library" / "Caches" / "pixelpong"),
        ("linux", {"PIXELPONG_CACHE_DIR": str(tmp_path)}, tmp_path),
        ("linux", {"PIXELPONG_CACHE_DIR": "", "XDG_CACHE_HOME": "/xdg"}, Path("/xdg/pixelpong")),
        ("linux", {}, home / ".cache" / "pixelpong"),
        ("linux", {}, None),
    ):
        monkeypatch.setattr(machine_code.sys, "platform", platform)
        for name in names:
            monkeypatch.delenv(name, raising=False)
        for name, value in values.items():
            monkeypatch.setenv(name, value)
        if wanted is None:
            monkeypatch.setattr(machine_code.Path, "home", refuse)
        assert cache_folder() == wanted, (platform, values)
    assert [made(None) for _ in range(2)] == [False, False]


# Several processes and threads.


@pytest.mark.slow
def test_processes_that_compile_at_the_same_moment_do_not_disturb_each_other(tmp_path):
    """Nor does what a process left that was killed while it wrote."""
    (tmp_path / ".abc.part").write_bytes(b"half")
    environment = {**os.environ, "PIXELPONG_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, played_alone.__file__]
    together = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    outputs = [each.communicate()[0].split() for each in together]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [play_alone(0), "True"]
    assert [output[0] for output in outputs] == [play_alone(0)] * 2
    (kept,) = tmp_path.glob("*.machine")
    assert sorted(tmp_path.iterdir()) == [tmp_path / ".abc.part", kept]


@pytest.mark.slow
def test_threads_compile_and_play_at_the_same_moment_as_alone(tmp_path):
    rom = read_rom()
    with ThreadPoolExecutor(2) as pool:
        games = list(pool.map(lambda _: NativeGame(rom, tmp_path), range(2)))
        together = list(pool.map(play_alone, range(2), games))
    assert together == [play_alone(seed) for seed in range(2)]
    assert len(set(together)) == 2
    assert len(list(tmp_path.iterdir())) == 1


def lets_others_run(call, tries: int) -> bool:
    """Whether another thread, which waits to run, does so during one of the calls."""
    go, has_run = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: go.wait() and has_run.set())
    thread.start()
    before = sys.getswitchinterval()
    sys.setswitchinterval(3600.0)  # from now on, a thread runs until it gives up the lock
    try:
        go.set()
        while tries and not has_run.is_set():
            call()
            tries -= 1
        return tries > 0
    finally:
        sys.setswitchinterval(before)
        thread.join()


def test_a_call_holds_no_lock():
    console = NativeConsole()

    def play_on():
        console.reset()
        console.run(b"\2\3" * 100, DRAW_PICTURE)

    assert lets_others_run(play_on, tries=20_000)  # ends as soon as it is seen
    assert not lets_others_run(lambda: sum(range(10_000)), tries=1000)  # this holds it


def test_more_frames_than_a_call_can_count_are_a_bug():
    with pytest.raises(AssertionError):
        NativeConsole().run(bytes(40_000), DRAW_NOTHING)
