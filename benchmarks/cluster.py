"""What engines cost: batches of episodes as the originals time them, and the driver's own work.

    python benchmarks/cluster.py batches --engine ray --json
    python benchmarks/cluster.py driver --actors 1,8,32,64 --json

From both follows how long a batch would take on any number of cores (`predict_seconds`).
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import heapq
import json
import pickle
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sleeping import SleepingWorker

from pixelpong.config import Config
from pixelpong.config.presets import load_preset
from pixelpong.engines import Engine, make_engine
from pixelpong.engines.serial import SerialEngine
from pixelpong.items import SegmentItem
from pixelpong.learners import Learner, make_learner
from pixelpong.machine import collect_versions, count_cores, describe_commit, describe_machine
from pixelpong.play.worker import make_worker

SEEDS_TABLE = {
    10: ("64 cores", 2.5),
    60: ("64 cores", 3.0),
    300: ("11 nodes of 18 cores", 10.0),
}
"""Seconds a batch of so many episodes took Ray's "Learning to Play Pong", and on what."""

STEP_SECONDS = 15e-6
"""What a step takes one core, in the game and in its gradient; a sleeping worker sleeps so long."""

NUM_PLAYED = 16
"""Results that sleeping workers answer with in turn: no two are alike."""

ROUNDS = 3

Tell = Callable[[str], None]


def measure_batches(config: Config, sizes: Sequence[int], tell: Tell) -> dict[str, Any]:
    """Time batches of episodes: played, differentiated, added up and learned from.

    Args:
        config: which engine and how many workers; a classic training.
        sizes: episodes a batch.
        tell: is told how it goes.

    Returns:
        A row a size, with what the model says for this machine and for others.
    """
    origin, rows, played = _origin(), [], []
    engine = make_engine(config.engine, functools.partial(make_worker, config))
    with contextlib.closing(engine):
        _warm_up(engine, config)
        for size in sizes:
            learner = make_learner(config.updated({"batch_size": size}, "bench"))
            row, seconds = _time_batch(engine, learner)
            rows.append(row)
            played += seconds
            tell(f"a batch of {size}: {row['seconds']:.2f} s")
    workers = max(row["workers"] for row in rows)
    driver = statistics.median(row["driver_seconds_per_item"] for row in rows)
    for row in rows:
        row["model_seconds"] = predict_seconds(played, row["episodes"], workers, driver)
        seeds = SEEDS_TABLE.get(row["episodes"])
        row["seeds"] = {"machine": seeds[0], "seconds": seeds[1]} if seeds else None
    return {
        "engine": config.engine.engine,
        "workers": workers,
        "batches": rows,
        "episode_seconds": statistics.mean(played),
        "driver_seconds_per_item": driver,
        "predicted": [
            {
                "cores": cores,
                **{str(n): predict_seconds(played, n, cores, driver) for n in (10, 60, 300, 3000)},
            }
            for cores in (16, 64, 198, 500, 2000)
        ],
        **origin,
    }


def predict_seconds(
    played: Sequence[float], num_items: int, num_workers: int, driver_seconds: float
) -> float:
    """How long a batch would take: whoever is idle takes the next item, while the driver keeps up.

    Args:
        played: seconds of items as they were measured; used in turn.
        num_items: of the batch.
        num_workers: one on each core.
        driver_seconds: the driver's own work on an item. It works beside the workers, so that
            only what is longer than the playing shows; the last item's always does.
    """
    free_at = [0.0] * num_workers
    for number in range(num_items):
        heapq.heappush(free_at, heapq.heappop(free_at) + played[number % len(played)])
    return max(max(free_at), num_items * driver_seconds) + driver_seconds


