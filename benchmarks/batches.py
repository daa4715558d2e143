"""Seconds for batches of episodes, next to those of Ray's "Learning to Play Pong".

    python benchmarks/batches.py --engine ray
    python benchmarks/batches.py --engine ray --json > benchmarks/batches.json

A batch is played, differentiated, added up and learned from, by an untrained agent.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import sys
import time
from typing import Any

from records import made_by, to_text

from pixelpong import lab
from pixelpong.config import Config
from pixelpong.config.presets import load_preset
from pixelpong.engines import Engine, make_engine
from pixelpong.machine import collect_versions, count_cores, describe_machine
from pixelpong.play.worker import GROUP_SIZE, combine

RAYS_PAGE = {
    1: "about 1 s on 64 cores",
    10: "2.5 s on 64 cores",
    60: "3 s on 64 cores",
    300: "10 s on 11 nodes of 18 cores",
}
SIZES = (1, 10, 60, 300, 3000)


def time_batch(engine: Engine, config: Config, size: int) -> dict[str, Any]:
    """Seconds and steps of an update with this many episodes."""
    learner = lab.make_learner(config.updated({"batch_size": size}, "the benchmark"))
    begin = time.perf_counter()
    stats = learner.apply(engine.run(learner.items(), learner.params))
    return {
        "episodes": size,
        "seconds": time.perf_counter() - begin,
        "steps": stats.steps,
        "rays_page": RAYS_PAGE.get(size),
    }


def measure(config: Config, sizes: list[int]) -> dict[str, Any]:
    """A row for each batch size, after two batches that start the workers."""
    make_worker = functools.partial(lab.make_worker, config)
    with contextlib.closing(make_engine(config, make_worker, combine=combine)) as engine:
        for _ in range(2):
            time_batch(engine, config, 2 * GROUP_SIZE)
        rows = [time_batch(engine, config, size) for size in sizes]
    return {
        **made_by(),
        "engine": config.engine,
        "batches": rows,
        "versions": collect_versions(),
        "machine": {**describe_machine(), "cores": count_cores()},
    }


def parse(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--engine", default="threads", help="serial, threads, ray (%(default)s)")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="such as 1,10,60")
    parser.add_argument("--json", action="store_true", help="print the record")
    return parser.parse_args(words)


def main() -> None:
    """Measure and report."""
    given = parse()
    config = load_preset("classic").updated({"engine": given.engine, "seed": 0}, "the benchmark")
    report = measure(config, [int(size) for size in given.sizes.split(",")])
    if given.json:
        sys.stdout.write(to_text(report))
        return
    print("episodes   seconds   steps/s   Ray's page")
    for row in report["batches"]:
        rate = f"{row['steps'] / row['seconds']:,.0f}"
        print(f"{row['episodes']:8}  {row['seconds']:8.2f}  {rate:>8}   {row['rays_page'] or '–'}")


if __name__ == "__main__":
    main()
