"""What our emulator costs beside bare ALE, what its first use costs, and what its forms gain.

    python benchmarks/emulator.py             # a table, after some three minutes
    python benchmarks/emulator.py --json      # as benchmarks/emulator.json; the table on stderr

Every figure is CPU time of one core, but where it says wall. Other programs disturb, so each form
is measured in turn with bare ALE, which steps four frames as `act` does and reads no picture; a
ratio is to the mean of ALE's time just before and just after, and the median of the rounds counts.
A step is four frames; what is drawn is its last one.

Covered: steps, from compiled code, through ctypes and as the package steps; two threads; first use
and later processes; snapshots; what skipping and LLVM's second level gain; lines.
Not covered: training (`pixelpong bench throughput`).
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import functools
import hashlib
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FRAME_SKIP, MOVES = 4, 1000
DRAWS = ("nothing", "field", "picture")
FORMS = {"skipping": False, "plain": True}
LEVELS = (1, 2)
QUIET_STEP = 180e-6
"""Seconds that a step of bare ALE takes a quiet core of machine A. On a busy machine a second of
CPU time is worth less, so beside the first use stands what it would take there."""

Report = dict[str, Any]
Play = Callable[[], int]
"""Plays some steps and returns how many."""


# --- steps ------------------------------------------------------------------------------------


def bare_ale(moves: Any) -> Play:
    """ALE alone, as `pixelpong bench throughput` measures it."""
    import ale_py

    from pixelpong.env.rom import rom_path

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    ale.setInt("frame_skip", FRAME_SKIP)
    ale.loadROM(rom_path())
    ale.reset_game()
    start = ale.cloneState()
    numbers = [{2: 3, 3: 4}[move] for move in moves[:100].tolist()]  # ALE's RIGHT and LEFT

    def play() -> int:
        for number in numbers:
            ale.act(number)
            if ale.game_over():
                ale.restoreState(start)
        return len(numbers)

    return play


@functools.cache
def compile_steps(address: int) -> Any:
    """A compiled loop of steps, which calls the game by its address and holds no lock."""
    import numba

    number, pointer = ctypes.c_int32, ctypes.c_void_p
    play_frames = ctypes.CFUNCTYPE(number, pointer, pointer, number, number)(address)

    @numba.njit(nogil=True)  # type: ignore[untyped-decorator]
    def play_steps(machine, start, actions, frame_skip, draws):  # type: ignore[no-untyped-def]
        for step in range(len(actions) // frame_skip):
            held = actions.ctypes.data + step * frame_skip
            answer = play_frames(machine.ctypes.data, held, frame_skip, draws)
            if answer < 0:
                return -answer
            if answer >> 8 & 1:  # the game is over: the next one begins
                machine[: len(start)] = start
        return 0

    return play_steps


class Machine:
    """A machine of our own at the start of a game, stepped by a compiled loop."""

    def __init__(self, address: int, moves: Any) -> None:
        import numpy as np

        from pixelpong.atari.machine import STATE
        from pixelpong.env.native import NativeConsole

        self.address, self.actions = address, np.repeat(moves, FRAME_SKIP)
        self.record = NativeConsole().machine.view(np.uint8)
        self.start = self.record[: STATE.itemsize].copy()

    def play(self, draws: int) -> int:
        """Play as many steps as there are moves."""
        about = self.record, self.start, self.actions, FRAME_SKIP, draws
        stop = compile_steps(self.address)(*about)
        assert stop == 0, "it met what it does not cover"
        return len(self.actions) // FRAME_SKIP


def through_ctypes(moves: Any, draws: int) -> Play:
    """Steps of `NativeConsole`, called from Python."""
    from pixelpong.env.native import NativeConsole

    console, held = NativeConsole(), [bytes([move] * FRAME_SKIP) for move in moves.tolist()]

    def play() -> int:
        for actions in held:
            if console.run(actions, draws)[1]:
                console.reset()
        return len(held)

    return play


def as_the_package_steps(moves: Any, emulator: str) -> Play:
    """Steps of the package's `Emulator`, sticky actions and all; the full picture is drawn."""
    from pixelpong.config.protocols import find_protocol
    from pixelpong.env import make_emulator
    from pixelpong.seeding import make_rng

    game, moves = make_emulator(find_protocol("ALE/Pong-v5"), emulator), moves[:200].tolist()
    coins = make_rng(0, "bench").random((len(moves), 1 + FRAME_SKIP)).tolist()

    def play() -> int:
        for move, draws in zip(moves, coins, strict=True):
            game.step(move, draws)
            if game.is_over:
                game.reset()
        return len(moves)

    return play