def measure_driver(
    num_workers: Sequence[int], num_items: Sequence[int], tell: Tell
) -> dict[str, Any]:
    """The driver's own work, with Ray's actors that sleep instead of playing.

    Args:
        num_workers: numbers of actors.
        num_items: numbers of episodes a batch.
        tell: is told how it goes.

    Returns:
        A row for each of both in the classic mode, and for 16 streams × 128 in the fast one, there
        also with tasks.
    """
    from pixelpong.engines.ray.connection import connected

    classic = load_preset("classic").updated({"seed": 0, "engine": "ray"}, "bench")
    fast = load_preset("fast").updated({"streams": 16, "horizon": 128, "engine": "ray"}, "bench")
    tasks = fast.updated({"ray_mode": "tasks"}, "bench")
    origin, rows = _origin(), []
    modes = [
        (each, sizes, *_play_some(each))
        for each, sizes in ((classic, num_items), (fast, [16]), (tasks, [16]))
    ]
    with connected(None, max(num_workers)):
        for workers in num_workers:
            for config, sizes, learner, results, seconds in modes:
                make = functools.partial(SleepingWorker, results, seconds)
                engine_config = config.updated({"workers": workers}, "bench").engine
                with contextlib.closing(make_engine(engine_config, make)) as engine:
                    _wait_for(engine, learner, workers)
                    for size in sizes:
                        row: dict[str, Any] = {"ray_mode": engine_config.ray_mode}
                        row |= _time_driver(engine, learner, size, workers, seconds)
                        rows.append(row)
                        each = 1000 * row["driver_seconds_per_item"]
                        where = f"{row['mode']}, {workers} workers as {row['ray_mode']}"
                        tell(f"{where}, {size} items: {each:.2f} ms an item")
    return {"sleep_step_seconds": STEP_SECONDS, "rows": rows, **origin}


def _warm_up(engine: Engine, config: Config) -> None:
    """Two small batches: workers start, and what is done for the first time is done."""
    learner = make_learner(config.updated({"batch_size": 2 * count_cores()}, "bench"))
    for _ in range(2):
        learner.apply(engine.run(learner.items(), learner.params))


def _time_batch(engine: Engine, learner: Learner) -> tuple[dict[str, Any], list[float]]:
    begin, cpu = time.perf_counter(), time.process_time()
    results = engine.run(learner.items(), learner.params, learner.group_size)
    stats, run = learner.apply(results), results.stats
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    played = [episode.play_seconds for episode in stats.episodes]
    if isinstance(engine, SerialEngine):
        cpu = max(0.0, cpu - sum(played))  # here the driver plays as well
    return {
        "episodes": len(played),
        "seconds": seconds,
        "steps": stats.steps,
        "workers": run.workers,
        "wait_seconds": run.wait_seconds,
        "driver_seconds_per_item": cpu / len(played),
        "bytes_per_episode": (run.bytes_sent + run.bytes_received) / len(played),
        "params_bytes": run.params_bytes,
    }, played


def _play_some(config: Config) -> tuple[Learner, list[bytes], float]:
    """A learner, results of its first items, and how long bare ALE takes for one of them."""
    learner, worker = make_learner(config), make_worker(config)
    results: list[Any] = [
        worker.play(item, learner.params) for item in learner.items()[:NUM_PLAYED]
    ]
    lengths = [
        result.stats.steps if hasattr(result, "stats") else len(result.segments[0])
        for result in results
    ]
    return learner, list(map(pickle.dumps, results)), statistics.mean(lengths) * STEP_SECONDS


def _wait_for(engine: Engine, learner: Learner, workers: int) -> None:
    """Wait until all of them play."""
    item, present = learner.items()[0], 0
    while present < workers:
        results = engine.run([item] * workers, learner.params)
        list(results)
        present = results.stats.workers


