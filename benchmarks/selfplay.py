"""Self-play: how fast it is, and how good the champions are that a league trains.

    python benchmarks/selfplay.py rate --json
    python benchmarks/selfplay.py champions RUN … --games 50 --cartridge-games 200 --json

``rate`` plays rounds of segments without learning, in turn against the cartridge and against
itself, with the same parameters on the same cores, and compares the decisions of learned networks
per second: against itself there are two in a step. ``champions`` takes finished trainings of the
preset ``league``, lets their latest agents play scripted players, both sides in turn, and the
cartridge in greedy episodes of an evaluation, with seeds that no training uses.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import json
import math
import statistics
import sys
import time
from collections.abc import Iterable
from typing import Any

from pixelpong.agent.choice import load_agent
from pixelpong.config import Config
from pixelpong.config.presets import load_preset
from pixelpong.engines import make_engine, never
from pixelpong.engines.threads import ThreadEngine
from pixelpong.errors import PixelpongError
from pixelpong.evaluation import evaluate
from pixelpong.items import BUILTIN, SELF, Opponents, Params
from pixelpong.learners import make_learner
from pixelpong.machine import collect_versions, count_cores, describe_commit, describe_machine
from pixelpong.play.worker import make_worker
from pixelpong.run.directory import RunDirectory
from pixelpong.run.names import find_run
from pixelpong.tournament.games import Rules
from pixelpong.tournament.players import find_players
from pixelpong.tournament.tournament import carry_out

SCRIPTS = ("follower-0", "follower-100", "follower-200", "follower-200-noisy", "follower-330")

SEED = 1_000_003
"""Of all games that champions are measured by; no training uses it."""

OPPONENTS: dict[str, Opponents] = {
    "against the cartridge": ((BUILTIN, 1.0),),
    "against itself": ((SELF, 1.0),),
}


def measure_rate(params: Params, seconds: float, rounds: int) -> dict[str, Any]:
    """Decisions per second of learned networks, by opponent, and the medians' ratio.

    Args:
        params: play all games.
        seconds: of each measurement.
        rounds: in each, one measurement of each kind.
    """
    config = load_preset("fast")
    config = config.updated({"hidden": params["W1"].shape[1]}, "benchmark")
    engine = ThreadEngine(functools.partial(make_worker, config), count_cores(), 600.0, never)
    rates: dict[str, list[float]] = {name: [] for name in OPPONENTS}
    with contextlib.closing(engine):
        streams = {name: Streams(config, params, way) for name, way in OPPONENTS.items()}
        for _ in range(rounds):
            for name, each in streams.items():
                rates[name].append(each.play(engine, seconds))
    ratios = [two / one for one, two in zip(*rates.values(), strict=True)]
    medians = {name: round(statistics.median(found)) for name, found in rates.items()}
    return {
        "decisions_per_second": medians,
        "ratio": statistics.median(ratios),
        "ratios": [min(ratios), max(ratios)],
        "rounds": rounds,
    }


class Streams:
    """The streams of a training that meet one opponent."""

    def __init__(self, config: Config, params: Params, opponents: Opponents) -> None:
        self._params = params
        items = make_learner(config).items()
        self._items = [dataclasses.replace(item, opponents=opponents) for item in items]

    def play(self, engine: ThreadEngine, seconds: float) -> float:
        """Play rounds of segments for this long; return decisions per second."""
        begin, decisions = time.perf_counter(), 0
        while time.perf_counter() - begin < seconds:
            results = list(engine.run(self._items, self._params))
            decisions += sum(len(segment) for each in results for segment in each.segments)
            self._items = [
                dataclasses.replace(item, update=item.update + 1, state=result.state)
                for item, result in zip(self._items, results, strict=True)
            ]
        return decisions / (time.perf_counter() - begin)


def measure_champion(
    word: str, scripts: Iterable[str], games: int, cartridge_games: int
) -> dict[str, Any]:
    """How the latest agent of a training does against scripted players and the cartridge."""
    run = RunDirectory.open(find_run(word))
    agent = load_agent(run, "latest")
    seconds = [line["timing"]["wall_seconds"] for line in run.metrics.read()]
    returns = {}
    for script in scripts:
        players = find_players([f"{word}@{agent.about['update']}", script])
        played = carry_out(players, games // 2, Rules(seed=SEED), count_cores(), never)
        own = [
            each.points[place] - each.points[1 - place]
            for each in played
            for place in [each.players.index(players[0].name)]
        ]
        returns[script] = describe(own)
    workers = functools.partial(make_worker, run.config)
    with contextlib.closing(make_engine(run.config.engine, workers)) as engine:
        greedy = evaluate(engine, agent.params, seed=SEED, episodes=cartridge_games, is_greedy=True)
    return {
        "run": run.path.name,
        "seed": run.config.seed,
        "steps": agent.about["steps"],
        "params_sha256": agent.about["params_sha256"],
        "minutes": round(seconds[-1] / 60, 2),
        "returns": returns,
        "cartridge": {"mean": greedy.mean_return, "ci95": greedy.ci95, "games": cartridge_games},
    }


def describe(returns: list[int]) -> dict[str, Any]:
    """Mean, standard error and number of returns."""
    error = statistics.stdev(returns) / math.sqrt(len(returns))
    return {
        "mean": round(statistics.mean(returns), 2),
        "error": round(error, 2),
        "games": len(returns),
    }


def main() -> int:
    """Run from the command line; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    rate = kinds.add_parser("rate")
    rate.add_argument("--seconds", type=float, default=4.0)
    rate.add_argument("--rounds", type=int, default=7)
    champions = kinds.add_parser("champions")
    champions.add_argument("runs", nargs="+")
    champions.add_argument("--scripts", default=",".join(SCRIPTS), help="with commas")
    champions.add_argument("--games", type=int, default=50, help="against each script")
    champions.add_argument("--cartridge-games", type=int, default=200)
    for each in (rate, champions):
        each.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    about = {
        "command": " ".join(["python", "benchmarks/selfplay.py", *sys.argv[1:]]),
        "machine": describe_machine(),
        "versions": collect_versions(),
        "commit": describe_commit(),
    }
    try:
        if given.kind == "rate":
            found: Any = measure_rate(load_agent(None).params, given.seconds, given.rounds)
            print(json.dumps(about | found, indent=2) if given.json else found)
            return 0
        found = []
        for word in given.runs:
            scripts = given.scripts.split(",")
            found.append(measure_champion(word, scripts, given.games, given.cartridge_games))
            print(found[-1], file=sys.stderr, flush=True)
        print(json.dumps(about | {"champions": found}, indent=2) if given.json else "")
    except PixelpongError as error:
        print(f"selfplay: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
