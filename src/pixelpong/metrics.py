"""Append-only files of JSON lines: one line an update, one line an episode."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pixelpong.errors import RunError, expected

LINE_LIMIT = 1 << 20
"""Bytes of the longest line that is read; ours have a few thousand."""


class LineFile:
    """A file of JSON objects, one a line, each with the ``update`` it belongs to.

    A reader never sees half a line that it could mistake for a whole one: a line counts only
    with its line break, and one write call makes a whole line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, *lines: dict[str, Any]) -> None:
        """Add lines at the end.

        Raises:
            RunError: the file cannot be written, as on a full disk.
        """
        text = "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines)
        try:
            with self.path.open("ab", buffering=0) as file:
                before = file.tell()
                if file.write(text.encode()) != len(text.encode()):
                    file.truncate(before)  # the disk took a part: take it back
                    raise OSError(None, "disk full")
        except OSError as error:
            got = error.strerror or str(error)
            raise RunError(
                expected(f"to write to {self.path}", got, "make room there, then resume")
            ) from error

    def read(self) -> Iterator[dict[str, Any]]:
        """The whole lines; one that is cut off or no JSON object ends the reading."""
        for line, _ in self._read_with_ends():
            yield line

    def cut_back(self, update: int) -> None:
        """Drop all lines that belong to later updates than `update`, and a line cut off.

        Raises:
            RunError: the file cannot be written.
        """
        end = 0
        for line, line_end in self._read_with_ends():
            if line.get("update", 0) > update:
                break
            end = line_end
        try:
            if self.path.exists():
                with self.path.open("r+b") as file:
                    file.truncate(end)
        except OSError as error:
            got = error.strerror or str(error)
            raise RunError(expected(f"to write to {self.path}", got, "check its rights")) from error

    def _read_with_ends(self) -> Iterator[tuple[dict[str, Any], int]]:
        if not self.path.exists():
            return
        end = 0
        with self.path.open("rb") as file:
            while raw := file.readline(LINE_LIMIT):
                end += len(raw)
                try:
                    line = json.loads(raw)
                except ValueError:
                    return
                if not raw.endswith(b"\n") or not isinstance(line, dict):
                    return
                yield line, end
