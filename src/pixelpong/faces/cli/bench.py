"""``pixelpong bench``: each command measures one thing and reports it."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

from pixelpong.errors import RunError, expected
from pixelpong.faces.cli.reporting import report_on, tell


def throughput(options: Any) -> int:
    """``pixelpong bench throughput``"""
    from pixelpong.bench.throughput import measure_throughput
    from pixelpong.faces.text import describe_throughput

    if options.ray:
        from pixelpong.engines import require_ray

        require_ray()
    workers = options.given.get("workers")
    report = measure_throughput(
        options.seconds, options.rounds, workers, options.seed, with_ray=options.ray
    )
    report_on(report, options.json, describe_throughput)
    return 0


def solve(options: Any) -> int:
    """``pixelpong bench solve``"""
    from pixelpong.bench import solve as bench
    from pixelpong.faces.text import describe_solve, describe_solved_seed
    from pixelpong.schema import convert
    from pixelpong.sweep.grid import read_seeds
    from pixelpong.sweep.training import Result

    seeds = read_seeds(options.seeds)
    plot = _plotter()
    budget = {"steps": options.steps, "until_return": options.target}
    _make_folder(options.out)
    file, report = options.out / "solve.json", {}
    for report in bench.solve(seeds, options.given.get("workers"), budget):
        tell(describe_solved_seed(report["seeds"][-1]))
        _write(file, report)  # an hour's work is not lost to a Ctrl-C
        if plot:
            results = [convert(result, Result) for result in report["seeds"]]
            plot({"": results}, options.out / "solve.svg")
    report_on(report, options.json, describe_solve)
    return 0


def predict(options: Any) -> int:
    """``pixelpong bench predict``"""
    from pixelpong.bench.solve import predict as forecast
    from pixelpong.faces.text import describe_forecast

    report = forecast(options.seconds, options.given.get("workers"))
    report_on(report, options.json, describe_forecast)
    return 0


def _plotter() -> Any:
    """What draws the plot; None, with a warning, if matplotlib is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        tell("no matplotlib, so no plot: pip install 'pixelpong[bench]'")
        return None
    from pixelpong.faces.plots.sweep import plot_sweep

    return plot_sweep


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        got = error.strerror or str(error)
        raise RunError(expected(f"a folder {path} for --out", got, "give another one")) from error


def _write(path: Path, report: dict[str, Any]) -> None:
    path.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
