"""A sweep is a folder of runs; its results are the same wherever they appear.

    DIR/
      sweep.json    the plan: the options of every run
      sweep.csv     a row for each run, complete at the end
      NAME/         each run's directory

All run directories are made first, so the folder shows what is left to do; one that is lost later
is made again from the plan. The result of a run is stored only in its directory; everything else is
computed from its `Record`.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pixelpong.config import Config
from pixelpong.config.protocols import PONG
from pixelpong.errors import MAX_GOT, RunError, as_argument, on_one_line, warn
from pixelpong.run.arrays import read_card
from pixelpong.run.directory import fill_run, restore
from pixelpong.run.files import HeldError, sync_folder, write_new, write_whole
from pixelpong.run.folders import PLAN_FILE, RUNS_FOLDER, SWEEP_FILE, make_folder
from pixelpong.run.names import is_run, list_runs
from pixelpong.run.record import Record, is_sweep
from pixelpong.schema import decode
from pixelpong.scores import human_normalised
from pixelpong.sweeps.grid import name_runs, varied
from pixelpong.sweeps.plan import read_plan, write_plan
from pixelpong.sweeps.settings import make_settings, seconds_of, summarize
from pixelpong.sweeps.suites import make_suites

_COLUMNS = ("state", "problem", "is_done", "is_won", "steps")


def create_sweep(path: Path | None, configs: Sequence[Config]) -> Path:
    """Make a sweep in a new folder, by default ``runs/sweep-NNN``; all `configs` differ.

    The folder appears once it is complete.
    """
    plan = dict(zip(name_runs(configs), configs, strict=True))
    return make_folder(path, "sweep", functools.partial(_fill, plan=plan), "sweep")


def _fill(folder: Path, plan: Mapping[str, Config]) -> None:
    """Write a new sweep into an empty folder."""
    write_plan(folder, plan)
    for name, config in plan.items():
        (folder / name).mkdir()
        fill_run(folder / name, config)
    write_new(folder / SWEEP_FILE, b"name\n")
    sync_folder(folder)


def restore_lost(path: Path) -> None:
    """Recreate the lost runs of a sweep from its plan, and warn about each of them."""
    for name, config in read_plan(path).items():
        if not is_run(path / name):
            restore(path / name, config)
            warn(f"{path / name} was lost; recreating it from {path / PLAN_FILE}")


def find_sweep(word: str | Path) -> Path:
    """Find the folder of the sweep that `word` names: a path, or a name in ``runs``."""
    if word == "":  # Path("") is the current folder
        raise RunError("The name of the sweep is empty. Give its name or its path.")
    candidates = Path(word), RUNS_FOLDER / word
    for path in candidates:
        if is_sweep(path):
            return path
    for path in filter(is_run, candidates):
        advice = f"`pixelpong resume {as_argument(word)}` continues it"
        raise RunError(f"{path} is a single run, not a sweep; {advice}.")
    problem = f"{str(word)[:MAX_GOT]} is neither a file of options nor a sweep"
    raise RunError(on_one_line(f"{problem}; check its name."))


def read_sweep(path: Path) -> list[Record]:
    """Read the records of a sweep's runs, sorted so that seed-2 precedes seed-10.

    A run that is in the plan but lost appears among them as damaged.
    """
    if not is_sweep(path):
        what = f"it has no {PLAN_FILE} or {SWEEP_FILE}"
        raise RunError(f"{path} is not a sweep: {what}. Check its name.")
    paths = {*(path / name for name in read_plan(path)), *list_runs(path)}
    runs = [Record.read(run) for run in sorted(paths, key=lambda it: (len(it.name), it.name))]
    if not runs:
        raise RunError(f"All runs of the sweep {path} have been removed. Start a new sweep.")
    return runs


def find_left(path: Path) -> list[Path]:
    """Find the runs of a sweep that are not done, for `pixelpong.sweeps.jobs.run_jobs`."""
    return [record.path for record in read_sweep(path) if not record.is_done]


def sum_up(path: Path) -> dict[str, Any]:
    """Sum up a sweep's results so far, as JSON; also write its table to `SWEEP_FILE`."""
    runs, text = read_sweep(path), io.StringIO()
    rows = make_rows(runs)
    table = csv.DictWriter(text, rows[0], lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    try:
        write_whole(path / SWEEP_FILE, text.getvalue().encode())
    except HeldError as error:  # by Excel, which shows an older table meanwhile
        warn(str(error))
    suites = [suite.summarize() for suite in make_suites(make_settings(runs))]
    return {"sweep": str(path), **summarize(runs), "suites": suites, "runs": rows}


def make_rows(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Make the table of runs: the options in which they differ, their states and results.

    If a game is not Pong, the table has the games, and the scores as shares of a person's too.
    """
    has_games = any(record.game != PONG for record in records)
    names = [*varied([record.config for record in records if record.config]), "seed"]
    rows = []
    for record in records:
        options = vars(record.config) if record.config else {}
        low, high = (record.evaluation and record.evaluation.interval) or (None, None)
        rows.append({
            "name": record.path.name,
            **{name: options.get(name) for name in names},
            **{name: getattr(record, name) for name in _COLUMNS},
            "seconds": seconds_of(record),
            "final_return": record.best_known,
            "final_low": low,
            "final_high": high,
            **_describe_game(record, has_games),
            "params_sha256": _find_hash(record) if record.is_done else "",
        })  # fmt: skip
    return rows


def _describe_game(record: Record, has_games: bool) -> dict[str, Any]:
    if not has_games:
        return {}
    share = human_normalised(record.game, record.best_known)
    return {"game": record.game, "human_normalised": share}


def _find_hash(record: Record) -> str:
    """Find the SHA-256 of the final parameters on the newest checkpoint's card; "" without one."""
    store = record.run.checkpoints if record.run else None
    with contextlib.suppress(ValueError, KeyError, TypeError):  # the checkpoint is damaged or gone
        if store is not None and (updates := store.updates()):
            card = decode(read_card(store.path(max(updates))), dict[str, Any])
            return str(card["about"]["params_sha256"])
    return ""
