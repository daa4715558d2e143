"""Measurements that anyone can rerun: throughput against the bare emulator, start-up, memory.

Everything is measured in one run on the same cores, in turn, several rounds. Machines are noisy
and drift, so each ratio is to the emulator's rate just before and just after, and the median of
the rounds is reported.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pixelpong.config import Config
from pixelpong.engines import Engine
from pixelpong.engines.processes import ProcessEngine
from pixelpong.env import make_emulator
from pixelpong.env.preprocess import difference, preprocess
from pixelpong.learn.network import backward, forward, init_params
from pixelpong.learn.reinforce import advantages
from pixelpong.machine import collect_versions, count_cores, describe_machine
from pixelpong.presets import load_preset
from pixelpong.run import Run
from pixelpong.seeding import make_rng
from pixelpong.session import Session
from pixelpong.trajectory import DOWN, UP, EpisodeItem
from pixelpong.worker import make_worker

_TIMEOUT = 600.0


class BareWorker:
    """Steps the emulator and does nothing else."""

    def play(self, item: int, params: float) -> tuple[int, float]:
        """Step for `params` seconds; `item` seeds the moves."""
        from pixelpong.env.pong import run_bare

        return run_bare(params, make_rng(item, "bench"))


class DenseWorker:
    """Plays and differentiates as the seeds' programs do: dense, float64, in NumPy."""

    def __init__(self) -> None:
        self._emulator = make_emulator(load_preset("classic").environment.protocol)
        self._params = init_params(make_rng(0, "params"), hidden=200, dtype="float64")

    def play(self, item: int, params: float) -> tuple[int, float]:
        """Play whole episodes for at least `params` seconds; return steps and seconds."""
        rng = make_rng(item, "bench")
        begin, steps = time.perf_counter(), 0
        while time.perf_counter() - begin < params:
            steps += self._play_episode(rng)
        return steps, time.perf_counter() - begin

    def _play_episode(self, rng: np.random.Generator) -> int:
        emulator, previous = self._emulator, None
        xs, hs, dzs, rewards = [], [], [], []
        emulator.reset()
        while not emulator.is_over:
            current = preprocess(emulator.frame())
            x = difference(previous, current).astype(np.float64)
            previous = current
            p, h = forward(self._params, x[None])
            draws = rng.random(2 + emulator.protocol.max_frame_skip).tolist()
            action = UP if draws[0] < p[0] else DOWN
            xs.append(x)
            hs.append(h[0])
            dzs.append((action == UP) - p[0])
            rewards.append(emulator.step(action, draws[1:]))
        dz = np.array(dzs) * advantages(np.array(rewards), 0.99)
        backward(self._params, np.array(xs), np.array(hs), dz)
        return len(xs)


def measure_throughput(
    seconds: float, rounds: int, workers: int | None, seed: int
) -> dict[str, Any]:
    """Steps a second of the bare emulator, of rollouts, of classic training and of a dense loop.

    Args:
        seconds: length of one measurement, about.
        rounds: how often each is measured, in turn.
        workers: processes; one a core where not given.
        seed: of what is played.

    Returns:
        ``steps_per_second`` and ``ratios`` to the bare emulator, medians; the rounds; the machine.
    """
    num_workers = workers or count_cores()
    config = load_preset("classic").updated({"seed": seed, "workers": num_workers}, "bench")
    with contextlib.ExitStack() as stack:
        measures = _prepare(stack, config, num_workers)
        for measure in measures.values():
            measure(0.5)  # warms caches and starts the workers
        limit = measures.pop("emulator")
        limits = [limit(seconds / 2)]
        rates: dict[str, list[float]] = {name: [] for name in measures}
        ratios: dict[str, list[float]] = {name: [] for name in measures}
        for _ in range(rounds):
            for name, measure in measures.items():
                rates[name].append(measure(seconds))
                limits.append(limit(seconds / 2))
                ratios[name].append(rates[name][-1] / statistics.mean(limits[-2:]))
    table = {"emulator": limits, **rates}
    return {
        "workers": num_workers,
        "rounds": rounds,
        "seconds": seconds,
        "seed": seed,
        "steps_per_second": {name: statistics.median(rates) for name, rates in table.items()},
        "ratios": {name: statistics.median(values) for name, values in ratios.items()},
        "spread": {name: [min(values), max(values)] for name, values in ratios.items()},
        "measured": table,
        "versions": collect_versions(),
        "machine": describe_machine(),
    }


