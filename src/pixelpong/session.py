"""One sitting of a training: the learner and its run directory.

What is restored at the start, written down after every update, and saved now and then.
"""

from __future__ import annotations

import time
from typing import Any

from pixelpong.config import Config
from pixelpong.engines import Engine
from pixelpong.evaluate import Evaluation, evaluate
from pixelpong.learner import RETURN_WINDOW, Progress, ReinforceLearner, UpdateStats
from pixelpong.run import Run
from pixelpong.store import Checkpoint


class Session:
    """A learner and its run directory: what is restored, recorded and saved."""

    def __init__(self, run: Run) -> None:
        """Restore the newest checkpoint, or start anew in a run that has never begun.

        Raises:
            CheckpointError: there are none left, none is sound, or they do not fit the
                configuration; nothing has been written.
            RunError: the directory cannot be written.
        """
        self._run = run
        self._config: Config = run.config
        self._saved_update = self._recorded_update = -1
        self._saved_score_of = ""
        self._wall_seconds_before = 0.0
        self.learner = ReinforceLearner(run.config)
        has_begun = next(iter(run.metrics.read()), None) is not None
        if has_begun or run.checkpoints.updates():
            self._restore(run.checkpoints.load_latest())
        update = self.learner.progress.update
        run.checkpoints.sweep()
        for file in (run.metrics, run.episodes, run.evaluations):
            file.cut_back(update)
        run.write_config(update)
        self._recorded_update = update
        evaluated = [line for line in run.evaluations.read() if line["update"] == update]
        self._evaluation = evaluated[-1] if evaluated else None
        if self._evaluation and self._saved_score_of != "evaluation":
            self._saved_update = -1  # killed between the evaluation and its checkpoint
        self._begin = time.monotonic()
        if not has_begun:
            self.save()  # from here on, a run without a checkpoint has lost them

    @property
    def wall_seconds(self) -> float:
        """Training time of the run so far, breaks not counted."""
        return self._wall_seconds_before + time.monotonic() - self._begin

    def record(self, stats: UpdateStats, num_restarts: int) -> None:
        """Write the lines of this update.

        Raises:
            RunError: the disk does not take them.
        """
        progress = self.learner.progress
        self._evaluation = None
        first = progress.episodes - len(stats.episodes) + 1
        self._run.episodes.append(
            *(
                {"update": progress.update, "episode": first + index, **episode.to_dict()}
                for index, episode in enumerate(stats.episodes)
            )
        )
        timing = {
            "rollout_seconds": stats.rollout_seconds,
            "learn_seconds": stats.learn_seconds,
            "play_seconds": sum(episode.play_seconds for episode in stats.episodes),
            "steps_per_second": stats.steps_per_second,
            "wall_seconds": self.wall_seconds,
            "restarts": num_restarts,
        }
        self._run.metrics.append(summarize_update(progress, stats) | {"timing": timing})
        self._recorded_update = progress.update

    def should_evaluate(self) -> bool:
        """Whether an evaluation is due after this update and has not been made."""
        every, update = self._config.schedule.evaluate_every, self.learner.progress.update
        return bool(every and update and update % every == 0 and self._evaluation is None)

    def evaluate(self, engine: Engine) -> Evaluation:
        """Evaluate the newest parameters and write the result down."""
        evaluation = evaluate(
            engine,
            self.learner.params,
            seed=self._config.seed,
            episodes=self._config.schedule.evaluate_episodes,
            is_greedy=True,
        )
        line = {"update": self.learner.progress.update, **evaluation.to_dict()}
        self._run.evaluations.append(line)
        self._evaluation = line
        self._saved_update = -1  # what was saved before has no score yet
        return evaluation

    def should_save(self) -> bool:
        """Whether a checkpoint is due after this update: every so often, and where evaluated."""
        update = self.learner.progress.update
        is_due = update % self._config.schedule.save_every == 0 or self._evaluation is not None
        return is_due and update != self._saved_update

    def save(self) -> None:
        """Save a checkpoint of the last complete update, unless it is saved already.

        An update that was broken off in the middle, or whose lines the disk did not take, is
        not complete: then nothing is saved, and what was saved before stands.

        Raises:
            RunError: it could not be written.
            NumericsError: a parameter is not finite.
        """
        update = self.learner.progress.update
        is_complete = self.learner.is_whole and update == self._recorded_update
        if update == self._saved_update or not is_complete:
            return
        params, optimizer, counters = self.learner.get_state()
        for file in (self._run.metrics, self._run.episodes, self._run.evaluations):
            file.sync()
        score, score_of = self._score()
        counters = {"progress": counters, "wall_seconds": self.wall_seconds}
        self._run.checkpoints.save(Checkpoint(update, params, optimizer, counters, score, score_of))
        self._saved_update = update

    def _restore(self, checkpoint: Checkpoint) -> None:
        self.learner.set_state(
            checkpoint.params, checkpoint.optimizer, checkpoint.counters["progress"]
        )
        self._wall_seconds_before = checkpoint.counters["wall_seconds"]
        self._saved_update = checkpoint.update
        self._saved_score_of = checkpoint.score_of

    def _score(self) -> tuple[float | None, str]:
        if self._evaluation is not None:
            return self._evaluation["mean_return"], "evaluation"
        progress = self.learner.progress
        is_known = len(progress.recent_returns) == RETURN_WINDOW
        return progress.mean_return_100 if is_known else None, "mean_return_100"


def summarize_update(progress: Progress, stats: UpdateStats) -> dict[str, Any]:
    """The part of a metrics line that depends on nothing but seed and configuration."""
    episodes = stats.episodes
    steps = sum(episode.steps for episode in episodes)
    points = sum(episode.points_won + episode.points_lost for episode in episodes)
    return {
        "update": progress.update,
        "steps": progress.steps,
        "frames": progress.frames,
        "episodes": progress.episodes,
        "mean_return": sum(episode.episode_return for episode in episodes) / len(episodes),
        "mean_return_100": progress.mean_return_100,
        "running_mean": progress.running_mean,
        "points_won_share": sum(e.points_won for e in episodes) / points if points else None,
        "steps_per_episode": steps / len(episodes),
        "entropy": sum(episode.entropy * episode.steps for episode in episodes) / steps,
        "up_share": sum(episode.up_share * episode.steps for episode in episodes) / steps,
        "grad_norm": stats.grad_norm,
    }
