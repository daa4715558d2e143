"""The counts of a run, and estimates of how well the agent plays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pixelpong.items import BUILTIN, Episode, Result

RETURN_WINDOW = 100  # number of episodes in the mean return
POINT_WINDOW = 1000  # number of points in the share of points won


@dataclass
class Progress:
    """The counts since the start of the run."""

    update: int = 0
    attempt: int = 1  # number of the attempt: 2 after a restart with new parameters
    attempt_began: int = 0  # number of steps before this attempt
    steps: int = 0
    frames: int = 0
    episodes: int = 0
    # The originals' running mean, 0.99 old + 0.01 new, starting at the first return, else None.
    running_mean: float | None = None
    recent_returns: list[float] = field(default_factory=list)  # last RETURN_WINDOW, oldest first
    recent_points: list[int] = field(
        default_factory=list
    )  # the last POINT_WINDOW rewards, oldest first
    adam_steps: int = 0  # number of optimizer steps in this attempt
    learning_rate: float | None = None  # the learning rate as steered, before it falls
    opponent: str = BUILTIN  # the option in the last update, which the streams played against

    def count(
        self,
        results: Sequence[Result],
        points: Sequence[tuple[str, int]],
        steps: int,
        entropy: float,
        ups: int | None,
    ) -> dict[str, Any]:
        """Count the results of an update; return the fields of `UpdateStats` about them.

        `points` has the opponent and the reward of each finished point, in Pong. `steps` is the
        number of steps to learn from; `entropy` and `ups` are sums over them, and `ups` is None in
        other games.
        """
        episodes = tuple(episode for result in results for episode in result.episodes)
        comparable = [reward for opponent, reward in points if opponent == BUILTIN]
        self.steps += steps
        self.frames += sum(result.frames for result in results)
        self.recent_points = [*self.recent_points, *comparable][-POINT_WINDOW:]
        metrics = {
            "mean_return": _mean([it.episode_return for it in episodes if not it.explores]),
            "entropy": entropy / steps,  # mean entropy of the policy, in nats
        }
        if ups is not None:
            metrics |= {
                "points_won_share": _mean([reward > 0 for _, reward in points]),
                "steps_per_point": steps / len(points) if points else None,
                "up_share": ups / steps,
            }
        return {
            "episodes": episodes,
            "running_means": tuple(map(self._end_episode, episodes)),
            "steps": steps,
            "play_seconds": math.fsum(result.seconds for result in results),
            "metrics": metrics,
        }

    def _end_episode(self, episode: Episode) -> float | None:
        """Count a finished episode.

        Its return counts only against the built-in opponent, and only if the game does not explore.
        """
        self.episodes += 1
        if episode.opponent == BUILTIN and not episode.explores:
            latest, mean = episode.episode_return, self.running_mean
            self.recent_returns = [*self.recent_returns, latest][-RETURN_WINDOW:]
            self.running_mean = latest if mean is None else 0.99 * mean + 0.01 * latest
        return self.running_mean

    @property
    def mean_return_100(self) -> float | None:
        """Mean return of the last 100 episodes, or of all if there are fewer."""
        return _mean(self.recent_returns)

    @property
    def points_won_1000(self) -> float | None:
        """Share of the last 1,000 points that were won, or of all if there are fewer."""
        return _mean([reward > 0 for reward in self.recent_points])

    @property
    def estimated_return(self) -> float | None:
        """The return implied by the share of points won; None until the window is full.

        It lags behind less than the mean of the last episodes, because an episode with long rallies
        ends thousands of steps after its start.
        """
        if len(self.recent_points) < POINT_WINDOW or self.points_won_1000 is None:
            return None
        return expected_return(self.points_won_1000)

    def line(self) -> dict[str, Any]:
        """Return the part of a metrics line that covers the whole run so far."""
        names = (
            "update", "steps", "frames", "episodes", "mean_return_100", "running_mean",
            "estimated_return", "points_won_1000",
        )  # fmt: skip
        return {name: getattr(self, name) for name in names}


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def expected_return(share: float) -> float:
    """Compute the mean return of a game to 21 if every point is won with probability `share`.

    The loser's points are negative binomial: k with probability C(20 + k, k) p²¹ (1 − p)ᵏ.

    >>> expected_return(0.0), expected_return(0.5), expected_return(1.0)
    (-21.0, 0.0, 21.0)
    """
    won, lost = share, 1 - share
    return math.fsum(
        math.comb(20 + k, k) * (21 - k) * (won**21 * lost**k - lost**21 * won**k) for k in range(21)
    )
