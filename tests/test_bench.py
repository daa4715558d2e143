"""The bench measures what it says, in one run."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import wait_until

from pixelpong.bench import solve as solve_module
from pixelpong.bench.record import recorded_steps
from pixelpong.bench.solve import summarize
from pixelpong.config.presets import load_preset

ROOT = Path(__file__).parents[1]


def children(pid):
    """Process ids of the children of a process."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.timeout(120)
def test_throughput_reports_rates_and_ratios(report):
    report = report("bench", "throughput", "--seconds", "0.3", "--rounds", "3")
    assert set(report["steps_per_second"]) == {
        "ale", "emulator", "rollouts", "classic", "fast", "dense_loop",
    }  # fmt: skip
    assert set(report["ratios"]) == set(report["steps_per_second"]) - {"ale"}
    assert set(report["spread"]) == set(report["ratios"])
    for name, ratio in report["ratios"].items():
        before_and_after = report["measured"]["ale"]
        low, high = min(before_and_after), max(before_and_after)
        assert report["steps_per_second"][name] / high <= ratio
        assert ratio <= report["steps_per_second"][name] / low
    assert report["steps_per_second"]["ale"] > 1000
    ratios = report["ratios"]
    assert ratios["dense_loop"] < min(1.2, ratios["classic"]) < ratios["emulator"]
    assert max(ratios["rollouts"], ratios["classic"], ratios["fast"]) < ratios["emulator"]
    assert ratios["emulator"] > 10


@pytest.mark.slow
def test_solve_trains_from_outside_and_writes_what_it_found(report, tmp_path, monkeypatch):
    """As it is but for the game: two hundred games of Pong to evaluate one seed take a minute."""
    toy = load_preset("fast").updated({"environment": "Catch-v0"}, "test")
    monkeypatch.setattr(solve_module, "load_preset", lambda name: toy)
    words = ["--seeds", "1", "--steps", "9000", "--target", "-21", "--out", tmp_path]
    report = report("bench", "solve", *words)
    assert json.loads((tmp_path / "solve.json").read_text()) == report
    (result,) = report["seeds"]
    assert result["seed"] == 1
    assert result["is_won"]  # at −21 everybody does
    assert 8192 <= result["steps"] <= 3 * 8192
    assert 0 < result["seconds"] < result["whole_command_seconds"]
    bound = result["steps"] / result["ale_steps_per_second"]
    assert result["ale_bound_seconds"] == pytest.approx(bound)
    assert result["greedy"]["episodes"] == 200
    assert 100 < result["peak_memory_mb"] < 1500
    assert report["summary"]["won"] == report["summary"]["within_twice_the_median"] == 1
    assert report["command"] == [
        "train", "--preset", "fast", "--steps", "9000", "--until-return", "-21.0",
    ]  # fmt: skip
    assert (tmp_path / "solve.svg").read_bytes().startswith(b"<?xml")


def test_a_summary_counts_only_what_won():
    def seed(seconds, is_won=True):
        return {
            "is_won": is_won, "seconds": seconds, "steps": 1000 * seconds,
            "ale_bound_seconds": seconds / 2, "peak_memory_mb": seconds,
        }  # fmt: skip

    summary = summarize([seed(100), seed(120), seed(250), seed(400, is_won=False)])
    assert (summary["seeds"], summary["won"]) == (4, 3)
    assert summary["seconds"]["median"] == 120
    assert summary["steps"]["median"] == 120_000
    assert summary["within_twice_the_median"] == 2
    assert summary["peak_memory_mb"] == 400
    assert summarize([seed(5, is_won=False)]) == {"seeds": 1, "won": 0}


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_forecast_is_the_recorded_steps_at_the_measured_pace(report):
    report = report("bench", "predict", "--seconds", "6")
    rate, steps = report["steps_per_second"]["fast"], recorded_steps()
    assert report["recorded_steps"] == steps
    assert report["seconds"] == pytest.approx(statistics.median(steps) / rate)
    assert report["range"] == pytest.approx([min(steps) / rate, max(steps) / rate])
    assert 0.3 < rate / report["steps_per_second"]["ale"] < 40


def test_the_forecast_rests_on_the_recorded_seeds():
    """What the package carries are the steps of the file that the repository shows."""
    path = ROOT / "benchmarks/solve.json"
    report = json.loads(path.read_text("utf-8"))
    won = [result["steps"] for result in report["seeds"] if result["is_won"]]
    assert sorted(recorded_steps()) == sorted(won)


@pytest.mark.slow
def test_processes_that_measure_end_when_the_bench_is_killed(tmp_path):
    (tmp_path / "measures.py").write_text(
        "from pixelpong.bench.throughput import measure_apart, play_bare\n"
        "if __name__ == '__main__':\n"
        "    with measure_apart(play_bare, 2) as measure:\n"
        "        measure(0.01)\n"
        "        print('started', flush=True)\n"
        "        measure(600)\n"
    )
    command = [sys.executable, str(tmp_path / "measures.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "started\n"
        started = children(process.pid)
        assert len(started) >= 2
        process.kill()
    assert wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in started))
