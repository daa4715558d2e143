"""``pixelpong bench``: each command measures one thing and reports it."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pixelpong.config import Config
from pixelpong.config.options import COMMAND_LINE
from pixelpong.engines import require_ray
from pixelpong.errors import ConfigError, RunError, expected
from pixelpong.faces.cli.reporting import report_on, require_at_least, require_between

if TYPE_CHECKING:
    from pixelpong.faces.cli.options import Request


MAX_SEEDS = 1000


def throughput(request: Request) -> int:
    """``pixelpong bench throughput``"""
    from pixelpong.bench.throughput import measure_throughput
    from pixelpong.faces.text import describe_throughput

    options, workers = request.options, _checked_workers(request)
    require_at_least("--rounds", options.rounds, 1)
    require_at_least("--seed", options.seed, 0)
    require_between("--seconds", options.seconds, 0.1, 3600)
    if options.ray:
        require_ray()
    peers = None
    if options.peers:
        from pixelpong.bench.peers import throughput_peers

        peers = throughput_peers()
    report = measure_throughput(
        options.seconds, options.rounds, workers, options.seed, peers, with_ray=options.ray
    )
    report_on(report, options.json, describe_throughput)
    return 0


def solve(request: Request) -> int:
    """``pixelpong bench solve``"""
    from pixelpong.bench import solve as bench
    from pixelpong.faces.text import describe_solve, describe_solved_seed

    options, workers = request.options, _checked_workers(request)
    seeds = _read_seeds(options.seeds)
    require_between("--target", options.target, -21, 21)
    require_at_least("--steps", options.steps, 1)
    require_between("--peer-minutes", options.peer_minutes, 0.1, 600)
    if options.peers:
        from pixelpong.bench.peers import require, train_stable_baselines

        require("stable_baselines3", "cv2")
    plot = _plotter()
    words = ["--steps", str(options.steps), "--until-return", str(options.target)]
    _make_folder(options.out)
    report: dict[str, Any] = {}
    for report in bench.solve(seeds, workers, words):
        _tell(describe_solved_seed(report["seeds"][-1]))
        _write(options.out / "solve.json", report)  # an hour's work is not lost to a Ctrl-C
        if plot:
            plot(report, options.out / "solve.svg")
    if options.peers:
        peer = train_stable_baselines(options.peer_minutes, options.target, seeds[0], _tell)
        report["peers"] = [peer]
        _write(options.out / "solve.json", report)
    report_on(report, options.json, describe_solve)
    return 0


def predict(request: Request) -> int:
    """``pixelpong bench predict``"""
    from pixelpong.bench.solve import predict as forecast
    from pixelpong.faces.text import describe_forecast

    options, workers = request.options, _checked_workers(request)
    require_between("--seconds", options.seconds, 1, 3600)
    report = forecast(options.seconds, workers)
    report_on(report, options.json, describe_forecast)
    return 0


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _read_seeds(text: str) -> list[int]:
    """``0-4`` or ``0,3,7`` as numbers."""
    seeds: list[int] = []
    try:
        for part in text.split(","):
            first, _, last = part.partition("-")
            some = range(int(first), int(last or first) + 1)
            seeds += some[: MAX_SEEDS + 1]
    except ValueError:
        seeds = []
    if not 0 < len(seeds) <= MAX_SEEDS:
        raise ConfigError(expected("--seeds as 0-4 or 0,3,7", repr(text), "see --help"))
    return seeds


def _plotter() -> Any:
    """What draws the plot; None, with a warning, where matplotlib is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        print("no matplotlib, so no plot: pip install 'pixelpong[bench]'", file=sys.stderr)
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


def _checked_workers(request: Request) -> int | None:
    workers = {name: value for name, value in request.given.items() if name == "workers"}
    return Config().updated(workers, COMMAND_LINE).engine.workers