def _prepare(
    stack: contextlib.ExitStack, config: Config, num_workers: int
) -> dict[str, Callable[[float], float]]:
    """One function a row: measures for so many seconds, returns steps a second."""

    def engine(make_worker: Callable[[], Any]) -> ProcessEngine:
        made = ProcessEngine(make_worker, num_workers, _TIMEOUT)
        return stack.enter_context(contextlib.closing(made))

    player = engine(functools.partial(make_worker, config))
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="pixelpong-bench-"))
    session = Session(Run.create(Path(folder) / "run", config), time.monotonic())
    bare, dense = engine(BareWorker), engine(DenseWorker)
    return {
        "emulator": functools.partial(_measure_apart, bare, num_workers),
        "rollouts": functools.partial(_measure_rollouts, player, session, itertools.count(1)),
        "classic": functools.partial(_measure_training, player, session),
        "dense_loop": functools.partial(_measure_apart, dense, num_workers),
    }


def _measure_apart(engine: Engine, num_workers: int, seconds: float) -> float:
    """Each worker for itself, all at once; the sum of their rates."""
    return sum(steps / taken for steps, taken in engine.run(range(num_workers), seconds))


def _measure_rollouts(
    engine: Engine, session: Session, numbers: itertools.count[int], seconds: float
) -> float:
    """Episodes without learning; enough of them that the last one alone does not weigh."""
    begin, steps, batch = time.perf_counter(), 0, 40
    while time.perf_counter() - begin < seconds:
        number = next(numbers)
        items = [EpisodeItem("evaluate", 0, number, index) for index in range(batch)]
        steps += sum(r.stats.steps for r in engine.run(items, session.learner.params))
    return steps / (time.perf_counter() - begin)


def _measure_training(engine: Engine, session: Session, seconds: float) -> float:
    """Whole updates as `train` makes them, with the files it writes."""
    learner = session.learner
    before, begin = learner.progress.steps, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        stats = learner.apply(engine.run(learner.items(), learner.params))
        session.record(stats, engine.num_restarts)
        if session.should_save():
            session.save()
    return (learner.progress.steps - before) / (time.perf_counter() - begin)


def measure_startup(rounds: int, workers: int | None) -> dict[str, Any]:
    """Seconds to the help text and to the first update, and peak memory, each from outside.

    Args:
        rounds: how often each is measured.
        workers: processes; one a core where not given.
    """
    command = [sys.executable, "-m", "pixelpong"]
    helps, firsts, drivers, crews = [], [], [], []
    for _ in range(rounds):
        begin = time.perf_counter()
        subprocess.run([*command, "--help"], check=True, capture_output=True)
        helps.append(time.perf_counter() - begin)
        first, memory = _watch_training(command, workers)
        firsts.append(first)
        drivers.append(memory[0])
        crews.append(memory[1])
    return {
        "rounds": rounds,
        "help_seconds": statistics.median(helps),
        "first_update_seconds": statistics.median(firsts),
        "driver_peak_mb": max(drivers),
        "worker_peak_mb": max(crews),
        "versions": collect_versions(),
        "machine": describe_machine(),
    }


def _watch_training(command: list[str], workers: int | None) -> tuple[float, tuple[float, float]]:
    """Seconds to the first update, and the driver's and the largest worker's peak in MB."""
    driver_peak = worker_peak = 0.0
    first = None
    with tempfile.TemporaryDirectory(prefix="pixelpong-bench-") as folder:
        metrics = Path(folder) / "run" / "metrics.jsonl"
        words = ["train", "--preset", "classic", "--updates", "3", "--run", str(metrics.parent)]
        words += ["--workers", str(workers or count_cores())]
        begin = time.perf_counter()
        with subprocess.Popen(command + words, stdout=subprocess.DEVNULL) as process:
            while process.poll() is None:
                if first is None and metrics.exists() and metrics.stat().st_size:
                    first = time.perf_counter() - begin
                driver_peak = max(driver_peak, _peak_mb(process.pid))
                worker_peak = max([worker_peak, *map(_peak_mb, _children(process.pid))])
                time.sleep(0.01)
        lines = metrics.read_text("utf-8").splitlines()
        assert process.returncode == 0, "the training went wrong"
        assert json.loads(lines[0])["update"] == 1
    assert first is not None
    return first, (driver_peak, worker_peak)


def _peak_mb(pid: int) -> float:
    """Peak resident memory of a process; 0 where the system does not tell."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(x) for x in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []
