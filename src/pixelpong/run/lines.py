"""Append-only files of JSON lines: one line per update, one line per episode."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from io import FileIO
from pathlib import Path
from typing import Annotated, Any

from pixelpong.errors import RunError, number_of, refusing
from pixelpong.run.words import signed
from pixelpong.schema import Count, Meta, Return, Seconds, decode

MIN_GAMES = 10  # with fewer, no interval is shown
TOO_FEW = "too few games for an interval"


@dataclass(frozen=True)
class Line:
    """The part that all lines share: the update, and in an episode's line its return."""

    update: Count
    episode_return: Return | None = None


@dataclass(frozen=True)
class Evaluation:
    """The returns of some games; a training writes its evaluations as lines.

    After a test that was passed they are new games, see `pixelpong.evaluation.judge`.
    """

    mean_return: Return  # −21 … 21
    std: Return  # standard deviation of the returns (of the sample, divisor n − 1)
    ci95: tuple[Return, Return]  # 95 % bootstrap interval of the mean
    returns: tuple[Return, ...]  # each game's, in order
    mean_steps: float  # decisions per game
    update: Count = 0  # of the training, at which it was played
    protocol: Annotated[str, Meta(max_length=200)] = ""  # the rules that were played, in words
    target: Return | None = None  # the mean return to reach, if there was one
    is_won: bool = False  # whether a test of games before these was passed
    test_return: Return | None = None  # the mean return of those games
    test_games: Count = 0
    timing: dict[str, Seconds] = field(default_factory=dict, compare=False)
    # The rules and the seed; if a command played the games, also which agent played them, and how.
    about: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def total_seconds(self) -> float | None:
        """Total time of the run until then, including evaluations."""
        return self.timing.get("wall_seconds")

    @property
    def found(self) -> str:
        """The mean return, with its interval and the number of games.

        >>> Evaluation(18.475, 1.9, (18.105, 18.83), (18.475,) * 200, 3500.0).found
        '+18.48 (+18.11 to +18.83) over 200 games'
        """
        games, (low, high) = len(self.returns), (signed(end, 2) for end in self.ci95)
        within = f"{low} to {high}" if games >= MIN_GAMES else TOO_FEW
        what = f"{games} new games" if self.test_games else number_of(games, "game")
        return f"{signed(self.mean_return, 2)} ({within}) over {what}"

    @property
    def tested(self) -> str:
        """The test that was passed before, if there was one."""
        found = f"{signed(self.test_return, 2)} over {self.test_games}"
        return f"; passed the test with {found}" if self.test_games else ""

    def __str__(self) -> str:
        """Mean, interval and number of games, after a line about the agent if it is known."""
        line = f"mean return {self.found} of {self.mean_steps:,.0f} steps{self.tested}"
        about = self.about
        if "agent" not in about:
            return line
        how = "sampled" if about["sampled"] else "greedy"
        where = self.protocol + (" in Gymnasium" if about["in_gymnasium"] else "")
        agent = f"{about['agent']}, update {about['update']}"
        lines = [f"{agent}: {how} play on {where}, seed {about['seed']}", line]
        if how == "greedy" and about["sticky"] == 0 and len(set(about["frame_skip"])) == 1:
            lines.append("Nothing is random in this protocol: all greedy episodes are the same.")
        return "\n".join(lines)

    def __repr__(self) -> str:
        """The same text, with a pointer to the returns."""
        return f"<Evaluation: {self}; .returns>"

    def _repr_html_(self) -> str:
        """The text and a histogram of the returns, for a notebook."""
        counts = sorted(Counter(round(value) for value in self.returns).items())
        bars = (f"{signed(value, 0):>3} {'█' * count} {count}" for value, count in counts)
        return "\n".join([f"<p>{self}</p><pre>", *bars, "</pre>"])

    def to_dict(self) -> dict[str, Any]:
        """The evaluation as JSON."""
        facts = asdict(self)
        about = facts.pop("about")
        return facts | about

    def in_short(self) -> dict[str, Any]:
        """The evaluation as JSON, without the single returns."""
        own = (
            "update",
            "protocol",
            "mean_return",
            "std",
            "ci95",
            "target",
            "is_won",
            "total_seconds",
        )
        return {name: getattr(self, name) for name in own} | {"games": len(self.returns)}


class LineFile:
    """A file of JSON objects, one per line, each with the ``update`` it belongs to.

    A reader never mistakes half a line for a whole one: only a line with its line break counts,
    and a single call writes whole lines.
    """

    def __init__(self, path: Path) -> None:
        """Use `path`, which need not exist."""
        self.path = path

    def append(self, *lines: dict[str, Any]) -> None:
        """Add lines at the end."""
        with self._open() as file:
            text = "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines).encode()
            before = file.seek(0, os.SEEK_END)
            if file.write(text) != len(text):
                file.truncate(before)  # a full disk takes only a part
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def sync(self) -> None:
        """Flush the lines to the disk, so that no checkpoint can be ahead of them."""
        with self._open() as file:
            os.fsync(file.fileno())

    def read(self, kind: Any = dict[str, Any]) -> Iterator[Any]:
        """The lines, each as a `kind`; damaged or incomplete lines and misfits are left out."""
        return (line for _, line in self._scan(kind) if line is not None)

    def cut_back(self, update: int) -> int:
        """Remove the lines after `update`, and return the number of whole lines removed.

        Damaged lines in between stay, so that no good line after them is lost.
        """
        found = [(end, line.update) for end, line in self._scan(Line) if line is not None]
        end = max((end for end, of in found if of <= update), default=0)
        with self._open() as file:
            file.truncate(end)
        return sum(of > update for _, of in found)

    @contextlib.contextmanager
    def _open(self) -> Iterator[FileIO]:
        advice = "make room there; or if the run was deleted, train again"
        with refusing(f"cannot write to {self.path}", RunError, advice):
            with self.path.open("ab", buffering=0) as file:
                yield file

    def _scan(self, kind: Any) -> Iterator[tuple[int, Any]]:
        """Yield the end of each whole line, and its content or None if it is damaged."""
        is_new = contextlib.suppress(FileNotFoundError)
        with refusing(f"cannot read {self.path}", RunError, "check the disk"), is_new:
            with self.path.open("rb") as file:
                end = 0
                for raw in file:
                    end += len(raw)
                    line = None
                    with contextlib.suppress(ValueError):
                        decode(raw, Line)
                        line = decode(raw, kind)
                    if raw.endswith(b"\n"):
                        yield end, line
