"""``pixelpong sweep``: many trainings and their results."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from typing import TYPE_CHECKING, Any

from pixelpong.config.options import COMMAND_LINE
from pixelpong.config.presets import read_toml
from pixelpong.errors import ConfigError, RunError, expected
from pixelpong.faces.cli.reporting import report_on, tell
from pixelpong.interrupts import stop_on_signals

if TYPE_CHECKING:
    from pixelpong.sweep.sweep import Sweep

EXIT_INTERRUPTED = 130


def sweep(options: Any) -> int:
    """``pixelpong sweep``"""
    from pixelpong.agent.choice import settle_opponents
    from pixelpong.config import EngineConfig
    from pixelpong.engines import check
    from pixelpong.run.directory import make_folder
    from pixelpong.sweep.grid import make_grid, read_seeds
    from pixelpong.sweep.sweep import Sweep, choose_engine

    if options.grid is not None and options.grid.is_dir():
        if options.given or options.seeds or options.out:
            raise ConfigError(f"{options.grid} is a sweep: it continues with its own options only.")
        return _carry_out(lambda: Sweep(options.grid), options)
    if options.grid is None and options.seeds is None:
        raise ConfigError(expected("--seeds or a file with a grid", "neither", "see --help"))
    content = {} if options.grid is None else read_toml(options.grid)
    if options.seeds is not None:
        content.pop("seeds", None)
        content["seed"] = read_seeds(options.seeds)
    configs = make_grid(content, options.given, str(options.grid or COMMAND_LINE))
    configs = settle_opponents(configs)
    if choose_engine(options.engine, options.ray_address):
        check(EngineConfig(engine="ray", ray_address=options.ray_address))
    return _carry_out(
        lambda: Sweep.create(options.out or make_folder(None, "sweep"), configs), options
    )


def _carry_out(make_sweep: Any, options: Any) -> int:
    """Train what is left of the sweep that `make_sweep` gives, and report the results."""
    from pixelpong.engines.jobs import Failed
    from pixelpong.faces.display import SweepDisplay
    from pixelpong.faces.text import describe_sweep

    on = {"engine": options.engine, "address": options.ray_address, "threads": options.threads_each}
    with stop_on_signals() as should_stop, make_sweep() as sweep:
        show = SweepDisplay(sys.stderr if options.json else sys.stdout, sweep)
        failed = 0
        for event in sweep.carry_out(should_stop, **on):
            failed += isinstance(event, Failed)
            show(event)
        sweep.write_table()
        report = sweep.summarize()
        _plot(sweep)
    resume = f"pixelpong sweep {shlex.quote(str(sweep.path))}"
    report_on(report | {"resume": resume}, options.json, describe_sweep)
    if should_stop() and not all(row["is_done"] for row in report["trainings"]):
        return EXIT_INTERRUPTED
    return 1 if failed else 0


def _plot(sweep: Sweep) -> None:
    groups = {label: results for label, results in sweep.groups().items() if results}
    if groups and importlib.util.find_spec("matplotlib") is not None:
        from pixelpong.faces.plots.sweep import plot_sweep

        try:
            plot_sweep(groups, sweep.path / "sweep.svg")
        except RunError as error:  # no result depends on it
            tell(f"no picture: {error}")
