"""A run's metrics for another program: TensorBoard, or Weights & Biases and what is like it.

``pixelpong track RUN --to tensorboard`` or ``--to wandb``. All comes from the run's own files,
afterwards or while it is being trained, and training knows nothing of it. What a sink has is
compared with what the run has, so a sink can be ended and begun again at any time. A training that
a resume has cut back is followed: TensorBoard is told to drop what is no longer so; Weights &
Biases takes no step twice, and keeps what it was told first.

Covered: choosing a sink, following a run. Not covered: reading (`source`), the sinks themselves.
"""

from __future__ import annotations

import contextlib
import importlib.util
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from pixelpong.errors import ConfigError, PixelpongError, expected
from pixelpong.report.sinks.source import Entry, Source
from pixelpong.report.web.library import is_live as is_being_trained
from pixelpong.run import Run

POLL_SECONDS = 1.0
"""How often a run that is being trained is looked at."""

_ASK_SECONDS = 0.1
"""How often it is asked whether to stop."""

_CHUNK = 500
"""Entries written at once, between two such questions."""

SINKS = ("tensorboard", "wandb")

Report = dict[str, Any]


class Sink(Protocol):
    """Takes a run's entries, each once.

    Attributes:
        name: of its kind.
        folder: where it writes.
        advice: how to look at it.
    """

    name: str
    folder: Path
    advice: str

    def align(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Compare with all that the run has so far; those of its entries that are wanted.

        Raises:
            RunError: the folder cannot be read or written.
        """

    def write(self, entries: Sequence[Entry]) -> None:
        """Take the next ones.

        Raises:
            RunError: they cannot be written.
        """

    def close(self) -> None:
        """Nothing more comes.

        Raises:
            RunError: what is left cannot be written.
        """


class Logger(Protocol):
    """What is like Weights & Biases: a run of its module is one."""

    def log(self, data: dict[str, float], step: int) -> Any:
        """Take the figures of a step; the steps never go down."""


def make_sink(to: str, run: Run, out: Path | None = None, logger: Logger | None = None) -> Sink:
    """The sink of a name.

    Args:
        to: one of `SINKS`.
        run: whose metrics it will take.
        out: folder to write to, for this run alone; None for one of the sink's name in the run.
        logger: for ``"wandb"``, what takes the figures; None for a new run of the module wandb,
            which is offline unless WANDB_MODE says otherwise.

    Raises:
        ConfigError: there is no such sink, its library is not installed, or the folder is
            another run's.
        RunError: the folder cannot be used, or wandb does not begin.
    """
    if to not in SINKS:
        raise ConfigError(expected("a sink", repr(to), f"use one of {', '.join(SINKS)}"))
    library, package = "tensorboardX", "'pixelpong[track]'"
    if to == "wandb":
        library = package = "wandb"
    if logger is None and importlib.util.find_spec(library) is None:
        advice = f"pip install {package}"
        raise ConfigError(expected(f"{library}, for the sink {to}", f"no {library}", advice))
    folder = out or run.path / to
    if to == "tensorboard":
        from pixelpong.report.sinks.tensorboard import TensorBoardSink

        return TensorBoardSink(run, folder)
    from pixelpong.report.sinks.wandb import WandbSink

    return WandbSink(run, folder, logger)


def follow(run: Run, sink: Sink, *, is_live: bool, should_stop: Callable[[], bool]) -> Report:
    """Write what a run has to a sink, and then close it.

    Args:
        run: the run.
        sink: what does not have all of it yet.
        is_live: go on as long as a training holds the run.
        should_stop: asked several times a second; what is written by then stays.

    Returns:
        ``run``, ``sink``, ``folder``, ``lines`` written now, ``lines_known`` before, the newest
        ``update`` written, whether it ``is_stopped``, and ``advice`` for looking at it.

    Raises:
        RunError: the run cannot be read, or the sink not written.
    """
    try:
        report = _follow(run, sink, is_live, should_stop)
    except PixelpongError:
        with contextlib.suppress(PixelpongError):
            sink.close()
        raise
    sink.close()
    return report


def _follow(run: Run, sink: Sink, is_live: bool, should_stop: Callable[[], bool]) -> Report:
    source, num_written, num_known = Source(run), 0, 0
    newest = None
    while True:
        # Asked before it is read: what was written before the end is read after it.
        goes_on = is_live and is_being_trained(run.path)
        entries, is_whole = source.read(is_last=not goes_on)
        wanted = sink.align(entries) if is_whole else entries
        num_known = max(num_known, len(entries) - len(wanted))
        while wanted and not should_stop():
            some, wanted = wanted[:_CHUNK], wanted[_CHUNK:]
            sink.write(some)
            num_written, newest = num_written + len(some), some[-1].update
        if not goes_on or _sleep(should_stop):
            break
    return {
        "run": str(run.path),
        "sink": sink.name,
        "folder": str(sink.folder),
        "lines": num_written,
        "lines_known": num_known,
        "update": newest,
        "is_stopped": should_stop(),
        "advice": sink.advice,
    }


def describe_track(report: Report) -> str:
    """What was written, in a few lines."""
    before = f", {report['lines_known']:,} were there" if report["lines_known"] else ""
    stop = "stopped; it goes on where it is, when called again\n" if report["is_stopped"] else ""
    upto = "" if report["update"] is None else f" up to update {report['update']:,}"
    return (
        f"{report['folder']}: {report['lines']:,} lines written{upto}{before}\n"
        f"{stop}look at it with: {report['advice']}"
    )


def _sleep(should_stop: Callable[[], bool]) -> bool:
    """Wait for the next look at the run; whether to stop instead."""
    deadline = time.monotonic() + POLL_SECONDS
    while not (is_asked := should_stop()) and time.monotonic() < deadline:
        time.sleep(_ASK_SECONDS)
    return is_asked
