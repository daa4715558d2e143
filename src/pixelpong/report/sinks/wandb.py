"""Weights & Biases, or whatever else takes figures with ``log(figures, step=update)``.

Its steps only go up: what was told once cannot be told anew. So the folder remembers how far it
is, and what a resume has cut back and played again is passed over; where the configuration was not
changed, it is the same but for the timing.

Nothing is sent anywhere unless the user says so: without WANDB_MODE the run is written offline.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pixelpong.errors import RunError, expected
from pixelpong.report.sinks.source import Entry, Key, claim_folder, keep_state
from pixelpong.run import Run


class WandbSink:
    """See `pixelpong.report.sinks.Sink`."""

    name = "wandb"

    def __init__(self, run: Run, folder: Path, logger: Any = None) -> None:
        """Use a folder, which need not exist yet.

        Args:
            run: whose metrics come.
            folder: for what has to be remembered, and for the files of a run of wandb.
            logger: what takes the figures; None to begin a run of wandb.

        Raises:
            ConfigError: the folder is another run's.
            RunError: it cannot be made, or wandb does not begin.
        """
        self._state = claim_folder(run, folder)
        self.folder, self._last = folder.absolute(), _read_key(self._state)
        self.advice, self._finish = "what it was written for", None
        if logger is None:
            if "id" not in self._state:
                text = f"{self._state['run']} {time.time_ns()}"
                self._state["id"] = hashlib.sha256(text.encode()).hexdigest()[:16]
                keep_state(folder, self._state)
            logger = self._ask("to begin", _start, run, self.folder, self._state["id"])
            self.advice, self._finish = _advice(self.folder), logger.finish
        self._logger = logger

    def align(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """See `Sink.align`."""
        return [entry for entry in entries if entry.key > self._last]

    def write(self, entries: Sequence[Entry]) -> None:
        """See `Sink.write`."""
        for entry in self.align(entries):
            self._ask("to take a step", self._logger.log, dict(entry.values), step=entry.update)
            self._last = entry.key
            self._state["last"] = list(entry.key)
            keep_state(self.folder, self._state)

    def close(self) -> None:
        """See `Sink.close`."""
        if self._finish is not None:
            finish, self._finish = self._finish, None
            self._ask("to end", finish)

    def _ask(self, what: str, do: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return do(*args, **kwargs)
        except Exception as error:  # another program's; whatever it is, a user gets a line
            got = " ".join(str(error).split())[:200] or type(error).__name__
            advice = f"see its log in {self.folder}"
            raise RunError(expected(f"wandb {what}", got, advice)) from error


def _start(run: Run, folder: Path, identity: str) -> Any:
    mode = os.environ.setdefault("WANDB_MODE", "offline")
    if mode != "online":
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    import wandb

    return wandb.init(
        project=os.environ.get("WANDB_PROJECT", "pixelpong"),
        name=run.path.name,
        id=identity,
        dir=str(folder),
        config=run.config.to_flat(),
        resume="allow" if mode == "online" else None,
        settings=wandb.Settings(console="off"),
    )


def _advice(folder: Path) -> str:
    if os.environ.get("WANDB_MODE") == "online":
        return "the page that wandb named"
    return f"wandb sync --append {folder}/wandb/offline-run-*, which sends it"


def _read_key(state: dict[str, Any]) -> Key:
    last: Any = state.get("last", [0, 0])
    is_key = isinstance(last, list) and [type(each) for each in last] == [int, int]
    return (last[0], last[1]) if is_key else (0, 0)
