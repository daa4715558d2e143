"""A run's lines while they are written: the newest lines, and their numbers as columns.

A training appends whole lines. A resume cuts its files back and continues. A run can be deleted and
replaced by another. So a tail remembers how far it has read and the bytes before that place: if
they change, it starts over. It opens files only for reading, and keeps none open.
"""

from __future__ import annotations

import math
import os
from array import array
from bisect import bisect_right
from pathlib import Path
from typing import Any, BinaryIO

from pixelpong.run.lines import scan_lines

Columns = dict[str, list[Any]]

MAX_ROWS = 2000  # sent at once: more than a chart is wide in pixels

_LARGEST = 1e12
_MARK = 256
_END = 32 << 10


class Tail:
    """A file of JSON objects, one per line, read piece by piece."""

    def __init__(self, path: Path) -> None:
        """Begin at the start of `path`, which need not exist yet."""
        self._path = path
        self._file, self._end, self._mark = (-1, -1), 0, b""

    def read(self) -> tuple[bool, list[dict[str, Any]]]:
        """Whether everything read before is now invalid, and the new lines that are whole."""
        lines = []
        try:
            with _open(self._path) as file:
                is_anew = self._is_another(file)
                if is_anew:
                    self._forget()
                self._file = _identify(file)
                file.seek(self._end)
                for end, line in scan_lines(file):
                    self._end = end
                    if line is not None:
                        lines.append(line)
                self._mark = self._read_mark(file)
        except OSError:
            is_anew = self._end > 0
            self._forget()
        return is_anew, lines

    def _forget(self) -> None:
        self._file, self._end, self._mark = (-1, -1), 0, b""

    def _is_another(self, file: BinaryIO) -> bool:
        return _identify(file) != self._file or self._read_mark(file) != self._mark

    def _read_mark(self, file: BinaryIO) -> bytes:
        """The last bytes before the end of what has been read."""
        begin = max(0, self._end - _MARK)
        file.seek(begin)
        return file.read(self._end - begin)


def _open(path: Path) -> BinaryIO:
    if not path.is_file():  # opening a pipe would block
        raise FileNotFoundError(path)
    return path.open("rb")


def _identify(file: BinaryIO) -> tuple[int, int]:
    state = os.fstat(file.fileno())
    return state.st_dev, state.st_ino


def read_end(path: Path) -> list[dict[str, Any]]:
    """The whole lines in the last 32 KiB of a file; none if it cannot be read."""
    try:
        with _open(path) as file:
            if file.seek(0, os.SEEK_END) > _END:
                file.seek(-_END, os.SEEK_END)
                file.readline(_END)  # the rest of a line
            else:
                file.seek(0)
            return [line for _, line in scan_lines(file) if line is not None]
    except OSError:
        return []


TIMINGS = ("wall_seconds", "steps_per_second")  # columns ``timing.NAME``


class Table:
    """The numbers of metrics lines, by column; updates ascend."""

    def __init__(self) -> None:
        """Hold no line."""
        self._columns: dict[str, array[float]] = {"update": array("d")}

    def __len__(self) -> int:
        return len(self._columns["update"])

    @property
    def last_update(self) -> int:
        """The last line's update, or 0."""
        return int(self._columns["update"][-1]) if len(self) else 0

    def add(self, line: dict[str, Any]) -> None:
        """Add a metrics line, unless its update does not come after the last."""
        if len(self) and line["update"] <= self.last_update:
            return
        timing, size = line.get("timing") or {}, len(self)
        for name, value in (
            line | {f"timing.{name}": timing.get(name) for name in TIMINGS}
        ).items():
            if value is None or type(value) in (int, float):
                if name not in self._columns:
                    self._columns[name] = array("d", [math.nan]) * size
                self._columns[name].append(_as_float(value))
        for column in self._columns.values():
            if len(column) == size:
                column.append(math.nan)

    def find(self, update: int) -> int:
        """The number of lines for updates up to this one."""
        return bisect_right(self._columns["update"], update)

    def row(self, update: int) -> dict[str, Any]:
        """The numbers of an update's line; empty if there is none."""
        place = self.find(update) - 1
        if place < 0 or self._columns["update"][place] != update:
            return {}
        return {name: _as_json(column[place]) for name, column in self._columns.items()}

    def columns(self, first: int = 0, *, max_rows: int = MAX_ROWS) -> Columns:
        """The lines from place `first`, thinned out evenly to `max_rows`, with the last one."""
        size = len(self)
        step = max(1, -(-(size - first) // max_rows))
        places = range(size - 1, first - 1, -step)[::-1]
        return {
            name: [_as_json(column[place]) for place in places]
            for name, column in self._columns.items()
        }


def _as_float(value: float | None) -> float:
    """NaN for None, and for a number that no run comes near."""
    return float(value) if value is not None and abs(value) < _LARGEST else math.nan


def _as_json(value: float) -> float | None:
    if math.isnan(value):
        return None
    return int(value) if value.is_integer() else float(f"{value:.6g}")