def measure_steps(rows: dict[str, Play], ale: Play, rounds: int, seconds: float) -> Report:
    """Microseconds of a step, and how many times faster than ALE that is."""
    for play in (ale, *rows.values()):
        play()  # compiles, fills caches
    times: dict[str, list[float]] = {name: [] for name in rows}
    ratios: dict[str, list[float]] = {name: [] for name in rows}
    limits = [microseconds(ale, seconds)]
    for _, (name, play) in itertools.product(range(rounds), rows.items()):
        times[name].append(microseconds(play, seconds))
        limits.append(microseconds(ale, seconds))
        ratios[name].append(statistics.mean(limits[-2:]) / times[name][-1])
    report: Report = {"bare ALE": {"microseconds": statistics.median(limits)}}
    for name in rows:
        report[name] = {
            "microseconds": statistics.median(times[name]),
            "ratio": statistics.median(ratios[name]),
            "spread": [min(ratios[name]), max(ratios[name])],
        }
    return report


def microseconds(play: Play, seconds: float) -> float:
    """CPU time of a step."""
    begin, steps = time.process_time(), 0
    while (taken := time.process_time() - begin) < seconds:
        steps += play()
    return taken / steps * 1e6


# --- threads ----------------------------------------------------------------------------------


def measure_threads(address: int, moves: Any, pairs: int) -> Report:
    """Steps a second of two threads ÷ those of one, by the wall clock.

    Both cores must be free for that, which on a shared machine they are for moments only. So many
    short measurements are made, and the quickest of each kind compared; the median of all pairs
    stands beside it.
    """
    machines = [Machine(address, moves) for _ in range(2)]

    def go(count: int) -> tuple[float, float]:
        """Wall and CPU seconds."""
        threads = [threading.Thread(target=each.play, args=(1,)) for each in machines[:count]]
        wall, cpu = time.perf_counter(), time.process_time()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - wall, time.process_time() - cpu

    found = [(go(1), go(2)) for _ in range(pairs)]
    quickest = [min(pair[k][0] for pair in found) for k in range(2)]
    return {
        "ratio": 2 * quickest[0] / quickest[1],
        "median_ratio": statistics.median(2 * one[0] / two[0] for one, two in found),
        "ratio_of_cpu_time": statistics.median(4 * one[1] / two[1] for one, two in found),
        "pairs": pairs,
        "steps": len(moves),
        **longest_pause(machines[0]),
    }


def longest_pause(machine: Machine) -> Report:
    """How long Python's lock keeps a thread waiting while another one is in one long call."""
    import numpy as np

    actions, machine.actions = machine.actions, np.tile(machine.actions, 50)
    thread = threading.Thread(target=machine.play, args=(1,))
    begin = last = time.perf_counter()
    pause = 0.0
    thread.start()
    while thread.is_alive():
        now = time.perf_counter()
        pause, last = max(pause, now - last), now
    machine.actions = actions
    return {"longest_pause_ms": 1000 * pause, "of_a_call_of_ms": 1000 * (last - begin)}


# --- first use --------------------------------------------------------------------------------


@contextlib.contextmanager
def timed(found: dict[str, float], **functions: tuple[Any, str]) -> Iterator[None]:
    """Add up the CPU seconds of functions, by name, while they are used."""
    with contextlib.ExitStack() as stack:
        for name, (owner, function) in functions.items():
            real = getattr(owner, function)
            found[name] = 0.0
            stack.callback(setattr, owner, function, real)
            setattr(owner, function, _watched(real, found, name))
        yield


def _watched(real: Callable[..., Any], found: dict[str, float], name: str) -> Callable[..., Any]:
    @functools.wraps(real)
    def call(*args: Any, **options: Any) -> Any:
        begin = time.process_time()
        try:
            return real(*args, **options)
        finally:
            found[name] += time.process_time() - begin

    return call


