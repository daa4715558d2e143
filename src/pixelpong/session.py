"""One sitting of a training: the learner and its run directory.

What is restored at the start, written down after every update, and saved now and then.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pixelpong.agent.file import Agent, encode_agent
from pixelpong.config import Config
from pixelpong.engines import Engine, RunStats
from pixelpong.errors import CheckpointError, NumericsError, RunError, expected, refusing
from pixelpong.evaluation import SAMPLED_EPISODES, Evaluation, Verdict, evaluate, judge
from pixelpong.learners import UpdateStats, make_learner
from pixelpong.learners.progress import RETURN_WINDOW, Progress
from pixelpong.run.checkpoints import Checkpoint, fingerprint
from pixelpong.run.directory import RunDirectory
from pixelpong.run.lines import EvaluationLine
from pixelpong.run.milestones import is_due
from pixelpong.schema import Count, Seconds, convert

LOOK_MARGIN = 1.0
"""How far below the target the estimate may be: it is of sampled play; greedy play is better."""

LOOK_EVERY = 100_000
"""Steps between two looks."""


@dataclass(frozen=True)
class Counters:
    """What a checkpoint counts, beside its arrays.

    Attributes:
        progress: the learner's own, see `pixelpong.learners.Learner.set_state`.
        wall_seconds: training time of the run so far.
        evaluation_seconds: of that, in evaluations.
        next_confirmation: steps before which the target is not tried again.
    """

    progress: dict[str, Any]
    wall_seconds: Seconds
    evaluation_seconds: Seconds = 0.0
    next_confirmation: Count = 0

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> Counters:
        """Those of a checkpoint.

        Raises:
            CheckpointError: it has none, or they are of another kind.
        """
        what = f"the counters of the checkpoint of update {checkpoint.update}"
        with refusing(what, "resume from another one", CheckpointError):
            return convert(checkpoint.counters, cls)


class Session:
    """A learner and its run directory: what is restored, recorded and saved."""

    def __init__(self, run: RunDirectory, began: float) -> None:
        """Restore the newest checkpoint, or start anew in a run that has never begun.

        Args:
            run: its directory.
            began: when the command started, on the monotonic clock.

        Raises:
            CheckpointError: there are none left, none is sound, or they do not fit the
                configuration; nothing has been written.
            RunError: the directory cannot be written.
        """
        self._run = run
        self.config: Config = run.config
        self._saved_update = self._recorded_update = -1
        self._saved_score_of = ""
        self._wall_seconds_before = self._evaluation_seconds = 0.0
        self._next_confirmation = 0
        self._attempt: int | None = None
        self.learner = make_learner(run.config)
        has_begun = run.has_begun
        if has_begun:
            self._restore(run.checkpoints.load_latest())
        update = self.learner.progress.update
        run.checkpoints.sweep()
        run.milestones.cut_back(update)
        for file in run.line_files:
            file.cut_back(update)
        run.write_config(update)
        self._recorded_update = update
        evaluated = [it for it in run.evaluations.read_as(EvaluationLine) if it.update == update]
        self._evaluation: Evaluation | EvaluationLine | None = evaluated[-1] if evaluated else None
        if self._evaluation and self._saved_score_of != "evaluation":
            self._saved_update = -1  # killed between the evaluation and its checkpoint
        self._begin = began
        if not has_begun:
            self.save()  # from here on, a run without a checkpoint has lost them
            self._keep_milestone()

    @property
    def wall_seconds(self) -> float:
        """Training time of the run so far, breaks not counted."""
        return self._wall_seconds_before + time.monotonic() - self._begin

    @property
    def training_seconds(self) -> float:
        """The same without the evaluations."""
        return self.wall_seconds - self._evaluation_seconds

    def record(self, stats: UpdateStats, run: RunStats) -> None:
        """Write the lines of this update.

        Args:
            stats: what was played and learned.
            run: what carrying it out moved and waited for.

        Raises:
            RunError: the disk does not take them.
        """
        progress = self.learner.progress
        self._evaluation = None
        if self._attempt is not None and stats.attempt > self._attempt:
            number = stats.attempt
            self._run.warn(f"it won too few points: attempt {number}, with other parameters")
        self._attempt = stats.attempt
        first = progress.episodes - len(stats.episodes) + 1
        self._run.episodes.append(
            *(
                {"update": progress.update, "episode": first + index, **episode.to_dict()}
                for index, episode in enumerate(stats.episodes)
            )
        )
        if stats.replays:
            self._write_optional(self._run.replays.append, *(it.to_line() for it in stats.replays))
        timing = {
            "rollout_seconds": stats.rollout_seconds,
            "wait_seconds": run.wait_seconds,
            "reduce_seconds": stats.reduce_seconds,
            "learn_seconds": stats.learn_seconds,
            "play_seconds": stats.play_seconds,
            "busy_share": stats.play_seconds / (run.workers * stats.rollout_seconds),
            "workers": run.workers,
            "params_bytes": run.params_bytes,
            "bytes_sent": run.bytes_sent,
            "bytes_received": run.bytes_received,
            "steps_per_second": stats.steps_per_second,
            "wall_seconds": self.wall_seconds,
            "items_again": run.items_again,
            "restarts": run.restarts,
        }
        self._run.metrics.append(summarize_update(progress, stats) | {"timing": timing})
        self._recorded_update = progress.update
        self._keep_milestone()

    def should_evaluate(self) -> bool:
        """Whether an evaluation is due after this update and has not been made."""
        every, update = self.config.schedule.evaluate_every, self.learner.progress.update
        return bool(every and update and update % every == 0 and self._evaluation is None)

    def evaluate(self, engine: Engine) -> Evaluation:
        """Evaluate the newest parameters and write the result down."""
        episodes = self.config.schedule.evaluate_episodes
        evaluation = self._evaluate(engine, episodes, is_greedy=True, update=0)
        self._write_evaluation(evaluation)
        return evaluation

    def should_confirm(self, *, is_last: bool) -> bool:
        """Whether it is time to see if the target return is reached.

        That is when the running estimate comes near, though not at every update, and at the end.

        Args:
            is_last: no other update follows.
        """
        target, progress = self.config.budget.until_return, self.learner.progress
        if target is None or progress.update == 0:
            return False
        estimate = progress.estimated_return
        is_promising = estimate is not None and estimate >= target - LOOK_MARGIN
        return is_last or (is_promising and progress.steps >= self._next_confirmation)

    def confirm(self, engine: Engine, *, is_last: bool) -> Verdict:
        """Evaluate the newest parameters against the target, and write the result down.

        Args:
            engine: that plays them.
            is_last: no other update follows, so all episodes are played, hopeless or not.
        """
        target, progress = self.config.budget.until_return, self.learner.progress
        assert target is not None
        play = functools.partial(self._evaluate, engine, update=progress.update)
        is_won, greedy = judge(play, target, at_once=is_last)
        seconds = self.wall_seconds
        sampled = play(SAMPLED_EPISODES, is_greedy=False) if is_won else None
        self._write_evaluation(greedy)
        self._next_confirmation = progress.steps + LOOK_EVERY
        return Verdict(is_won, target, progress.update, progress.steps, seconds, greedy, sampled)

    def should_save(self) -> bool:
        """Whether a checkpoint is due after this update: every few, and after an evaluation."""
        update = self.learner.progress.update
        is_due = update % self.config.schedule.save_every == 0 or self._evaluation is not None
        return is_due and update != self._saved_update

    def save(self) -> None:
        """Save a checkpoint of the last complete update, unless it is saved already.

        An update that was interrupted, or whose lines the disk did not take, is not complete:
        then nothing is saved, and the checkpoint before it stands.

        Raises:
            RunError: it could not be written.
            NumericsError: a parameter is not finite.
        """
        update = self.learner.progress.update
        is_complete = self.learner.is_whole and update == self._recorded_update
        if update == self._saved_update or not is_complete:
            return
        params, arrays, counters = self.learner.get_state()
        self._write_optional(self._run.replays.sync)
        for file in (self._run.metrics, self._run.episodes, self._run.evaluations):
            file.sync()
        score, score_of = self._score()
        counted = Counters(
            counters, self.wall_seconds, self._evaluation_seconds, self._next_confirmation
        )
        self._run.checkpoints.save(
            Checkpoint(update, params, arrays, vars(counted), score, score_of)
        )
        self._saved_update = update

    def _keep_milestone(self) -> None:
        """Write a milestone if one is due.

        Raises:
            NumericsError: a parameter is not finite, and must not reach the disk.
        """
        progress, every = self.learner.progress, self.config.schedule.milestone_every
        update = progress.update
        if not is_due(update, every):
            return
        params, *_ = self.learner.get_state()
        about = {
            "update": update,
            "steps": progress.steps,
            "episodes": progress.episodes,
            "estimated_return": progress.estimated_return,
            "params_sha256": fingerprint(params),
        }
        learning = self.config.learning
        agent = Agent(params, learning.algorithm, self.config.environment.protocol, about)
        rows = self.learner.touched_rows()
        self._write_optional(lambda: self._run.milestones.save(update, encode_agent(agent, rows)))

    def _write_optional(self, write: Callable[..., None], *content: Any) -> None:
        """Write something that no result depends on: without room it warns and leaves it out."""
        try:
            write(*content)
        except (RunError, NumericsError) as error:
            self._run.warn(f"{error}; the training goes on without it")

    def _evaluate(
        self, engine: Engine, episodes: int, *, is_greedy: bool, update: int, first: int = 0
    ) -> Evaluation:
        begin = time.monotonic()
        try:
            return evaluate(
                engine,
                self.learner.params,
                seed=self.config.seed,
                episodes=episodes,
                is_greedy=is_greedy,
                update=update,
                first=first,
            )
        finally:
            self._evaluation_seconds += time.monotonic() - begin

    def _write_evaluation(self, evaluation: Evaluation) -> None:
        line = {"update": self.learner.progress.update, **evaluation.to_dict()}
        self._run.evaluations.append(line)
        self._evaluation = evaluation
        self._saved_update = -1  # what was saved before has no score yet

    def _restore(self, checkpoint: Checkpoint) -> None:
        counters = Counters.of(checkpoint)
        self.learner.set_state(checkpoint.params, dict(checkpoint.optimizer), counters.progress)
        if self.learner.progress.update != checkpoint.update:
            got = f"progress of update {self.learner.progress.update}"
            advice = "resume from another one"
            raise CheckpointError(expected(f"a checkpoint of {checkpoint.update}", got, advice))
        self._wall_seconds_before = counters.wall_seconds
        self._evaluation_seconds = counters.evaluation_seconds
        self._next_confirmation = counters.next_confirmation
        self._saved_update = checkpoint.update
        self._saved_score_of = checkpoint.score_of

    def _score(self) -> tuple[float | None, str]:
        if self._evaluation is not None:
            # The lower end of the interval: a few lucky games are no better than many good ones.
            return self._evaluation.ci95[0], "evaluation"
        progress = self.learner.progress
        is_known = len(progress.recent_returns) == RETURN_WINDOW
        return progress.mean_return_100 if is_known else None, "mean_return_100"


def summarize_update(progress: Progress, stats: UpdateStats) -> dict[str, Any]:
    """The part of a metrics line that depends only on seed and configuration."""
    episodes = stats.episodes
    points = stats.points_won + stats.points_lost
    steps, returns = stats.steps, [episode.episode_return for episode in episodes]
    return {
        "update": progress.update,
        "steps": progress.steps,
        "frames": progress.frames,
        "episodes": progress.episodes,
        "mean_return": sum(returns) / len(returns) if returns else None,
        "mean_return_100": progress.mean_return_100,
        "running_mean": progress.running_mean,
        "estimated_return": progress.estimated_return,
        "points_won_share": stats.points_won / points if points else None,
        "points_won_1000": progress.points_won_1000,
        "steps_per_point": steps / points if points else None,
        "entropy": stats.entropy,
        "up_share": stats.up_share,
        "grad_norm": stats.grad_norm,
        "attempt": stats.attempt,
        **stats.losses,
    }
