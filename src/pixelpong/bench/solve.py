"""How long until it wins: whole trainings from outside, seed after seed, and the forecast.

Each seed is a ``pixelpong train`` of its own, started as a user starts it. Its time to win is the
wall time from the start of the command to the verdict, evaluations in it.
Just before and after it bare ALE is measured on the same cores, so that figures of different
machines compare: *ALE-bound seconds* are steps ÷ that rate.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.resources
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pixelpong.bench.processes import children, memory_mb
from pixelpong.bench.throughput import measure_apart, measure_training, play_bare
from pixelpong.config.presets import load_preset
from pixelpong.engines.threads import ThreadEngine
from pixelpong.errors import RunError, expected
from pixelpong.machine import collect_versions, count_cores, describe_commit, describe_machine
from pixelpong.play.worker import make_worker
from pixelpong.run.directory import RunDirectory
from pixelpong.run.lines import LineFile
from pixelpong.seeding import make_rng
from pixelpong.session import Session

_TIMEOUT = 600.0
_RESAMPLES = 10_000

Report = dict[str, Any]


def solve(seeds: Sequence[int], workers: int | None, given: Sequence[str] = ()) -> Iterator[Report]:
    """Train once with each seed until it wins or its budget is spent.

    Args:
        seeds: one training each, one after the other.
        workers: threads; one a core if not given.
        given: more words for ``pixelpong train``.

    Yields:
        After each seed the report on all seeds so far.

    Raises:
        RunError: a training failed.
    """
    num_workers = workers or count_cores()
    results: list[Report] = []
    commit = describe_commit()  # now: the report itself may be written into the work tree
    with measure_apart(play_bare, num_workers) as measure:
        measure(0.1)  # starts the processes
        for seed in seeds:
            before = measure(3.0)
            result = _train_once(seed, num_workers, given)
            rate = statistics.mean([before, measure(3.0)])
            result["ale_steps_per_second"] = rate
            result["ale_bound_seconds"] = result["steps"] / rate
            results.append(result)
            yield {
                "command": ["train", "--preset", "fast", *given],
                "workers": num_workers,
                "seeds": results,
                "summary": summarize(results),
                "commit": commit,
                "versions": collect_versions(),
                "machine": describe_machine() | {"cores": count_cores()},
            }


def summarize(results: Sequence[Report]) -> Report:
    """Medians over the seeds that won, and how many did within twice the median.

    Args:
        results: one a seed.
    """
    won = [result for result in results if result["is_won"]]
    summary: Report = {"seeds": len(results), "won": len(won)}
    if not won:
        return summary
    for name in ("seconds", "steps", "ale_bound_seconds"):
        values = [float(result[name]) for result in won]
        summary[name] = {"median": statistics.median(values), "ci95": median_interval(values)}
    limit = 2 * summary["seconds"]["median"]
    summary["within_twice_the_median"] = sum(result["seconds"] <= limit for result in won)
    summary["peak_memory_mb"] = max(result["peak_memory_mb"] for result in results)
    return summary


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """95 % bootstrap interval of the median; of five values it spans nearly all of them.

    >>> median_interval([3.0, 3.0])
    (3.0, 3.0)
    """
    rng = make_rng(0, "bootstrap")
    chosen = rng.integers(len(values), size=(_RESAMPLES, len(values)))
    low, high = np.percentile(np.median(np.asarray(values)[chosen], axis=1), [2.5, 97.5])
    return float(low), float(high)


def predict(seconds: float, workers: int | None) -> Report:
    """The expected time to win on this machine, from its speed and the recorded steps to win.

    Args:
        seconds: how long to measure, about.
        workers: threads; one a core if not given.
    """
    num_workers = workers or count_cores()
    config = load_preset("fast").updated({"workers": num_workers}, "bench")
    with contextlib.ExitStack() as stack:
        bare = stack.enter_context(measure_apart(play_bare, num_workers))
        engine = stack.enter_context(
            contextlib.closing(
                ThreadEngine(functools.partial(make_worker, config), num_workers, _TIMEOUT)
            )
        )
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="pixelpong-bench-"))
        session = Session(RunDirectory.create(Path(folder) / "run", config), time.monotonic())
        measure_training(engine, session, 0.5)  # starts the workers, compiles what is not yet
        bare(0.1)  # starts the processes
        limit = bare(seconds / 6)
        rates = [measure_training(engine, session, seconds / 4) for _ in range(3)]
    rate = statistics.median(rates)
    steps = recorded_steps()
    times = [count / rate for count in steps]
    return {
        "workers": num_workers,
        "steps_per_second": {"ale": limit, "fast": rate},
        "recorded_steps": steps,
        "seconds": statistics.median(times) if times else None,
        "range": [min(times), max(times)] if times else None,
        "rates": [min(rates), max(rates)],
        "machine": describe_machine(),
    }


def recorded_steps() -> list[int]:
    """Steps to win of the recorded seeds, as ``benchmarks/solve.json`` has them."""
    file = importlib.resources.files("pixelpong.bench").joinpath("recorded_steps.json")
    steps: list[int] = json.loads(file.read_text("utf-8"))
    return steps


def _train_once(seed: int, num_workers: int, given: Sequence[str]) -> Report:
    with tempfile.TemporaryDirectory(prefix="pixelpong-bench-") as folder:
        run = Path(folder) / "run"
        words = [sys.executable, "-m", "pixelpong", "train", "--preset", "fast", "--json"]
        words += ["--run", str(run), "--seed", str(seed), "--workers", str(num_workers), *given]
        begin = time.perf_counter()
        with subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            with contextlib.ExitStack() as stack:
                stack.callback(process.kill)  # where this process is interrupted
                peak, out, err = _watch(process)
                stack.pop_all()
        if process.returncode:
            got = err.strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
            raise RunError(expected(f"seed {seed} to train", got[0], "see what it says"))
        report = json.loads(out)
        verdict = report["verdict"] or {"is_won": False}
        return {
            "seed": seed,
            "is_won": verdict["is_won"],
            "seconds": verdict["seconds"] if verdict["is_won"] else report["wall_seconds"],
            "steps": verdict["steps"] if verdict["is_won"] else report["steps"],
            "update": report["update"],
            "greedy": _shorten(verdict.get("greedy")),
            "sampled": _shorten(verdict.get("sampled")),
            "whole_command_seconds": time.perf_counter() - begin,
            "peak_memory_mb": peak,
            "params_sha256": report["params_sha256"],
            "curve": _read_curve(run),
        }


def _shorten(evaluation: Report | None) -> Report | None:
    if evaluation is None:
        return None
    wanted = ("mean_return", "std", "ci95", "mean_steps")
    return {name: evaluation[name] for name in wanted} | {"episodes": len(evaluation["returns"])}


def _watch(process: subprocess.Popen[str]) -> tuple[float, str, str]:
    """Peak memory of the process and its children together, in MB, and what it printed."""
    peak = 0.0
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            out, err = process.communicate(timeout=1.0)
            return peak, out, err
        peak = max(peak, sum(map(memory_mb, [process.pid, *children(process.pid)])))


def _read_curve(run: Path, num_points: int = 100) -> Report:
    """How the estimate of the return rose, thinned out."""
    lines = list(LineFile(run / "metrics.jsonl").read())
    kept = lines[:: max(len(lines) // num_points, 1)]
    return {
        "steps": [line["steps"] for line in kept],
        "seconds": [round(line["timing"]["wall_seconds"], 1) for line in kept],
        "estimated_return": [_rounded(line["estimated_return"]) for line in kept],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
