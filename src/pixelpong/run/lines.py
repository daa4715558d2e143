"""Append-only files of JSON lines, with one line per update, episode or evaluation."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from io import BufferedReader, FileIO
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pixelpong.config.protocols import PONG, game_of
from pixelpong.errors import RunError, number_of, refusing
from pixelpong.run.files import open_to_read, open_to_write
from pixelpong.run.words import compare, in_game
from pixelpong.schema import Count, Meta, Return, Seconds, convert, decode
from pixelpong.scores import human_normalised

FILE_LIMIT = 1 << 32  # size limit of a file in bytes, about six million updates
LINE_LIMIT = 1 << 24  # size limit of a line in bytes, an evaluation of two million games
BLOCK_SIZE = 1 << 16  # bytes per read
_KEPT_BYTES = 1 << 12  # bytes at the end of the last line, kept to recognise the file
# Fewest games for which the interval of their mean is reported, in text and as JSON, and fewest
# runs for that of their median. Fewer runs suffice, because a run costs more than a game.
MIN_GAMES, MIN_RUNS = 10, 4
TOO_FEW = "too few games for an interval"
_MAX_BARS = 42  # most bars of a histogram: one for each return of Pong


@dataclass(frozen=True)
class Line:
    """The part that all lines share, and the return, which only an episode's line has."""

    update: Count
    episode_return: Return | None = None
    explores: bool = False  # whether an episode is left out of means


@dataclass(frozen=True)
class Evaluation:
    """The returns of some games; a training run writes its evaluations as lines.

    If these are new games after a passed solved test, `test_return` and `test_games` describe the
    games of the test.
    """

    mean_return: Return  # in Pong −21 … 21, otherwise in the game's own points
    std: Return  # standard deviation of the returns (of the sample, divisor n − 1)
    ci95: tuple[Return, Return]  # 95 % bootstrap interval of the mean
    returns: tuple[Return, ...]  # the return of each game, in order
    mean_steps: float  # decisions per game
    update: Count = 0  # the update of the run
    protocol: Annotated[str, Meta(max_length=200)] = ""  # the rules of the games, in words
    target: Return | None = None  # mean return to reach, if there was a target
    is_won: bool = False  # whether the solved test was passed
    test_return: Return | None = None  # mean return in the test
    test_games: Count = 0
    timing: dict[str, Seconds] = field(default_factory=dict, compare=False)
    # The rules and the seed; for a command's games, also the agent and how it chose its actions.
    about: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def game(self) -> str:
        """The game that was played."""
        return game_of(self.protocol)

    @property
    def human_normalised(self) -> float | None:
        """The mean as a share from random play to a person, see `pixelpong.scores`."""
        return human_normalised(self.game, self.mean_return)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval to report; None if there are too few games for one."""
        return self.ci95 if len(self.returns) >= MIN_GAMES else None

    @property
    def total_seconds(self) -> float | None:
        """Total time of the run so far, including evaluations."""
        return self.timing.get("wall_seconds")

    def has_confirmed(self, target: float | None) -> bool:
        """Whether it has confirmed a target return as high as this one; False without a target."""
        won = self.target if self.is_won else None
        return won is not None and target is not None and won >= target

    @property
    def mean_in_words(self) -> str:
        """The mean return with its interval and the number of games.

        >>> Evaluation(18.475, 1.9, (18.105, 18.83), (18.475,) * 200, 3500.0).mean_in_words
        '+18.48 (+18.11 to +18.83) over 200 games'
        """
        num_games, ends = len(self.returns), self.interval
        interval = " to ".join(in_game(end, self.game, 2) for end in ends) if ends else TOO_FEW
        games = f"{num_games} new games" if self.test_games else number_of(num_games, "game")
        return f"{in_game(self.mean_return, self.game, 2)} ({interval}) over {games}"

    @property
    def test_in_words(self) -> str:
        """A clause about the solved test; "" if none was passed."""
        if not self.test_games:
            return ""
        mean = in_game(self.test_return, self.game, 2)
        return f"; passed the test with {mean} over {number_of(self.test_games, 'game')}"

    def __str__(self) -> str:
        """Return the mean, its interval and the number of games, below a line about the agent."""
        noun = "return" if self.game == PONG else "score"
        line = f"mean {noun} {self.mean_in_words} of {self.mean_steps:,.0f} steps"
        line += self.test_in_words
        if self.game != PONG and (compared := compare(self.mean_return, self.game)):
            line += f", {compared}"
        about = self.about
        if "agent" not in about:
            return line
        mode = "sampled" if about["sampled"] else "greedy"
        rules = f"{self.protocol} in Gymnasium" if about["in_gymnasium"] else self.protocol
        agent = f"{about['agent']}, update {about['update']}"
        lines = [f"{agent}: {mode} play on {rules}, seed {about['seed']}", line]
        if mode == "greedy" and about["sticky"] == 0 and len(set(about["frame_skip"])) == 1:
            lines.append("Nothing is random in this protocol: all greedy episodes are the same.")
        return "\n".join(lines)

    def __repr__(self) -> str:
        """Return the text of `str`, with a pointer to the returns."""
        return f"<Evaluation: {self}; .returns>"

    def _repr_html_(self) -> str:
        """Return the text and a histogram of the returns for a notebook."""
        # In games with large scores, a bar counts those up to the next bar's.
        width = max((max(self.returns) - min(self.returns)) // _MAX_BARS, 1)
        counts = sorted(Counter(round(value / width) * width for value in self.returns).items())
        labels = [in_game(value, self.game, 0) for value, _ in counts]
        size = max(3, *map(len, labels))
        bars = (
            f"{label:>{size}} {'█' * count} {count}"
            for label, (_, count) in zip(labels, counts, strict=True)
        )
        return "\n".join([f"<p>{self}</p><pre>", *bars, "</pre>"])

    def to_line(self) -> dict[str, Any]:
        """Return the evaluation as a line of a run, which always has the interval."""
        facts = asdict(self)
        about = facts.pop("about")
        return facts | about

    def to_dict(self) -> dict[str, Any]:
        """Return the evaluation as JSON."""
        return self.to_line() | {"ci95": self.interval} | self._about_game()

    def in_short(self) -> dict[str, Any]:
        """Return the evaluation as JSON, without the individual returns."""
        names = "update", "protocol", "mean_return", "std", "target", "is_won", "total_seconds"
        facts = {name: getattr(self, name) for name in names}
        facts |= {"ci95": self.interval, "games": len(self.returns)}
        return facts | self._about_game()

    def _about_game(self) -> dict[str, Any]:
        return {"game": self.game, "human_normalised": self.human_normalised}


class LineFile:
    """A file of JSON objects, one per line, each with the ``update`` it belongs to.

    A reader never mistakes half a line for a whole one, because only a line with its line break
    counts and each call writes whole lines.
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
                file.truncate(before)  # a full disk may have taken only a part
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def sync(self) -> None:
        """Flush the lines to the disk so that no checkpoint can be ahead of them."""
        with self._open() as file:
            os.fsync(file.fileno())

    def read(self, line_type: Any = dict[str, Any]) -> Iterator[Any]:
        """Yield the lines that parse as `line_type`; skip all others, such as damaged ones."""
        lines = (read_line(line.raw, line_type) for line in self._scan())
        return (line for line in lines if line is not None)

    def last(self, line_type: Any = Line) -> Any:
        """Return the last line that parses as `line_type`, or None if there is none."""
        newest = deque(self.read(line_type), 1)
        return newest[0] if newest else None

    def cut_back(self, update: int) -> int:
        """Remove the lines after `update`; return the number of whole lines removed.

        Damaged lines in between stay, so that no good line after them is lost. If the file is
        missing, it is created.
        """
        end = lost = 0
        for raw_line in self._scan():
            line = read_line(raw_line.raw, Line)
            if line is not None and line.update <= update:
                end = raw_line.end
            elif line is not None:
                lost += 1
        with self._open(create=True) as file:
            file.truncate(end)
        return lost

    @contextlib.contextmanager
    def _open(self, *, create: bool = False) -> Iterator[FileIO]:
        with refusing(f"cannot write to {self.path}", RunError, "check the free space"):
            with open_to_write(self.path, create=create) as file:
                yield file

    def _scan(self) -> Iterator[RawLine]:
        return (line for line in Tail(self.path).read_on() if line is not None)


