"""The map of the system: one loop in which every part is named once.

`pixelpong train` makes a run directory and calls `train`; `pixelpong resume` opens one and calls
the same. Where each part lives: items and learning in `learner`, playing in `worker` and
`rollout`, carrying out in `engines`, the disk in `run`, `store` and `metrics`.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pixelpong.config import BudgetConfig
from pixelpong.engines import RunStats, make_engine, never
from pixelpong.errors import Interrupted, RunError
from pixelpong.evaluate import Evaluation, Verdict
from pixelpong.learners import UpdateStats
from pixelpong.progress import Progress
from pixelpong.run import Run
from pixelpong.session import Session
from pixelpong.store import fingerprint
from pixelpong.worker import make_worker


class Display(Protocol):
    """Shows a training while it goes on."""

    def begin(self, run: Run, progress: Progress) -> None:
        """The training starts, or goes on from `progress`."""

    def show(self, progress: Progress, stats: UpdateStats, run: RunStats) -> None:
        """An update is done; `run` is what its rollouts waited for and moved."""

    def show_evaluation(self, progress: Progress, evaluation: Evaluation) -> None:
        """The newest parameters have been evaluated."""

    def show_verdict(self, verdict: Verdict) -> None:
        """It has been evaluated whether the target return is reached."""

    def end(self) -> None:
        """No more updates come, for whatever reason."""


class Silent:
    """The display that shows nothing."""

    def begin(self, run: Run, progress: Progress) -> None:
        """Nothing."""

    def show(self, progress: Progress, stats: UpdateStats, run: RunStats) -> None:
        """Nothing."""

    def show_evaluation(self, progress: Progress, evaluation: Evaluation) -> None:
        """Nothing."""

    def show_verdict(self, verdict: Verdict) -> None:
        """Nothing."""

    def end(self) -> None:
        """Nothing."""


@dataclass(frozen=True)
class Outcome:
    """How a training ended.

    Attributes:
        reason: the budget that was reached (``"updates"``, ``"episodes"``, ``"steps"``,
            or ``"until_return"`` where an evaluation has confirmed it) or ``"interrupted"``.
        progress: what has been played.
        params_sha256: of the final parameters.
        wall_seconds: wall time of the run, breaks not counted.
        training_seconds: the same without the evaluations.
        verdict: the last one on the target return; None where none was asked for or reached.
    """

    reason: str
    progress: Progress
    params_sha256: str
    wall_seconds: float
    training_seconds: float
    verdict: Verdict | None


def train(
    run: Run,
    display: Display | None = None,
    should_stop: Callable[[], bool] = never,
    began: float | None = None,
) -> Outcome:
    """Train until the budget is spent, from the run's newest checkpoint where there is one.

    Args:
        run: where everything is written; its configuration says what is trained.
        display: shows what happens; nothing where not given.
        should_stop: asked several times a second; the update under way is then dropped, the
            last complete one saved, and the outcome's reason is ``"interrupted"``.
        began: when the command started, on the monotonic clock; now where not given.

    Raises:
        RunError: another training writes there, or the disk does not take a file.
        CheckpointError: there are checkpoints and none is sound.
        WorkerError: a worker raised, or failed too often; the last complete update is saved.
        NumericsError: a number is not finite; the last update that is whole stays saved.
    """
    display = display or Silent()
    config = run.config
    with run.lock():
        session = Session(run, time.monotonic() if began is None else began)
        learner, progress, verdict = session.learner, session.learner.progress, None
        engine = make_engine(config.engine, functools.partial(make_worker, config), should_stop)
        with contextlib.closing(engine):
            display.begin(run, progress)
            try:
                while True:
                    if session.should_evaluate():
                        display.show_evaluation(progress, session.evaluate(engine))
                    reason = reached_budget(config.budget, progress)
                    if session.should_confirm(is_last=bool(reason)):
                        verdict = session.confirm(engine, is_last=bool(reason))
                        reason = "until_return" if verdict.is_won else reason
                        display.show_verdict(verdict)
                    if session.should_save():
                        session.save()
                    if reason:
                        break
                    results = engine.run(learner.items(), learner.params)
                    stats = learner.apply(results)
                    session.record(stats, engine)
                    display.show(progress, stats, engine.last_run)
            except Interrupted:
                reason = "interrupted"
            except RunError:
                raise  # the disk is at fault, and would not take a checkpoint either
            except BaseException:
                session.save()  # a worker, a number, the terminal, Ctrl-C in a notebook
                raise
            finally:
                display.end()
            session.save()
    return Outcome(
        reason,
        progress,
        fingerprint(learner.params),
        session.wall_seconds,
        session.training_seconds,
        verdict,
    )


def reached_budget(budget: BudgetConfig, progress: Progress) -> str | None:
    """The name of the first budget option that `progress` has reached, or None.

    A target return is not among them: an evaluation decides on it.

    >>> reached_budget(BudgetConfig(updates=3), Progress(update=3))
    'updates'
    """
    if budget.updates is not None and progress.update >= budget.updates:
        return "updates"
    if budget.episodes is not None and progress.episodes >= budget.episodes:
        return "episodes"
    if budget.steps is not None and progress.steps >= budget.steps:
        return "steps"
    return None
