"""Training from Python, a script or a notebook; the command line uses the same functions.

    run = pixelpong.train("fast", seed=1, updates=20)
    run = pixelpong.resume(run, updates=40)
    for event in pixelpong.training("fast", seed=1, updates=20):
        ...

Ctrl-C, or the stop button of a notebook, saves the last complete update and then raises
KeyboardInterrupt, whose message names the run.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from pixelpong.config import BUDGET, BudgetConfig, Config, differences, require_used
from pixelpong.config.options import COMMAND_LINE
from pixelpong.config.presets import load_preset
from pixelpong.engines import check
from pixelpong.errors import ConfigError, Interrupted, RunError, expected
from pixelpong.interrupts import stop_on_signals

if TYPE_CHECKING:
    from pixelpong.faces.notebook import Run
    from pixelpong.loop import Event, Outcome
    from pixelpong.run.directory import RunDirectory

SECONDS_BETWEEN_LINES = 2.0  # in a notebook, one line per update would be too many


def train(
    preset: str | Config = "fast",
    *,
    run: str | Path | None = None,
    name: str | None = None,
    quiet: bool = False,
    **options: Any,
) -> Run:
    """Train an agent in a new run directory, until its budget is spent.

    Args:
        preset: the name of a preset (`preset_names`), or a configuration, as the base of options.
        run: the new run directory; by default the next free ``runs/PRESET-NNN``.
        name: instead of `run`, the name of a new run in the folder ``runs``.
        quiet: show nothing.
        options: of `Config`, such as ``seed=1``, ``updates=20``, ``workers=2``; any budget, such
            as ``total_timesteps``, replaces the preset's whole budget.

    Returns:
        The run, with ``.plot()``, ``.replay()``, ``.metrics()``.

    Raises:
        ConfigError: a name is unknown, or a value has the wrong type or is out of range.
        RunError: the directory already exists, or a file cannot be written.
        WorkerError: a worker raised, or failed too often; the last complete update is saved.
        NumericsError: a number is not finite; the last complete update stays saved.
        KeyboardInterrupt: somebody pressed Ctrl-C; the last complete update is saved.

    >>> import tempfile
    >>> short = {"max_frames": 600, "hidden": 8, "batch_size": 2, "engine": "serial"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = train("classic", run=f"{folder}/run", quiet=True, updates=3, **short)
    ...     run.metrics()["episodes"].tolist()
    [2, 4, 6]
    >>> train("classic", learning_rat=0.001)
    Traceback (most recent call last):
    pixelpong.errors.ConfigError: train: expected the name of an option, got 'learning_rat'; \
did you mean learning_rate?
    """
    return _go(lambda: _create(preset, run, name, options, "train"), quiet)


def training(
    preset: str | Config = "fast",
    *,
    run: str | Path | None = None,
    name: str | None = None,
    **options: Any,
) -> Iterator[Event]:
    """The same as `train`, event by event, so that you can plot or stop in between.

    Leaving the loop ends the training; the last complete update is saved, and `resume` continues.

    Yields:
        `pixelpong.loop.Began`, `Updated`, `Evaluated`, `Judging`, `Judged`, and in the end `Ended`.

    >>> import tempfile
    >>> short = {"max_frames": 600, "hidden": 8, "batch_size": 2, "engine": "serial"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for event in training("classic", run=f"{folder}/run", updates=2, **short):
    ...         print(type(event).__name__)
    Began
    Updated
    Updated
    Ended
    """
    from pixelpong import loop

    yield from loop.training(_create(preset, run, name, options, "training"))


def resume(
    run: str | Path | Run, *, quiet: bool = False, allow_changes: bool = False, **options: Any
) -> Run:
    """Continue a run, exactly as if it had never stopped.

    Args:
        run: the run, its directory, its name in the folder ``runs``, or ``"latest"``.
        quiet: show nothing.
        allow_changes: accept changed options that change the result.
        options: changed ones, such as ``updates=100``; by default the run's own.

    Returns:
        The run.

    Raises:
        ConfigError: as `train`, or an option that changes the result and may not.
        RunError: it is not a run, or another training writes there.
        CheckpointError: there are checkpoints and none is sound.
        WorkerError, NumericsError, KeyboardInterrupt: as `train`.
    """
    return _go(lambda: open_run(path_of(run), options, "resume", allow_changes), quiet)


def path_of(run: str | Path | Run) -> Path:
    """The directory of a run, given by name (`pixelpong.run.names`) or as a `Run`."""
    from pixelpong.run.names import find_run

    path: Any = getattr(run, "path", run)
    return find_run(path)


def open_run(path: Path, options: dict[str, Any], origin: str, allow_changes: bool) -> RunDirectory:
    """Open a run to continue, with changed options from `origin`; nothing is written yet."""
    from pixelpong.run.directory import RunDirectory

    run = RunDirectory.open(path)
    config = run.config.updated(_kept(run.config.budget, options) | options, origin)
    require_used(options, config, origin)
    changed = differences(run.config, config)
    if changed and not allow_changes:
        shown = ", ".join(f"{name} {old} → {new}" for name, (old, new) in changed.items())
        allowing = "--allow-changes" if origin == COMMAND_LINE else "allow_changes=True"
        advice = f"leave them out, or give {allowing}"
        raise ConfigError(expected(f"the options that {path} was trained with", shown, advice))
    _require_budget(config, origin)
    _require_unwon(run, config)
    if set(options) & set(_COUNTS):
        _require_unspent(run, config)
    check(config.engine)
    run.warn_of_other_machine()
    return run.with_config(config)


# Budgets that count, and what they count; naming one replaces all of them.
_COUNTS = {"updates": "update", "episodes": "episodes", "total_timesteps": "steps"}


def _kept(budget: BudgetConfig, options: dict[str, Any]) -> dict[str, Any]:
    """The part of a run's budget that stays if `options` are named at its resume."""
    if not set(options) & set(BUDGET):
        return {}
    replaced = _COUNTS if _COUNTS.keys() & set(options) else ()
    return {name: value for name, value in vars(budget).items() if name not in replaced}


def _require_unwon(run: RunDirectory, config: Config) -> None:
    """Refuse a target that the saved agent has already reached."""
    target, saved = config.budget.until_return, run.checkpoints.updates()
    won = [it for it in run.evaluations.read() if it.get("is_won") and it["update"] in saved]
    if target is not None and any(it["target"] >= target for it in won):
        raise ConfigError(f"{run.path} has won; to train it further, name a higher until_return.")


def _require_unspent(run: RunDirectory, config: Config) -> None:
    from pixelpong.run.record import Record

    stands = Record.read(run.path)
    for name, counted in _COUNTS.items():
        goal, done = getattr(config.budget, name), getattr(stands, counted)
        if goal is not None and done >= goal:
            spent = f"{name} = {goal:,} is already spent; name a larger one."
            raise ConfigError(f"{run.path} stands at {done:,}, so {spent}")


def _create(
    preset: str | Config,
    path: str | Path | None,
    name: str | None,
    options: dict[str, Any],
    origin: str,
) -> RunDirectory:
    config = preset if isinstance(preset, Config) else load_preset(preset)
    config = config.updated(options, origin)
    require_used(options, config, origin)
    return create_run(config, path, name, origin)


def create_run(
    config: Config,
    path: str | Path | None = None,
    name: str | None = None,
    origin: str = COMMAND_LINE,
) -> RunDirectory:
    """Create the directory of a new run, after all checks that can refuse it."""
    from pixelpong.agent.choice import settle_opponents
    from pixelpong.run.directory import RUNS_FOLDER, RunDirectory
    from pixelpong.run.names import require_new_name

    _require_budget(config, origin)
    if name is not None and path is not None:
        raise ConfigError(expected("run or name", "both", "leave one of them out"))
    place = Path(path) if path is not None else RUNS_FOLDER / name if name is not None else None
    if place is not None:
        require_new_name(place.name if name is None else name)
    check(config.engine)
    (config,) = settle_opponents([config])
    _require_room(place or RUNS_FOLDER, config)
    return RunDirectory.create(place, config)


def _require_room(path: Path, config: Config) -> None:
    """Refuse a disk that has no room for one checkpoint."""
    from pixelpong.env.features import NUM_INPUTS

    rows = 6400 if config.learning.algorithm == "reinforce" else 2 * NUM_INPUTS
    needed = 4 * rows * config.network.hidden  # bytes of the first layer
    there = next(each for each in (path, *path.absolute().parents) if each.exists())
    usage = shutil.disk_usage(there)
    if usage.total and usage.free < needed:  # 0: it is no disk
        free, needed = usage.free // 10**6, needed // 10**6
        told = f"A checkpoint takes up to {needed} MB, but {there} has {free} MB free."
        raise RunError(f"{told} Make room there, or choose another --run.")


def _require_budget(config: Config, origin: str) -> None:
    """Refuse a training that would never end; a preset's always does."""
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
    """Train in a run until its budget is spent or a stop is requested, and show it on `stream`."""
    from pixelpong.faces.display import TrainingDisplay
    from pixelpong.loop import train as go

    if should_stop():
        raise Interrupted  # there is no run yet
    run = open_or_create()
    if stream is None:
        return run, go(run, None, should_stop, began)
    with contextlib.closing(TrainingDisplay(stream, seconds_between_lines)) as display:
        return run, go(run, display, should_stop, began)


def _go(open_or_create: Callable[[], RunDirectory], quiet: bool) -> Run:
    """Train, and return the run; a requested stop raises `KeyboardInterrupt`, as in Python."""
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
        raise KeyboardInterrupt(f"{saved}; continue with pixelpong.resume({str(run.path)!r})")
    return Run(run.path)
