"""Append-only files of JSON lines: one line an update, one line an episode."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pixelpong.errors import RunError, expected
from pixelpong.run.files import open_to_read, open_to_write

LINE_LIMIT = 1 << 20
"""Bytes of the longest line that is read; ours have a few thousand."""

FILE_LIMIT = 4 << 30
"""Bytes of the longest file that is read: a hole of a terabyte takes an hour."""

ADVICE = "make room there, then resume"


class LineFile:
    """A file of JSON objects, one a line, each with the ``update`` it belongs to.

    A reader never sees half a line that it could mistake for a whole one: a line counts only
    with its line break, and one write call makes a whole line.
    """

    def __init__(self, path: Path, advice: str = ADVICE) -> None:
        """Use `path`, which need not be there; `advice` is given where it cannot be used."""
        self.path = path
        self._advice = advice

    @property
    def has_content(self) -> bool:
        """Whether anything was ever written there, damaged or not."""
        with contextlib.suppress(OSError):
            return self.path.stat().st_size > 0
        return False

    def append(self, *lines: dict[str, Any]) -> None:
        """Add lines at the end.

        Raises:
            RunError: the file cannot be written, as on a full disk.
        """
        text = "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines).encode()
        with self._refusals("write to"), open_to_write(self.path, "ab") as file:
            before = file.seek(0, os.SEEK_END)
            if file.write(text) != len(text):
                file.truncate(before)  # the disk took a part: take it back
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def sync(self) -> None:
        """Wait until the disk has the lines, so that no checkpoint can be ahead of them.

        Raises:
            RunError: the disk does not take them.
        """
        with self._refusals("write to"), open_to_write(self.path, "ab") as file:
            os.fsync(file.fileno())

    def read(self) -> Iterator[dict[str, Any]]:
        """The lines, without those that are damaged or cut off."""
        return (line for _, line in self._scan() if line is not None)

    def cut_back(self, update: int) -> None:
        """Drop what follows the last line of `update` or before, whole or cut off.

        What is damaged before it stays where it is: it is no reason to lose what is behind it.

        Raises:
            RunError: the file cannot be read or written.
        """
        end = 0
        for line_end, line in self._scan():
            if line is not None and line["update"] <= update:
                end = line_end
        with self._refusals("cut back"):
            if self.path.exists():
                with open_to_write(self.path, "r+b") as file:
                    file.truncate(end)

    def _scan(self) -> Iterator[tuple[int, dict[str, Any] | None]]:
        """Where each line ends, and its content; None where it is damaged."""
        with self._refusals("read"):
            if not self.path.exists():
                return
            end, is_long = 0, False
            with open_to_read(self.path) as file:
                if os.fstat(file.fileno()).st_size > FILE_LIMIT:
                    raise OSError(errno.EFBIG, f"more than {FILE_LIMIT} bytes")
                while raw := file.readline(LINE_LIMIT):
                    end += len(raw)
                    if raw.endswith(b"\n"):
                        yield end, None if is_long else decode_line(raw)
                    is_long = not raw.endswith(b"\n")

    @contextlib.contextmanager
    def _refusals(self, verb: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            got = error.strerror or str(error)
            raise RunError(expected(f"to {verb} {self.path}", got, self._advice)) from error


def decode_line(raw: bytes) -> dict[str, Any] | None:
    """A line's content; None where it is damaged, or none of ours."""
    if len(raw) > LINE_LIMIT:
        return None
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    is_ours = isinstance(line, dict) and type(line.get("update")) is int
    return line if is_ours and 0 <= line["update"] < 2**53 else None
