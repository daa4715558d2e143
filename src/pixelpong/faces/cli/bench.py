"""``pixelpong bench``: each command measures one thing and reports it."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

from pixelpong.errors import ConfigError, RunError, expected
from pixelpong.faces.cli.reporting import report_on, tell

MAX_SEEDS = 1000


def throughput(options: Any) -> int:
    """``pixelpong bench throughput``"""
    from pixelpong.bench.throughput import measure_throughput
    from pixelpong.faces.text import describe_throughput

    if options.ray:
        from pixelpong.engines import require_ray

        require_ray()
    peers = None
    if options.peers:
        from pixelpong.bench.peers import throughput_peers

        peers = throughput_peers()
    workers = options.given.get("workers")
    report = measure_throughput(
        options.seconds, options.rounds, workers, options.seed, peers, with_ray=options.ray
    )
    report_on(report, options.json, describe_throughput)
    return 0


def solve(options: Any) -> int:
    """``pixelpong bench solve``"""
    from pixelpong.bench import solve as bench
    from pixelpong.faces.text import describe_solve, describe_solved_seed

    seeds = _read_seeds(options.seeds)
    if options.peers:
        from pixelpong.bench.peers import require, train_stable_baselines

        require("stable_baselines3", "cv2")
    plot = _plotter()
    words = ["--steps", str(options.steps), "--until-return", str(options.target)]
    _make_folder(options.out)
    file, report = options.out / "solve.json", {}
    for report in bench.solve(seeds, options.given.get("workers"), words):
        tell(describe_solved_seed(report["seeds"][-1]))
        _write(file, report)  # an hour's work is not lost to a Ctrl-C
        if plot:
            plot(report, options.out / "solve.svg")
    if options.peers:
        peer = train_stable_baselines(options.peer_minutes, options.target, seeds[0], tell)
        report["peers"] = [peer]
        _write(file, report)
    report_on(report, options.json, describe_solve)
    return 0


def predict(options: Any) -> int:
    """``pixelpong bench predict``"""
    from pixelpong.bench.solve import predict as forecast
    from pixelpong.faces.text import describe_forecast

    report = forecast(options.seconds, options.given.get("workers"))
    report_on(report, options.json, describe_forecast)
    return 0


def _read_seeds(text: str) -> list[int]:
    """``0-4`` or ``0,3,7`` as numbers."""
    seeds: list[int] = []
    try:
        for part in text.split(","):
            first, _, last = part.partition("-")
            seeds += range(int(first), int(last or first) + 1)[: MAX_SEEDS + 1]
    except ValueError:
        seeds = []
    if not 0 < len(seeds) <= MAX_SEEDS:
        raise ConfigError(expected("--seeds as 0-4 or 0,3,7", repr(text), "see --help"))
    return seeds


def _plotter() -> Any:
    """What draws the plot; None, with a warning, if matplotlib is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        tell("no matplotlib, so no plot: pip install 'pixelpong[bench]'")
        return None
    from pixelpong.faces.plots.bench import plot_solve

    return plot_solve


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        got = error.strerror or str(error)
        raise RunError(expected(f"a folder {path} for --out", got, "give another one")) from error


def _write(path: Path, report: dict[str, Any]) -> None:
    path.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
