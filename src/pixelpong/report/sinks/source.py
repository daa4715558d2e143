"""What a run has to tell, line after line, while it grows and where a resume cuts it back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pixelpong.errors import ConfigError, RunError, expected
from pixelpong.report.files import write_whole
from pixelpong.report.web.tail import Tail
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
        self._paths = (run.metrics.path, run.evaluations.path)
        self._waiting: list[Entry] = []
        self._is_new, self._newest, self._seconds = True, 0, 0.0
        self._evaluated: Key = (0, 0)
        self._begin()

    def read(self, *, is_last: bool) -> tuple[list[Entry], bool]:
        """What has come since the last time.

        Args:
            is_last: nothing more comes, so that nothing is waited for.

        Returns:
            The entries, and whether these are all there are: it is the first time, or the run was
            cut back and what was read before no longer holds.

        Raises:
            RunError: the run is gone.
        """
        is_whole = self._is_new
        # In this order: the metrics of an evaluation's update are written before it.
        (is_cut, metrics), (is_cut_too, evaluations) = (tail.read() for tail in self._tails)
        if is_cut or is_cut_too:
            if not self._paths[0].exists():
                got = f"no {self._paths[0].name}"
                raise RunError(expected(f"a run in {self._paths[0].parent}", got, "is it there?"))
            self._begin()
            is_whole = True
            (_, metrics), (_, evaluations) = (tail.read() for tail in self._tails)
        self._is_new = False
        entries = [self._take_metrics(line) for line in metrics]
        self._waiting += [self._take_evaluation(line) for line in evaluations]
        # Its metrics may have been written between the two readings.
        ready = [e for e in self._waiting if is_last or e.update <= self._newest]
        self._waiting = [e for e in self._waiting if e not in ready]
        return sorted(entries + ready, key=lambda entry: entry.key), is_whole

    def _begin(self) -> None:
        self._tails = [Tail(path) for path in self._paths]
        self._is_new, self._newest, self._seconds = True, 0, 0.0
        self._waiting, self._evaluated = [], (0, 0)

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


def _numbers(group: str, line: dict[str, Any]) -> dict[str, float]:
    """The entries that are numbers, under ``group/name``."""
    return {
        f"{group}/{name}": value
        for name, value in line.items()
        if type(value) in (int, float) and name != "update"
    }


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