def load_in_this_process() -> Report:
    """What a process does to play: imports, then `NativeConsole`. Prints one JSON object."""
    seconds: dict[str, float] = {"interpreter": time.process_time()}

    def lap(name: str, begin: tuple[float, float]) -> tuple[float, float]:
        now = time.perf_counter(), time.process_time()
        seconds[name], seconds[f"{name}_wall"] = now[1] - begin[1], now[0] - begin[0]
        return now

    mark = (time.perf_counter(), time.process_time())
    import numpy  # noqa: F401 - what is timed

    mark = lap("import_numpy", mark)
    import llvmlite.binding as llvm

    mark = lap("import_llvmlite", mark)
    from pixelpong.env import native

    mark = lap("import_emulator", mark)
    functions = {
        "ir": (native, "make_ir"),
        "read_rom": (native, "read_rom"),
        "key": (native, "_key"),
        "parse": (llvm, "parse_assembly"),
        "optimise": (llvm.ModulePassManager, "run"),
        "machine_code": (llvm.TargetMachine, "emit_object"),
        "link": (llvm.ExecutionEngine, "finalize_object"),
        "code": (native, "NativeCode"),
        "start_of_game": (native.NativeGame, "switch_on"),
    }
    with timed(seconds, **functions):
        mark = (time.perf_counter(), time.process_time())
        native.NativeConsole()
        lap("console", mark)
    return {**seconds, "was_kept": native.load_game().was_kept}


def measure_first_use(rounds: int, ale: Play) -> Report:
    """Fresh processes, with an empty cache and with what the one before left there.

    ``ale_step`` is a step of bare ALE just after each, in seconds.
    """
    seconds: dict[str, list[Report]] = {"first": [], "later": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="pixelpong-bench-") as folder:
            for name, found in seconds.items():
                found.append(_load_in_another(folder))
                found[-1]["ale_step"] = microseconds(ale, 0.1) / 1e6
                assert found[-1].pop("was_kept") == (name == "later")
    return {
        name: {key: statistics.median(one[key] for one in found) for key in found[0]}
        for name, found in seconds.items()
    }


def _load_in_another(folder: str) -> Report:
    words = [sys.executable, str(Path(__file__)), "--load"]
    environment = {**os.environ, "PIXELPONG_CACHE_DIR": folder}
    done = subprocess.run(words, env=environment, capture_output=True, check=True, text=True)
    report: Report = json.loads(done.stdout)
    return report


# --- forms, snapshots, lines ------------------------------------------------------------------


def make_forms(folder: Path, rounds: int) -> dict[str, tuple[Any, Report]]:
    """Every form at every level: its code, and the CPU seconds from the ROM to an address."""
    from pixelpong.atari.native import NativeCode
    from pixelpong.env.native import make_ir
    from pixelpong.env.rom import read_rom

    rom, forms = read_rom(), {}
    for (name, is_plain), level in itertools.product(FORMS.items(), LEVELS):
        taken = []
        for number in range(rounds):
            key = hashlib.sha256(f"{name} {number}".encode()).digest()
            begin = time.process_time()
            ir = functools.partial(make_ir, rom, is_plain=is_plain)
            code = NativeCode(key, ir, folder, level=level)
            taken.append(time.process_time() - begin)
        newest = max(folder.glob("*.machine"), key=lambda path: path.stat().st_mtime_ns)
        facts = {"first_use": statistics.median(taken), "bytes": newest.stat().st_size}
        forms[f"{name}, level {level}"] = code, facts
    return forms


def measure_snapshots(rounds: int) -> Report:
    """Microseconds of each; of the console, and of a game with its header and checksum."""
    from pixelpong.config.protocols import find_protocol
    from pixelpong.env import make_emulator
    from pixelpong.env.native import NativeConsole
    from pixelpong.env.pong import pack_snapshot, unpack_snapshot

    console, game = NativeConsole(), make_emulator(find_protocol("ALE/Pong-v5"))
    console.run(bytes([2] * 100), 1)
    state = console.get_state()
    snapshot = pack_snapshot(2, 100, state)
    calls: dict[str, Callable[[], Any]] = {
        "console: take": console.get_state,
        "console: restore": lambda: console.set_state(state),
        "pack_snapshot": lambda: pack_snapshot(2, 100, state),
        "unpack_snapshot, checked": lambda: unpack_snapshot(snapshot),
        "game: take": game.get_state,
        "game: restore, checked": lambda: game.set_state(snapshot),
    }
    return {name: _median_call(call, rounds) for name, call in calls.items()}


def _median_call(call: Callable[[], Any], rounds: int, times: int = 5000) -> float:
    taken = []
    for _ in range(rounds):
        begin = time.process_time()
        for _ in range(times):
            call()
        taken.append((time.process_time() - begin) / times * 1e6)
    return statistics.median(taken)


