"""Seconds until something happens, and the memory in use, each seen from outside.

python benchmarks/startup.py --rounds 5 --json
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pixelpong.machine import collect_versions, count_cores, describe_machine, peak_mb


def measure_startup(rounds: int, workers: int | None) -> dict[str, Any]:
    """Seconds to the help text and to the first update, and peak memory, each from outside.

    Args:
        rounds: how often each is measured.
        workers: threads; one a core if not given.
    """
    command = [sys.executable, "-m", "pixelpong"]
    helps, firsts, peaks = [], [], []
    for _ in range(rounds):
        begin = time.perf_counter()
        subprocess.run([*command, "--help"], check=True, capture_output=True)
        helps.append(time.perf_counter() - begin)
        first, peak = _watch_training(command, workers)
        firsts.append(first)
        peaks.append(peak)
    return {
        "rounds": rounds,
        "help_seconds": statistics.median(helps),
        "first_update_seconds": statistics.median(firsts),
        "peak_mb": max(peaks),
        "versions": collect_versions(),
        "machine": describe_machine(),
    }


def _watch_training(command: list[str], workers: int | None) -> tuple[float, float]:
    """Seconds to the first update, and the peak of memory in MB."""
    peak, first = 0.0, None
    with tempfile.TemporaryDirectory(prefix="pixelpong-bench-") as folder:
        metrics = Path(folder) / "run" / "metrics.jsonl"
        words = ["train", "--preset", "classic", "--updates", "3", "--run", str(metrics.parent)]
        words += ["--workers", str(workers or count_cores())]
        begin = time.perf_counter()
        with subprocess.Popen(command + words, stdout=subprocess.DEVNULL) as process:
            while process.poll() is None:
                if first is None and metrics.exists() and metrics.stat().st_size:
                    first = time.perf_counter() - begin
                peak = max(peak, peak_mb(process.pid))
                time.sleep(0.01)
        lines = metrics.read_text("utf-8").splitlines()
        assert process.returncode == 0, "the training went wrong"
        assert json.loads(lines[0])["update"] == 1
    assert first is not None
    return first, peak


def describe(report: dict[str, Any]) -> str:
    """Seconds and megabytes."""
    return (
        f"--help          {report['help_seconds']:.2f} s\n"
        f"first update    {report['first_update_seconds']:.2f} s\n"
        f"at most         {report['peak_mb']:.0f} MB"
    )


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    report = measure_startup(options.rounds, options.workers)
    print(json.dumps(report, indent=1) if options.json else describe(report))


if __name__ == "__main__":
    main()
