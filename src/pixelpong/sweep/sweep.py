"""A sweep: a folder of runs.

    DIR/
      sweep.csv     a row for each training; it marks the folder as a sweep
      NAME/         the run directory of each training

All runs are made first, so the folder shows what is left to do. The result of a training is only in
its run directory; the table is made from there.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import os
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from pixelpong.config import Config
from pixelpong.engines import has_ray, require_ray
from pixelpong.engines.jobs import Here, JobEvents, run_jobs
from pixelpong.errors import ConfigError, RunError, expected, refusing
from pixelpong.interrupts import stop_on_signals
from pixelpong.loop import train
from pixelpong.machine import count_cores
from pixelpong.run.directory import RunDirectory, RunLock
from pixelpong.run.files import write_whole
from pixelpong.sweep import statistics
from pixelpong.sweep.grid import label_of, name_trainings, varied
from pixelpong.sweep.results import Result, read_result

TABLE = "sweep.csv"


class Sweep:
    """A sweep on the disk, locked by this process."""

    def __init__(self, path: Path) -> None:
        """Open and lock a sweep."""
        if not (path / TABLE).is_file():
            raise RunError(f"{path} is not a sweep: it has no {TABLE}. Check its name.")
        self.path = path
        found = [it.parent for it in path.glob("*/config.json")]
        self.runs = {it.name: RunDirectory.open(it) for it in sorted(found, key=_in_order)}
        self.names = varied([run.config for run in self.runs.values()])
        self.failed: dict[str, str] = {}
        self._lock = RunLock(path)

    def __enter__(self) -> Sweep:
        return self

    def __exit__(self, *exc: object) -> None:
        self._lock.__exit__(*exc)

    @classmethod
    def create(cls, path: Path, configs: Sequence[Config]) -> Sweep:
        """Make a new sweep in a new or empty folder; no two `configs` are the same."""
        with refusing(f"a new folder {path} for the sweep", "choose another --out", RunError):
            path.mkdir(parents=True, exist_ok=True)
            is_free = not any(path.iterdir())
        if not is_free:
            what = "is not empty"
            if (path / TABLE).exists():
                what = f"is a sweep; continue it with `pixelpong sweep {path}`"
            raise RunError(f"{path} {what}, or choose another --out.")
        for name, config in zip(name_trainings(configs), configs, strict=True):
            RunDirectory.create(path / name, config)
        write_whole(path / TABLE, b"name\n")
        sweep = cls(path)
        sweep.write_table()
        return sweep

    def carry_out(
        self,
        should_stop: Callable[[], bool],
        *,
        engine: str | None = None,
        address: str | None = None,
        threads: int | None = None,
    ) -> JobEvents:
        """Train what is not done; a half-done training continues from its checkpoint.

        Args:
            should_stop: called several times a second; if true, running trainings are saved.
            engine: ``"ray"``, or ``"serial"`` for one after the other; by default Ray if installed.
            address: of a running Ray cluster whose nodes all see the sweep's folder.
            threads: of each training; by default 1 with Ray, otherwise one per core.
        """
        is_ray = choose_engine(engine, address)
        threads = threads or (1 if is_ray else count_cores())
        jobs = {
            name: functools.partial(train_run, self.path.absolute() / name, threads, is_ray)
            for name, result in self.results().items()
            if not result.is_done
        }
        place: Any = contextlib.nullcontext(Here())
        if is_ray:
            from pixelpong.engines.ray.jobs import connected_tasks

            place = connected_tasks(threads, address)
        with (
            place as processes,
            contextlib.closing(run_jobs(jobs, processes, should_stop)) as events,
        ):
            yield from events

    def results(self) -> dict[str, Result]:
        """The result of each training so far, by name."""
        return {name: read_result(self.path / name) for name in self.runs}

    def groups(self) -> dict[str, list[Result]]:
        """The results of finished trainings, by setting: runs that differ only in the seed."""
        found: dict[str, list[Result]] = {}
        for name, result in self.results().items():
            group = found.setdefault(label_of(self.runs[name].config, self.names), [])
            group += [result] * result.is_done
        return found

    def summarize(self) -> dict[str, Any]:
        """The results so far, as JSON."""
        return {
            "sweep": str(self.path),
            "groups": [{"label": name} | summarize(it) for name, it in self.groups().items()],
            "trainings": self.rows(),
        }

    def rows(self) -> list[dict[str, Any]]:
        """The table: one row per training."""
        return [
            {"name": name}
            | {each: self.runs[name].config.to_flat()[each] for each in (*self.names, "seed")}
            | result.to_row()
            for name, result in self.results().items()
        ]

    def write_table(self) -> None:
        """Write ``sweep.csv``."""
        text, rows = io.StringIO(), self.rows()
        table = csv.DictWriter(text, rows[0], lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
        write_whole(self.path / TABLE, text.getvalue().encode())


def train_run(path: Path, threads: int, is_ray: bool) -> None:
    """Train a run of a sweep to its end, in a process of its own.

    It stops and saves if SIGINT or SIGTERM comes, or if the parent process is gone. If Ray has
    started the process, that start is not part of the run's time.
    """
    began = time.monotonic() - (0.0 if is_ray else time.process_time())
    parent = os.getppid()
    with stop_on_signals() as asked, threadpool_limits(threads):
        run = RunDirectory.open(path)
        run.warn_of_other_machine()
        config = run.config.updated({"engine": "threads", "workers": threads}, "sweep")
        train(run.with_config(config), None, lambda: asked() or os.getppid() != parent, began)


def summarize(results: Sequence[Result]) -> dict[str, Any]:
    """How many won, and their medians; the interquartile mean of all final returns."""
    won = [result for result in results if result.is_won]
    returns = [it.final_return for it in results if it.final_return is not None]
    summary: dict[str, Any] = {"trainings": len(results), "won": len(won)}
    for name in ("seconds", "steps") if won else ():
        values = [float(getattr(result, name)) for result in won]
        summary[name] = _describe(values, statistics.median)
    if returns:
        summary["final_return"] = _describe(returns, statistics.interquartile_mean)
    return summary


def _describe(values: Sequence[float], middle: Callable[[Any], Any]) -> dict[str, Any]:
    return {"middle": float(middle(values)), "ci95": statistics.interval(values, middle)}


def _in_order(path: Path) -> list[tuple[int, str]]:
    """The sort key of names with numbers: seed-2 before seed-10."""
    return [(int(it), "") if it.isdigit() else (-1, it) for it in re.split(r"(\d+)", path.name)]


def choose_engine(engine: str | None, address: str | None) -> bool:
    """Whether the trainings run on Ray."""
    if engine == "serial" and address is not None:
        advice = "leave one of them out"
        raise ConfigError(expected("--engine ray for --ray-address", "--engine serial", advice))
    if engine == "ray" or address is not None:
        require_ray()
        return True
    return engine is None and has_ray()
