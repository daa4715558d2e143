"""The headline: the fast mode learns to win Pong, with the recorded bits.

``headline.json`` has the share of the points of the last four updates that each of 20 seeds won,
the parameters of seed 0, and the types of processors on which these, or those of its win, were the
same.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest
from promises import promise

from pixelpong.config.presets import load_preset
from pixelpong.learners import ppo
from pixelpong.loop import train
from pixelpong.machine import collect_versions, describe_machine
from pixelpong.run.directory import RunDirectory

RECORD = json.loads(Path(__file__).with_name("headline.json").read_text("utf-8"))
SOLVED = Path(__file__).parents[2] / "benchmarks/solve.json"

LEAST_SHARE = 0.15
"""Two thirds of what the weakest of the 20 seeds won; broken trainings won 0.02 at most."""


def learn(path, **changes):
    """Train with seed 0 for some seconds; the share of points won at last, and the parameters."""
    budget = {"updates": RECORD["updates"], "until_return": None}
    run = RunDirectory.create(path, load_preset("fast").updated(budget | changes, "test"))
    ended = train(run)
    shares = [line["points_won_share"] for line in run.metrics.read()]
    assert len(shares) == RECORD["updates"]
    return statistics.mean(shares[-4:]), ended.params_sha256


def is_recorded():
    """Whether this processor's type, with these libraries, is one that the bits are known of."""
    versions = collect_versions()
    is_same = all(versions[name] == version for name, version in RECORD["versions"].items())
    return is_same and describe_machine()["processor"] in RECORD["processors"]


@promise("it wins")
@pytest.mark.slow
def test_the_fast_mode_learns_to_win_points_with_the_recorded_bits(tmp_path):
    share, params_sha256 = learn(tmp_path / "run")
    assert share > LEAST_SHARE
    if is_recorded():
        assert params_sha256 == RECORD["params_sha256"]
        assert share == pytest.approx(RECORD["shares"][0], abs=5e-4)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("sign", "options"),
    [(-1, {}), (1, {"gamma": 0.0}), (1, {"learning_rate": 2e-4}), (1, {"update_epochs": 1})],
)
def test_a_training_that_is_broken_wins_fewer_points(sign, options, tmp_path, monkeypatch):
    advantages = ppo.generalized_advantages
    monkeypatch.setattr(ppo, "generalized_advantages", lambda *given: sign * advantages(*given))
    share, _ = learn(tmp_path / "run", **options)
    assert share < LEAST_SHARE / 2


@promise("it wins")
@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_the_fast_mode_wins_pong(tmp_path):
    """Greedy play at +18 or better; on a recorded processor after the recorded steps."""
    ended = train(RunDirectory.create(tmp_path / "run", load_preset("fast")))
    assert ended.reason == "until_return"
    if is_recorded():
        seed = json.loads(SOLVED.read_text("utf-8"))["seeds"][0]
        assert ended.progress.steps == seed["steps"]
        assert ended.params_sha256 == seed["params_sha256"]
