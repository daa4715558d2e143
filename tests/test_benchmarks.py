"""The records of benchmarks/ have their form, and the scripts that write them run."""

from __future__ import annotations

import doctest
import importlib
import json
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from pixelpong.faces.display import steps_left

FOLDER = Path(__file__).parents[1] / "benchmarks"


def read(name):
    return json.loads((FOLDER / name).read_text("utf-8"))


def run_script(name, *words):
    """What a script reports, and what it says meanwhile."""
    command = [sys.executable, str(FOLDER / name), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_two_types_of_processor_won_after_the_same_steps_with_the_same_bits():
    reports = [read("solve.json"), read("solve_xeon.json")]
    assert len({report["machine"]["processor"] for report in reports}) == 2
    results = [
        [(seed["seed"], seed["steps"], seed["params_sha256"]) for seed in report["seeds"]]
        for report in reports
    ]
    assert results[0] == results[1]
    assert len(results[0]) == 20
    steps = [seed["steps"] for seed in reports[0]["seeds"]]
    assert steps_left(None) == statistics.median(steps), "what the package carries"


def test_records_are_written_with_a_line_for_each_row(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    records = importlib.import_module("records")
    assert doctest.testmod(records) == (0, 1)
    paths = list(FOLDER.glob("*.json"))
    assert len(paths) >= 5
    for path in paths:
        assert path.read_text("utf-8") == records.to_text(read(path.name)), path


@pytest.mark.slow
def test_batches_are_timed_beside_the_originals_figures():
    report, _ = run_script("batches.py", "--engine", "serial", "--sizes", "1,10", "--json")
    one, ten = report["batches"]
    assert (one["episodes"], ten["episodes"]) == (1, 10)
    assert ten["steps"] > 5 * one["steps"] > 0
    assert ten["rays_page"] == "2.5 s on 64 cores"


@pytest.mark.slow
def test_a_ladder_keeps_what_it_has_trained(tmp_path):
    out = tmp_path / "ladder.json"
    words = ["--steps", "3000", "--seeds", "0", "--only", "+ PPO", "--json", "--out", str(out)]
    report, told = run_script("ladder.py", *words)
    (curve,) = [each["curve"] for each in report["rungs"]["+ PPO"]["seeds"].values()]
    assert all(share is None or 0 <= share <= 1 for share in curve)
    assert "+ PPO" in told
    assert "<svg" in out.with_suffix(".svg").read_text("utf-8")
    assert run_script("ladder.py", *words)[1] == ""


@pytest.mark.slow
def test_throughput_reports_a_rate_and_a_ratio_to_bare_ale():
    words = ["--seconds", "0.1", "--rounds", "1", "--workers", "1"]
    report, _ = run_script("throughput.py", *words)
    rows = {"emulator", "rollouts", "classic", "fast", "dense_loop"}
    assert set(report["steps_per_second"]) == rows | {"ale"}
    for name in rows:
        low, high = min(report["measured"]["ale"]), max(report["measured"]["ale"])
        rate, ratio = report["steps_per_second"][name], report["ratios"][name]
        assert rate / high <= ratio <= rate / low
