"""Steps per second, compared with bare ALE on the same cores, as JSON.

    make bench ARGS="--seconds 2 --rounds 3"
    python benchmarks/throughput.py --ray

Everything is measured in turn, in one run on the same cores, for several rounds. Machines are noisy
and drift, so each ratio is to ALE's rate just before and just after, and the median of the rounds
is reported.

The rows: ``ale``, ALE alone; ``emulator``, ours alone; ``rollouts``, segments of the fast mode
without learning; ``classic`` and ``fast``, all of a training; ``dense_loop``, how the originals
play and differentiate, on ALE as they did.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ale_py
import gymnasium
import numpy as np
from records import made_by, to_text
from threadpoolctl import threadpool_limits

from pixelpong.atari.games.rules import first_start, open_cartridge
from pixelpong.atari.machine.roms import rom_path
from pixelpong.config.presets import load_preset
from pixelpong.engines import Engine
from pixelpong.engines.threads import ThreadEngine
from pixelpong.items import DOWN, UP
from pixelpong.learn.network import backward, forward, init_params
from pixelpong.learn.reinforce import advantages
from pixelpong.machine import collect_versions, count_cores, describe_machine
from pixelpong.play.worker import combine, make_worker
from pixelpong.pong.field import DRAW_FIELD
from pixelpong.pong.native import PONG
from pixelpong.pong.preprocess import difference, preprocess
from pixelpong.processes import Processes
from pixelpong.run.directory import RunDirectory
from pixelpong.seeding import make_rng
from pixelpong.session import Session, opened

Measure = Callable[[float], float]
"""Measures for about this many seconds; returns steps per second."""

Peers = dict[str, Callable[[int], contextlib.AbstractContextManager[Measure]]]
"""What else to measure: by name, what makes a measure for this many cores."""


Play = Callable[[int, float], tuple[int, float]]
"""Plays with a seed for at least this many seconds; returns steps and seconds."""


def play_bare(seed: int, seconds: float) -> tuple[int, float]:
    """Step ALE at frame skip 4 and do nothing else; no picture is read."""
    ale, begin, steps = _load_ale(), time.perf_counter(), 0
    moves = make_rng(seed, "bench").choice(ale.getMinimalActionSet()[2:4], 1000).tolist()
    while time.perf_counter() - begin < seconds:
        for move in moves:
            ale.act(ale_py.Action(move))
            if ale.game_over():
                ale.reset_game()
        steps += len(moves)
    return steps, time.perf_counter() - begin


def _load_ale() -> Any:
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    ale.setInt("frame_skip", 4)
    ale.loadROM(rom_path("pong"))
    ale.reset_game()
    return ale


def play_native(seed: int, seconds: float) -> tuple[int, float]:
    """Step our emulator and do nothing else: 4 frames, the field of the last one drawn."""
    game, start = open_cartridge(PONG), first_start(PONG)
    machine, steps, begin = start.copy(), 0, time.perf_counter()
    address, is_over = machine.ctypes.data, machine["is_over"]
    while time.perf_counter() - begin < seconds:
        for move in make_rng(seed, "bench").choice([UP, DOWN], 1000).tolist():
            game.play_frames(address, bytes([move] * 4), 4, DRAW_FIELD)
            if is_over[0]:
                machine[:] = start
        steps += 1000
    return steps, time.perf_counter() - begin


def play_densely(seed: int, seconds: float) -> tuple[int, float]:
    """Play and differentiate whole episodes as the originals do."""
    threadpool_limits(limits=1)  # one core per process
    return _DensePlayer().play(make_rng(seed, "bench"), seconds)


class _DensePlayer:
    """Plays and differentiates as the originals do: dense, float64, in NumPy, on ALE."""

    def __init__(self) -> None:
        gymnasium.register_envs(ale_py)
        self._env = gymnasium.make("ALE/Pong-v5")
        self._params = init_params(make_rng(0, "params"), hidden=200, dtype="float64")

    def play(self, rng: np.random.Generator, seconds: float) -> tuple[int, float]:
        """Play whole episodes for at least this many seconds; return steps and seconds."""
        begin, steps = time.perf_counter(), 0
        while time.perf_counter() - begin < seconds:
            steps += self._play_episode(rng)
        return steps, time.perf_counter() - begin

    def _play_episode(self, rng: np.random.Generator) -> int:
        previous, is_over = None, False
        xs, hs, dzs, rewards = [], [], [], []
        frame, _ = self._env.reset(seed=int(rng.integers(2**31)))
        while not is_over:
            current = preprocess(frame)
            x = difference(previous, current).astype(np.float64)
            previous = current
            p, h = forward(self._params, x[None])
            action = UP if rng.random() < p[0] else DOWN
            xs.append(x)
            hs.append(h[0])
            dzs.append((action == UP) - p[0])
            frame, reward, terminated, truncated, _ = self._env.step(action)
            rewards.append(reward)
            is_over = terminated or truncated
        dz = np.array(dzs) * advantages(np.array(rewards), 0.99)
        backward(self._params, np.array(xs), np.array(hs), dz)
        return len(xs)


def measure_throughput(
    seconds: float,
    rounds: int,
    workers: int | None,
    seed: int,
    peers: Peers | None = None,
    *,
    with_ray: bool = False,
) -> dict[str, Any]:
    """Steps per second of bare ALE, of our emulator, of rollouts, trainings and a dense loop.

    Args:
        seconds: approximate length of one measurement.
        rounds: measurements of each, in turn.
        workers: threads, or processes; one per core by default.
        seed: of the games.
        peers: other people's emulators to measure beside ours.
        with_ray: measure both trainings on Ray as well.

    Returns:
        ``steps_per_second`` and ``ratios`` to bare ALE (``ale``), medians; the rounds; the machine;
        with Ray also ``ray_over_threads``, round by round.
    """
    num_workers = workers or count_cores()
    with contextlib.ExitStack() as stack:
        measures = _prepare(stack, num_workers, seed)
        if with_ray:
            measures |= _prepare_ray(stack, num_workers, seed)
        measures |= {
            name: stack.enter_context(peer(num_workers)) for name, peer in (peers or {}).items()
        }
        for measure in measures.values():
            measure(0.5)  # warms caches and starts the workers
        limit = measures.pop("ale")
        limits = [limit(seconds / 2)]
        rates: dict[str, list[float]] = {name: [] for name in measures}
        ratios: dict[str, list[float]] = {name: [] for name in measures}
        for _ in range(rounds):
            for name, measure in measures.items():
                rates[name].append(measure(seconds))
                limits.append(limit(seconds / 2))
                ratios[name].append(rates[name][-1] / statistics.mean(limits[-2:]))
    table = {"ale": limits, **rates}
    over = {
        mode: [a / b for a, b in zip(rates[f"{mode}_ray"], rates[mode], strict=True)]
        for mode in ("classic", "fast")
        if with_ray
    }
    return {
        "workers": num_workers,
        "rounds": rounds,
        "seconds": seconds,
        "seed": seed,
        "steps_per_second": {name: statistics.median(rates) for name, rates in table.items()},
        "ratios": {name: statistics.median(values) for name, values in ratios.items()},
        "spread": {name: [min(values), max(values)] for name, values in ratios.items()},
        "measured": table,
        **({"ray_over_threads": over} if with_ray else {}),
        "versions": collect_versions(),
        "machine": describe_machine(),
    }


def _prepare(stack: contextlib.ExitStack, num_workers: int, seed: int) -> dict[str, Measure]:
    def training(preset: str) -> tuple[Engine, Session]:
        session = _new_session(stack, preset, num_workers, seed)
        engine = ThreadEngine(functools.partial(make_worker, session.config), num_workers)
        return stack.enter_context(contextlib.closing(engine)), session

    fast, classic = training("fast"), training("classic")
    return {
        "ale": stack.enter_context(measure_apart(play_bare, num_workers)),
        "emulator": stack.enter_context(measure_apart(play_native, num_workers)),
        "rollouts": _Rollouts(*fast),
        "classic": functools.partial(measure_training, *classic),
        "fast": functools.partial(measure_training, *fast),
        "dense_loop": stack.enter_context(measure_apart(play_densely, num_workers)),
    }


def _prepare_ray(stack: contextlib.ExitStack, num_workers: int, seed: int) -> dict[str, Measure]:
    from pixelpong.engines.ray import RayEngine
    from pixelpong.engines.ray.connection import connected

    stack.enter_context(connected(None, 2 * num_workers))
    measures: dict[str, Measure] = {}
    for mode in ("classic", "fast"):
        session = _new_session(stack, mode, num_workers, seed)
        config = session.config
        engine = RayEngine(functools.partial(make_worker, config), config, combine=combine)
        stack.enter_context(contextlib.closing(engine))
        measures[f"{mode}_ray"] = functools.partial(measure_training, engine, session)
    return measures


def _new_session(stack: contextlib.ExitStack, preset: str, num_workers: int, seed: int) -> Session:
    config = load_preset(preset).updated({"seed": seed, "workers": num_workers}, "bench")
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="pixelpong-bench-"))
    run = RunDirectory.create(Path(folder) / "run", config)
    return stack.enter_context(opened(run, time.monotonic()))


@contextlib.contextmanager
def measure_apart(play: Play, num_workers: int) -> Iterator[Measure]:
    """Make a measure of something that holds Python's lock: the sum of the rates of processes.

    Args:
        play: a module's function, so that other processes find it.
        num_workers: the number of processes.
    """
    with Processes(num_workers) as pool:

        def measure(seconds: float) -> float:
            played = pool.map(play, range(num_workers), [seconds] * num_workers)
            return sum(steps / taken for steps, taken in played)

        yield measure


class _Rollouts:
    """Rounds of segments without learning, from the streams' current state."""

    def __init__(self, engine: Engine, session: Session) -> None:
        self._engine, self._learner = engine, session.learner
        self._items = self._learner.items()

    def __call__(self, seconds: float) -> float:
        begin, steps = time.perf_counter(), 0
        while time.perf_counter() - begin < seconds:
            results = list(self._engine.run(self._items, self._learner.params))
            steps += sum(it.steps * len(it.streams) for it in self._items)
            self._items = [
                dataclasses.replace(item, update=item.update + 1, streams=result.streams)
                for item, result in zip(self._items, results, strict=True)
            ]
        return steps / (time.perf_counter() - begin)


def measure_training(engine: Engine, session: Session, seconds: float) -> float:
    """Whole updates as `train` makes them, with the files it writes."""
    learner = session.learner
    before, begin = learner.progress.steps, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        stats = learner.apply(engine.run(learner.items(), learner.params))
        session.record(stats, engine.stats)
        if session.should_save():
            session.save()
    return (learner.progress.steps - before) / (time.perf_counter() - begin)


def parse(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="length of one measurement")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each")
    parser.add_argument("--seed", type=int, default=0, help="seed of the games")
    parser.add_argument("--workers", type=int, help="by default one per core")
    parser.add_argument("--ray", action="store_true", help="also both trainings on Ray")
    return parser.parse_args(words)


def main() -> None:
    """Measure and print the report."""
    options = parse()
    report = measure_throughput(
        options.seconds, options.rounds, options.workers, options.seed, with_ray=options.ray
    )
    sys.stdout.write(to_text(made_by() | report))


if __name__ == "__main__":
    main()