def count_lines() -> Report:
    """Lines of each file of the emulator."""
    package = ROOT / "src/pixelpong"
    paths = [*sorted((package / "atari").glob("*.py")), package / "env/cartridge.py"]
    paths.append(package / "env/native.py")
    lines = {
        path.relative_to(package).as_posix(): path.read_text("utf-8").count("\n") for path in paths
    }
    return {**lines, "all": sum(lines.values())}


# --- the report -------------------------------------------------------------------------------


def measure(rounds: int, seconds: float, seed: int) -> Report:
    """Everything, in turn."""
    import numpy as np

    from pixelpong.env.native import load_game
    from pixelpong.items import DOWN, UP
    from pixelpong.machine import collect_versions, describe_commit, describe_machine
    from pixelpong.seeding import make_rng

    commit, load = describe_commit(), list(os.getloadavg())
    moves = make_rng(seed, "bench").choice(np.array([UP, DOWN], np.uint8), MOVES)
    with tempfile.TemporaryDirectory(prefix="pixelpong-bench-") as folder:
        forms = make_forms(Path(folder), min(rounds, 3))
        rows: dict[str, Play] = {}
        for draws, name in enumerate(DRAWS):
            machine = Machine(load_game().address, moves)
            rows[f"compiled, {name}"] = functools.partial(machine.play, draws)
        for draws, name in enumerate(DRAWS):
            rows[f"ctypes, {name}"] = through_ctypes(moves, draws)
        for name in ("native", "ale"):
            rows[f"PongEmulator, {name}"] = as_the_package_steps(moves, name)
        for (name, (code, _)), draws in itertools.product(forms.items(), range(len(DRAWS))):
            machine = Machine(code.address("play_frames"), moves)
            rows[f"{name}, {DRAWS[draws]}"] = functools.partial(machine.play, draws)
        ale = bare_ale(moves)
        steps = measure_steps(rows, ale, rounds, seconds)
        threads = measure_threads(load_game().address, moves, 50 * rounds)
    return {
        "rounds": rounds,
        "seconds": seconds,
        "seed": seed,
        "steps": steps,
        "threads": threads,
        **measure_first_use(rounds, ale),
        "forms": {name: facts for name, (_, facts) in forms.items()},
        "snapshots": measure_snapshots(rounds),
        "lines": count_lines(),
        "load": load,
        "commit": commit,
        "versions": collect_versions(),
        "machine": describe_machine(),
    }


def describe(report: Report) -> str:
    """The report as a table."""
    lines = ["a step of 4 frames             µs   times ALE"]
    for name, row in report["steps"].items():
        line = f"{name:25} {row['microseconds']:8.2f}"
        if "ratio" in row:
            low, high = row["spread"]
            line += f"   {row['ratio']:6.1f}   ({low:.1f} to {high:.1f})"
        lines.append(line)
    threads = report["threads"]
    lines.append(
        f"two threads ÷ one: {threads['ratio']:.2f} (median {threads['median_ratio']:.2f}, by CPU "
        f"time {threads['ratio_of_cpu_time']:.2f}); in a call of {threads['of_a_call_of_ms']:.0f} "
        f"ms another thread waits {threads['longest_pause_ms']:.1f} ms at most"
    )
    for name in ("first", "later"):
        parts = report[name]
        quiet = parts["console"] / parts["ale_step"] * QUIET_STEP
        lines.append(
            f"{name} use: {1000 * parts['console']:.1f} ms of a core, of a quiet one "
            f"{1000 * quiet:.1f}; of it, and before it"
        )
        lines += [
            f"  {key:15} {1000 * value:8.2f} ms"
            for key, value in parts.items()
            if not key.endswith("_wall")
        ]
    for name, facts in report["forms"].items():
        lines.append(f"{name}: {facts['first_use']:.2f} s to compile, {facts['bytes']} bytes")
    lines += [f"{name:25} {value:8.2f} µs" for name, value in report["snapshots"].items()]
    lines.append(f"{report['lines']['all']} lines; load before {report['load'][0]:.1f}")
    return "\n".join(lines)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7, help="how often each is measured")
    parser.add_argument("--seconds", type=float, default=0.15, help="of one measurement")
    parser.add_argument("--seed", type=int, default=0, help="of the moves")
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    parser.add_argument("--load", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load:
        print(json.dumps(load_in_this_process()))
        return
    report = measure(options.rounds, options.seconds, options.seed)
    print(describe(report), file=sys.stderr if options.json else sys.stdout)
    if options.json:
        print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
