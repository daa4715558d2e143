"""One session of a run, which restores the learner, records updates and saves checkpoints."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pixelpong.agent.choice import keep_opponent
from pixelpong.agent.file import Agent, encode_small, is_due
from pixelpong.config import Config
from pixelpong.engines import Engine, EngineStats
from pixelpong.errors import (
    CheckpointError,
    NumericsError,
    RunError,
    number_of,
    refusing,
    warn,
)
from pixelpong.evaluation import NEW_GAMES, describe_games, play_games, run_target_test
from pixelpong.items import BUILTIN, Episode
from pixelpong.learners import UpdateStats, make_learner
from pixelpong.learners.progress import RETURN_WINDOW, Progress
from pixelpong.run.arrays import fingerprint
from pixelpong.run.checkpoints import Checkpoint
from pixelpong.run.directory import RunDirectory
from pixelpong.run.lines import Evaluation
from pixelpong.schema import Count, Seconds, convert
from pixelpong.stopwatch import Stopwatch
from pixelpong.target import Target


@dataclasses.dataclass(frozen=True)
class _Counts:
    """The session's part of a checkpoint's card, next to the learner's progress."""

    wall_seconds: Seconds = 0.0  # total time of the run so far, without breaks
    evaluation_seconds: Seconds = 0.0  # the part of it that evaluations took
    next_confirmation: Count = 0  # the target is not tested again before this step


class _Saved(NamedTuple):
    """The newest checkpoint."""

    update: int
    has_evaluation: bool  # whether its score comes from an evaluation


@dataclasses.dataclass(frozen=True)
class _EpisodeNumber:
    """The part of an episode's line that has the number of the episode."""

    update: Count
    episode: Count


@contextlib.contextmanager
def opened(run: RunDirectory, began: float) -> Iterator[Session]:
    """Open a session in which only this process writes to the run.

    If the run cannot be restored, its files do not change. Later errors are recorded in the run.
    """
    with run.lock():
        session = Session(run, began)
        with run.noting_failure():
            session.begin()
            yield session


