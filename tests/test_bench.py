"""The scripts in `benchmarks/` run, and the package carries what they recorded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pixelpong.faces.recorded import recorded_steps

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_throughput_reports_a_rate_and_a_ratio_to_bare_ale():
    words = ["benchmarks/throughput.py", "--seconds", "0.1", "--rounds", "1", "--workers", "1"]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, check=True)
    report = json.loads(done.stdout)
    rows = {"emulator", "rollouts", "classic", "fast", "dense_loop"}
    assert set(report["steps_per_second"]) == rows | {"ale"}
    for name in rows:
        low, high = min(report["measured"]["ale"]), max(report["measured"]["ale"])
        rate, ratio = report["steps_per_second"][name], report["ratios"][name]
        assert rate / high <= ratio <= rate / low


def test_the_time_to_the_win_rests_on_the_recorded_seeds():
    """What the package carries are the steps of the file that the repository shows."""
    report = json.loads((ROOT / "benchmarks/solve.json").read_text("utf-8"))
    won = [result["steps"] for result in report["seeds"] if result["is_won"]]
    assert sorted(recorded_steps()) == sorted(won)
