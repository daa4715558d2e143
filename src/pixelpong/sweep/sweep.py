"""A sweep: a folder of runs.

    DIR/
      sweep.csv     a row for each training; it marks the folder as a sweep
      NAME/         the run directory of each training

All runs are made first, so the folder shows what is left to do. The result of a training is only in
its run directory; the table is made from the `Record` of each.
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
from pixelpong.errors import ConfigError, RunError, refusing
from pixelpong.interrupts import stop_on_signals
from pixelpong.loop import train
from pixelpong.machine import count_cores
from pixelpong.run.directory import RunDirectory, RunLock
from pixelpong.run.files import write_whole
from pixelpong.run.record import SWEEP_FILE, Record, is_sweep
from pixelpong.sweep.grid import name_trainings
from pixelpong.sweep.results import make_rows, summarize


class Sweep:
    """A sweep on the disk, locked by this process."""

    def __init__(self, path: Path) -> None:
        """Open and lock a sweep."""
        if not is_sweep(path):
            raise RunError(f"{path} is not a sweep: it has no {SWEEP_FILE}. Check its name.")
        self.path = path
        found = sorted((it.parent for it in path.glob("*/config.json")), key=_in_order)
        self.runs = {it.name: RunDirectory.open(it) for it in found}
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
            more = f"if it is a sweep, continue it with `pixelpong sweep {path}`"
            raise RunError(f"{path} is not empty: choose another --out, or {more}.")
        for name, config in zip(name_trainings(configs), configs, strict=True):
            RunDirectory.create(path / name, config)
        write_whole(path / SWEEP_FILE, b"name\n")
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
            for name, record in self.records().items()
            if not record.is_done
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

    def records(self) -> dict[str, Record]:
        """Each training as it is now, by name."""
        return {name: Record.read(self.path / name) for name in self.runs}

    def summarize(self) -> dict[str, Any]:
        """The results so far, as JSON: all numbers, and the table."""
        records = [*self.records().values()]
        return {"sweep": str(self.path), **summarize(records), "runs": make_rows(records)}

    def write_table(self) -> None:
        """Write ``sweep.csv``."""
        text, rows = io.StringIO(), make_rows([*self.records().values()])
        table = csv.DictWriter(text, rows[0], lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
        write_whole(self.path / SWEEP_FILE, text.getvalue().encode())


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


def _in_order(path: Path) -> list[tuple[int, str]]:
    """The sort key of names with numbers: seed-2 before seed-10."""
    return [(int(it), "") if it.isdigit() else (-1, it) for it in re.split(r"(\d+)", path.name)]


def choose_engine(engine: str | None, address: str | None) -> bool:
    """Whether the trainings run on Ray."""
    if engine == "serial" and address is not None:
        raise ConfigError("--ray-address needs --engine ray: leave one of them out.")
    if engine == "ray" or address is not None:
        require_ray()
        return True
    return engine is None and has_ray()
