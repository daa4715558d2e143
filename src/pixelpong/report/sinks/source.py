"""What a run has to tell, line after line, while it grows and where a resume cuts it back."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pixelpong.errors import ConfigError, RunError, expected
from pixelpong.metrics import LINE_LIMIT
from pixelpong.report.files import write_whole
from pixelpong.run import Run

_STATE = "pixelpong.json"
"""In a sink's folder: whose it is, and what else the sink has to remember."""

Key = tuple[int, int]
"""Update, and place among its entries: 0 its metrics, then its evaluations."""


@dataclass(frozen=True)
class Entry:
    """One line of a run, as a sink takes it.

    Attributes:
        key: where it belongs; entries come in ascending order.
        values: name → number, those of the line that are numbers.
        seconds: of training until then.
    """

    key: Key
    values: dict[str, float]
    seconds: float

    @property
    def update(self) -> int:
        """To which it belongs."""
        return self.key[0]


class Source:
    """A run's metrics and evaluations, in the order of the updates."""

    def __init__(self, run: Run) -> None:
        """Begin at the beginning."""
        self._tails = tuple(_Tail(file.path) for file in (run.metrics, run.evaluations))
        self._waiting: list[Entry] = []
        self._is_new, self._newest, self._seconds = True, 0, 0.0
        self._evaluated: Key = (0, 0)

    def read(self, *, is_last: bool) -> tuple[list[Entry], bool]:
        """What has come since the last time.

        Args:
            is_last: nothing more comes, so that nothing is waited for.

        Returns:
            The entries, and whether these are all there are: it is the first time, or the run was
            cut back and what was read before no longer holds.

        Raises:
            RunError: a file is gone or cannot be read.
        """
        is_whole = self._is_new
        metrics, evaluations = self._read_lines()
        if metrics is None or evaluations is None:
            self._rewind()
            is_whole = True
            metrics, evaluations = self._read_lines()
            assert metrics is not None
            assert evaluations is not None
        self._is_new = False
        entries = [self._take_metrics(line) for line in metrics]
        self._waiting += [self._take_evaluation(line) for line in evaluations]
        # An evaluation is written after the metrics of its update, and read after them too: those
        # may have been written in between.
        ready = [e for e in self._waiting if is_last or e.update <= self._newest]
        self._waiting = [e for e in self._waiting if e not in ready]
        return sorted(entries + ready, key=lambda entry: entry.key), is_whole

    def _rewind(self) -> None:
        for tail in self._tails:
            tail.rewind()
        self._is_new, self._newest, self._seconds = True, 0, 0.0
        self._waiting.clear()
        self._evaluated = (0, 0)

    def _read_lines(self) -> tuple[list[dict[str, Any]] | None, ...]:
        return tuple(tail.read() for tail in self._tails)

    def _take_metrics(self, line: dict[str, Any]) -> Entry:
        timing = line.get("timing")
        timing = timing if isinstance(timing, dict) else {}
        values = _numbers("training", line) | _numbers("timing", timing)
        self._newest = max(self._newest, line["update"])
        self._seconds = values.get("timing/wall_seconds", self._seconds)
        return Entry((line["update"], 0), values, self._seconds)

    def _take_evaluation(self, line: dict[str, Any]) -> Entry:
        update, place = self._evaluated
        place = place + 1 if line["update"] == update else 1
        self._evaluated = (line["update"], place)
        ends = line.get("ci95")
        if isinstance(ends, list) and len(ends) == 2:
            line = line | {"ci95_low": ends[0], "ci95_high": ends[1]}
        return Entry(self._evaluated, _numbers("evaluation", line), self._seconds)


class _Tail:
    """The lines of a growing file, each once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.rewind()

    def rewind(self) -> None:
        """Begin again at the beginning."""
        self._end, self._last = 0, b""

    def read(self) -> list[dict[str, Any]] | None:
        """The new lines; None where the last one that was read is no longer there.

        Raises:
            RunError: the file is gone or cannot be read.
        """
        try:
            with self._path.open("rb") as file:
                file.seek(self._end - len(self._last))
                if file.read(len(self._last)) != self._last:
                    return None
                return self._read_on(file)
        except OSError as error:
            if isinstance(error, FileNotFoundError) and not self._end:
                return []
            got = error.strerror or str(error)
            raise RunError(expected(f"to read {self._path}", got, "is the run there?")) from error

    def _read_on(self, file: Any) -> list[dict[str, Any]]:
        lines: list[dict[str, Any]] = []
        end, is_long = self._end, False
        while raw := file.readline(LINE_LIMIT):
            end += len(raw)
            if raw.endswith(b"\n"):
                line = None if is_long else _decode(raw)
                lines += [] if line is None else [line]
                self._end, self._last = end, raw
            is_long = not raw.endswith(b"\n")
        return lines


def _decode(raw: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) and type(line.get("update")) is int else None


def _numbers(group: str, line: dict[str, Any]) -> dict[str, float]:
    """The entries that are numbers, under ``group/name``."""
    return {
        f"{group}/{name}": value
        for name, value in line.items()
        if type(value) in (int, float) and name != "update"
    }


def is_being_trained(run: Run) -> bool:
    """Whether a training holds the run now; the training does not notice the question.

    Only where the process that held it last is alive, the lock itself is asked: so no training
    that begins can find it taken by us.
    """
    if sys.platform == "win32":
        return False  # there are no locks
    import fcntl

    try:
        with (run.path / "run.lock").open("rb") as file:
            owner = int(file.read(20))
            if owner != os.getpid():
                os.kill(owner, 0)
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except PermissionError:
        return True  # it lives, and is somebody else's
    except (OSError, ValueError, OverflowError):
        return False
    return False


def claim_folder(run: Run, folder: Path) -> dict[str, Any]:
    """Make a sink's folder, or go on with it; what the sink has to remember.

    Raises:
        ConfigError: it is another run's.
        RunError: it cannot be read or made.
    """
    name, path = str(run.path.resolve()), folder / _STATE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        state = json.loads(path.read_text("utf-8")) if path.exists() else {"run": name}
        if not isinstance(state, dict):
            raise ValueError("no object")
    except (OSError, ValueError, RecursionError) as error:
        got = getattr(error, "strerror", None) or str(error)
        what = f"a folder for metrics in {folder}"
        raise RunError(expected(what, got, "choose another --out")) from error
    is_ours = folder.resolve().is_relative_to(run.path.resolve())  # also where the run was moved
    if not is_ours and state.get("run") != name:
        got = f"{folder} with those of {state.get('run')}"
        raise ConfigError(expected("a folder for this run alone", got, "choose another --out"))
    state = state | {"run": name}
    keep_state(folder, state)
    return state


def keep_state(folder: Path, state: dict[str, Any]) -> None:
    """Remember it for the next `claim_folder`.

    Raises:
        RunError: it cannot be written.
    """
    write_whole(folder / _STATE, (json.dumps(state) + "\n").encode())
