"""A run's metrics for another program: TensorBoard, or Weights & Biases.

``pixelpong track RUN --to tensorboard`` or ``--to wandb``. All of it comes from the run's own
files, afterwards or while it is being trained, and training knows nothing of it. The folder
remembers what has been written, so that a later call continues there. If a resume has cut the run
back, TensorBoard is told to forget what it has (``purge_step``) and gets everything anew; Weights &
Biases takes no step twice, so it keeps what it was told first.

Nothing is sent anywhere unless the user says so: without WANDB_MODE, wandb writes offline.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from pixelpong.errors import ConfigError, RunError, expected
from pixelpong.run.alive import is_live as is_being_trained
from pixelpong.run.directory import RunDirectory
from pixelpong.run.files import write_whole

SINKS = {"tensorboard": "tensorboardX", "wandb": "wandb"}
"""Name → the module that it needs."""

POLL_SECONDS = 1.0
"""How often a run that is being trained is looked at."""

MIN_FREE_BYTES = 1 << 20
"""With less room on the disk nothing is written: tensorboardX would wait for ever on a full one."""

_STATE = "pixelpong.json"
"""In the folder: whose it is, and what has been written."""

Line = dict[str, Any]


class Sink(Protocol):
    """Takes the figures of updates."""

    def begin(self, *, is_anew: bool) -> None:
        """Start to write; if `is_anew`, forget all that was written before."""

    def log(self, update: int, values: dict[str, float], when: float) -> None:
        """Take the figures of an update, at a time in seconds since 1970."""

    def close(self) -> None:
        """Nothing more comes."""


def track(
    run: RunDirectory,
    to: str = "tensorboard",
    out: Path | None = None,
    *,
    is_live: bool = False,
    should_stop: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Write what a run has that has not been written yet.

    Args:
        run: the run; it is only read.
        to: one of `SINKS`.
        out: folder for this run alone; by default one of the sink's name in the run.
        is_live: go on for as long as the run is being trained.
        should_stop: asked every second; what has been written by then stays.

    Returns:
        ``run``, ``sink``, ``folder``, ``lines`` written now, the newest ``update``, and
        ``advice`` for looking at it.

    Raises:
        ConfigError: there is no such sink, its library is not installed, or the folder is another
            run's.
        RunError: the run cannot be read, the folder not written, or wandb fails.
    """
    if to not in SINKS:
        raise ConfigError(expected("a sink", repr(to), f"use one of {', '.join(SINKS)}"))
    if importlib.util.find_spec(SINKS[to]) is None:
        package = "'pixelpong[track]'" if to == "tensorboard" else "wandb"
        raise ConfigError(expected(SINKS[to], "no such package", f"pip install {package}"))
    folder = out or run.path / to
    with _refusals(folder):
        state = _claim(run, folder)
        sink: Sink = (TensorBoard if to == "tensorboard" else Wandb)(run, folder)
        written = _follow(run, sink, folder, state, is_live, should_stop)
    looking = {
        "tensorboard": f"tensorboard --logdir {folder}",
        "wandb": f"wandb sync {folder}/wandb/offline-run-*, which sends it",
    }
    return {
        "run": str(run.path),
        "sink": to,
        "folder": str(folder),
        "lines": written,
        "update": state["update"],
        "advice": looking[to],
    }


def describe_track(report: dict[str, Any]) -> str:
    """What was written, in two lines."""
    return (
        f"{report['folder']}: {report['lines']:,} lines written, "
        f"up to update {report['update']:,}\n"
        f"look at it with: {report['advice']}"
    )


def _follow(
    run: RunDirectory,
    sink: Sink,
    folder: Path,
    state: dict[str, Any],
    is_live: bool,
    should_stop: Callable[[], bool],
) -> int:
    has_begun, written, seconds = False, 0, 0.0
    while True:
        goes_on = is_live and is_being_trained(run.path)  # asked before the last reading
        files = {"training": list(run.metrics.read()), "evaluation": list(run.evaluations.read())}
        if not run.metrics.path.parent.exists():
            raise RunError(expected(f"a run in {run.path}", "none", "is it still there?"))
        if not all(_matches(state["files"].get(name), files[name]) for name in files):
            state["files"], has_begun = {}, False
        new = [
            (line, name)
            for name, lines in files.items()
            for line in lines[state["files"].get(name, [0])[0] :]
        ]
        new.sort(key=lambda each: each[0]["update"])
        if new and shutil.disk_usage(folder).free < MIN_FREE_BYTES:
            raise OSError(0, "No space left on device")
        if new and not has_begun:
            sink.begin(is_anew=not state["files"])
            has_begun = True
        begun = _find_begin(run, files["training"])
        for line, name in new:
            values = _numbers(name, line)
            seconds = values.get("timing/wall_seconds", seconds)
            sink.log(line["update"], values, begun + seconds)
        if new:
            state["files"] = {name: _mark(lines) for name, lines in files.items()}
            state["update"] = new[-1][0]["update"]
            write_whole(folder / _STATE, (json.dumps(state) + "\n").encode())
        written += len(new)
        if not goes_on or should_stop():
            break
        time.sleep(POLL_SECONDS)
    sink.close()
    return written


