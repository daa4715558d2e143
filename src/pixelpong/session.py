"""One session of a training: it restores the learner, records every update, saves checkpoints."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from collections.abc import Iterator
from pathlib import Path

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
from pixelpong.evaluation import NEW_GAMES, describe_games, judge, play_games
from pixelpong.items import BUILTIN, Episode
from pixelpong.learners import UpdateStats, make_learner
from pixelpong.learners.progress import RETURN_WINDOW, Progress
from pixelpong.run.arrays import fingerprint
from pixelpong.run.checkpoints import Checkpoint
from pixelpong.run.directory import RunDirectory
from pixelpong.run.lines import Evaluation
from pixelpong.schema import Count, Seconds, convert

# How far below the target the estimate may be, which is of sampled play: greedy play is better.
LOOK_MARGIN = 0.1
LOOK_EVERY = 50_000  # steps between two attempts to confirm the target


@dataclasses.dataclass
class _Counts:
    """The session's part of a checkpoint's card; the learner's progress is another part."""

    wall_seconds: Seconds = 0.0  # total time of the run until then, without breaks
    evaluation_seconds: Seconds = 0.0  # the part spent on evaluations; the rest is training
    next_confirmation: Count = 0  # steps before which the target is not evaluated again


@dataclasses.dataclass(frozen=True)
class _Numbered:
    """The part of an episode's line that says how many there were."""

    update: Count
    episode: Count


@contextlib.contextmanager
def opened(run: RunDirectory, began: float) -> Iterator[Session]:
    """A session, while this process alone writes to the run.

    What refuses to be restored is left as it was, to the byte. After that, an error is noted in the
    run.
    """
    with run.lock():
        session = Session(run, began)
        with run.noting_failure():
            session.begin()
            yield session


