"""The sequential test of a target return, simulated: how often it passes, how long it takes.

    python benchmarks/verdict.py

A game's lost points are drawn from a negative binomial distribution as wide as measured (standard
deviation 2.05 at a mean return of +18.4). A training's strength begins at +17.3 and rises by 0.03
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
from pixelpong.session import LOOK_EVERY, LOOK_MARGIN

_TARGET, _TESTS, _SIZE = 18.0, 32, 4.0  # the last one: of the distribution


def play(means: NDArray[Any], rng: np.random.Generator) -> NDArray[np.float64]:
    """The returns of as many games as the longest test has, of each of N agents."""
    lost = np.maximum(21 - means, 0.01)[:, None]
    shape = len(means), STAGES[-1][0]
    return 21.0 - np.minimum(rng.negative_binomial(_SIZE, _SIZE / (_SIZE + lost), shape), 20)


def test(means: NDArray[Any], rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """Test N agents of these true means: whether each passes, and the games that it takes."""
    returns, size = play(means, rng), len(means)
    is_passed, is_on, games = np.zeros(size, bool), np.ones(size, bool), np.zeros(size)
    for count, lead in STAGES:
        some = returns[:, :count]
        mean, error = some.mean(axis=1), some.std(axis=1, ddof=1) / count**0.5
        games[is_on] = count
        is_passed |= is_on & (count >= FEWEST) & (mean - ERRORS * error >= _TARGET)
        is_on &= ~is_passed & (mean >= _TARGET + lead)
    return is_passed, games


def train(highest: float, count: int, rng: np.random.Generator) -> dict[str, float]:
    """Whole trainings, which do not get better than `highest`."""
    slopes, is_on = rng.uniform(0.03, 0.17, count), np.ones(count, bool)
    games, steps, passed = np.zeros(count), np.zeros(count), list[float]()
    for number in range(_TESTS):
        noise = 0.2 * rng.standard_normal(count) if highest > _TARGET else 0.0
        means = np.minimum(17.3 + number * slopes, highest) + noise
        is_tried = is_on & (means - 0.5 + 0.3 * rng.standard_normal(count) >= _TARGET - LOOK_MARGIN)
        is_passed, played = test(means, rng)
        is_passed &= is_tried
        games[is_tried] += played[is_tried]
        passed += means[is_on & is_passed].tolist()
        is_on &= ~is_passed
        steps[is_on] += LOOK_EVERY
    found = {"passed": 1 - is_on.mean(), "games": games.mean(), "steps": steps.mean()}
    below = np.mean(np.array(passed) < _TARGET) if highest > _TARGET else None
    return found | {"mean_passed": np.mean(passed), "below_target": below}


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
