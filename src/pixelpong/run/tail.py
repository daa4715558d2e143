"""Files that grow while they are read: what was appended, and the numbers of it as columns.

A training appends whole lines; a resume cuts its files back and goes on; a run can be deleted and
another put in its place. So a tail remembers how far it has read and the bytes before that place:
where they are others, it begins anew. It opens files for reading only and holds none open.

Covered: `Tail`, `Table`. Not covered: what the lines mean (`library`, `health`).
"""

from __future__ import annotations

import math
import os
import stat
from array import array
from bisect import bisect_right
from pathlib import Path
from typing import Any

from pixelpong.run.lines import LINE_LIMIT, decode_line

Columns = dict[str, list[Any]]

MAX_COLUMNS = 64
"""Ours have below 40; more are the sign of another program's file."""

MAX_ROWS = 2000
"""That are sent at once: more than a chart has pixels across."""

_MARK = 256
_CHUNK = 4 << 20


class Tail:
    """A file of JSON objects, one a line, read piece by piece."""

    def __init__(self, path: Path) -> None:
        """Begin at the start of `path`, which need not be there."""
        self._path = path
        self._seen: tuple[tuple[int, int] | None, int, int] = (None, -1, -1)
        self._forget()

    def read(self) -> tuple[bool, list[dict[str, Any]]]:
        """What is new.

        Returns:
            Whether everything that was read before is void, and the new lines. Damaged lines are
            left out, and a last one that has no line break yet.
        """
        try:
            state = os.stat(self._path)
            if not stat.S_ISREG(state.st_mode):
                raise FileNotFoundError(self._path)
            identity = (state.st_dev, state.st_ino)
            if (identity, state.st_size, state.st_mtime_ns) == self._seen:
                return False, []
            with self._path.open("rb") as file:
                is_anew = identity != self._seen[0] or not self._finds_mark(file)
                if is_anew:
                    self._forget()
                lines = self._read_on(file)
        except OSError:
            had_any = self._offset > 0
            self._forget()
            return had_any, []
        self._seen = (identity, state.st_size, state.st_mtime_ns)
        return is_anew, lines

    def _forget(self) -> None:
        self._offset, self._mark, self._is_in_long = 0, b"", False
        self._seen = (None, -1, -1)

    def _finds_mark(self, file: Any) -> bool:
        file.seek(self._offset - len(self._mark))
        return bool(file.read(len(self._mark)) == self._mark)

    def _read_on(self, file: Any) -> list[dict[str, Any]]:
        file.seek(self._offset)
        lines, rest = [], b""
        while chunk := file.read(_CHUNK):
            rest += chunk
            *whole, rest = rest.split(b"\n")
            for raw in whole:
                line = None if self._is_in_long else decode_line(raw)
                self._is_in_long = False
                self._advance(raw + b"\n")
                if line is not None:
                    lines.append(line)
            if len(rest) > LINE_LIMIT:
                self._advance(rest)
                self._is_in_long, rest = True, b""
        return lines

    def _advance(self, read: bytes) -> None:
        self._offset += len(read)
        self._mark = (self._mark + read)[-_MARK:]


def read_end(path: Path, size: int = 32 << 10) -> list[dict[str, Any]]:
    """The whole lines within the last bytes of a file; none where it cannot be read."""
    try:
        if not path.is_file():
            return []
        with path.open("rb") as file:
            begin = max(0, file.seek(0, os.SEEK_END) - size)
            file.seek(begin)
            raws = file.read(size).split(b"\n")[:-1]
    except OSError:
        return []
    lines = (decode_line(raw) for raw in raws[1 if begin else 0 :])
    return [line for line in lines if line is not None]


def number_of(value: Any) -> float | None:
    """`value` where it is a number that JSON and a chart can hold, else None.

    >>> number_of(3), number_of(float("nan")), number_of(True), number_of(10**400)
    (3, None, None, None)
    """
    if type(value) is int:
        return value if abs(value) < 2**53 else None
    return value if type(value) is float and math.isfinite(value) else None


TIMINGS = ("wall_seconds", "steps_per_second", "busy_share", "workers", "items_again", "restarts")
"""Kept of a metrics line's ``timing``, under these names with ``timing.`` before."""

SHOWN_TIMINGS = ("timing.wall_seconds", "timing.steps_per_second")


class Table:
    """The numbers of metrics lines, by column; updates ascend."""

    def __init__(self) -> None:
        """Hold no line."""
        self._columns: dict[str, array[float]] = {"update": array("d")}

    def __len__(self) -> int:
        return len(self._columns["update"])

    @property
    def last_update(self) -> int:
        """Of the last line; 0 where there is none."""
        return int(self._columns["update"][-1]) if len(self) else 0

    def add(self, line: dict[str, Any]) -> None:
        """A metrics line. One that does not come after the last is passed over."""
        if len(self) and line["update"] <= self.last_update:
            return
        timing = line.get("timing")
        timing = timing if isinstance(timing, dict) else {}
        values = {name: value for name, value in line.items() if _is_numeric(value)}
        values |= {f"timing.{name}": timing[name] for name in TIMINGS if name in timing}
        size = len(self)
        for name, value in values.items():
            if name not in self._columns and len(self._columns) < MAX_COLUMNS and len(name) < 64:
                self._columns[name] = array("d", [math.nan]) * size
            if name in self._columns:
                number = number_of(value)
                self._columns[name].append(math.nan if number is None else number)
        for column in self._columns.values():
            if len(column) == size:
                column.append(math.nan)

    def find(self, update: int) -> int:
        """How many lines belong to updates up to this one."""
        return bisect_right(self._columns["update"], update)

    def find_last(self, num_lines: int) -> int:
        """The update of the last of so many lines; 0 of none."""
        return int(self._columns["update"][num_lines - 1]) if num_lines else 0

    def row(self, update: int) -> dict[str, Any]:
        """The numbers of an update's line; empty where there is none."""
        place = self.find(update) - 1
        if place < 0 or self._columns["update"][place] != update:
            return {}
        return {name: _as_json(column[place]) for name, column in self._columns.items()}

    def columns(self, first: int = 0, *, max_rows: int = MAX_ROWS, every: bool = False) -> Columns:
        """The lines from place `first` on, thinned out evenly, the last one always there.

        Args:
            first: place of the first line.
            max_rows: lines at most.
            every: also the timings that only `health` looks at.
        """
        size = len(self)
        step = max(1, -(-(size - first) // max_rows))
        places = range(size - 1, first - 1, -step)[::-1]
        return {
            name: [_as_json(column[place]) for place in places]
            for name, column in self._columns.items()
            if every or not name.startswith("timing.") or name in SHOWN_TIMINGS
        }

    def agreement(self, other: Table) -> int:
        """The update up to which both have the same lines."""
        names = [name for name in ("update", "steps", SHOWN_TIMINGS[0]) if name in self._columns]
        last = 0
        for place in range(min(len(self), len(other))):
            if any(
                _as_json(self._columns[name][place]) != other._at(name, place) for name in names
            ):
                break
            last = int(self._columns["update"][place])
        return last

    def _at(self, name: str, place: int) -> float | None:
        return _as_json(self._columns[name][place]) if name in self._columns else None


def _is_numeric(value: Any) -> bool:
    return value is None or type(value) in (int, float)


def _as_json(value: float) -> float | None:
    if math.isnan(value):
        return None
    return int(value) if value.is_integer() else float(f"{value:.6g}")
