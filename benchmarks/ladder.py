"""The ladder of chapter 10 on Pong itself: from REINFORCE to the preset fast, one change at a time.

    python benchmarks/ladder.py --steps 400000 --seeds 0-2

Every rung is a set of options of the package. The report is written after each training, and a
training that it already holds is not repeated, so you can stop and start again.

Covered: the trainings, the report, its plot. Not covered: rungs that no option expresses, such as
the features without the gated units.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from records import made_by, to_text

import pixelpong
from pixelpong.faces.palette import COLOURS, DASHES
from pixelpong.faces.plots import house_style, new_figure, render
from pixelpong.machine import collect_versions, describe_machine
from pixelpong.sweeps.grid import read_seeds

HERE = Path(__file__).parent
POINTS = 24
"""Of a recorded curve: each is the share of points won in that part of the training."""

CLASSIC = {"preset": "classic"}
LONG_ROUNDS = {"num_envs": 8, "num_steps": 1024}
"""A dozen points in a row from each game, so that few are cut off."""

EVERYTHING_OFF = {
    "preset": "fast",
    "gamma": 0.99,  # as in the classic mode
    **LONG_ROUNDS,
    "vf_coef": 0.0,  # nothing teaches the value, so it stays near 0
    "gae_lambda": 1.0,  # then the advantage is the return
    "update_epochs": 1,
    "num_minibatches": 1,
    "clip_coef": 10.0,  # one step per update: nothing to clip
    "anneal_from": 1.0,
    "restart_after": 0,
}
CHANGES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("features, gated units", {}),
    ("+ baseline", {"vf_coef": 4.0}),
    ("+ actor-critic", {"num_envs": 128, "num_steps": 64}),
    ("+ GAE", {"gae_lambda": 0.95}),
    ("+ PPO", {"update_epochs": 3, "num_minibatches": 4, "clip_coef": 0.2}),
    ("+ discount 0.999", {"gamma": 0.999}),
    ("+ falling rate", {"anneal_from": 0.5, "restart_after": 400_000}),
)

REMOVALS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("PPO without a critic", {"vf_coef": 0.0, "gae_lambda": 1.0, **LONG_ROUNDS}),
    ("PPO without GAE", {"gae_lambda": 1.0}),
    ("PPO with one epoch", {"update_epochs": 1}),
    ("PPO without the clip", {"clip_coef": 10.0}),
)
"""One piece of the rung "+ PPO" taken away again."""


def list_rungs() -> dict[str, dict[str, Any]]:
    """The options of each rung, from the lowest, and of `REMOVALS`.

    Each rung is the one below it with one change.
    """
    rungs: dict[str, dict[str, Any]] = {"REINFORCE": CLASSIC}
    options = EVERYTHING_OFF
    for name, change in CHANGES:
        options = {**options, **change}
        rungs[name] = options
    return rungs | {name: {**rungs["+ PPO"], **change} for name, change in REMOVALS}


def train(options: dict[str, Any], seed: int, steps: int, workers: int | None) -> dict[str, Any]:
    """Train once and summarise the share of points won.

    Args:
        options: of a rung.
        seed: of the training.
        steps: decisions of the agent, at least.
        workers: threads; one a core if None.
    """
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="pixelpong-ladder-") as folder:
        run = pixelpong.train(
            **options, run=f"{folder}/run", quiet=True, seed=seed, total_timesteps=steps,
            until_return=None, workers=workers, save_agent_every=0, save_every=10**6,
        )  # fmt: skip
        metrics = run.metrics()
    return {"curve": average(metrics, steps), "seconds": round(time.perf_counter() - begin, 1)}


def average(metrics: dict[str, Any], steps: int) -> list[float | None]:
    """The share of points won in each part of a training; None if no point ended in it."""
    played = np.diff(metrics["steps"], prepend=0)
    points = np.nan_to_num(played / metrics["steps_per_point"])
    won = np.nan_to_num(points * metrics["points_won_share"])
    places = np.minimum(metrics["steps"] * POINTS // (steps + 1), POINTS - 1)
    totals = [
        (won[places == place].sum(), points[places == place].sum()) for place in range(POINTS)
    ]
    return [round(float(part / whole), 4) if whole else None for part, whole in totals]


def measure(
    path: Path, steps: int, seeds: list[int], workers: int | None, only: list[str]
) -> dict[str, Any]:
    """Train every rung with every seed, and write the report after each.

    Args:
        path: of the report; what it holds is kept.
        steps: of each training.
        seeds: of the trainings.
        workers: threads.
        only: names of rungs; all if empty.
    """
    report: dict[str, Any] = {"steps": steps, "rungs": {}}
    if path.exists():
        report = json.loads(path.read_text("utf-8"))
        assert report["steps"] == steps, f"expected {steps} steps in {path}, got {report['steps']}"
    report = made_by() | report  # the first command of several stays
    report |= {"versions": collect_versions(), "machine": describe_machine()}
    for seed in seeds:
        for name, options in list_rungs().items():
            if only and name not in only:
                continue
            rung = report["rungs"].setdefault(name, {"options": options, "seeds": {}})
            if str(seed) in rung["seeds"]:
                continue
            rung["seeds"][str(seed)] = train(options, seed, steps, workers)
            path.write_text(to_text(report), "utf-8")
            print(describe(name, rung), file=sys.stderr, flush=True)
    return report


def plot(report: dict[str, Any], path: Path) -> None:
    """Draw each rung's curve, with a band over the seeds, and the final share of every seed."""
    with house_style():
        figure = new_figure(10, 4.6)
        left, right = figure.subplots(1, 2, width_ratios=[3, 2])
        grid = (np.arange(POINTS) + 0.5) * report["steps"] / POINTS / 1000
        for number, (name, rung) in enumerate(report["rungs"].items()):
            colour = COLOURS[number % len(COLOURS)]
            shares = [final_share(each) for each in rung["seeds"].values()]
            right.plot(shares, [number] * len(shares), "o", color=colour)
            if name in dict(REMOVALS):
                continue
            curves = np.array([each["curve"] for each in rung["seeds"].values()], float)
            left.plot(grid, curves.mean(axis=0), color=colour, ls=DASHES[number % 6], label=name)
            low, high = curves.min(axis=0), curves.max(axis=0)
            left.fill_between(grid, low, high, color=colour, alpha=0.12, linewidth=0)
        left.set(xlabel="thousand steps", ylabel="share of points won", ylim=(0, 1))
        left.legend(loc="upper left", fontsize=8)
        right.set(yticks=range(len(report["rungs"])), yticklabels=list(report["rungs"]))
        right.set(xlabel="share of points won at the end, each seed", xlim=(0, 1))
        right.invert_yaxis()
        path.write_bytes(render(figure, "svg"))