def read_line(raw: bytes, line_type: Any) -> Any:
    """Parse a line as `line_type`, which may be a dict; return None if it does not fit."""
    with contextlib.suppress(ValueError):
        line = decode(raw, line_type)
        if isinstance(line, dict):
            convert(line, Line)
        else:
            decode(raw, Line)  # its update may be missing
        return line
    return None


class RawLine(NamedTuple):
    """A whole line of a file."""

    raw: bytes  # the content with the line break; empty if the line is too long to be ours
    end: int  # the position in the file after the line


class Tail:
    """Reads a file of lines, continuing each time where the last reading ended.

    Only the end of the last line is read twice, to recognise the file. A file that was cut back,
    replaced or changed in any other way is read from the start. Half a line at the end is read once
    it is complete.
    """

    def __init__(self, path: Path) -> None:
        """Start before the first line of `path`, which need not exist."""
        self._path = path
        self._begin()

    def _begin(self) -> None:
        self._end, self._last = 0, b""
        self._identity: FileIdentity | None = None  # the file's identity at the last reading

    def read_on(self) -> Iterator[RawLine | None]:
        """Yield the whole lines since the last reading; None means that all are read again."""
        with refusing(f"cannot read {self._path}", RunError, "check the disk"):
            try:
                file = open_to_read(self._path)
            except FileNotFoundError:
                if self._end:
                    self._begin()
                    yield None
                return
            with file:
                identity = identity_of(os.fstat(file.fileno()))
                if identity == self._identity:
                    return
                if self._end and not self._has_grown(file, identity):
                    self._begin()
                    yield None
                yield from self._read(file, identity.size)
                self._identity = identity  # set last, once everything has been read

    def _has_grown(self, file: FileIO, identity: FileIdentity) -> bool:
        """Whether a file that has changed has only grown since the last reading."""
        before = self._identity
        if before is None or identity.inode != before.inode or identity.size <= before.size:
            return False
        file.seek(self._end - len(self._last))
        return file.read(len(self._last)) == self._last

    def _read(self, file: FileIO, size: int) -> Iterator[RawLine]:
        """Yield the whole lines from the end of the last reading up to `size`."""
        if size > FILE_LIMIT:
            raise ValueError(f"it has more than {FILE_LIMIT:,} bytes")
        file.seek(self._end)
        buffered, position, is_long = BufferedReader(file, BLOCK_SIZE), self._end, False
        while raw := buffered.readline(min(size - position, LINE_LIMIT)):
            position += len(raw)
            if not raw.endswith(b"\n"):
                is_long = True  # or it is half a line at the end
                continue
            self._end, self._last = position, raw[-_KEPT_BYTES:]
            yield RawLine(b"" if is_long else raw, position)
            is_long = False
        buffered.detach()


class FileIdentity(NamedTuple):
    """Facts about a file; at least one of them changes if its content changes."""

    inode: int
    size: int
    nanoseconds: int  # time of the last change


def identity_of(file: os.stat_result) -> FileIdentity:
    """Return the identity of a file."""
    return FileIdentity(file.st_ino, file.st_size, file.st_mtime_ns)
