"""A sweep from the user's words to its results: which runs it has, and training those left."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pixelpong.agent.choice import settle_opponent
from pixelpong.config import Config
from pixelpong.config.presets import read_toml
from pixelpong.errors import ConfigError, number_of
from pixelpong.run.locks import lock_folder
from pixelpong.sweeps.grid import make_grid, read_games
from pixelpong.sweeps.jobs import run_jobs
from pixelpong.sweeps.sweep import find_left, find_sweep, read_sweep, restore_lost, sum_up


def find_started(grid: str | Path | None, *, has_options: bool) -> Path | None:
    """Find the sweep to continue; None if `grid` is a file of options or None."""
    if grid is None or Path(grid).is_file():
        return None
    path = find_sweep(grid)
    if has_options:
        raise ConfigError(
            f"{path} is a sweep, whose options cannot change; leave the new ones out."
        )
    read_sweep(path)  # raises an error if it has no runs
    return path


def plan_sweep(
    grid: str | Path | None,
    seeds: int | str | None,
    games: str | None,
    options: Mapping[str, Any],
) -> list[Config]:
    """Make the configurations of a new sweep's runs; nothing is written."""
    if grid is None and seeds is None and games is None:
        what = "A sweep needs seeds, such as 0-4, games, or a file with a grid"
        raise ConfigError(f"{what}.", options=["seeds", "games"])
    content = read_toml(Path(grid)) if grid else {}
    if seeds is not None:
        content = {**content, "seed": [], "seeds": str(seeds)}
    if games is not None:
        content = {**content, "game": read_games(games)}
    configs = make_grid(content, options, str(grid or "sweep"))
    settled = {name: settle_opponent(name) for name in {it.opponent for it in configs}}
    return [dataclasses.replace(it, opponent=settled[it.opponent]) for it in configs]


def train_sweep(
    path: Path,
    trainer: Any,
    should_stop: Callable[[], bool],
    tell: Callable[[str], object],
    draw: Callable[[Path], object],
) -> dict[str, Any]:
    """Train the remaining runs of a sweep; return its results so far, as JSON.

    Its folder is locked meanwhile, so that no other process continues the sweep.

    Args:
        path: the folder of the sweep.
        trainer: from `pixelpong.sweeps.jobs.open_trainer`.
        should_stop: called several times a second; if it returns True, no more runs start.
        tell: called with each line about the progress.
        draw: called at the end with the folder, to draw the results into it.
    """
    with lock_folder(path):
        restore_lost(path)
        left, total = find_left(path), len(read_sweep(path))
        tell(f"{path}: {number_of(total, 'run')}, {len(left)} to train")
        number = total - len(left)
        for run, result in run_jobs(left, trainer, should_stop):
            if result is None:
                number += 1
                tell(f"{run.name} ({number} of {total}): training")
            else:
                tell(f"{run.name}: {result}")
        facts = sum_up(path)
        draw(path)
    return facts
