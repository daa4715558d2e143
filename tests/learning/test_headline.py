r"""The headline: the fast mode learns to win Pong, with the recorded bits.

``headline.json`` has the share of the points of the last four updates that each of 20 seeds won,
and of seed 0 what it had learned after these updates, and how it won. That is the same on every
processor and system. With other versions of the libraries, the share alone is held.

With ``PIXELPONG_UPDATE_GOLDEN=1`` they are recorded again::

    PIXELPONG_UPDATE_GOLDEN=1 .venv/bin/pytest -m "slow or soak" -k fast_mode \
        tests/learning/test_headline.py
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from pathlib import Path

import pytest
from promises import promise

from pixelpong.config.presets import load_preset
from pixelpong.learners import ppo
from pixelpong.loop import train
from pixelpong.machine import collect_versions
from pixelpong.run.directory import RunDirectory

FILE = Path(__file__).with_name("headline.json")
RECORD = json.loads(FILE.read_text("utf-8"))
SOLVED = Path(__file__).parents[2] / "benchmarks/solve.json"
LIBRARIES = "numpy", "numba", "llvmlite"

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


def hold(what, found):
    """Compare with the record if it is of these libraries; or record it, if that is requested."""
    versions = {name: collect_versions()[name] for name in LIBRARIES}
    if os.environ.get("PIXELPONG_UPDATE_GOLDEN"):
        record = json.loads(FILE.read_text("utf-8")) | {"versions": versions, what: found}
        FILE.write_text(as_text(record), "utf-8")
    elif versions == RECORD["versions"]:
        assert found == RECORD[what]


def as_text(record):
    """The file: a line for each fact."""
    facts = [f' "{name}": {json.dumps(value)}' for name, value in record.items()]
    return "{\n" + ",\n".join(facts) + "\n}\n"


def test_the_record_agrees_with_the_benchmarks():
    assert as_text(RECORD) == FILE.read_text("utf-8")
    seed = json.loads(SOLVED.read_text("utf-8"))["seeds"][0]
    assert RECORD["won"] == {name: seed[name] for name in ("steps", "params_sha256")}
    assert RECORD["learned"]["share"] == RECORD["shares"][0]


def test_other_bits_are_noticed_and_other_libraries_are_held_to_none(tmp_path, monkeypatch):
    ours, file = sys.modules[__name__], tmp_path / "headline.json"
    file.write_text(FILE.read_text("utf-8"), "utf-8")
    monkeypatch.setattr(ours, "FILE", file)
    monkeypatch.setattr(ours, "collect_versions", lambda: RECORD["versions"])
    hold("won", RECORD["won"])
    with pytest.raises(AssertionError):
        hold("won", {"steps": 3})
    other = RECORD["versions"] | {"numpy": "1"}
    monkeypatch.setattr(ours, "collect_versions", lambda: other)
    hold("won", {"steps": 3})
    monkeypatch.setenv("PIXELPONG_UPDATE_GOLDEN", "1")
    hold("won", {"steps": 3})
    assert json.loads(file.read_text("utf-8")) == RECORD | {"versions": other, "won": {"steps": 3}}


@promise("it wins")
@pytest.mark.slow
def test_the_fast_mode_learns_to_win_points_with_the_recorded_bits(tmp_path):
    share, params_sha256 = learn(tmp_path / "run")
    assert share > LEAST_SHARE
    hold("learned", {"share": round(share, 3), "params_sha256": params_sha256})


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
    """Greedy play at +18 or better, after the recorded steps."""
    ended = train(RunDirectory.create(tmp_path / "run", load_preset("fast")))
    assert ended.reason == "until_return"
    hold("won", {"steps": ended.progress.steps, "params_sha256": ended.params_sha256})
