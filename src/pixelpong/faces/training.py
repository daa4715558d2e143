"""Training from Python, a script or a notebook; the command line uses the same functions.

    run = pixelpong.train("fast", seed=1, updates=20)
    run = pixelpong.resume(run, updates=40)
    for event in pixelpong.training("fast", seed=1, updates=20):
        ...

Ctrl-C, or the stop button of a notebook, saves the last complete update and then raises
`KeyboardInterrupt`, whose message names the run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from pixelpong import interrupts
from pixelpong.config import (
    BUDGET,
    OPTIONS,
    PLACE,
    Config,
    Option,
    differences,
    require_used,
)
from pixelpong.config.options import Options
from pixelpong.config.presets import combine, read_toml
from pixelpong.engines import check
from pixelpong.errors import ConfigError, Interrupted, expected
from pixelpong.faces.report import place_of
from pixelpong.schema import Seconds

if TYPE_CHECKING:
    from pixelpong.faces.notebook import Run
    from pixelpong.loop import Event
    from pixelpong.run.directory import RunDirectory


class Stopped(KeyboardInterrupt):
    """Ctrl-C was pressed; `result` is the result so far."""

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(message)
        self.result = result


@contextlib.contextmanager
def stoppable() -> Iterator[Callable[[], bool]]:
    """While inside, Ctrl-C only sets what this yields; `Interrupted` becomes KeyboardInterrupt."""
    with interrupts.stop_on_signals() as should_stop:
        try:
            yield should_stop
        except Interrupted:
            raise KeyboardInterrupt from None


# --- train ------------------------------------------------------------------------------------


def train(
    preset: str | Config | None = None,
    *,
    run: str | Path | None = None,
    name: str | None = None,
    config: str | Path | None = None,
    quiet: bool = False,
    every: Seconds = 10.0,
    **options: Unpack[Options],
) -> Run:
    """Train an agent in a new run directory until it wins or its budget runs out.

    Args:
        preset: the name of a preset (`preset_names`), or a configuration, to start from; by
            default the file's preset, or else ``"fast"``.
        run: new run directory; by default the next free ``runs/PRESET-NNN``.
        name: short for the run directory ``runs/NAME``.
        config: TOML file of options; those given here override it.
        quiet: show nothing while it trains.
        every: seconds between lines of output, if there is no live screen.
        options: of `Config`, such as ``seed=1``, ``updates=20``, ``workers=2``. A count (updates,
            episodes or total_timesteps) replaces the counts of preset and file, and is a limit
            next to their target: the training ends at whichever comes first. To train without a
            target, set ``until_return=None``.

    Returns:
        The run, with ``.plot()``, ``.replay()``, ``.metrics()``.

    Raises:
        ConfigError: a name is unknown, or a value has the wrong type or is out of range.
        RunError: the directory already exists, or a file cannot be written.
        WorkerError: a worker raised, or failed too often; the last complete update is saved.
        NumericsError: a number is not finite; the last complete update stays saved.
        KeyboardInterrupt: Ctrl-C was pressed; the last complete update is saved.

    >>> import tempfile
    >>> short = {"max_frames": 600, "hidden": 8, "batch_size": 2, "engine": "serial"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = train("classic", run=f"{folder}/run", quiet=True, updates=3, **short)
    ...     run.metrics()["episodes"].tolist()
    [2, 4, 6]
    """
    given = dict(options)
    return _go(lambda: _create("train", preset, run, name, config, given), quiet, every)


def training(
    preset: str | Config | None = None,
    *,
    run: str | Path | None = None,
    name: str | None = None,
    config: str | Path | None = None,
    **options: Unpack[Options],
) -> Iterator[Event]:
    """Train as `train` does, but yield each event, so that you can plot or stop in between.

    It takes the arguments of `train` except ``quiet`` and ``every``. Leaving the loop ends the
    training; the last complete update is saved, and `resume` continues.

    Yields:
        `pixelpong.loop.Began`, `Updated`, `TestStarted`, `Evaluated`, and at the end `Ended`.
    """
    from pixelpong import loop

    yield from loop.training(_create("training", preset, run, name, config, dict(options)))


def resume(
    run: str | Path | Run,
    *,
    quiet: bool = False,
    every: Seconds = 10.0,
    allow_changes: bool = False,
    **options: Unpack[Options],
) -> Run:
    """Continue a run, exactly as if it had never stopped.

    Args:
        run: the run, its directory, its name in the folder ``runs``, or ``"latest"``.
        quiet: show nothing while it trains.
        every: seconds between lines of output, if there is no live screen.
        allow_changes: accept new values of options that change the result.
        options: new values, such as ``updates=100``; by default the run's own. Only where and how
            it is played (engine, workers, ray_address, ray_mode) is never taken from the run.

    Returns:
        The run.

    Raises:
        ConfigError: as `train`, or an option would change the result.
        RunError: it is not a run, or another training writes there.
        CheckpointError: there is no sound checkpoint.
        WorkerError, NumericsError, KeyboardInterrupt: as `train`.
    """
    given = dict(options)
    return _go(lambda: _open(run, given, allow_changes=allow_changes), quiet, every)


def _go(open_or_create: Callable[[], RunDirectory], quiet: bool, every: float) -> Run:
    """Train until the budget is spent or a stop is requested, and show the progress."""
    every = Option("every", Seconds, 10.0).check(every, "training")
    # In a process of its own, a training's time begins with the process, before the imports.
    began = time.monotonic() - (time.process_time() if interrupts.is_command() else 0.0)
    with stoppable() as should_stop:
        from pixelpong import loop
        from pixelpong.faces.display import TrainingDisplay
        from pixelpong.faces.notebook import Run

        if should_stop():
            raise Interrupted  # there is no run yet
        with contextlib.closing(TrainingDisplay(sys.stdout, every)) as display:
            run = open_or_create()
            outcome = loop.train(run, None if quiet else display, should_stop, began)
    trained = Run(run.path, outcome, is_brief=quiet)
    if outcome.reason == "interrupted":
        place = [f"{name}={value!r}" for name, value in place_of(run.config).items()]
        words = [repr(str(run.path)), *place]
        again = f"continue with pixelpong.resume({', '.join(words)})"
        raise Stopped(f"update {outcome.progress.update} is saved; {again}", trained)
    return trained


def _create(
    origin: str,
    preset: str | Config | None,
    run: str | Path | None,
    name: str | None,
    config: str | Path | None,
    options: dict[str, Any],
) -> RunDirectory:
    """Create the directory of a new run, once all checks have passed."""
    from pixelpong.agent.choice import settle_opponent
    from pixelpong.run.directory import RUNS_FOLDER, RunDirectory
    from pixelpong.run.names import require_new_name

    for word, given in {"run": run, "name": name, "config": config}.items():
        if given is not None and not isinstance(given, str | os.PathLike):
            what = expected(f"{word} to be text or a path", repr(given))
            raise ConfigError(f"{origin}: {what}", options=[word])
    content = read_toml(Path(config)) if config else {}
    combined = combine(preset, content, options, (str(config), origin))
    _require_budget(combined, origin)
    if name is not None and run is not None:
        raise ConfigError("Give either run or name, not both.", options=["run", "name"])
    place = RUNS_FOLDER / name if name is not None else None if run is None else Path(run)
    if place is not None:
        require_new_name(place.name if name is None else name)
    check(combined)
    settled = dataclasses.replace(combined, opponent=settle_opponent(combined.opponent))
    return RunDirectory.create(place, settled)


def _open(word: str | Path | Run, options: dict[str, Any], allow_changes: bool) -> RunDirectory:
    """Open a run to continue, once all checks have passed; nothing is written yet."""
    from pixelpong.run.directory import RunDirectory
    from pixelpong.run.names import find_run
    from pixelpong.run.record import Record

    run = RunDirectory(find_run(getattr(word, "path", word)))  # type: ignore[arg-type]
    config = dataclasses.replace(run.config, **{name: OPTIONS[name].default for name in PLACE})
    config = config.updated(options, "resume")
    require_used(options, config, "resume")
    continued = run.with_config(config)
    changed = differences(run.config, config)
    if changed and not allow_changes:
        shown = ", ".join(f"{name} {old} → {new}" for name, (old, new) in changed.items())
        what = f"This changes how {run.path} learns: {shown}"
        advice = "leave it out, or confirm it with allow_changes"
        raise ConfigError(f"{what}; {advice}.", options=[*changed, "allow_changes"])
    _require_budget(config, "resume")
    record, target = Record.read(run.path), config.until_return
    is_won = target is not None and any(
        it.is_won and (it.target or 0) >= target for it in record.evaluations
    )
    has_budget = not options.keys().isdisjoint(BUDGET)
    is_over = is_won or (config.reached(record) and (has_budget or record.is_done))
    if is_over and run.checkpoints.is_sound(record.update):  # a damaged one is trained again
        advice = "give a larger count of updates, episodes or total_timesteps"
        if is_won:  # a larger count alone changes nothing
            advice = "give a higher until_return, or until_return none to train on without a target"
        what = f"Nothing is left to train in {run.path} ({record.verdict})"
        raise ConfigError(f"{what}; {advice}.", options=BUDGET)
    check(config)
    run.warn_of_other_machine()
    return continued


def _require_budget(config: Config, origin: str) -> None:
    """Refuse a training that would never end; every preset has a budget."""
    if all(getattr(config, name) is None for name in BUDGET):
        names = f"{', '.join(BUDGET[:-1])} or {BUDGET[-1]}"
        what = "Without a budget, training would not end"
        raise ConfigError(f"{origin}: {what}; give {names}.", options=BUDGET)
