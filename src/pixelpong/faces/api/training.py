"""Training from Python, a script or a notebook; the command line goes the same way.

    run = pixelpong.train("fast", seed=1, updates=20)
    run = pixelpong.resume(run, updates=40)
    for event in pixelpong.training("fast", seed=1, updates=20):
        ...

Ctrl-C, or the stop button of a notebook, saves the last complete update and then raises
KeyboardInterrupt, whose message names the run.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from pixelpong.config import BUDGET, Config, differences
from pixelpong.config.options import COMMAND_LINE
from pixelpong.config.presets import load_preset
from pixelpong.errors import ConfigError, Interrupted, expected
from pixelpong.interrupts import stop_on_signals

if TYPE_CHECKING:
    from pixelpong.faces.notebook import Run
    from pixelpong.loop import Event, Outcome
    from pixelpong.run.directory import RunDirectory

SECONDS_BETWEEN_LINES = 2.0
"""If no terminal shows a training live: in a notebook, a line an update would be a flood."""


def train(
    preset: str | Config = "fast",
    *,
    path: str | Path | None = None,
    quiet: bool = False,
    **options: Any,
) -> Run:
    """Train an agent in a new run directory, until its budget is spent.

    Args:
        preset: the name of one (`preset_names`), or a configuration, from which options start.
        path: the new run directory; by default the next free ``runs/PRESET-NNN``.
        quiet: show nothing.
        options: under the names of `Config`, as ``seed=1``, ``updates=20``, ``workers=2``; one of
            ``updates``, ``episodes``, ``steps`` and ``until_return`` replaces the preset's budget.

    Returns:
        The run, to be looked at: ``.plot()``, ``.replay()``, ``.metrics()``.

    Raises:
        ConfigError: an unknown name, or a value of the wrong type or out of range.
        RunError: the directory exists already, or the disk does not take a file.
        WorkerError: a worker raised, or failed too often; the last complete update is saved.
        NumericsError: a number is not finite; the last update that is whole stays saved.
        KeyboardInterrupt: somebody pressed Ctrl-C; the last complete update is saved.

    >>> import tempfile
    >>> toy = {"environment": "Catch-v0", "hidden": 8, "batch_size": 2, "engine": "serial"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = train("classic", path=f"{folder}/toy", quiet=True, updates=3, **toy)
    ...     run.metrics()["episodes"].tolist()
    [2, 4, 6]
    >>> train("classic", learning_rat=0.001)
    Traceback (most recent call last):
    pixelpong.errors.ConfigError: train: expected the name of an option, got 'learning_rat'; \
did you mean 'learning_rate'?
    """
    return _go(lambda: _create(preset, path, options, "train"), quiet)


def training(
    preset: str | Config = "fast", *, path: str | Path | None = None, **options: Any
) -> Iterator[Event]:
    """The same as `train`, event by event, to look, plot and stop in between.

    Leaving the loop ends the training; the last complete update is saved, and `resume` continues.

    Args:
        preset: as for `train`.
        path: as for `train`.
        options: as for `train`.

    Yields:
        `pixelpong.loop.Began`, `Updated`, `Evaluated`, `Judged`, and in the end `Ended`.

    Raises:
        ConfigError, RunError, WorkerError, NumericsError, KeyboardInterrupt: as `train`.

    >>> import tempfile
    >>> toy = {"environment": "Catch-v0", "hidden": 8, "batch_size": 2, "engine": "serial"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for event in training("classic", path=f"{folder}/toy", updates=2, **toy):
    ...         print(type(event).__name__)
    Began
    Updated
    Updated
    Ended
    """
    from pixelpong import loop

    yield from loop.training(_create(preset, path, options, "training"))


def resume(
    run: str | Path | Run, *, quiet: bool = False, allow_changes: bool = False, **options: Any
) -> Run:
    """Go on with a run, exactly as if it had never stopped.

    Args:
        run: it, or its directory.
        quiet: show nothing.
        allow_changes: accept changed options that change the result.
        options: changed ones, as ``updates=100``; by default the run's own hold.

    Returns:
        The run, to be looked at.

    Raises:
        ConfigError: as `train`, or an option that changes the result and may not.
        RunError: it is not a run, or another training writes there.
        CheckpointError: there are checkpoints and none is sound.
        WorkerError, NumericsError, KeyboardInterrupt: as `train`.
    """
    return _go(lambda: open_run(path_of(run), options, "resume", allow_changes), quiet)


def path_of(run: str | Path | Run) -> Path:
    """The directory of a run that is given by name or as itself."""
    return Path(run) if isinstance(run, str | Path) else run.path


def open_run(path: Path, options: dict[str, Any], origin: str, allow_changes: bool) -> RunDirectory:
    """A run to continue, its options changed; nothing is written yet.

    Args:
        path: its directory.
        options: changed ones.
        origin: where they come from, for the error message.
        allow_changes: also those that change the result.

    Raises:
        ConfigError, RunError: as `resume`.
    """
    from pixelpong.run.directory import RunDirectory

    run = RunDirectory.open(path)
    config = run.config.updated(options, origin)
    changed = differences(run.config, config)
    if changed and not allow_changes:
        shown = ", ".join(f"{name} {old} → {new}" for name, (old, new) in changed.items())
        allowing = "--allow-changes" if origin == COMMAND_LINE else "allow_changes=True"
        advice = f"leave them out, or give {allowing}"
        raise ConfigError(expected(f"the options that {path} was trained with", shown, advice))
    _require_budget(config, origin)
    run.warn_of_other_machine()
    return run.with_config(config)


def _create(
    preset: str | Config, path: str | Path | None, options: dict[str, Any], origin: str
) -> RunDirectory:
    from pixelpong.run.directory import RunDirectory

    config = preset if isinstance(preset, Config) else load_preset(preset)
    config = config.updated(options, origin)
    _require_budget(config, origin)
    return RunDirectory.create(None if path is None else Path(path), config)


def _require_budget(config: Config, origin: str) -> None:
    """Refuse a training that would never end: a preset's always does."""
    if all(value is None for value in vars(config.budget).values()):
        advice = f"give {', '.join(BUDGET[:-1])} or {BUDGET[-1]}"
        raise ConfigError(f"{origin}: " + expected("a budget", "none", advice))


def carry_out(
    open_or_create: Callable[[], RunDirectory],
    stream: TextIO | None,
    should_stop: Callable[[], bool],
    began: float,
    seconds_between_lines: float = 0.0,
) -> tuple[RunDirectory, Outcome]:
    """Train in a run until its budget is spent or a stop is asked for.

    Args:
        open_or_create: gives the run.
        stream: where the training is shown; None for nowhere.
        should_stop: asked several times a second, see `pixelpong.interrupts.stop_on_signals`.
        began: when the command started, on the monotonic clock.
        seconds_between_lines: see `pixelpong.faces.display.TrainingDisplay`.

    Raises:
        Interrupted: the stop came before there was a run.
        PixelpongError: as `pixelpong.loop.train` and `open_or_create`.
    """
    from pixelpong.faces.display import TrainingDisplay
    from pixelpong.loop import train as go

    if should_stop():
        raise Interrupted  # nothing has been made
    run = open_or_create()
    if stream is None:
        return run, go(run, None, should_stop, began)
    with contextlib.closing(TrainingDisplay(stream, seconds_between_lines)) as display:
        return run, go(run, display, should_stop, began)


def _go(open_or_create: Callable[[], RunDirectory], quiet: bool) -> Run:
    """Train, and give the run; a stop that was asked for is an exception, as everywhere."""
    from pixelpong.faces.notebook import Run

    stream, began = None if quiet else sys.stdout, time.monotonic()
    pause = SECONDS_BETWEEN_LINES
    with stop_on_signals(ends_process=False) as should_stop:
        try:
            run, outcome = carry_out(open_or_create, stream, should_stop, began, pause)
        except Interrupted:
            raise KeyboardInterrupt from None
    if outcome.reason == "interrupted":
        saved = f"update {outcome.progress.update} is saved"
        raise KeyboardInterrupt(f"{saved}; go on with pixelpong.resume({str(run.path)!r})")
    return Run(run.path)
