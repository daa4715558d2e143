"""The map of the system: one loop that names every part once.

`pixelpong train` makes a run directory and starts the loop; `pixelpong resume` opens one and does
the same. The loop is a generator of events, and its caller decides what to do with each.

    for event in training(run):
        display(event)

`learners` decide what to play and learn from it, `play` plays it, `engines` distribute the work,
and `run` writes to disk.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass

from pixelpong.engines import EngineStats, make_engine, never
from pixelpong.errors import Interrupted, RunError, as_argument
from pixelpong.learners import UpdateStats
from pixelpong.learners.progress import Progress
from pixelpong.play.worker import combine, make_worker
from pixelpong.run.arrays import fingerprint
from pixelpong.run.directory import RunDirectory
from pixelpong.run.lines import Evaluation
from pixelpong.session import opened


@dataclass(frozen=True)
class Began:
    """The run starts, or continues from `progress`."""

    run: RunDirectory
    progress: Progress
    seconds: float  # wall time of the run so far, without breaks


@dataclass(frozen=True)
class Updated:
    """An update is complete."""

    progress: Progress
    stats: UpdateStats
    engine: EngineStats


@dataclass(frozen=True)
class Evaluated:
    """The newest parameters were evaluated, against a target return if there is one."""

    progress: Progress
    evaluation: Evaluation


@dataclass(frozen=True)
class TestStarted:
    """Games are about to be played to test whether the target return is reached."""

    progress: Progress


@dataclass(frozen=True)
class Ended:
    """Training is over; everything is saved."""

    reason: str  # the option of the budget that was reached, or ``"interrupted"``
    progress: Progress
    params_sha256: str  # hash of the final parameters
    test: Evaluation | None  # the last evaluation against the target return, if any


Event = Began | Updated | Evaluated | TestStarted | Ended


def training(
    run: RunDirectory, should_stop: Callable[[], bool] = never, began: float | None = None
) -> Generator[Event, None, None]:
    """Train until the budget is spent, from the run's newest checkpoint if there is one.

    `Began` comes first, `Ended` last. Closing the generator early saves the last complete update.
    `should_stop` is called several times a second. If it returns True, the current update is
    dropped, the last complete one is saved, and the reason is ``"interrupted"``.
    `began` is the command's start time on the monotonic clock, by default now.
    """
    config = run.config
    with opened(run, time.monotonic() if began is None else began) as session:
        learner, progress, test = session.learner, session.learner.progress, session.won
        try:
            yield Began(run, progress, session.read_seconds())
        finally:
            session.save()  # of a new run; a run without checkpoints has lost them from now on
        make = functools.partial(make_worker, config, session.opponent, learner.scene)
        again = f"continue with 'pixelpong resume {as_argument(run.path)}'"
        when_lost = f"the last complete update is saved; {again}"
        engine = make_engine(config, make, should_stop, combine, when_lost)
        with contextlib.closing(engine):
            try:
                while True:
                    if session.should_evaluate():
                        yield Evaluated(progress, session.evaluate(engine))
                    reason = "until_return" if session.won else config.reached(progress)
                    if session.should_test(is_final=bool(reason)):
                        yield TestStarted(progress)
                        test = session.test_target(engine, is_final=bool(reason))
                        reason = "until_return" if test.is_won else reason
                        yield Evaluated(progress, test)
                    if reason and session.should_report():
                        yield Evaluated(progress, session.report(engine))
                    if session.should_save():
                        session.save()
                    if reason:
                        break
                    stats = learner.apply(engine.run(learner.items(), learner.params))
                    session.record(stats, engine.stats)
                    yield Updated(progress, stats, engine.stats)
            except Interrupted:
                reason = "interrupted"
            except RunError:
                raise  # writing failed, so a checkpoint would fail too
            except BaseException:
                session.save()  # a worker failed, a number is not finite, Ctrl-C in a notebook, …
                raise
            session.save()
        if reason == "until_return":
            run.checkpoints.thin(progress.update, 1)
    yield Ended(reason, progress, fingerprint(learner.params), test)


def train(
    run: RunDirectory,
    show: Callable[[Event], object] | None = None,
    should_stop: Callable[[], bool] = never,
    began: float | None = None,
) -> Ended:
    """Train to the end, and call `show` with each event of `training`."""
    with contextlib.closing(training(run, should_stop, began)) as events:
        for event in events:
            if show is not None:
                show(event)
    assert isinstance(event, Ended)
    return event
