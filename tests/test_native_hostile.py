"""What the machine lacks and what goes wrong on it: any bytes as a state, caches, ROMs, compilers.

Whatever bytes a record has, compiled code stays inside it and ends.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from machines import made_up_state, short_and_long

from pixelpong.atari import native as machine_code
from pixelpong.atari.machine import DRAW_FIELD, DRAW_NOTHING, DRAW_PICTURE
from pixelpong.atari.native import NativeCode, cache_folder
from pixelpong.env import native
from pixelpong.env.native import NativeConsole, NativeGame
from pixelpong.env.rom import ROM_SIZE, read_rom, rom_path
from pixelpong.errors import EmulatorError

HERE = Path(__file__).parent
ANSWER = "define i32 @answer() {\n ret i32 42\n}\n"


# States.


@pytest.mark.parametrize(("count", "seed"), short_and_long((6000, 3), (1_000_000, 4)))
def test_a_made_up_state_is_played_the_same_without_skipping(tmp_path, count, seed):
    rng = np.random.default_rng(seed)
    plain = NativeGame(read_rom(), tmp_path, is_plain=True)
    consoles = NativeConsole(), NativeConsole(0, plain)
    good, played = consoles[0].get_state(), 0
    for number in range(count):
        state = made_up_state(rng)
        if number % 4:
            for name in ("pc", "s", "timer", "timer_shift", "timer_set"):
                state[name] = good[name]
        draws = (DRAW_NOTHING, DRAW_FIELD, DRAW_PICTURE)[number % 3]
        outcomes = []
        for console in consoles:
            console.set_state(state)
            try:
                done = console.run(b"\2\3", draws)
            except EmulatorError as error:
                outcomes.append([str(error)])
                continue
            drawn = b""
            if done[2] and draws != DRAW_NOTHING:
                field = console.machine["field"]
                drawn = (console.picture if draws == DRAW_PICTURE else field).tobytes()
            outcomes.append([done, console.get_state().tobytes(), drawn])
        # What is skipped may have been all that it would have stopped at: reads without effect.
        assert outcomes[0] == outcomes[1] or len(outcomes[1]) == 1, number
        played += len(outcomes[1]) > 1
    assert played > count / 6


GUARDED = pytest.mark.skipif(sys.platform != "linux", reason="forbids pages as Linux does")


def play_guarded(*arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, str(HERE / "guarded_machine.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


@GUARDED
@pytest.mark.parametrize(
    ("count", "seed"), short_and_long((6000, 0), *((100_000, seed) for seed in range(100, 110)))
)
def test_no_state_makes_compiled_code_leave_the_record(count, seed):
    """On both sides of the record lies a page that ends the process if it is touched."""
    done = play_guarded(str(seed), str(count))
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen.pop("slowest") < 5.0  # seconds of the processor
    assert {"played", "stop 2", "stop 3", "stop 5"} <= set(seen)


@GUARDED
def test_a_byte_outside_the_record_ends_the_process():
    """Of the test above: its guard works."""
    assert play_guarded("0", "30", "short").returncode < 0


def test_hundreds_of_points_are_not_mistaken_for_something_else():
    """What a call returns has a byte for the points."""
    console = NativeConsole()
    console.run(b"\2" * 300, DRAW_NOTHING)
    good, refused = console.get_state(), 0
    for points in range(0, 256, 5):
        state = good.copy()
        state["ram"][0, 13:15] = points, 255 - points
        console.set_state(state)
        try:
            reward, _, frames = console.run(b"\2\2\2", DRAW_NOTHING)
        except EmulatorError as error:
            assert "expected a state that a game of Pong reaches" in str(error)
            assert console.get_state().tobytes() == state.tobytes()
            refused += 1
            continue
        assert -128 <= reward <= 127
        assert frames in (0, 3)
    assert refused < 50


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
    with pytest.raises(EmulatorError, match="expected LLVM to compile the game, got Unable to"):
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
            with pytest.raises(
                EmulatorError, match=r"expected Pong's ROM in the folder in ALE.*\Z"
            ):
                use()
    assert capsys.readouterr().out == ""


def test_the_rom_is_found_without_loading_ale_py():
    code = "import sys; from pixelpong.env.rom import read_rom; read_rom(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "ale_py" not in done.stdout.split()
    assert rom_path().read_bytes() == read_rom()


# The cache of machine code.


def made(folder: Path | None, key: bytes = b"key") -> NativeCode:
    code = NativeCode(key, lambda: ANSWER, folder)
    assert code.function("answer", ctypes.c_int32)() == 42
    return code


def test_machine_code_is_kept_and_taken_from_the_cache(tmp_path):
    folder = tmp_path / "not" / "yet" / "there"
    assert [made(folder).was_kept for _ in range(3)] == [False, True, True]
    (path,) = folder.iterdir()
    assert path.suffix == ".machine"


def test_damaged_machine_code_is_made_anew(tmp_path):
    made(tmp_path)
    (path,) = tmp_path.iterdir()
    content = path.read_bytes()
    made(tmp_path / "other", b"another key")
    (other,) = (tmp_path / "other").iterdir()
    bits = [bytearray(content) for _ in range(10)]
    for k, each in enumerate(bits):
        each[k * len(content) // 10] ^= 0x10
    text, zeros = b"<html>not found</html>" * 20, bytes(len(content))
    others = b"", content[:-7], text, zeros, content + b"\0", other.read_bytes()
    for damaged in (*others, *bits):
        path.write_bytes(damaged)
        kept = [NativeCode(b"key", lambda: ANSWER, tmp_path).was_kept for _ in range(2)]
        assert kept == [False, True], bytes(damaged[:20])
        assert path.read_bytes() == content
    path.unlink()
    path.mkdir()
    assert not made(tmp_path).was_kept


def test_a_cache_that_cannot_be_written_costs_time_alone(tmp_path, monkeypatch):
    (tmp_path / "a file").touch()
    read_only, full = tmp_path / "read-only", tmp_path / "full"
    read_only.mkdir(0o500)
    if os.access(read_only, os.W_OK):  # root may write everywhere, but not there
        read_only = Path("/proc/pixelpong")
    for folder in (tmp_path / "a file", tmp_path / "a file" / "cache", read_only):
        assert [made(folder).was_kept for _ in range(2)] == [False, False]

    def refuse(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(machine_code.os, "fdopen", refuse)
    assert [made(full).was_kept for _ in range(2)] == [False, False]
    assert list(full.iterdir()) == []


def test_where_machine_code_is_kept(monkeypatch, tmp_path):
    """An empty variable is not the folder that one happens to be in."""
    names = ("PIXELPONG_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA")
    for platform, values, wanted in (
        ("linux", {"PIXELPONG_CACHE_DIR": str(tmp_path)}, tmp_path),
        ("linux", {"PIXELPONG_CACHE_DIR": "", "XDG_CACHE_HOME": "/xdg"}, "/xdg/pixelpong"),
        ("linux", {}, Path.home() / ".cache" / "pixelpong"),
        ("darwin", {}, Path.home() / "Library" / "Caches" / "pixelpong"),
        ("win32", {"LOCALAPPDATA": str(tmp_path)}, tmp_path / "pixelpong"),
    ):
        monkeypatch.setattr(machine_code.sys, "platform", platform)
        for name in names:
            monkeypatch.delenv(name, raising=False)
        for name, value in values.items():
            monkeypatch.setenv(name, value)
        assert cache_folder() == Path(wanted), (platform, values)


def test_without_a_home_nothing_is_kept(monkeypatch):
    """Not in a folder for everybody either: others could put their machine code there."""
    for name in ("PIXELPONG_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)

    def refuse():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(machine_code.Path, "home", refuse)
    assert cache_folder() is None
    assert [made(None).was_kept for _ in range(2)] == [False, False]


@pytest.mark.slow
def test_processes_that_compile_at_the_same_moment_do_not_disturb_each_other(tmp_path):
    """Nor does what a process left that was killed while it wrote."""
    (tmp_path / ".abc.part").write_bytes(b"half")
    environment = {**os.environ, "PIXELPONG_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, __file__]
    together = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    outputs = [each.communicate()[0] for each in together]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    played, was_kept = done.stdout.split()
    assert (played, was_kept) == (play_alone(0), "True")
    assert [output.split()[0] for output in outputs] == [played] * 2
    (kept,) = tmp_path.glob("*.machine")
    assert sorted(tmp_path.iterdir()) == [tmp_path / ".abc.part", kept]


@pytest.mark.slow
def test_threads_that_compile_at_the_same_moment_do_not_disturb_each_other(tmp_path):
    rom = read_rom()
    with ThreadPoolExecutor(2) as pool:
        games = list(pool.map(lambda _: NativeGame(rom, tmp_path), range(2)))
    futures = {play_alone(0, game) for game in games}
    assert (len(futures), len(list(tmp_path.iterdir()))) == (1, 1)


# Python's lock.


def lets_others_run(call) -> bool:
    """Whether another thread runs during one of many calls."""

    def run_after(go, has_run):
        go.wait()
        has_run.set()

    before = sys.getswitchinterval()
    sys.setswitchinterval(60.0)  # from now on, a thread runs until it gives up the lock
    try:
        for _ in range(200):
            go, has_run = threading.Event(), threading.Event()
            thread = threading.Thread(target=run_after, args=(go, has_run))
            thread.start()
            go.set()
            call()
            is_seen = has_run.is_set()
            thread.join()
            if is_seen:
                return True
        return False
    finally:
        sys.setswitchinterval(before)


def test_a_call_holds_no_lock():
    console = NativeConsole()

    def play():
        console.reset()
        console.run(b"\2\3" * 8_000, DRAW_PICTURE)

    assert lets_others_run(play)
    assert not lets_others_run(lambda: sum(range(10_000)))  # this holds it


def test_compiling_holds_no_lock(tmp_path):
    lines = "\n".join(f" %v{k + 1} = mul i32 %v{k}, {k}" for k in range(2_000))
    ir = f"define i32 @answer(i32 %v0) {{\n{lines}\n ret i32 %v2000\n}}\n"
    folders = itertools.count()
    assert lets_others_run(lambda: NativeCode(b"long", lambda: ir, tmp_path / str(next(folders))))


def play_alone(seed: int, game: NativeGame | None = None) -> str:
    """A hash of all that a machine of one's own shows and remembers."""
    console, digest = NativeConsole(0, game), hashlib.sha256()
    rng = np.random.default_rng(seed)
    for _ in range(400):
        console.run(bytes(rng.integers(0, 6, 8).tolist()), DRAW_PICTURE)
        digest.update(console.picture.tobytes() + console.get_state().tobytes())
    return digest.hexdigest()


def test_two_machines_in_two_threads_play_as_alone():
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(play_alone, range(3)))
    assert together == [play_alone(seed) for seed in range(3)]


def test_more_frames_than_a_call_can_count_are_a_bug():
    with pytest.raises(AssertionError):
        NativeConsole().run(bytes(40_000), DRAW_NOTHING)


if __name__ == "__main__":
    print(play_alone(0), native.load_game().was_kept)
