"""A sweep: a folder of runs.

    DIR/
      sweep.csv     a row for each training, in the end; it marks the folder as a sweep
      NAME/         the run directory of each training

All runs are made first, so the folder shows what is left to do. The result of a training is only in
its run directory; the table is made from the `Record` of each.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pixelpong.config import Config
from pixelpong.errors import RunError
from pixelpong.run.directory import RunDirectory, lock_folder, make_folder
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
        found = (file.parent for file in path.glob("*/config.json"))
        self.runs = sorted(found, key=lambda it: (len(it.name), it.name))  # seed-2 before seed-10
        self._lock = lock_folder(path)

    def __enter__(self) -> Sweep:
        return self

    def __exit__(self, *exc: object) -> None:
        self._lock.close()

    @classmethod
    def create(cls, path: Path | None, configs: Sequence[Config]) -> Sweep:
        """Make a new sweep in a new folder; no two `configs` are the same."""
        path = make_folder(path, "sweep", "sweep")
        for name, config in zip(name_trainings(configs), configs, strict=True):
            RunDirectory.create(path / name, config)
        write_whole(path / SWEEP_FILE, b"name\n")
        return cls(path)

    def records(self) -> list[Record]:
        """Each training as it is now."""
        return list(map(Record.read, self.runs))

    def left(self) -> list[Path]:
        """The runs that are not done, for `pixelpong.sweep.jobs.run_jobs`."""
        return [record.path for record in self.records() if not record.is_done]

    def summarize(self) -> dict[str, Any]:
        """The results so far, as JSON: all numbers, and the table, which is also written."""
        records, text = self.records(), io.StringIO()
        rows = make_rows(records)
        table = csv.DictWriter(text, rows[0], lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
        write_whole(self.path / SWEEP_FILE, text.getvalue().encode())
        return {"sweep": str(self.path), **summarize(records), "runs": rows}