def _matches(mark: Sequence[Any] | None, lines: list[Line]) -> bool:
    """Whether the lines that were written are still the run's first ones."""
    return mark is None or (len(lines) >= mark[0] and _mark(lines[: mark[0]]) == list(mark))


def _mark(lines: list[Line]) -> list[Any]:
    """How many there are, and a digest of the last one."""
    last = json.dumps(lines[-1:], sort_keys=True).encode()
    return [len(lines), hashlib.sha256(last).hexdigest()]


def _numbers(group: str, line: Line) -> dict[str, float]:
    """The entries that are numbers, under ``group/name``."""
    timing = line.get("timing")
    low_high = line.get("ci95")
    if isinstance(low_high, list) and len(low_high) == 2:
        line = line | {"ci95_low": low_high[0], "ci95_high": low_high[1]}
    found = {
        f"{group}/{name}": value
        for name, value in line.items()
        if type(value) in (int, float) and name != "update"
    }
    return found | (_numbers("timing", timing) if isinstance(timing, dict) else {})


def _find_begin(run: RunDirectory, lines: list[Line]) -> float:
    """When the training would have begun had there been no breaks, in seconds since 1970."""
    if not lines:
        return time.time()
    seconds = _numbers("training", lines[-1]).get("timing/wall_seconds", 0.0)
    return run.metrics.path.stat().st_mtime - seconds


def _claim(run: RunDirectory, folder: Path) -> dict[str, Any]:
    """Make the folder, or continue with it; what it remembers."""
    name, path = str(run.path.resolve()), folder / _STATE
    folder.mkdir(parents=True, exist_ok=True)
    state = {"run": name, "files": {}, "update": 0}
    if path.exists():
        known = json.loads(path.read_text("utf-8"))
        if not isinstance(known, dict):
            raise ValueError(f"no object in {path}")
        state |= known
    is_ours = folder.resolve().is_relative_to(run.path.resolve())  # also if the run was moved
    if not is_ours and state["run"] != name:
        got = f"{folder} with those of {state['run']}"
        raise ConfigError(expected("a folder for this run alone", got, "choose another --out"))
    return state | {"run": name}


@contextlib.contextmanager
def _refusals(folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        got = getattr(error, "strerror", None) or str(error)
        advice = "make room there, or choose another --out"
        raise RunError(expected(f"to write to {folder}", got, advice)) from error


class TensorBoard:
    """See `Sink`. Steps are updates; the times are those of the training."""

    def __init__(self, run: RunDirectory, folder: Path) -> None:
        """Write to a folder."""
        self._run, self._folder = run, folder
        self._writer: Any = None

    def begin(self, *, is_anew: bool) -> None:
        """See `Sink.begin`."""
        from tensorboardX import SummaryWriter

        self.close()
        # A name of its own, else a second one within a second would replace the first.
        suffix = f".{len(list(self._folder.glob('*tfevents*')))}"
        purge_step = 0 if is_anew else None
        self._writer = SummaryWriter(
            str(self._folder), purge_step=purge_step, filename_suffix=suffix
        )
        if is_anew:
            config = self._run.config.to_flat()
            text = "\n".join(f"    {name} = {value}" for name, value in config.items())
            self._writer.add_text("configuration", text)

    def log(self, update: int, values: dict[str, float], when: float) -> None:
        """See `Sink.log`."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, update, walltime=when)

    def close(self) -> None:
        """See `Sink.close`."""
        if self._writer is not None:
            self._writer.close()


class Wandb:
    """See `Sink`. Steps only go up: an update that was told before is left out."""

    def __init__(self, run: RunDirectory, folder: Path) -> None:
        """Begin a run of wandb, or continue the one of this folder.

        Raises:
            RunError: wandb does not begin.
        """
        mode = os.environ.setdefault("WANDB_MODE", "offline")
        import wandb

        self._path = folder / "wandb.json"
        state = json.loads(self._path.read_text("utf-8")) if self._path.exists() else {}
        self._id, self._last = state.get("id") or os.urandom(8).hex(), state.get("update", -1)
        self._known = self._last
        with _failures_of_wandb():
            self._run = wandb.init(
                project=os.environ.get("WANDB_PROJECT", "pixelpong"),
                name=run.path.name,
                id=self._id,
                dir=str(folder),
                config=run.config.to_flat(),
                resume="allow" if mode == "online" else None,
                settings=wandb.Settings(console="off"),
            )

    def begin(self, *, is_anew: bool) -> None:
        """See `Sink.begin`."""
        self._known = self._last  # what comes up to here was told before

    def log(self, update: int, values: dict[str, float], when: float) -> None:
        """See `Sink.log`."""
        if update > self._known:
            with _failures_of_wandb():
                self._run.log(values, step=max(update, self._last))
            self._last = max(update, self._last)

    def close(self) -> None:
        """See `Sink.close`."""
        with _failures_of_wandb():
            self._run.finish()
        content = json.dumps({"id": self._id, "update": self._last})
        write_whole(self._path, content.encode())


@contextlib.contextmanager
def _failures_of_wandb() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # another program's; whatever it is, a user gets a line
        got = " ".join(str(error).split())[:200] or type(error).__name__
        raise RunError(expected("wandb to take it", got, "see its log in the folder")) from error