def final_share(training: dict[str, Any]) -> float:
    """The share of points won in the last twelfth of a training."""
    return statistics.fmean(share for share in training["curve"][-2:] if share is not None)


def describe(name: str, rung: dict[str, Any]) -> str:
    """The final share of each seed of a rung."""
    shares = [final_share(each) for each in rung["seeds"].values()]
    each = ", ".join(f"{share:.3f}" for share in shares)
    return f"{name:24} {statistics.fmean(shares):.3f}   seeds: {each}"


def parse(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, default=400_000, help="of each training")
    parser.add_argument("--seeds", default="0-2", help="such as 0-2")
    parser.add_argument("--workers", type=int, help="threads; by default one a core")
    parser.add_argument("--only", action="append", default=[], help="the name of a rung")
    parser.add_argument("--out", type=Path, default=HERE / "ladder.json", help="the report")
    parser.add_argument("--json", action="store_true", help="print the report")
    return parser.parse_args(words)


def main() -> None:
    """Measure and report."""
    given = parse()
    seeds = read_seeds([given.seeds])
    report = measure(given.out, given.steps, seeds, given.workers, given.only)
    plot(report, given.out.with_suffix(".svg"))
    if given.json:
        print(json.dumps(report))
        return
    for name, rung in report["rungs"].items():
        print(describe(name, rung))


if __name__ == "__main__":
    main()