class Session:
    """A learner and its run directory: restores, records and saves."""

    def __init__(self, run: RunDirectory, began: float) -> None:
        """Restore the newest checkpoint, unless the run has not begun; nothing is written yet."""
        self._run, self._began = run, began
        self.config: Config = run.config
        self._saved_update = self._recorded_update = -1
        self._saved_score_of = ""
        self._counts = _Counts()  # its `wall_seconds` are those before this session
        self._evaluation: Evaluation | None = None  # of the newest parameters
        self.learner = make_learner(run.config)
        run.require_writable()
        self._has_begun = run.has_begun
        if self._has_begun:
            self._restore(run.checkpoints.load_latest(self._check))
        self.opponent = keep_opponent(run)

    def begin(self) -> None:
        """Cut the run back to what was restored, and save what a new run begins with."""
        run, update = self._run, self.learner.progress.update
        if lost := run.cut_back(update):
            again = f"{number_of(lost, 'update')} will be played again"
            warn(f"the newest sound checkpoint is that of update {update}; {again}")
        run.write_config(update)
        self._recorded_update = update
        evaluated = [it for it in run.evaluations.read(Evaluation) if it.update == update]
        self._evaluation = evaluated[-1] if evaluated else None
        if self._evaluation and self._saved_score_of != "evaluation":
            self._saved_update = -1  # killed between the evaluation and its checkpoint
        if not self._has_begun:
            self.save()  # from now on, a run without checkpoints has lost them
            self._keep_agent()

    @property
    def wall_seconds(self) -> float:
        """Total time of the run, without breaks; a clock that jumps back counts for nothing."""
        now = time.monotonic()
        self._counts.wall_seconds += max(0.0, now - self._began)
        self._began = now
        return self._counts.wall_seconds

    def record(self, stats: UpdateStats, engine: EngineStats) -> None:
        """Write the lines of this update."""
        self._run.require_ours()
        progress = self.learner.progress
        self._evaluation = None
        if progress.attempt > stats.metrics["attempt"]:
            number = progress.attempt
            warn(f"too few points won; attempt {number} begins with new parameters")
        first = progress.episodes - len(stats.episodes) + 1
        self._run.episodes.append(
            *(
                {"update": progress.update, "episode": first + index, **episode.line()}
                for index, episode in enumerate(stats.episodes)
            )
        )
        names = "rollout_seconds", "learn_seconds", "play_seconds", "steps_per_second"
        timing = {name: getattr(stats, name) for name in names} | vars(engine)
        total = self.wall_seconds
        timing |= {
            "busy_share": stats.play_seconds / (engine.workers * stats.rollout_seconds),
            "wall_seconds": total,
            "training_seconds": total - self._counts.evaluation_seconds,
        }
        self._run.metrics.append(progress.line() | stats.metrics | {"timing": timing})
        self._keep_agent()
        # Only now: a checkpoint of this update would skip an agent that memory did not suffice for.
        self._recorded_update = progress.update

    def should_evaluate(self) -> bool:
        """Whether an evaluation is due after this update and has not been done yet."""
        every, update = self.config.evaluate_every, self.learner.progress.update
        return bool(every and update and update % every == 0 and self._evaluation is None)

    def evaluate(self, engine: Engine) -> Evaluation:
        """Evaluate the newest parameters and record the result."""
        played = self._play(engine, self.config.evaluate_episodes)
        found = describe_games(played, self.config.seed)
        return self._write_evaluation(found, self.wall_seconds)

    @property
    def won(self) -> Evaluation | None:
        """The evaluation by which the newest parameters have passed the test of the target."""
        found, target = self._evaluation, self.config.until_return
        if found is None or found.target is None or target is None:
            return None
        return found if found.is_won and found.target >= target else None

    def should_confirm(self, *, is_last: bool) -> bool:
        """Whether to check the target return: when the estimate comes near it, and at the end."""
        target, progress = self.config.until_return, self.learner.progress
        if target is None or progress.update == 0 or self.won:
            return False
        estimate = progress.estimated_return
        is_promising = estimate is not None and estimate >= target - LOOK_MARGIN
        return is_last or (is_promising and progress.steps >= self._counts.next_confirmation)

    def confirm(self, engine: Engine, *, is_last: bool) -> Evaluation:
        """Test whether the target is reached, and record the result; if `is_last`, to the end.

        The time of a win is that at which the test is passed. New games then say how the agent
        plays, because the mean of those that passed the test is too high.
        """
        target, progress = self.config.until_return, self.learner.progress
        assert target is not None
        play = functools.partial(self._play, engine, update=progress.update)
        played, is_won = judge(play, target, at_once=is_last)
        seconds, seed = self.wall_seconds, self.config.seed
        found = describe_games(played, seed)
        if is_won:
            new = describe_games(play(episodes=NEW_GAMES, first=len(played)), seed)
            found = dataclasses.replace(
                new, is_won=True, test_return=found.mean_return, test_games=len(played)
            )
        # A win is tested again if the process dies before it is recorded.
        self._counts.next_confirmation = progress.steps + (0 if is_won else LOOK_EVERY)
        return self._write_evaluation(dataclasses.replace(found, target=target), seconds)

    def should_save(self) -> bool:
        """Whether a checkpoint is due: every few updates, and after an evaluation."""
        update = self.learner.progress.update
        is_due = update % self.config.save_every == 0 or self._evaluation is not None
        return is_due and update != self._saved_update

    def save(self) -> None:
        """Save a checkpoint of the last complete update, unless it is already saved.

        An update that was interrupted, or whose lines could not be written, is not complete: then
        nothing is saved, and the previous checkpoint stays valid.
        """
        update = self.learner.progress.update
        if update == self._saved_update or update != self._recorded_update:
            return
        self._run.require_ours()
        arrays, counters = self.learner.get_state()
        for file in self._run.line_files:
            file.sync()
        score, score_of = self._score()
        card = {"update": update, "score": score, "score_of": score_of, "progress": counters}
        card |= self._agent().card() | vars(self._counts) | {"wall_seconds": self.wall_seconds}
        self._run.checkpoints.save(Checkpoint(arrays, card))
        self._saved_update = update

    def _agent(self) -> Agent:
        learner = self.learner
        return Agent.of_training(self.config, learner.params, learner.progress, self._run.mark)

    def _keep_agent(self) -> None:
        """Save the agent in a small file if that is due; no result depends on it."""
        update = self.learner.progress.update
        if not is_due(update, self.config.save_agent_every):
            return
        has_met_agents = self.config.opponent != BUILTIN
        try:
            content = encode_small(self._agent(), self.learner.get_state()[0], has_met_agents)
            self._run.agents.write(update, content)
        except (RunError, NumericsError) as error:
            warn(f"{error}; the training continues without it")

    def _play(
        self, engine: Engine, episodes: int, update: int = 0, first: int = 0
    ) -> list[Episode]:
        """Play greedy episodes, and count the time."""
        begin, params, seed = self.wall_seconds, self.learner.params, self.config.seed
        play = functools.partial(play_games, engine, params, seed=seed, is_greedy=True)
        try:
            return play(episodes=episodes, update=update, first=first)
        finally:
            self._counts.evaluation_seconds += self.wall_seconds - begin

    def _write_evaluation(self, found: Evaluation, seconds: float) -> Evaluation:
        """Record an evaluation, unless a training that was killed since has recorded it."""
        self._run.require_ours()
        update, timing = self.learner.progress.update, {"wall_seconds": seconds}
        game = self.config.protocol
        about = game.to_dict() | {"seed": self.config.seed}
        found = dataclasses.replace(
            found, update=update, protocol=str(game), timing=timing, about=about
        )
        if found != self._evaluation:  # the times do not count
            self._evaluation = found
            self._run.evaluations.append(found.to_dict())
            self._saved_update = -1  # the saved checkpoint has no score yet
        return self._evaluation

    def _check(self, checkpoint: Checkpoint) -> None:
        """Refuse a checkpoint that has no sense, or is ahead of its lines."""
        card, run = checkpoint.card, self._run
        with refusing(f"cannot use {run.checkpoints.path(checkpoint.update)}", CheckpointError):
            convert(card, _Counts)
            episodes = convert(card["progress"], Progress).episodes
        metrics, episode = run.metrics.last(), run.episodes.last(_Numbered)
        for file, wanted, found in (
            (run.metrics, checkpoint.update, metrics.update if metrics else 0),
            (run.episodes, episodes, episode.episode if episode else 0),
        ):
            if found < wanted:
                self._refuse_without_lines(file.path, checkpoint.update)

    def _refuse_without_lines(self, path: Path, update: int) -> None:
        """Refuse a checkpoint whose lines are lost; and the run, if much would be lost with it."""
        what = f"{path} ends before the checkpoint of update {update}"
        before = max((it for it in self._run.checkpoints.updates() if it < update), default=0)
        if update - before > self.config.save_every:
            raise RunError(f"{what}, and no other is near it; put a copy of the file there.")
        raise CheckpointError(what)

    def _restore(self, checkpoint: Checkpoint) -> None:
        card = checkpoint.card
        self.learner.set_state(checkpoint.arrays, card["progress"])
        if fingerprint(self.learner.params) != card["about"]["params_sha256"]:
            what = f"The parameters of update {checkpoint.update} have a different SHA-256 here"
            advice = "with the installed libraries, the seed draws other numbers"
            raise CheckpointError(f"{what}: {advice}. Use the versions in config.json.")
        self._counts = convert(card, _Counts)
        self._saved_update, self._saved_score_of = checkpoint.update, card["score_of"]

    def _score(self) -> tuple[float | None, str]:
        if self._evaluation is not None:
            # The lower end of the interval, so that a few lucky games do not beat many good ones.
            return self._evaluation.ci95[0], "evaluation"
        progress = self.learner.progress
        is_known = len(progress.recent_returns) == RETURN_WINDOW
        return progress.mean_return_100 if is_known else None, "mean_return_100"
