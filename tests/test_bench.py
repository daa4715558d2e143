"""The bench measures what it says, in one run."""

from __future__ import annotations

import json

import pytest

from pixelpong.cli import main


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_throughput_reports_rates_and_ratios(capsys):
    assert main(["bench", "throughput", "--seconds", "1", "--rounds", "1", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert set(report["steps_per_second"]) == {"emulator", "rollouts", "classic", "dense_loop"}
    assert set(report["ratios"]) == {"rollouts", "classic", "dense_loop"}
    bare = report["steps_per_second"]["emulator"]
    for name, ratio in report["ratios"].items():
        before_and_after = report["measured"]["emulator"]
        low, high = min(before_and_after), max(before_and_after)
        assert report["steps_per_second"][name] / high <= ratio
        assert ratio <= report["steps_per_second"][name] / low
    assert bare > 1000
    assert report["ratios"]["dense_loop"] < report["ratios"]["classic"] < 1.2


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_startup_is_measured_from_outside(capsys):
    assert main(["bench", "startup", "--rounds", "1", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert 0 < report["help_seconds"] < report["first_update_seconds"]
    assert 30 < report["worker_peak_mb"] < 400
    assert 30 < report["driver_peak_mb"] < 600
