"""Our vector environment beside others on the same machine; needs the extra [bench].

    python benchmarks/vector.py --seconds 1 --rounds 7

64 games with random moves, two threads, no sticky frames; the rows take turns, and a ratio is the
median of the rounds' ratios. ``two_threads`` is the processor time of a step with one thread over
that with two, times two: 2 if a second thread costs nothing. Prints JSON.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from records import made_by, to_text

import pixelpong
from pixelpong.envs.gym import make_theirs
from pixelpong.seeding import make_rng

NUM_ENVS, NUM_THREADS = 64, 2
RULES = {"repeat_action_probability": 0.0}
Rate = Callable[[float], tuple[float, float]]  # steps per second, of the clock and the processor


def make_rate(env: Any, num_envs: int | None) -> Rate:
    """Steps an environment with random moves; of a single one, it begins the next episodes."""
    env.reset()
    moves = make_rng(0, "bench").integers(0, 6, (1000, num_envs or 1)).astype(np.int32)
    steps = 0

    def measure(seconds: float) -> tuple[float, float]:
        nonlocal steps
        first, begin, began = steps, time.perf_counter(), time.process_time()
        while time.perf_counter() - begin < seconds:
            move = moves[steps % len(moves)]
            _, _, over, cut, _ = env.step(move if num_envs else int(move[0]))
            steps += 1
            if not num_envs and (over or cut):
                env.reset()
        played = (steps - first) * (num_envs or 1)
        took = time.perf_counter() - begin, time.process_time() - began
        return played / took[0], played / took[1]

    return measure


def make_rows() -> dict[str, Rate]:
    """What is measured."""
    import envpool
    from ale_py.vector_env import AtariVectorEnv

    ours = {
        name: make_rate(pixelpong.make_vec(NUM_ENVS, name, num_threads=NUM_THREADS), NUM_ENVS)
        for name in ("atari", "pixels", "field", "frame")
    }
    theirs = AtariVectorEnv("pong", NUM_ENVS, num_threads=NUM_THREADS, **RULES)
    pool = envpool.make_gymnasium("Pong-v5", num_envs=NUM_ENVS, num_threads=NUM_THREADS, **RULES)
    return {
        **ours,
        "atari, one thread": make_rate(pixelpong.make_vec(NUM_ENVS, num_threads=1), NUM_ENVS),
        "AtariVectorEnv": make_rate(theirs, NUM_ENVS),
        "EnvPool": make_rate(pool, NUM_ENVS),
        "make_env": make_rate(pixelpong.make_env(), None),
        "ALE/Pong-v5": make_rate(make_theirs(), None),
    }


RATIOS = {
    "atari / AtariVectorEnv": ("atari", "AtariVectorEnv"),
    "atari / EnvPool": ("atari", "EnvPool"),
    "pixels / AtariVectorEnv": ("pixels", "AtariVectorEnv"),
    "make_env / ALE/Pong-v5": ("make_env", "ALE/Pong-v5"),
}


def measure_all(seconds: float, rounds: int) -> dict[str, Any]:
    """The report."""
    rows, found = make_rows(), []
    for measure in rows.values():
        measure(seconds / 10)
    for _ in range(rounds):
        found.append({name: measure(seconds) for name, measure in rows.items()})
    ratios = {name: [it[a][0] / it[b][0] for it in found] for name, (a, b) in RATIOS.items()}
    ratios["two_threads"] = [2 * it["atari"][1] / it["atari, one thread"][1] for it in found]
    return {
        "seconds": seconds,
        "rounds": rounds,
        "num_envs": NUM_ENVS,
        "num_threads": NUM_THREADS,
        "steps_per_second": {
            name: round(float(np.median([it[name][0] for it in found]))) for name in rows
        },
        "ratios": {
            name: [round(float(f(values)), 2) for f in (np.median, np.min, np.max)]
            for name, values in ratios.items()
        },
    }


def parse(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=7, help="measurements of each")
    return parser.parse_args(words)


if __name__ == "__main__":
    options = parse()
    sys.stdout.write(to_text(made_by() | measure_all(options.seconds, options.rounds)))