class Session:
    """A learner and its run directory: restores, records and saves."""

    def __init__(self, run: RunDirectory, began: float) -> None:
        """Restore the newest checkpoint, unless the run is new; nothing is written yet."""
        self._run = run
        self.config: Config = run.config
        self.learner = make_learner(run.config)
        self._evaluation: Evaluation | None = None  # the evaluation of the newest parameters
        self._recorded_update: int | None = None  # the last update whose lines are all written
        self._saved: _Saved | None = None  # None if the newest checkpoint must be saved again
        run.require_writable()
        counts = _Counts()
        if run.has_begun:
            checkpoint = run.checkpoints.load_latest(self._check)
            self._restore_learner(checkpoint)
            counts = convert(checkpoint.card, _Counts)
            self._saved = _Saved(checkpoint.update, checkpoint.card["score_of"] == "evaluation")
        self._stopwatch = Stopwatch(began, counts.wall_seconds, counts.evaluation_seconds)
        self._target = Target(run.config.until_return, counts.next_confirmation)
        self.opponent = keep_opponent(run)

    def begin(self) -> None:
        """Cut the run back to the restored state."""
        run, progress = self._run, self.learner.progress
        update = progress.update
        if lost := run.cut_back(update):
            repeated = f"repeating {number_of(lost, 'update')}"
            warn(f"resuming from update {update}, the latest intact checkpoint; {repeated}")
        fallen = self.config.anneal_steps
        if 0 < fallen <= self.learner.progress.steps and not self.config.reached(progress):
            what = f"the learning rate has fallen to 0 after {fallen:,} steps"
            warn(f"{what}, so this run learns nothing more; train a new one with more steps")
        run.write_config(update)
        self._recorded_update = update
        evaluations = [line for line in run.evaluations.read(Evaluation) if line.update == update]
        self._evaluation = evaluations[-1] if evaluations else None
        if self._evaluation and self._saved and not self._saved.has_evaluation:
            self._saved = None  # the run was killed between the evaluation and its checkpoint

    def read_seconds(self) -> float:
        """Total time of the run until now, without breaks."""
        return self._stopwatch.read()

    def record(self, stats: UpdateStats, engine: EngineStats) -> None:
        """Write the lines of this update."""
        self._run.require_ours()
        progress = self.learner.progress
        self._evaluation = None
        if progress.attempt > stats.metrics["attempt"]:
            warn(f"too few points were won; attempt {progress.attempt} starts with new parameters")
        first = progress.episodes - len(stats.episodes) + 1
        self._run.episodes.append(
            *(
                {"update": progress.update, "episode": first + index, **episode.line()}
                for index, episode in enumerate(stats.episodes)
            )
        )
        names = "rollout_seconds", "learn_seconds", "play_seconds", "steps_per_second"
        timing = {name: getattr(stats, name) for name in names} | vars(engine)
        total = self.read_seconds()
        timing |= {
            "busy_share": stats.play_seconds / (engine.workers * stats.rollout_seconds),
            "wall_seconds": total,
            "training_seconds": total - self._stopwatch.evaluations,
        }
        self._run.metrics.append(progress.line() | stats.metrics | {"timing": timing})
        self._keep_agent()
        # Set last, so that no checkpoint of this update is saved if saving the agent fails.
        self._recorded_update = progress.update

    def should_evaluate(self) -> bool:
        """Whether an evaluation is due after this update and has not been done yet."""
        every, update = self.config.evaluate_every, self.learner.progress.update
        return bool(every and update and update % every == 0 and self._evaluation is None)

    def evaluate(self, engine: Engine) -> Evaluation:
        """Evaluate the newest parameters and record the result."""
        episodes, is_greedy = self.config.evaluate_episodes, self.config.protocol.plays_greedy
        played = self._run_episodes(engine, episodes, is_greedy=is_greedy)
        evaluation = describe_games(played, self.config.seed)
        return self._write_evaluation(evaluation, self.read_seconds())

    @property
    def won(self) -> Evaluation | None:
        """The evaluation by which the newest parameters have passed the test of the target."""
        return self._target.find_win(self._evaluation)

    def should_test(self, *, is_final: bool) -> bool:
        """Whether to test the target return: if the estimate is near it, and at the end."""
        return not self.won and self._target.should_test(self.learner.progress, is_final=is_final)

    def test_target(self, engine: Engine, *, is_final: bool) -> Evaluation:
        """Test whether the target is reached, and record the result; the final test never gives up.

        The time of a win is the time at which the test is passed. New games then measure how well
        the agent plays, because the mean of the games that passed the test is too high.
        """
        target, progress = self._target.value, self.learner.progress
        assert target is not None
        play = functools.partial(self._run_episodes, engine, update=progress.update, is_greedy=True)
        test = run_target_test(play, target, gives_up=not is_final)
        seconds, seed = self.read_seconds(), self.config.seed
        evaluation = describe_games(test.played, seed)
        if test.is_passed:
            new_games = play(episodes=NEW_GAMES, first=len(test.played))
            evaluation = dataclasses.replace(
                describe_games(new_games, seed),
                is_won=True,
                test_return=evaluation.mean_return,
                test_games=len(test.played),
            )
        self._target = self._target.after_test(progress.steps, is_passed=test.is_passed)
        return self._write_evaluation(dataclasses.replace(evaluation, target=target), seconds)

    def should_save(self) -> bool:
        """Whether to save now: every `save_every` updates, and after an evaluation."""
        update = self.learner.progress.update
        is_due = update % self.config.save_every == 0 or self._evaluation is not None
        return is_due and not self._is_saved

    @property
    def _is_saved(self) -> bool:
        return self._saved is not None and self._saved.update == self.learner.progress.update

    def save(self) -> None:
        """Save a checkpoint of the last complete update, unless it is already saved.

        An update is not complete if it was interrupted or its lines could not be written. Then
        nothing is saved, and the previous checkpoint stays valid.
        """
        update = self.learner.progress.update
        if self._is_saved or update != self._recorded_update:
            return
        self._run.require_ours()
        arrays, counters = self.learner.get_state()
        for file in self._run.line_files:
            file.sync()
        score, score_of = self._score()
        card = {"update": update, "score": score, "score_of": score_of, "progress": counters}
        seconds = self.read_seconds()
        counts = _Counts(seconds, self._stopwatch.evaluations, self._target.next_test)
        card |= self._agent().card() | vars(counts)
        self._run.checkpoints.save(Checkpoint(arrays, card))
        self._saved = _Saved(update, score_of == "evaluation")
        if update == 0:
            self._keep_agent()

    def _agent(self) -> Agent:
        learner = self.learner
        return Agent.of_training(
            learner.scene, self.config, learner.params, learner.progress, self._run.mark
        )

    def _keep_agent(self) -> None:
        """Save the agent in a small file if it is due; no result depends on it."""
        update = self.learner.progress.update
        if not is_due(update, self.config.save_agent_every):
            return
        sees_much = self.config.opponent != BUILTIN or self.learner.scene.sees_much
        try:
            squares = self.learner.state["v.W1"]
            content = encode_small(self._agent(), self.learner.has_memory, squares, sees_much)
            self._run.agents.write(update, content)
        except (RunError, NumericsError) as error:
            warn(f"{error}; training continues without it")

    def should_report(self) -> bool:
        """Whether to play the episodes at the end, unless the newest parameters were evaluated."""
        return self.config.final_episodes > 0 and self._evaluation is None

    def report(self, engine: Engine) -> Evaluation:
        """Play the episodes at the end, with sampled actions, and record the result."""
        update, episodes = self.learner.progress.update, self.config.final_episodes
        played = self._run_episodes(engine, episodes, update, is_greedy=False)
        return self._write_evaluation(describe_games(played, self.config.seed), self.read_seconds())

    def _run_episodes(
        self,
        engine: Engine,
        episodes: int,
        update: int = 0,
        first: int = 0,
        *,
        is_greedy: bool,
    ) -> list[Episode]:
        """Play episodes; their time counts as an evaluation's."""
        with self._stopwatch.evaluating():
            return play_games(
                engine, self.learner.params, seed=self.config.seed, is_greedy=is_greedy,
                episodes=episodes, update=update, first=first,
            )  # fmt: skip

    def _write_evaluation(self, evaluation: Evaluation, seconds: float) -> Evaluation:
        """Record an evaluation, unless the run already has it from before a restart."""
        self._run.require_ours()
        protocol = self.config.protocol
        evaluation = dataclasses.replace(
            evaluation,
            update=self.learner.progress.update,
            protocol=str(protocol),
            timing={"wall_seconds": seconds},
            about=protocol.to_dict() | {"seed": self.config.seed},
        )
        if evaluation != self._evaluation:  # the comparison ignores times
            self._evaluation = evaluation
            self._run.evaluations.append(evaluation.to_line())
            self._saved = None  # the saved checkpoint has no score yet
        return self._evaluation

    def _check(self, checkpoint: Checkpoint) -> None:
        """Refuse a checkpoint that is invalid or ahead of its lines."""
        card, run = checkpoint.card, self._run
        with refusing(f"cannot use {run.checkpoints.path(checkpoint.update)}", CheckpointError):
            convert(card, _Counts)
            num_episodes = convert(card["progress"], Progress).episodes
        last_update, last_episode = run.metrics.last(), run.episodes.last(_EpisodeNumber)
        if (last_update.update if last_update else 0) < checkpoint.update:
            self._refuse_without_lines(run.metrics.path, checkpoint.update)
        if (last_episode.episode if last_episode else 0) < num_episodes:
            self._refuse_without_lines(run.episodes.path, checkpoint.update)

    def _refuse_without_lines(self, path: Path, update: int) -> None:
        """Refuse a checkpoint whose lines are lost, or the whole run if too much would be lost."""
        what = f"{path} ends before the checkpoint of update {update}"
        updates = self._run.checkpoints.updates()
        previous = max((earlier for earlier in updates if earlier < update), default=0)
        if update - previous > self.config.save_every:
            advice = "Restore that file from a copy."
            raise RunError(f"{what}, and the previous checkpoint is much older. {advice}")
        raise CheckpointError(what)

    def _restore_learner(self, checkpoint: Checkpoint) -> None:
        self.learner.set_state(checkpoint.arrays, checkpoint.card["progress"])
        if fingerprint(self.learner.params) != checkpoint.card["about"]["params_sha256"]:
            what = f"The parameters of update {checkpoint.update} have a different SHA-256 here"
            reason = "the installed libraries draw other numbers from the seed"
            raise CheckpointError(f"{what}: {reason}. Use the versions in config.json.")

    def _score(self) -> tuple[float | None, str]:
        """Return the checkpoint's score, for `CheckpointStore.find_best`, and its source."""
        if self._evaluation is not None:
            # The lower end of the interval is used, so that a few lucky games do not beat many good
            # ones.
            return self._evaluation.ci95[0], "evaluation"
        progress = self.learner.progress
        is_known = len(progress.recent_returns) == RETURN_WINDOW
        return progress.mean_return_100 if is_known else None, "mean_return_100"
