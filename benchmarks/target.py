"""The sequential test of a target return, simulated: how often it passes, how long it takes.

    python benchmarks/target.py

A game's lost points are drawn from a negative binomial distribution as wide as measured (standard
deviation 2.05 at a mean return of +18.4). A run's strength starts at +17.3 and rises by 0.03
to 0.17 every 50,000 steps, up to the given mean; it varies by 0.2, but not at exactly +18. It lasts
1.6 million steps more, and is tested when its estimate allows that, which is of sampled play: 0.5
lower, with a standard deviation of 0.3. Prints JSON.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray
from records import to_text

from pixelpong.evaluation import ERRORS, FEWEST, STAGES
from pixelpong.seeding import make_rng
from pixelpong.target import TEST_EVERY, TEST_MARGIN

_TARGET, _TESTS, _SIZE = 18.0, 32, 4.0  # the last one: of the distribution


def draw_returns(means: NDArray[Any], rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw the returns of N agents, each in as many games as the longest test has."""
    lost = np.maximum(21 - means, 0.01)[:, None]
    shape = len(means), STAGES[-1][0]
    return 21.0 - np.minimum(rng.negative_binomial(_SIZE, _SIZE / (_SIZE + lost), shape), 20)


def test(means: NDArray[Any], rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """Test N agents of these true means: whether each passes, and the games that it takes."""
    returns, size = draw_returns(means, rng), len(means)
    is_passed, is_on, games = np.zeros(size, bool), np.ones(size, bool), np.zeros(size)
    for count, lead in STAGES:
        so_far = returns[:, :count]
        mean, error = so_far.mean(axis=1), so_far.std(axis=1, ddof=1) / count**0.5
        games[is_on] = count
        is_passed |= is_on & (count >= FEWEST) & (mean - ERRORS * error >= _TARGET)
        is_on &= ~is_passed & (mean >= _TARGET + lead)
    return is_passed, games


def train(highest: float, count: int, rng: np.random.Generator) -> dict[str, float]:
    """Simulate whole runs, whose mean return stops at `highest`."""
    slopes, is_on = rng.uniform(0.03, 0.17, count), np.ones(count, bool)
    games, steps, passed = np.zeros(count), np.zeros(count), list[float]()
    for number in range(_TESTS):
        noise = 0.2 * rng.standard_normal(count) if highest > _TARGET else 0.0
        means = np.minimum(17.3 + number * slopes, highest) + noise
        is_tried = is_on & (means - 0.5 + 0.3 * rng.standard_normal(count) >= _TARGET - TEST_MARGIN)
        is_passed, played = test(means, rng)
        is_passed &= is_tried
        games[is_tried] += played[is_tried]
        passed += means[is_on & is_passed].tolist()
        is_on &= ~is_passed
        steps[is_on] += TEST_EVERY
    below = np.mean(np.array(passed) < _TARGET) if highest > _TARGET else None
    return {
        "passed": 1 - is_on.mean(),
        "games": games.mean(),
        "steps": steps.mean(),
        "mean_passed": np.mean(passed),
        "below_target": below,
    }


def main() -> None:
    """Simulate, and print a report."""
    rng, report = make_rng(0, "bench"), {"stages": STAGES, "fewest": FEWEST, "errors": ERRORS}
    report["tests"] = []
    for mean in (17.8, 18.0, 18.2, 18.4, 18.6, 18.8, 19.0):
        is_passed, games = test(np.full(100_000, mean), rng)
        report["tests"].append({"mean": mean, "passed": is_passed.mean(), "games": games.mean()})
    report["trainings"] = [{"highest": it, **train(it, 20_000, rng)} for it in (18.0, 18.6, 19.2)]
    sys.stdout.write(to_text(report))


if __name__ == "__main__":
    main()
