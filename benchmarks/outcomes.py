"""What presets end with: each is trained to its own end, and its last agent plays greedy games.

    python benchmarks/outcomes.py numpy ray classic karpathy half --seed 2 > benchmarks/presets.json

A preset with a seed of its own keeps it. A run with the name PRESET-SEED that has ended is not
trained again, and one that was interrupted continues.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from records import made_by, to_text

import pixelpong
from pixelpong.config.presets import load_preset
from pixelpong.machine import describe_machine


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("presets", nargs="+")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--games", type=int, default=40, help="greedy games, with seed 1000")
    return parser.parse_args(words)


def train(preset: str, seed: int) -> pixelpong.Run:
    """The run of a preset, trained to its end."""
    name = f"{preset}-{seed}"
    if not Path("runs", name).exists():
        return pixelpong.train(preset, seed=seed, name=name, quiet=True)
    run = pixelpong.Run(name)
    return run if run.is_done else pixelpong.resume(name, quiet=True)


def describe_outcome(run: pixelpong.Run, games: int) -> dict[str, Any]:
    """A line of the record."""
    last = {name: values[-1] for name, values in run.metrics().items()}
    played = pixelpong.evaluate(run, games, checkpoint="latest", seed=1000)
    return {
        "preset": run.config.preset,
        "seed": run.config.seed,
        "environment": run.config.environment,
        "episodes": int(last["episodes"]),
        "steps": int(last["steps"]),
        "mean_return_100": round(float(last["mean_return_100"]), 2),
        "points_won_1000": round(float(last["points_won_1000"]), 4),
        "params_sha256": run.agent("latest").about["params_sha256"],
        "greedy": {"mean_return": played.mean_return, "ci95": played.ci95},
    }


def measure(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The lines, as they come."""
    for preset in options.presets:
        run = train(preset, load_preset(preset).seed or options.seed)
        row = describe_outcome(run, options.games)
        print(row, file=sys.stderr, flush=True)
        yield row


if __name__ == "__main__":
    given = parse()
    about = {"machine": describe_machine(), "games": given.games}
    print(to_text(made_by() | about | {"presets": list(measure(given))}), end="")
