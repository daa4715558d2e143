"""Append-only files of JSON lines: one line per update, one line per episode."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pixelpong.errors import RunError, refusing
from pixelpong.run.words import describe_mean
from pixelpong.schema import Count, Return, Seconds, decode

LINE_LIMIT = 1 << 20  # bytes; our lines have a few thousand
GONE_ADVICE = "if the run was deleted, train again"


@dataclass(frozen=True)
class Line:
    """The base of every line: the update that it belongs to."""

    update: Count


@dataclass(frozen=True)
class EpisodeLine(Line):
    """A line of ``episodes.jsonl``: only what is read from it."""

    episode_return: Return


@dataclass(frozen=True)
class Timing:
    """The times of a line."""

    wall_seconds: Seconds | None = None  # of the run until then, without breaks


@dataclass(frozen=True)
class EvaluationLine(Line):
    """A line of ``evaluations.jsonl``: what games of greedy play have found."""

    mean_return: Return
    ci95: tuple[Return, Return]  # of the mean
    std: Return | None = None
    returns: tuple[Return, ...] = ()
    target: Return | None = None  # if it was to decide whether this is reached
    is_won: bool = False  # whether it is
    timing: Timing = Timing()

    def __post_init__(self) -> None:
        if not self.ci95[0] <= self.mean_return <= self.ci95[1]:
            raise ValueError("ci95 that does not hold the mean return")

    def __str__(self) -> str:
        return describe_mean(self.mean_return, self.ci95, len(self.returns))

    @property
    def total_seconds(self) -> float | None:
        """Time of the run until then, with evaluations."""
        return self.timing.wall_seconds

    def to_dict(self) -> dict[str, Any]:
        """As JSON, without each game's return."""
        own = ("update", "mean_return", "std", "ci95", "target", "is_won", "total_seconds")
        return {name: getattr(self, name) for name in own} | {"games": len(self.returns)}


class LineFile:
    """A file of JSON objects, one per line, each with the ``update`` it belongs to.

    A reader never mistakes half a line for a whole one: a line counts only with its line break,
    and one write call writes a whole line.
    """

    def __init__(self, path: Path) -> None:
        """Use `path`, which need not exist."""
        self.path = path

    def append(self, *lines: dict[str, Any]) -> None:
        """Add lines at the end."""
        with self._to("write to"), self.path.open("ab", buffering=0) as file:
            text = "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines).encode()
            before = file.seek(0, os.SEEK_END)
            if file.write(text) != len(text):
                file.truncate(before)  # the disk may have taken a part
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def sync(self) -> None:
        """Wait until the lines are on the disk, so that no checkpoint can be ahead of them."""
        with self._to("write to"), self.path.open("ab", buffering=0) as file:
            os.fsync(file.fileno())

    def read(self, kind: Any = dict[str, Any]) -> Iterator[Any]:
        """The lines, each as a `kind`, without those that are damaged, cut off or do not fit it."""
        return (line for _, line in self._scan(kind) if line is not None)

    def cut_back(self, update: int) -> int:
        """Remove the lines after `update`, and return how many whole lines that were.

        Damaged lines before it stay, so that no good line after them is lost.
        """
        end = dropped = 0
        for line_end, line in self._scan(Line):
            if line is not None and line.update <= update:
                end = line_end
            elif line is not None:
                dropped += 1
        with self._to("cut back"):
            if self.path.exists():
                os.truncate(self.path, end)
        return dropped

    def _scan(self, kind: Any) -> Iterator[tuple[int, Any]]:
        """Yield the end of each whole line, and its content or None if it is damaged."""
        with self._to("read"):
            if not self.path.exists() or self.path.is_fifo():  # opening a pipe would block
                return
            with self.path.open("rb") as file:
                end, is_long = 0, False
                while raw := file.readline(LINE_LIMIT):
                    end += len(raw)
                    if raw.endswith(b"\n"):
                        yield end, None if is_long else _decode_line(raw, kind)
                    is_long = not raw.endswith(b"\n")

    def _to(self, verb: str) -> contextlib.AbstractContextManager[None]:
        is_there = self.path.parent.is_dir()
        advice = "make room there, then resume" if is_there else GONE_ADVICE
        return refusing(f"to {verb} {self.path}", advice, RunError)


def _decode_line(raw: bytes, kind: Any) -> Any:
    """A line's content; None if it is damaged or not ours."""
    with contextlib.suppress(ValueError):
        decode(raw, Line)
        return decode(raw, kind)
    return None
