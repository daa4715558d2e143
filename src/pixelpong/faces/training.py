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
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack

from pixelpong.config import (
    BUDGET,
    LOCAL_OPTIONS,
    OPTIONS,
    Config,
    differences,
    require_used,
)
from pixelpong.config.options import Options
from pixelpong.config.presets import combine, read_toml
from pixelpong.engines import started
from pixelpong.errors import ConfigError, Interrupted, list_words
from pixelpong.faces import interrupts
from pixelpong.faces.arguments import EVERY, QUIET, Argument, Help, checked, command
from pixelpong.faces.report import resume_call
from pixelpong.schema import Seconds

if TYPE_CHECKING:
    from pixelpong.faces.notebook import Run
    from pixelpong.loop import Ended, Event
    from pixelpong.run.directory import RunDirectory


class Stopped(KeyboardInterrupt):
    """Ctrl-C was pressed; `result` is the result so far."""

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(message)
        self.result = result


@contextlib.contextmanager
def stoppable() -> Iterator[Callable[[], bool]]:
    """Context manager that yields a check for Ctrl-C; `Interrupted` becomes KeyboardInterrupt."""
    with interrupts.stop_on_signals() as should_stop:
        try:
            yield should_stop
        except Interrupted:
            raise KeyboardInterrupt from None


# --- train ------------------------------------------------------------------------------------


@command
def train(
    preset: str | Config | None = None,
    *,
    run: Annotated[
        str | Path | None, Help("New run directory; by default the next free runs/PRESET-NNN.")
    ] = None,
    name: Annotated[str | None, Help("Short for the run directory runs/NAME.")] = None,
    config: Annotated[
        str | Path | None, Help("TOML file of options; those given here override it.")
    ] = None,
    quiet: Annotated[bool, QUIET] = False,
    every: Annotated[Seconds, EVERY] = 10.0,
    **options: Unpack[Options],
) -> Run:
    """Train an agent in a new run directory until it wins or its budget runs out.

    The `preset` is the name of a preset (`preset_names`), or a configuration, to start from; by
    default the file's preset, or else ``"fast"``. The other options are those of `Config`, such as
    ``seed=1``, ``updates=20``, ``workers=2``. A count (updates, episodes or total_timesteps)
    replaces the counts of preset and file, and is a limit next to their target: the run ends when
    either is reached. To train without a target, set ``until_return=None``.

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
    with _starting(quiet=quiet, every=every) as trainer:
        plan = _plan_run(preset, run, name, config, dict(options), "train")
        with plan.created() as directory:
            outcome = trainer.train(directory)
    return _report(directory, outcome, quiet=quiet)


@checked
def training(
    preset: str | Config | None = None,
    *,
    run: str | Path | None = None,
    name: str | None = None,
    config: str | Path | None = None,
    **options: Unpack[Options],
) -> Iterator[Event]:
    """Train as `train` does, but yield each event, so that you can plot or stop in between.

    It takes the arguments of `train` except ``quiet`` and ``every``, and checks them at once; the
    run is made with the first event. If you leave the loop, the last complete update is saved, and
    `resume` continues.

    Yields:
        `pixelpong.loop.Began`, `Updated`, `TestStarted`, `Evaluated`, and at the end `Ended`.
    """
    return _train_planned(_plan_run(preset, run, name, config, dict(options), "training"))


def _train_planned(plan: _Plan) -> Iterator[Event]:
    from pixelpong import loop

    with plan.created() as directory:
        yield from loop.training(directory)


@command
def resume(
    run: Annotated[
        str | Path | Run,
        Argument("The run: a directory, a name in runs, or latest."),
    ],
    *,
    quiet: Annotated[bool, QUIET] = False,
    every: Annotated[Seconds, EVERY] = 10.0,
    allow_changes: Annotated[
        bool, Help("Accept new values of options that change the result.")
    ] = False,
    **options: Unpack[Options],
) -> Run:
    """Continue a run, exactly as if it had never stopped.

    The other options are new values, such as ``updates=100``; by default the run's own. Only where
    and how it is played (engine, workers, ray_address, ray_mode) is never taken from the run.

    Returns:
        The run.

    Raises:
        ConfigError: as `train`, or an option would change the result.
        RunError: it is not a run, or another process is training it.
        CheckpointError: there is no intact checkpoint.
        WorkerError, NumericsError, KeyboardInterrupt: as `train`.
    """
    with _starting(quiet=quiet, every=every) as trainer:
        directory = _open_run(run, dict(options), allow_changes=allow_changes)
        with started(directory.config):
            outcome = trainer.train(directory)
    return _report(directory, outcome, quiet=quiet)


@dataclass(frozen=True)
class _Trainer:
    """Trains a run that is open."""

    show: Callable[[Event], object] | None
    should_stop: Callable[[], bool]
    began: float  # start time on the monotonic clock

    def train(self, directory: RunDirectory) -> Ended:
        """Train until the budget is spent or a stop is requested."""
        from pixelpong import loop

        return loop.train(directory, self.show, self.should_stop, self.began)


@contextlib.contextmanager
def _starting(*, quiet: bool, every: float) -> Iterator[_Trainer]:
    """Context manager that starts the clock and the display; Ctrl-C inside requests a stop."""
    # In a command, the run's time starts with the process, before the imports.
    process_seconds = time.process_time() if interrupts.is_command() else 0.0
    began = time.monotonic() - process_seconds
    with stoppable() as should_stop:
        from pixelpong import loop  # noqa: F401 - Ctrl-C may be pressed in the second this takes
        from pixelpong.faces.display import TrainingDisplay

        if should_stop():
            raise Interrupted  # there is no run yet
        with contextlib.closing(TrainingDisplay(sys.stdout, every)) as display:
            yield _Trainer(None if quiet else display, should_stop, began)


def _report(directory: RunDirectory, outcome: Ended, *, quiet: bool) -> Run:
    """Return the trained run; raise `Stopped` if it was interrupted."""
    from pixelpong.faces.notebook import Run

    trained = Run(directory.path, outcome, is_brief=quiet)
    if outcome.reason == "interrupted":
        advice = f"continue with {resume_call(directory.path, directory.config)}"
        raise Stopped(f"update {outcome.progress.update} is saved; {advice}", trained)
    return trained


# --- runs -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Plan:
    """A new run that has passed all checks."""

    path: Path | None  # None for the next free ``runs/PRESET-NNN``
    config: Config

    @contextlib.contextmanager
    def created(self) -> Iterator[RunDirectory]:
        """Context manager that starts the engine, and then makes the run's directory."""
        from pixelpong.run.directory import RunDirectory

        with started(self.config):
            yield RunDirectory.create(self.path, self.config)


