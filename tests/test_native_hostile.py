"""What strangers bring, and what the machine lacks: states, caches, ROMs, compilers.

A state from a file is refused with one line, or it is played: as ALE plays it, or by ALE itself.
`fault_in` decides; a record that it refuses must not be given to compiled code, which trusts it
(`NativeConsole.set_state` says so; `Emulator.set_state` asks).
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from conftest import patience
from machines import differences, made_up_state, short_and_long, without_faults

from pixelpong.atari import native as machine_code
from pixelpong.atari.machine import DRAW_FIELD, DRAW_NOTHING, DRAW_PICTURE, STATE
from pixelpong.atari.native import NativeCode, cache_folder
from pixelpong.config.protocols import find_protocol
from pixelpong.env import make_emulator, native, pong
from pixelpong.env.ale import AleConsole
from pixelpong.env.native import NativeConsole, NativeGame, NotCoveredError
from pixelpong.env.pong import Emulator, pack_snapshot
from pixelpong.env.rom import ROM_SIZE, read_rom, rom_path
from pixelpong.errors import EmulatorError, EmulatorWarning

V5 = find_protocol("ALE/Pong-v5")
HERE = Path(__file__).parent
ANSWER = "define i32 @answer() {\n ret i32 42\n}\n"


# States.


@pytest.fixture(scope="module")
def good() -> np.ndarray:
    """A state in the middle of a game."""
    console = NativeConsole()
    console.run(b"\2" * 300, DRAW_NOTHING)
    return console.get_state()


def strange_state(rng: np.random.Generator, number: int, good: np.ndarray) -> np.ndarray:
    """Any bytes; a real state with bits flipped; a made-up one without a fault."""
    if number % 3 == 0:
        return np.frombuffer(rng.bytes(STATE.itemsize), STATE)
    if number % 3 == 1:
        state = made_up_state(rng)
        state["pc"] = good["pc"]
        return state
    state = good.copy()
    raw = state.view(np.uint8)
    for _ in range(int(rng.integers(1, 8))):
        raw[rng.integers(raw.size)] ^= 1 << rng.integers(8)
    return state if number % 2 else without_faults(rng, state)


def future_of(emulator: Emulator) -> list:
    """What the next steps pay and show."""
    seen = []
    for action in (2, 3, 2, 0, 3):
        reward = emulator.step(action, [0.0, 0.9, 0.9, 0.1, 0.9])
        seen.append((reward, emulator.is_over, emulator.num_frames, emulator.screen.tobytes()))
    return [*seen, emulator.get_state()]


def play_snapshot(emulator: Emulator, snapshot: bytes) -> str:
    try:
        emulator.set_state(snapshot)
    except EmulatorError as error:
        assert "\n" not in str(error)
        return "refused"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            for _ in range(2):
                emulator.step(2, [0.5] * 5)
            emulator.get_state()
        except EmulatorError as error:  # ALE is in a state that Pong never reaches
            assert "\n" not in str(error)
            return "refused later"
    assert all(each.category is EmulatorWarning for each in caught)
    return "by ALE" if caught else "played"


def restored(snapshot: bytes) -> Emulator:
    emulator = Emulator(V5, NativeConsole())
    emulator.set_state(snapshot)
    return emulator


@pytest.mark.parametrize(("count", "seed"), short_and_long((400, 0), (100_000, 1)))
def test_strange_snapshots_are_refused_or_played_and_leave_nothing_behind(
    good, monkeypatch, count, seed
):
    """A good one plays as ever in between."""
    spare = AleConsole()  # making one takes milliseconds
    monkeypatch.setattr(pong, "make_console", lambda emulator: spare)
    rng = np.random.default_rng(seed)
    native_console = NativeConsole()
    wanted = future_of(restored(pack_snapshot(2, 300, good)))
    seen = {"refused": 0, "played": 0, "by ALE": 0, "refused later": 0}
    emulator = Emulator(V5, native_console)
    for number in range(count):
        state = strange_state(rng, number, good)
        snapshot = pack_snapshot(int(rng.integers(7)), int(rng.integers(120_000)), state)
        if number % 7 == 0:
            snapshot = bytes(rng.bytes(int(rng.integers(300))))
        elif number % 7 == 1:
            place = int(rng.integers(8 * len(snapshot)))
            damaged = bytearray(snapshot)
            damaged[place // 8] ^= 1 << place % 8
            snapshot = bytes(damaged)
        outcome = play_snapshot(emulator, snapshot)
        seen[outcome] += 1
        if emulator.console is not native_console or number % 50 == 0:
            emulator = Emulator(V5, native_console)
            emulator.set_state(pack_snapshot(2, 300, good))
            assert future_of(emulator) == wanted, number
    assert min(seen["refused"], seen["played"], seen["by ALE"] + seen["refused later"]) > 20, seen


@pytest.mark.parametrize(
    ("count", "seed"), short_and_long((2000, 2), *((100_000, seed) for seed in range(100, 110)))
)
def test_a_made_up_state_is_played_as_ale_plays_it_or_stops(good, count, seed):
    """It brings out what Pong alone never shows, in registers, memory and addresses.

    States go on where Pong's frames do, with the paddles emptied, as between any two of its frames.
    (A shorter frame leaves rows of older pictures, not the same ones in both; and with paddles
    that charge since long ago, ALE's unsigned numbers wrap around.)
    """
    rng = np.random.default_rng(seed)
    native_console, ale, played = NativeConsole(), AleConsole(), 0
    for number in range(count):
        state = made_up_state(rng)
        if number % 2:
            state = good.copy()
            state["ram"][0, rng.integers(0, 128, 30)] = rng.integers(0, 256, 30)
            for name in ("a", "x", "y", "tia", "old_grp", "old_enabl", "position", "collisions"):
                state[name] = rng.integers(0, 256, state[name].shape)
            state["p"] = rng.integers(256)
        for name in ("pc", "s", "timer", "timer_shift", "timer_set"):
            state[name] = good[name]
        state["tia"][0, 1] |= 0x80
        state = without_faults(rng, state)
        actions = bytes(rng.integers(0, 6, 2).tolist())
        native_console.set_state(state)
        try:
            done = native_console.run(actions, DRAW_PICTURE)
        except NotCoveredError:
            assert native_console.get_state().tobytes() == state.tobytes()
            continue
        ale.set_state(state)
        assert ale.run(actions, DRAW_PICTURE) == done
        ours, theirs = native_console.get_state(), ale.get_state()
        assert ours.tobytes() == theirs.tobytes(), differences(ours, theirs)
        assert done[2] == 0 or np.array_equal(native_console.picture, ale.picture)
        played += 1
    assert played > count / 4


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
            except NotCoveredError as error:
                outcomes.append([str(error)])
                continue
            drawn = b""
            if done[2] and draws == DRAW_PICTURE:
                drawn = console.picture.tobytes()
            elif done[2] and draws == DRAW_FIELD:
                drawn = console.machine["field"].tobytes()
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
def test_no_state_makes_compiled_code_leave_the_record_or_loop(count, seed):
    """On both sides of the record lies a page that ends the process if it is touched."""
    done = play_guarded(str(seed), str(count))
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen.pop("slowest") < 0.05 * patience()
    assert {"played", "stop 2", "stop 4", "stop 5"} <= set(seen)


@GUARDED
def test_a_byte_outside_the_record_ends_the_process():
    """Of the test above: its guard works."""
    assert play_guarded("0", "30", "short").returncode < 0


def test_hundreds_of_points_are_not_mistaken_for_something_else(good):
    """What a call returns has a byte for the points."""
    console = NativeConsole()
    refused = 0
    for points in range(0, 256, 5):
        state = good.copy()
        state["ram"][0, 13:15] = points, 255 - points
        console.set_state(state)
        try:
            reward, _, frames = console.run(b"\2\2\2", DRAW_NOTHING)
        except NotCoveredError:
            refused += 1
            continue
        assert -128 <= reward <= 127
        assert frames in (0, 3)
    assert refused < 50


# The game goes on with ALE.


class Stops:
    """A console that stops being able to play, as at an address that was not translated."""

    def __init__(self, after: int):
        self.console, self.left = NativeConsole(), after
        self.name, self.picture = self.console.name, self.console.picture

    def __getattr__(self, name):
        return getattr(self.console, name)

    def run(self, actions, draws):
        self.left -= 1
        if self.left < 0:
            raise NotCoveredError("the game jumped to an address without known code")
        return self.console.run(actions, draws)


@pytest.mark.parametrize("after", [0, 1, 57])
def test_where_the_native_emulator_stops_ale_goes_on_to_the_same_bits(after):
    ale = make_emulator(V5, "ale")
    emulator = Emulator(V5, Stops(after))
    screen = emulator.screen
    rng = np.random.default_rng(5)
    for number in range(100):
        action, draws = int(rng.integers(6)), rng.random(5).tolist()
        if number == after:
            with pytest.warns(
                EmulatorWarning, match="ALE plays, forty times slower: .*without known"
            ):
                reward = emulator.step(action, draws)
        else:
            reward = emulator.step(action, draws)
        assert reward == ale.step(action, draws)
        assert np.array_equal(screen, ale.screen)  # the same array all along
        assert emulator.get_state() == ale.get_state()
    assert emulator.console.name == "ale"
    emulator.reset()
    ale.reset()
    assert np.array_equal(screen, ale.screen)


@pytest.fixture
def no_game_loaded():
    """Let the game be loaded anew, and leave the process's own alone."""
    native._load_game.cache_clear()
    yield
    native._load_game.cache_clear()


def test_without_a_compiler_for_this_processor_ale_plays(no_game_loaded, monkeypatch):
    def refuse(*arguments):
        raise RuntimeError("Unable to find target for this triple (no targets are registered)")

    monkeypatch.setattr(machine_code.llvm.Target, "from_triple", refuse)
    with pytest.warns(EmulatorWarning) as caught:
        emulator = make_emulator(V5)
    (warning,) = caught
    assert str(warning.message).startswith(
        "ALE plays, forty times slower: the native emulator can't (LLVM cannot compile on this "
        "machine"
    )
    assert "\n" not in str(warning.message)
    assert warning.filename == __file__
    assert emulator.console.name == "ale"
    assert future_of(emulator) == future_of(make_emulator(V5, "ale"))


@pytest.mark.parametrize(
    "kind", ["missing", "a folder", "empty", "zeros", "short", "long", "one bit"]
)
def test_another_rom_is_one_line(tmp_path, monkeypatch, kind, no_game_loaded, capsys):
    path, rom = tmp_path / "pong.bin", read_rom()
    contents = {
        "empty": b"", "zeros": bytes(ROM_SIZE), "short": rom[:-1], "long": rom + b"\0",
        "one bit": rom[:100] + bytes([rom[100] ^ 1]) + rom[101:],
    }  # fmt: skip
    if kind == "a folder":
        path.mkdir()
    elif kind != "missing":
        path.write_bytes(contents[kind])
    monkeypatch.setenv("ALE_ROMS_DIR", str(tmp_path))
    for use in (read_rom, AleConsole, NativeConsole, lambda: make_emulator(V5)):
        with pytest.raises(
            EmulatorError, match="expected Pong's ROM in the folder in ALE"
        ) as caught:
            use()
        assert "\n" not in str(caught.value)
    assert capsys.readouterr().out == ""


def test_the_rom_is_found_without_loading_ale_py():
    script = (
        "import sys; from pixelpong.env.rom import read_rom\n"
        "print(len(read_rom()), 'ale_py' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == [str(ROM_SIZE), "False"]
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


def change_a_bit(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :]


DAMAGE = {
    "empty": lambda content: b"",
    "cut off": lambda content: content[:-7],
    "text": lambda content: b"<html>not found</html>" * 20,
    "zeros": lambda content: bytes(len(content)),
    "longer": lambda content: content + b"\0",
    **{
        f"bit {k}": lambda content, k=k: change_a_bit(content, k * len(content) // 10)
        for k in range(10)
    },
}


@pytest.mark.parametrize("kind", [*DAMAGE, "of another key", "a folder"])
def test_damaged_machine_code_is_made_anew(tmp_path, kind):
    made(tmp_path)
    (path,) = tmp_path.iterdir()
    content = path.read_bytes()
    made(tmp_path / "other", b"another key")
    (other,) = (tmp_path / "other").iterdir()
    if kind == "a folder":
        path.unlink()
        path.mkdir()
        assert not made(tmp_path).was_kept
        return
    path.write_bytes(other.read_bytes() if kind == "of another key" else DAMAGE[kind](content))
    assert [made(tmp_path).was_kept for _ in range(2)] == [False, True]
    assert path.read_bytes() == content


@pytest.mark.parametrize("kind", ["a file", "below a file", "read-only", "full"])
def test_a_cache_that_cannot_be_written_costs_time_alone(tmp_path, monkeypatch, kind):
    folder = tmp_path / "cache"
    if kind == "read-only":
        folder.mkdir()
        folder.chmod(0o500)
        if os.access(folder, os.W_OK):  # root may write everywhere, but not there
            folder = Path("/proc/pixelpong")
    elif kind == "full":

        def refuse(*arguments, **options):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(machine_code.os, "fdopen", refuse)
    else:
        folder.write_text("a file")
        folder = folder if kind == "a file" else folder / "cache"
    assert [made(folder).was_kept for _ in range(2)] == [False, False]
    if kind == "full":
        assert list(folder.iterdir()) == []


def test_where_machine_code_is_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("PIXELPONG_CACHE_DIR", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.setenv("PIXELPONG_CACHE_DIR", "")  # not the folder that one happens to be in
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setattr(machine_code.sys, "platform", "linux")
    assert cache_folder() == tmp_path / "xdg" / "pixelpong"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "pixelpong"
    monkeypatch.setattr(machine_code.sys, "platform", "darwin")
    assert cache_folder() == Path.home() / "Library" / "Caches" / "pixelpong"
    monkeypatch.setattr(machine_code.sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert cache_folder() == tmp_path / "local" / "pixelpong"


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
    futures = {future_of(Emulator(V5, NativeConsole(0, game)))[-1] for game in games}
    assert (len(futures), len(list(tmp_path.iterdir()))) == (1, 1)


# Python's lock.


def longest_pause(call) -> tuple[float, float]:
    """Run it in this thread; how long another thread stood still at most, and how long it took."""
    longest, is_done, has_begun = [0.0], threading.Event(), threading.Event()

    def go_on():
        last = time.perf_counter()
        while not is_done.is_set():
            now = time.perf_counter()
            longest[0], last = max(longest[0], now - last), now
            has_begun.set()

    thread = threading.Thread(target=go_on)
    thread.start()
    has_begun.wait()
    longest[0], begin = 0.0, time.perf_counter()
    call()
    seconds = time.perf_counter() - begin
    is_done.set()
    thread.join()
    return longest[0], seconds


def lets_others_run(call) -> bool:
    """Whether another thread runs during a call, if it gets a core: a busy machine has none."""
    pauses = (longest_pause(call) for _ in range(50))
    return any(pause < seconds / 2 for pause, seconds in pauses)


def test_a_call_holds_no_lock():
    console = NativeConsole()

    def play():
        console.reset()
        console.run(b"\2\3" * 8_000, DRAW_PICTURE)

    assert lets_others_run(play)
    assert longest_pause(lambda: sum(range(5_000_000)))[0] > 0.02  # this holds it


def test_compiling_holds_no_lock(tmp_path):
    lines = "\n".join(f" %v{k + 1} = mul i32 %v{k}, {k}" for k in range(8_000))
    ir = f"define i32 @answer(i32 %v0) {{\n{lines}\n ret i32 %v8000\n}}\n"
    folders = iter(range(50))
    assert lets_others_run(lambda: NativeCode(b"long", lambda: ir, tmp_path / str(next(folders))))


def play_alone(seed: int) -> str:
    """A hash of all that a machine of one's own shows and remembers."""
    console, digest = NativeConsole(), hashlib.sha256()
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
