"""The bench measures what it says, in one run."""

from __future__ import annotations

import importlib
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
from pixelpong.machine import count_cores

ROOT = Path(__file__).parents[1]
SCRIPTS = ROOT / "benchmarks"


def children(pid):
    """Process ids of the children of a process."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def run_script(name, *words):
    """What a script of benchmarks/ reports, and what it says meanwhile."""
    command = [sys.executable, str(SCRIPTS / name), *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


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
@pytest.mark.timeout(120)
def test_startup_is_measured_from_outside():
    report, _ = run_script("startup.py", "--rounds", "1")
    assert 0 < report["help_seconds"] < report["first_update_seconds"]
    assert 30 < report["peak_mb"] < 600


@pytest.mark.slow
def test_the_ladder_trains_its_rungs_and_goes_on_where_it_stopped(tmp_path):
    out = tmp_path / "ladder.json"
    words = [
        "--steps",
        "9000",
        "--seeds",
        "1",
        "--only",
        "+ PPO",
        "--workers",
        "1",
        "--out",
        str(out),
    ]
    report, told = run_script("ladder.py", *words)
    (curve,) = [each["curve"] for each in report["rungs"]["+ PPO"]["seeds"].values()]
    assert all(share is None or 0 <= share <= 1 for share in curve)
    assert "+ PPO" in told
    assert "<svg" in out.with_suffix(".svg").read_text("utf-8")
    assert run_script("ladder.py", *words)[1] == ""


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


def test_two_types_of_processor_won_after_the_same_steps_with_the_same_bits():
    names = ("solve.json", "solve_xeon.json")
    reports = [json.loads((ROOT / "benchmarks" / name).read_text("utf-8")) for name in names]
    assert len({report["machine"]["processor"] for report in reports}) == 2
    results = [
        [(seed["seed"], seed["steps"], seed["params_sha256"]) for seed in report["seeds"]]
        for report in reports
    ]
    assert results[0] == results[1]


# --- clusters ---------------------------------------------------------------------------------


def test_whoever_is_idle_takes_the_next_item_in_the_model(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    predict_seconds = importlib.import_module("cluster").predict_seconds
    assert predict_seconds([1.0], 10, 2, 0.0) == 5.0
    assert predict_seconds([3.0, 1.0, 1.0, 1.0], 4, 2, 0.0) == 3.0
    assert predict_seconds([1.0], 10, 1000, 0.0) == 1.0
    assert predict_seconds([1.0], 1000, 1000, 0.01) == pytest.approx(10.01)  # the driver is full


@pytest.mark.slow
def test_batches_are_timed_beside_the_originals_figures():
    words = ["batches", "--engine", "serial", "--batch-sizes", "1,10"]
    report, _ = run_script("cluster.py", *words)
    one, ten = report["batches"]
    assert one["episodes"] == 1
    assert one["seeds"] is None
    assert ten["seeds"] == {"machine": "64 cores", "seconds": 2.5}
    assert ten["seconds"] > 3 * report["episode_seconds"]
    predicted = report["predicted"]
    for size in ("10", "300"):  # the driver may be the limit, which no core lifts
        assert predicted[0][size] >= predicted[-1][size] > report["driver_seconds_per_item"]


@pytest.mark.ray
def test_the_drivers_own_work_is_measured():
    report, _ = run_script("cluster.py", "driver", "--actors", "2", "--items", "1,4")
    rows = report["rows"]
    assert [(row["mode"], row["ray_mode"], row["items"]) for row in rows] == [
        ("classic", "actors", 1), ("classic", "actors", 4),
        ("fast", "actors", 16), ("fast", "tasks", 16),
    ]  # fmt: skip
    for row in rows:  # processor time of several threads
        elapsed = row["wall_seconds"] + row["learn_seconds"]
        assert 0 < row["driver_seconds"] < count_cores() * elapsed
    assert rows[1]["wall_seconds"] >= 2 * rows[1]["steps"] / 4 * report["sleep_step_seconds"]


@pytest.mark.soak
def test_viewers_cost_little_and_see_updates_soon():
    report, _ = run_script("viewers.py", "--viewers", "5", "--rounds", "1", "--updates", "8")
    assert report["updates_received"] >= 5 * 4  # those before they were there are not seen
    assert 0 < report["delay_p99_seconds"] < 5
    assert report["ratio"] > 0.3
    assert 0 < report["server_core_share"] < 1


# --- the emulator by itself -------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_the_emulators_forms_are_measured_beside_ale():
    report, said = run_script("emulator.py", "--rounds", "3", "--seconds", "0.02")
    steps = report["steps"]
    assert steps["field"]["ratio"] > 10 > 2 * steps["Emulator, ale"]["ratio"]
    assert steps["field"]["ratio"] > steps["field, nothing skipped"]["ratio"]
    assert 0 < report["later"]["console"] < report["first"]["console"] / 5
    assert report["threads"]["ratio"] > 0
    assert report["snapshots"]["console: take"] < 100
    assert "two threads ÷ one" in said

    def shape(value):
        is_report = isinstance(value, dict)
        return {name: shape(each) for name, each in value.items()} if is_report else None

    recorded = json.loads((ROOT / "benchmarks/emulator.json").read_text("utf-8"))
    for part in ("steps", "threads", "first", "later", "snapshots", "machine"):
        assert shape(recorded[part]) == shape(report[part]), part


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
