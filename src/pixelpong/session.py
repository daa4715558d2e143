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
        """Restore the newest checkpoint, or start anew where there is none.

        Raises:
            CheckpointError: there are checkpoints and none is sound.
        """
        self._run = run
        self._config: Config = run.config
        self._saved_update = -1
        self._score: float | None = None
        self._wall_seconds_before = 0.0
        self.learner = ReinforceLearner(run.config)
        run.checkpoints.sweep()
        if run.checkpoints.updates():
            self._restore(run.checkpoints.load_latest())
        run.metrics.cut_back(self.learner.progress.update)
        run.episodes.cut_back(self.learner.progress.update)
        self._begin = time.monotonic()

    @property
    def wall_seconds(self) -> float:
        """Training time of the run so far, breaks not counted."""
        return self._wall_seconds_before + time.monotonic() - self._begin

    def evaluate(self, engine: Engine) -> Evaluation | None:
        """The evaluation that is due after this update, or None."""
        schedule, update = self._config.schedule, self.learner.progress.update
        if not schedule.evaluate_every or update % schedule.evaluate_every:
            return None
        return evaluate(
            engine,
            self.learner.params,
            seed=self._config.seed,
            episodes=schedule.evaluate_episodes,
            is_greedy=True,
        )

    def record(self, stats: UpdateStats, evaluation: Evaluation | None, num_restarts: int) -> None:
        """Write the lines of this update."""
        progress = self.learner.progress
        self._score = self._score_of(evaluation)
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
        result = evaluation.to_dict() if evaluation else None
        self._run.metrics.append(
            summarize_update(progress, stats) | {"evaluation": result, "timing": timing}
        )

    def should_save(self) -> bool:
        """Whether a checkpoint is due after this update."""
        return self.learner.progress.update % self._config.schedule.save_every == 0

    def save(self) -> None:
        """Save a checkpoint of the last complete update, unless it is saved already.

        Raises:
            RunError: it could not be written.
            NumericsError: a parameter is not finite.
        """
        update = self.learner.progress.update
        if update == self._saved_update:
            return
        params, optimizer, counters = self.learner.get_state()
        counters = {"progress": counters, "wall_seconds": self.wall_seconds}
        self._run.checkpoints.save(Checkpoint(update, params, optimizer, counters, self._score))
        self._saved_update = update

    def _restore(self, checkpoint: Checkpoint) -> None:
        self.learner.set_state(
            checkpoint.params, checkpoint.optimizer, checkpoint.counters["progress"]
        )
        self._wall_seconds_before = checkpoint.counters["wall_seconds"]
        self._score = checkpoint.score
        self._saved_update = checkpoint.update

    def _score_of(self, evaluation: Evaluation | None) -> float | None:
        # One measure for all checkpoints of a run, or "best" would compare unlike things.
        if self._config.schedule.evaluate_every:
            return evaluation.mean_return if evaluation else None
        progress = self.learner.progress
        is_known = len(progress.recent_returns) == RETURN_WINDOW
        return progress.mean_return_100 if is_known else None


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
