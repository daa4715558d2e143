"""What our emulator costs beside bare ALE, what its first use costs, and what skipping gains.

    python benchmarks/emulator.py             # a table, after a minute
    python benchmarks/emulator.py --json      # as benchmarks/emulator.json; the table on stderr

Every figure is CPU time of one core, unless it says wall. Other programs disturb, so each row is
measured in turn with bare ALE, which steps four frames as `act` does and reads no picture. A ratio
is to the mean of ALE's time just before and just after, and the median of the rounds counts. A step
is four frames; what is drawn is its last one.

Covered: steps of a console and of an emulator, called from Python; two threads; first use and later
processes; snapshots; what skipping gains.
Not covered: training (`pixelpong bench throughput`).
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

FRAME_SKIP, MOVES = 4, 1000
DRAWS = ("nothing", "field", "picture")
QUIET_STEP = 180e-6
"""Seconds that a step of bare ALE takes a quiet core of machine A. On a busy machine a second of
CPU time is worth less, so beside the first use stands what it would take there."""

Report = dict[str, Any]
Play = Callable[[], int]
"""Plays some steps and returns how many."""


# --- steps ------------------------------------------------------------------------------------


def bare_ale(moves: list[int]) -> Play:
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
    numbers = [{2: 3, 3: 4}[move] for move in moves[:100]]  # ALE's RIGHT and LEFT

    def play() -> int:
        for number in numbers:
            ale.act(number)
            if ale.game_over():
                ale.restoreState(start)
        return len(numbers)

    return play


def steps_of(console: Any, moves: list[int], draws: int) -> Play:
    """Steps of a console, called from Python."""
    held = [bytes([move] * FRAME_SKIP) for move in moves]

    def play() -> int:
        for actions in held:
            if console.run(actions, draws)[1]:
                console.reset()
        return len(held)

    return play


def as_the_package_steps(moves: list[int], emulator: str) -> Play:
    """Steps of `Emulator`, sticky actions and all; the full picture is drawn."""
    from pixelpong.config.protocols import find_protocol
    from pixelpong.env import make_emulator
    from pixelpong.seeding import make_rng

    game, moves = make_emulator(find_protocol("ALE/Pong-v5"), emulator), moves[:200]
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
    """CPU time of a step, or of whatever else is counted."""
    begin, steps = time.process_time(), 0
    while (taken := time.process_time() - begin) < seconds:
        steps += play()
    return taken / steps * 1e6


# --- threads ----------------------------------------------------------------------------------


def measure_threads(moves: list[int], pairs: int) -> Report:
    """Steps a second of two threads ÷ those of one, by the wall clock.

    Both cores must be free for that, which on a shared machine they are for moments only. So many
    short measurements are made, and the quickest of each kind compared; the median of all pairs
    stands beside it.
    """
    from pixelpong.env.native import NativeConsole

    consoles = [NativeConsole() for _ in range(2)]
    actions = bytes(itertools.chain.from_iterable([move] * FRAME_SKIP for move in moves[:700]))

    def play(console: NativeConsole) -> None:
        console.reset()
        console.run(actions, 1)

    def go(count: int) -> float:
        """Wall seconds."""
        threads = [threading.Thread(target=play, args=(each,)) for each in consoles[:count]]
        begin = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - begin

    found = [(go(1), go(2)) for _ in range(pairs)]
    return {
        "ratio": 2 * min(one for one, _ in found) / min(two for _, two in found),
        "median_ratio": statistics.median(2 * one / two for one, two in found),
        "pairs": pairs,
    }


# --- first use --------------------------------------------------------------------------------


def load_in_this_process() -> Report:
    """What a process does to play: imports, then `NativeConsole`."""
    seconds = {"interpreter": time.process_time()}

    def lap(name: str) -> None:
        seconds[name] = time.process_time() - sum(seconds.values())

    import numpy  # noqa: F401 - what is timed

    lap("import_numpy")
    import llvmlite.binding  # noqa: F401

    lap("import_llvmlite")
    from pixelpong.env import native

    lap("import_emulator")
    native.NativeConsole()
    lap("console")
    return {**seconds, "was_kept": native.load_game().was_kept}


def measure_first_use(rounds: int, ale: Play) -> Report:
    """Fresh processes, with an empty cache and with what the one before left there.

    ``ale_step`` is a step of bare ALE just after each, in seconds.
    """
    found: dict[str, list[Report]] = {"first": [], "later": []}
    words = [sys.executable, __file__, "--load"]
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="pixelpong-bench-") as folder:
            environment = {**os.environ, "PIXELPONG_CACHE_DIR": folder}
            for name, reports in found.items():
                done = subprocess.run(words, env=environment, capture_output=True, check=True)
                reports.append(json.loads(done.stdout))
                reports[-1]["ale_step"] = microseconds(ale, 0.1) / 1e6
                assert reports[-1].pop("was_kept") == (name == "later")
    return {
        name: {key: statistics.median(one[key] for one in reports) for key in reports[0]}
        for name, reports in found.items()
    }


# --- snapshots --------------------------------------------------------------------------------


def measure_snapshots(seconds: float) -> Report:
    """Microseconds of each; of the console, and of a game with its header and checksum."""
    from pixelpong.config.protocols import find_protocol
    from pixelpong.env import make_emulator
    from pixelpong.env.native import NativeConsole

    console, game = NativeConsole(), make_emulator(find_protocol("ALE/Pong-v5"))
    console.run(bytes([2] * 100), 1)
    state, snapshot = console.get_state(), bytes(game.get_state())
    calls: dict[str, Callable[[], Any]] = {
        "console: take": console.get_state,
        "console: restore": lambda: console.set_state(state),
        "game: take": game.get_state,
        "game: restore, checked": lambda: game.set_state(snapshot),
    }

    def thousand(call: Callable[[], Any]) -> int:
        for _ in range(1000):
            call()
        return 1000

    return {
        name: microseconds(functools.partial(thousand, call), seconds)
        for name, call in calls.items()
    }


# --- the report -------------------------------------------------------------------------------


def measure(rounds: int, seconds: float, seed: int) -> Report:
    """Everything, in turn."""
    from pixelpong.env.native import NativeConsole, NativeGame
    from pixelpong.env.rom import read_rom
    from pixelpong.items import DOWN, UP
    from pixelpong.machine import collect_versions, describe_commit, describe_machine
    from pixelpong.seeding import make_rng

    commit, load = describe_commit(), list(os.getloadavg())
    moves = make_rng(seed, "bench").choice([UP, DOWN], MOVES).tolist()
    plain = NativeConsole(0, NativeGame(read_rom(), is_plain=True))
    rows = {name: steps_of(NativeConsole(), moves, draws) for draws, name in enumerate(DRAWS)}
    rows["field, nothing skipped"] = steps_of(plain, moves, DRAWS.index("field"))
    for name in ("native", "ale"):
        rows[f"Emulator, {name}"] = as_the_package_steps(moves, name)
    ale = bare_ale(moves)
    return {
        "rounds": rounds,
        "seconds": seconds,
        "seed": seed,
        "steps": measure_steps(rows, ale, rounds, seconds),
        "threads": measure_threads(moves, 50 * rounds),
        **measure_first_use(rounds, ale),
        "snapshots": measure_snapshots(seconds),
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
        f"two threads ÷ one: {threads['ratio']:.2f} (median {threads['median_ratio']:.2f})"
    )
    for name in ("first", "later"):
        parts = report[name]
        quiet = parts["console"] / parts["ale_step"] * QUIET_STEP
        lines.append(f"{name} use: on a quiet core {1000 * quiet:.1f} ms for the console; here")
        lines += [f"  {key:15} {1000 * value:8.2f} ms" for key, value in parts.items()]
    lines += [f"{name:25} {value:8.2f} µs" for name, value in report["snapshots"].items()]
    return "\n".join([*lines, f"load before {report['load'][0]:.1f}"])


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
