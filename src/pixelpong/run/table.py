"""The metrics of a run as columns that grow with the run; a row takes 8 bytes per metric."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from pixelpong.run.lines import Evaluation, Tail, read_line
from pixelpong.schema import Measure

_INITIAL_CAPACITY = 64  # number of rows
_ROWS_AT_ONCE = 1024  # number of rows held as dicts before they enter the table

_MetricsLine = dict[str, Measure | dict[str, Measure | None] | None]


class _Column:
    """The values of a metric, with NaN for missing values."""

    def __init__(self, is_whole: bool) -> None:
        self.values = np.full(_INITIAL_CAPACITY, math.nan)
        self.first_not_whole = math.inf if is_whole else 0  # the first row without a whole number

    def put(self, row: int, new: list[Any]) -> None:
        """Set the values starting at a row; the capacity doubles when it is used up."""
        end = row + len(new)
        if end > len(self.values):
            more = np.full(2 * end - len(self.values), math.nan)
            self.values = np.concatenate([self.values, more])
        self.values[row:end] = [math.nan if value is None else value for value in new]
        if self.first_not_whole > row:
            others = (index for index, value in enumerate(new, row) if type(value) is not int)
            self.first_not_whole = min(self.first_not_whole, next(others, math.inf))


class Table:
    """Rows of numbers; rows can be added but never change.

    Whole numbers are exact, because no number of a run comes near 2**53.
    """

    def __init__(self) -> None:
        self._columns: dict[str, _Column] = {}
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def add(self, rows: Sequence[dict[str, Any]]) -> None:
        """Add rows; a value that is None counts as missing."""
        for name in dict.fromkeys(itertools.chain(self._columns, *rows)):
            if name not in self._columns:
                self._columns[name] = _Column(is_whole=self._length == 0)
            self._columns[name].put(self._length, [row.get(name) for row in rows])
        self._length += len(rows)

    def rows(self) -> Rows:
        """Return all rows that the table has now."""
        return Rows(self, range(self._length))

    def names(self) -> list[str]:
        """Return the names of the metrics, in order of appearance."""
        return list(self._columns)

    def column(self, name: str, rows: range) -> NDArray[Any]:
        """Return a metric's values in some rows: int64 if all are whole, otherwise float64."""
        column = self._columns.get(name)
        if column is None:
            return np.full(len(rows), math.nan)
        values = column.values[np.arange(rows.start, rows.stop, rows.step)]
        is_whole = max((*rows[:1], *rows[-1:]), default=0) < column.first_not_whole
        return values.astype(np.int64) if is_whole else values


class Rows(Sequence[dict[str, Any]]):
    """Some rows of a table; a row becomes a dict when it is requested."""

    def __init__(self, table: Table, indices: range) -> None:
        self._table, self._indices = table, indices

    def __len__(self) -> int:
        return len(self._indices)

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Rows: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | Rows:
        if isinstance(index, slice):
            return Rows(self._table, self._indices[index])
        row = self._indices[index]
        columns = Rows(self._table, range(row, row + 1)).to_lists()
        return {name: value for name, (value,) in columns.items()}

    def names(self) -> list[str]:
        """Return the names of the metrics, in order of appearance."""
        return self._table.names()

    def column(self, name: str) -> NDArray[Any]:
        """Return a metric's values: int64 if all are whole numbers, otherwise float64 with NaN."""
        return self._table.column(name, self._indices)

    def to_lists(self) -> dict[str, list[float | None]]:
        """Return all columns, with None for missing values."""
        columns = {name: self.column(name).tolist() for name in self.names()}
        return {
            name: [None if math.isnan(value) else value for value in values]
            for name, values in columns.items()
        }


class RunReader:
    """Reads a run's metrics and evaluations; reading again reads only new data."""

    def __init__(self, path: Path) -> None:
        self.table = Table()
        self._evaluations: list[Evaluation] = []
        self._metrics_tail = Tail(path / "metrics.jsonl")
        self._evaluations_tail = Tail(path / "evaluations.jsonl")
        self._last_update = -1

    def read_on(self) -> tuple[Rows, tuple[Evaluation, ...]]:
        """Read new data; return all rows and evaluations."""
        rows: list[dict[str, Any]] = []
        try:
            for raw_line in self._metrics_tail.read_on():
                if raw_line is None:
                    self.table, self._last_update = Table(), -1
                elif line := read_line(raw_line.raw, _MetricsLine):
                    self._take(line, rows)
        finally:
            self.table.add(rows)  # even if the disk fails, because these rows are not read again
        for raw_line in self._evaluations_tail.read_on():
            if raw_line is None:
                self._evaluations = []
            elif line := read_line(raw_line.raw, Evaluation):
                self._evaluations.append(line)
        return self.table.rows(), tuple(self._evaluations)

    def _take(self, line: dict[str, Any], rows: list[dict[str, Any]]) -> None:
        """Add a line of metrics unless its update does not ascend."""
        timing = line.pop("timing", None)
        if line["update"] > self._last_update:
            self._last_update = line["update"]
            rows.append(line | (timing if isinstance(timing, dict) else {}))
            if len(rows) == _ROWS_AT_ONCE:
                self.table.add(rows)
                rows.clear()