def _plan_run(
    preset: str | Config | None,
    run: str | Path | None,
    name: str | None,
    config_file: str | Path | None,
    options: dict[str, Any],
    origin: str,
) -> _Plan:
    """Check everything about a new run; nothing is written yet."""
    from pixelpong.agent.choice import settle_opponent
    from pixelpong.run.folders import RUNS_FOLDER, require_new
    from pixelpong.run.names import require_new_name

    content = {} if config_file is None else read_toml(Path(config_file))
    config = combine(preset, content, options, (str(config_file), origin))
    _require_budget(config, origin)
    if name is not None and run is not None:
        raise ConfigError("Give either run or name, not both.", options=["run", "name"])
    path = None
    if name is not None:
        require_new_name(name)
        path = RUNS_FOLDER / name
    elif run is not None:
        path = Path(run)
        require_new_name(path.name)
    if path is not None:
        require_new(path)
    return _Plan(path, dataclasses.replace(config, opponent=settle_opponent(config.opponent)))


def _open_run(
    name: str | Path | Run, options: dict[str, Any], *, allow_changes: bool
) -> RunDirectory:
    """Open a run to continue after all checks have passed; nothing is written yet."""
    from pixelpong.run.directory import RunDirectory
    from pixelpong.run.names import find_run

    run = RunDirectory(find_run(getattr(name, "path", name)))  # type: ignore[arg-type]
    defaults = {name: OPTIONS[name].default for name in LOCAL_OPTIONS}
    config = dataclasses.replace(run.config, **defaults).updated(options, "resume")
    require_used(options, config, "resume")
    continued = run.with_config(config)
    changed = differences(run.config, config)
    if changed and not allow_changes:
        shown = ", ".join(f"{name} {old} → {new}" for name, (old, new) in changed.items())
        what = f"This changes how {run.path} learns: {shown}"
        advice = "leave it out, or confirm it with allow_changes"
        raise ConfigError(f"{what}; {advice}.", options=[*changed, "allow_changes"])
    _require_budget(config, "resume")
    _require_work_left(run, config, has_new_budget=any(name in BUDGET for name in options))
    run.warn_of_other_versions()
    return continued


def _require_budget(config: Config, origin: str) -> None:
    """Refuse a run that would never end; every preset has a budget."""
    if all(getattr(config, name) is None for name in BUDGET):
        advice = f"give {list_words(BUDGET, 'or')}"
        raise ConfigError(
            f"{origin}: without a budget, training would not end; {advice}.", options=BUDGET
        )


def _require_work_left(run: RunDirectory, config: Config, *, has_new_budget: bool) -> None:
    """Refuse to continue a run if there is nothing left to train or to evaluate."""
    from pixelpong.run.record import Record

    record = Record.read(run.path)
    is_won = record.has_reached(config.until_return)
    is_spent = config.reached(record) is not None
    # With the old budget, the last evaluation may still be missing.
    is_over = is_won or (is_spent and (has_new_budget or record.is_done))
    if not is_over or not run.checkpoints.is_sound(record.update):
        return  # an update whose checkpoint is damaged is trained again
    if is_won:  # a larger count alone would change nothing
        advice = "give a higher until_return, or until_return none to train on without a target"
    else:
        advice = "give a larger count of updates, episodes or total_timesteps"
    what = f"Nothing is left to train in {run.path} ({record.summary})"
    raise ConfigError(f"{what}; {advice}.", options=BUDGET)
