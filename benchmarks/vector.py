"""Our environments beside others on the same machine; needs the extra [bench].

    python benchmarks/vector.py --seconds 1 --rounds 7

Random moves, two threads, no sticky frames: 64 games of each of eleven cartridges, and 1, 8 and 512
games of Pong, on our vector environment, on ale-py's and on EnvPool; and Pong with our other
observations, and one game at a time. What is compared takes turns, and a ratio is the median of
the rounds' ratios, with the lowest and the highest. On a machine that is busy otherwise,
``--processor`` takes processor time instead of the clock's. ``two_threads`` is the processor time
of a step with one thread over that with two, times two: 2 if a second thread costs nothing. Prints
JSON.
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
from pixelpong.atari.envs.gym import make_theirs
from pixelpong.seeding import make_rng

GAMES = (
    "pong", "breakout", "space_invaders", "ms_pacman", "qbert", "seaquest", "freeway",
    "montezuma_revenge", "asterix", "beam_rider", "enduro",
)  # fmt: skip
HEADLINE = ("pong", "breakout")  # what the slowest and the median are not of
NUM_ENVS, NUM_THREADS, SIZES = 64, 2, (1, 8, 512)
RULES = {"repeat_action_probability": 0.0}
CLOCK, PROCESSOR = 0, 1
Rate = Callable[[float], tuple[float, float]]  # steps per second of the clock, of the processor


def make_rate(env: Any, num_envs: int | None) -> Rate:
    """Steps an environment with random moves; of a single one, it begins the next episodes."""
    env.reset()
    count = env.action_space.n if num_envs is None else env.single_action_space.n
    moves = make_rng(0, "bench").integers(0, count, (1000, num_envs or 1)).astype(np.int32)
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


def make_three(game: str, num_envs: int) -> dict[str, Any]:
    """Ours and two others, with the same options."""
    import envpool
    from ale_py.vector_env import AtariVectorEnv

    options = {"num_envs": num_envs, "num_threads": min(NUM_THREADS, num_envs), **RULES}
    name = f"{game.title().replace('_', '')}-v5"
    return {
        "make_vec": pixelpong.make_vec(game=game, **options),
        "AtariVectorEnv": AtariVectorEnv(game, **options),
        "EnvPool": envpool.make_gymnasium(name, **options),
    }


class Rounds:
    """Rates measured in turns; `kind` says whether of the clock or of the processor."""

    def __init__(self, rows: dict[str, Rate], seconds: float, rounds: int, kind: int) -> None:
        for measure in rows.values():
            measure(seconds / 2)
        self.all = [{name: rate(seconds) for name, rate in rows.items()} for _ in range(rounds)]
        self._kind, self._names = kind, list(rows)

    def rates(self) -> dict[str, int]:
        """The medians of steps per second."""
        values = {name: [it[name][self._kind] for it in self.all] for name in self._names}
        return {name: round(float(np.median(each))) for name, each in values.items()}

    def ratio(self, one: str, other: str, kind: int | None = None) -> list[float]:
        """The median of the rounds' ratios, the lowest and the highest."""
        kind = self._kind if kind is None else kind
        ratios = [it[one][kind] / it[other][kind] for it in self.all]
        return [round(float(f(ratios)), 2) for f in (np.median, np.min, np.max)]


def compare_three(game: str, num_envs: int, **how: Any) -> dict[str, Any]:
    """A row of the report: a game at a size."""
    envs = make_three(game, num_envs)
    found = Rounds({name: make_rate(each, num_envs) for name, each in envs.items()}, **how)
    for each in envs.values():
        each.close()
    others = {f"over_{name}": found.ratio("make_vec", name) for name in list(envs)[1:]}
    print(game, num_envs, found.rates(), others, file=sys.stderr, flush=True)
    return found.rates() | others


def compare_observations(**how: Any) -> dict[str, Any]:
    """Pong with all our observations, with one thread, and one game at a time."""

    def make(name: str, num_threads: int = NUM_THREADS) -> Rate:
        return make_rate(pixelpong.make_vec(NUM_ENVS, name, num_threads=num_threads), NUM_ENVS)

    others = make_three("pong", NUM_ENVS)
    others.pop("make_vec").close()
    rows = {
        **{name: make(name) for name in ("atari", "pixels", "field", "frame")},
        "atari, one thread": make("atari", 1),
        **{name: make_rate(envs, NUM_ENVS) for name, envs in others.items()},
        "make_env": make_rate(pixelpong.make_env(), None),
        "ALE/Pong-v5": make_rate(make_theirs("pong"), None),
    }
    found = Rounds(rows, **how)
    pairs = [
        ("atari", "AtariVectorEnv"), ("atari", "EnvPool"), ("pixels", "AtariVectorEnv"),
        ("make_env", "ALE/Pong-v5"),
    ]  # fmt: skip
    ratios = {f"{one} / {other}": found.ratio(one, other) for one, other in pairs}
    per_processor = found.ratio("atari", "atari, one thread", PROCESSOR)
    ratios["two_threads"] = [round(NUM_THREADS * each, 2) for each in per_processor]
    return {"steps_per_second": found.rates(), "ratios": ratios}


def measure_all(games: list[str], sizes: list[int], **how: Any) -> dict[str, Any]:
    """The report."""
    rows = {game: compare_three(game, NUM_ENVS, **how) for game in games}
    medians = [row["over_AtariVectorEnv"][0] for name, row in rows.items() if name not in HEADLINE]
    return {
        "seconds": how["seconds"],
        "rounds": how["rounds"],
        "of": ("clock", "processor")[how["kind"]],
        "num_envs": NUM_ENVS,
        "num_threads": NUM_THREADS,
        "slowest": min(medians, default=None),
        "median": round(float(np.median(medians)), 2) if medians else None,
        "games": rows,
        "sizes": {str(size): compare_three("pong", size, **how) for size in sizes},
        **compare_observations(**how),
    }


def parse(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=7, help="measurements of each")
    parser.add_argument(
        "--processor", dest="kind", action="store_const", const=PROCESSOR, default=CLOCK,
        help="per second of processor time",
    )  # fmt: skip
    parser.add_argument("--games", default=",".join(GAMES), help="names with commas")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers with commas")
    return parser.parse_args(words)


if __name__ == "__main__":
    options = parse()
    games = options.games.split(",")
    sizes = [int(size) for size in options.sizes.split(",") if size]
    how = {"seconds": options.seconds, "rounds": options.rounds, "kind": options.kind}
    sys.stdout.write(to_text(made_by() | measure_all(games, sizes, **how)))
