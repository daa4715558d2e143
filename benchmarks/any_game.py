"""All games with one set of settings: what the preset atari learns in each.

    nice python benchmarks/any_game.py --steps 2e6 --record benchmarks/any_game.json

Trains an agent for each game and seed, by default one after the other, and plays new games with
sampled actions. With --jobs, so many are trained at a time, each in one thread: the scores are the
same, and on N cores N jobs take less time than one. Each row is added to the record as soon as it
is there, and rows that the record has are not made again; so the command can be stopped at any time
and continues where it was. A training that was stopped is resumed. Games in which nothing ends
within the steps take longest.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import version
from pathlib import Path
from typing import Any

from records import made_by, to_text

import pixelpong
from pixelpong.atari.machine.cartridges import scored_names
from pixelpong.config.protocols import PONG
from pixelpong.errors import PixelpongError
from pixelpong.run.arrays import fingerprint
from pixelpong.run.directory import RunDirectory
from pixelpong.run.files import write_whole
from pixelpong.run.record import Record
from pixelpong.schema import decode
from pixelpong.scores import find_scores

CURVE = 24  # points of a curve
UNTRAINED_EPISODES = 30


def train(game: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """Train on a game, or continue; return its row."""
    path = options.folder / f"{game}-{seed}"
    workers = {"workers": 1} if options.jobs > 1 else {}
    limits = {"total_timesteps": options.steps, "final_episodes": options.episodes}
    began = time.process_time()
    if not path.exists():
        pixelpong.train(run=path, quiet=True, game=game, seed=seed, **limits, **workers)
    elif not Record.read(path).is_done:  # a run can end and its row still be missing
        pixelpong.resume(path, quiet=True, **workers)
    row = describe(RunDirectory(path)) | {"core_seconds": round(time.process_time() - began, 1)}
    return row | ({} if find_scores(game) else play_untrained(path))


def play_untrained(path: Path) -> dict[str, Any]:
    """Return the score of random play where none is published: that of the untrained agent."""
    tested = pixelpong.evaluate(path, UNTRAINED_EPISODES, checkpoint=0)
    error = tested.std / math.sqrt(len(tested.returns))
    return {"random": {"score": round(tested.mean_return, 2), "error": round(error, 4)}}


def describe(run: RunDirectory) -> dict[str, Any]:
    """Return the row of a finished run."""
    lines, evaluations = list(run.metrics.read()), list(run.evaluations.read())
    tested, last = evaluations[-1], lines[-1]
    returns = tested["returns"]
    deviation = tested["std"] / math.sqrt(len(returns))
    known = [line for line in lines if line["mean_return_100"] is not None]
    first = next(iter(run.episodes.read()), None)
    shown = known[:: max(1, len(known) // CURVE)]
    row = {
        "game": run.config.game,
        "seed": run.config.seed,
        "steps": last["steps"],
        "score": tested["mean_return"],
        "error": round(deviation, 4),
        "ci95": tested["ci95"],
        "episodes": len(returns),
        "best": max(returns),
        "first_game": None if first is None else first["episode_return"],
        "seconds": round(last["timing"]["training_seconds"], 1),
        "params_sha256": fingerprint_of(run),
    }
    curve = {
        "steps": [line["steps"] for line in shown],
        "score": [round(line["mean_return_100"], 2) for line in shown],
    }
    return row | find_pass(run.config.game, known) | {"curve": curve}


def find_pass(game: str, lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Say when the mean of the last games of the training first reached a person's score."""
    scores = find_scores(game)
    passed = [it for it in lines if scores and it["mean_return_100"] >= scores.human]
    if not passed:
        return {}
    seconds = round(passed[0]["timing"]["training_seconds"], 1)
    return {"human": {"steps": passed[0]["steps"], "seconds": seconds}}


def fingerprint_of(run: RunDirectory) -> str:
    """Return the hash of the final parameters."""
    arrays = run.checkpoints.load_latest().arrays
    return fingerprint({name: arrays[name] for name in ("W1", "W2", "b2")})


def run_all(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the report after each row."""
    report: dict[str, Any] = made_by() | {
        "versions": {name: version(name) for name in ("pixelpong", "numpy", "numba", "ale-py")},
        "steps": options.steps,
        "rows": [],
        "stopped": {},
    }
    if options.record.exists():
        before = decode(options.record.read_bytes(), dict[str, Any])
        report |= {name: before[name] for name in ("rows", "stopped")}
    done = {(row["game"], row["seed"]) for row in report["rows"]}
    games = options.games or [game for game in scored_names() if game != PONG]
    left = [(game, seed) for seed in options.seeds for game in games if (game, seed) not in done]
    for game, seed, result in train_all(left, options):
        if isinstance(result, PixelpongError):
            report["stopped"][game] = str(result)
            sys.stderr.write(f"{game}: {result}\n")
        else:
            report["rows"].append(result)
            report["stopped"].pop(game, None)
            sys.stderr.write(f"{game} {seed}: {result['score']} after {result['steps']}\n")
        yield report


def train_all(
    left: list[tuple[str, int]], options: argparse.Namespace
) -> Iterator[tuple[str, int, dict[str, Any] | PixelpongError]]:
    """Train on each game with each seed; yield a row, or why there is none, as soon as it ends."""
    with ProcessPoolExecutor(options.jobs) as pool:
        trainings = {pool.submit(train, *each, options): each for each in left}
        for training in as_completed(trainings):
            try:
                result = training.result()
            except PixelpongError as error:
                result = error
            yield *trainings[training], result


def parse(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("games", nargs="*", help="all by default")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--steps", type=lambda word: int(float(word)), default=2_000_000)
    parser.add_argument("--episodes", type=int, default=100, help="new games at the end")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time")
    parser.add_argument("--folder", type=Path, default=Path("runs/any_game"), help="for the runs")
    parser.add_argument("--record", type=Path, default=Path("any_game.json"))
    return parser.parse_args(words)


if __name__ == "__main__":
    chosen = parse()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(KeyboardInterrupt):
        for found in run_all(chosen):
            write_whole(chosen.record, to_text(found).encode())