def _time_driver(
    engine: Engine, learner: Learner, size: int, workers: int, seconds: float
) -> dict[str, Any]:
    items = [learner.items()[0]] * size
    walls, cpus, learned = [], [], []
    is_fast = isinstance(items[0], SegmentItem)
    for _ in range(ROUNDS):
        begin, cpu = time.perf_counter(), time.process_time()
        run = engine.run(items, learner.params, learner.group_size)
        if is_fast:
            results = list(run)
            cpus.append(time.process_time() - cpu)
            stats = learner.apply(results)
        else:  # its sums are added up as they come, which is the driver's work
            stats = learner.apply(run)
            cpus.append(time.process_time() - cpu)
        learned.append(stats.learn_seconds)
        walls.append(time.perf_counter() - begin - stats.learn_seconds)
    wall, cpu, moved = statistics.median(walls), statistics.median(cpus), run.stats
    steps = size * round(seconds / STEP_SECONDS)
    return {
        "mode": "fast" if is_fast else "classic",
        "workers": workers,
        "items": size,
        "steps": steps,
        "wall_seconds": wall,
        "learn_seconds": statistics.median(learned),
        "driver_seconds": cpu,
        "driver_seconds_per_item": cpu / size,
        "driver_share": cpu / (wall + statistics.median(learned)),
        "bytes_per_item": (moved.bytes_sent + moved.bytes_received) / size,
        "bytes_per_1000_steps": 1000 * (moved.bytes_sent + moved.bytes_received) / steps,
        "params_bytes": moved.params_bytes,
    }


def _origin() -> dict[str, Any]:
    return {
        "commit": describe_commit(),
        "versions": collect_versions(),
        "machine": {**describe_machine(), "cores": count_cores()},
    }


# --- the command ------------------------------------------------------------------------------


@contextlib.contextmanager
def simulated_nodes(count: int) -> Iterator[str | None]:
    """A Ray cluster of nodes with one core each, all on this machine; without any, no address."""
    if not count:
        yield None
        return
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        for _ in range(count):
            cluster.add_node(num_cpus=1)
        yield cluster.address
    finally:
        cluster.shutdown()


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def describe_batches(report: dict[str, Any]) -> str:
    """A row a batch size, the originals' beside it, and what other numbers of cores would take."""
    lines = [
        f"engine {report['engine']}, {report['workers']} workers",
        "episodes   seconds   model   Ray's page",
    ]
    for row in report["batches"]:
        seeds = row["seeds"]
        theirs = f"{seeds['seconds']:g} s on {seeds['machine']}" if seeds else "–"
        lines.append(
            f"{row['episodes']:8}  {row['seconds']:8.2f}  {row['model_seconds']:6.2f}   {theirs}"
        )
    sizes = [name for name in report["predicted"][0] if name != "cores"]
    lines += ["", "by the model, seconds for batches of " + ", ".join(sizes)]
    for row in report["predicted"]:
        lines.append(f"{row['cores']:6} cores  " + "".join(f"{row[size]:8.2f}" for size in sizes))
    return "\n".join(lines)


def describe_driver(report: dict[str, Any]) -> str:
    """A row for each number of actors and of items."""
    lines = ["mode     workers as     items  wall s  driver ms an item  share  kB per 1,000 steps"]
    for row in report["rows"]:
        lines.append(
            f"{row['mode']:8} {row['workers']:4} {row['ray_mode']:8} {row['items']:6}  "
            f"{row['wall_seconds']:6.2f}  "
            f"{1000 * row['driver_seconds_per_item']:17.2f}  {row['driver_share']:5.1%}  "
            f"{row['bytes_per_1000_steps'] / 1000:18.0f}"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("batches", "driver"))
    parser.add_argument("--engine", default="threads", help="of batches")
    parser.add_argument("--nodes", type=int, default=0, help="of batches: simulated, of one core")
    sizes = [1, 10, 60, 300, 3000]
    parser.add_argument("--batch-sizes", type=_numbers, default=sizes)
    parser.add_argument("--actors", type=_numbers, default=[1, 8, 32, 64], help="of the driver")
    parser.add_argument(
        "--items", type=_numbers, default=[1, 10, 60, 300, 3000], help="of the driver"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.what == "batches":
        changes = {"engine": options.engine, "seed": options.seed}
        with simulated_nodes(options.nodes) as address:
            changes |= {"engine": "ray", "ray_address": address} if address else {}
            config = load_preset("classic").updated(changes, "the command line")
            report, describe = measure_batches(config, options.batch_sizes, _tell), describe_batches
        report["nodes"] = options.nodes or 1
    else:
        report, describe = measure_driver(options.actors, options.items, _tell), describe_driver
    print(json.dumps(report, indent=1) if options.json else describe(report))


if __name__ == "__main__":
    main()
