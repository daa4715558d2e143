"""How noisy the gradient is at three stages of a training, and what that says of batch sizes.

    python benchmarks/noise.py --seeds 0-2 --json

The noise scale B = tr(Σ) / |G|² is the batch, in steps, at which the noise of a gradient is as
long as the gradient. Well below it, twice the batch is worth twice the optimizer's steps; well
above it, a larger batch is worth nothing. G is the mean gradient, Σ the covariance of the gradients
of single steps. Both follow from the lengths of gradients over small and large batches:
E|G_b|² = |G|² + tr(Σ) / b.

Source: McCandlish et al. (2018), "An Empirical Model of Large-Batch Training", appendix A.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import statistics
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.config import Config
from pixelpong.config.presets import load_preset
from pixelpong.engines import Engine, make_engine
from pixelpong.items import SegmentItem, SegmentResult
from pixelpong.learn.ppo import LossWeights
from pixelpong.learners.passes import Crew, Passes, Steps
from pixelpong.learners.ppo import PPOLearner, lay_out
from pixelpong.machine import collect_versions, count_cores, describe_commit, describe_machine
from pixelpong.play.worker import make_worker
from pixelpong.seeding import make_rng

STAGES = {"early": 0.1, "middle": 0.5, "late": 0.9}
"""Share of points won at which each stage begins."""

ROUNDS = 16
"""Rounds that are played with the same parameters: the large batch."""

NUM_SMALL = 64
"""Small batches, each as large as a minibatch of the training."""


def measure(config: Config) -> dict[str, Any]:
    """Train with a seed, and measure at each stage.

    Args:
        config: of a fast training.
    """
    learner, stages = PPOLearner(config), {}
    engine = make_engine(config.engine, functools.partial(make_worker, config))
    with contextlib.closing(engine):
        for name, share in STAGES.items():
            while (learner.progress.points_won_1000 or 0.0) < share:
                learner.apply(engine.run(learner.items(), learner.params))
            played = play_on(engine, learner)
            stages[name] = {
                "steps": learner.progress.steps,
                "points_won_1000": learner.progress.points_won_1000,
                **compare(learner, played, config),
            }
            tell(f"seed {config.seed}, {name}: {stages[name]}")
    return {"seed": config.seed, "stages": stages}


def play_on(engine: Engine, learner: PPOLearner) -> list[SegmentResult]:
    """More rounds from where the streams stand, with the same parameters."""
    items, played = learner.items(), []
    for number in range(ROUNDS):
        items = [SegmentItem(item.seed, 10**6 + number, item.stream, item.state) for item in items]
        results = list(engine.run(items, learner.params))
        items = [
            SegmentItem(item.seed, 0, item.stream, result.state)
            for item, result in zip(items, results, strict=True)
        ]
        played += results
    return played


def compare(learner: PPOLearner, played: list[SegmentResult], config: Config) -> dict[str, float]:
    """The noise scale in steps: of steps drawn one by one, and of whole segments."""
    left = learner.share_left()
    steps, _ = lay_out(played, config.learning.discount, learner.lambda_at(left))
    horizon, total = config.ppo.horizon, len(steps)
    size = config.ppo.streams * horizon // config.ppo.minibatches
    rng = make_rng(config.seed, "bench")
    single = [np.sort(rng.permutation(total)[:size]) for _ in range(NUM_SMALL)]
    segments = [
        np.sort(rng.permutation(total // horizon)[: size // horizon]) for _ in range(NUM_SMALL)
    ]
    whole = [(horizon * some[:, None] + np.arange(horizon)).ravel() for some in segments]
    length = functools.partial(squared_length, learner, steps, config, left)
    large = length(np.arange(total))
    return {
        "noise_scale_steps": noise_scale([*map(length, single)], size, large, total),
        "noise_scale_segments": noise_scale([*map(length, whole)], size, large, total),
    }


def squared_length(
    learner: PPOLearner, steps: Steps, config: Config, left: float, chosen: NDArray[np.int64]
) -> float:
    """|G|² of a batch of steps, at the parameters that played them."""
    ppo = config.ppo
    weights = LossWeights(ppo.clip_ratio, ppo.value_weight, left**2 * ppo.entropy_bonus)
    passes = Passes(config.network.hidden, config.network.dtype)
    arrays = {
        name: (w.copy(), np.zeros_like(w), np.zeros_like(w)) for name, w in learner.params.items()
    }
    with Crew(count_cores()) as crew:
        passes.differentiate(learner.params, steps, chosen, weights, crew)
        return sum(passes.descend(arrays, 0.0, 1, crew).values())


def noise_scale(small: list[float], size: int, large: float, total: int) -> float:
    """tr(Σ) / |G|², without bias in either, from squared lengths of gradients."""
    mean = statistics.mean(small)
    variance = (mean - large) / (1 / size - 1 / total)
    signal = (total * large - size * mean) / (total - size)
    return variance / signal


def tell(text: str) -> None:
    """Say how it goes."""
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0-2", help="as 0-2")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    fast = load_preset("fast")
    rows = [
        measure(fast.updated({"seed": seed}, "bench"))
        for seed in range(int(first), int(last or first) + 1)
    ]
    names = ("noise_scale_steps", "noise_scale_segments")
    report = {
        "stages": {
            stage: {
                name: statistics.median(row["stages"][stage][name] for row in rows)
                for name in names
            }
            for stage in STAGES
        },
        "seeds": rows,
        "commit": describe_commit(),
        "versions": collect_versions(),
        "machine": describe_machine(),
    }
    lines = [
        f"{stage:8} {report['stages'][stage][names[0]]:10.0f} steps drawn one by one, "
        f"{report['stages'][stage][names[1]]:10.0f} in segments"
        for stage in STAGES
    ]
    print(json.dumps(report, indent=1) if options.json else "\n".join(lines))


if __name__ == "__main__":
    main()
