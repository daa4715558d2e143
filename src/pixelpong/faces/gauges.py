"""What a training shows of how well it plays: in Pong the return, in other games the score.

`make_gauge` makes the one for a run; it says what the curve shows and which metrics stand below it.
"""

from __future__ import annotations

from collections.abc import Sequence

from pixelpong.config import Config
from pixelpong.config.protocols import PONG
from pixelpong.faces.live import Axis
from pixelpong.learners import UpdateStats
from pixelpong.learners.progress import Progress
from pixelpong.run.record import Record
from pixelpong.run.words import in_game, percent, signed
from pixelpong.scores import find_scores, human_normalised

Points = Sequence[tuple[int, float]]  # (steps, return), ascending
_HIGHEST = 6.0  # the curve shows a person's score that is at most this many times as high as it
_BAR = 30  # number of columns of the bar from random play to a person


class PongGauge:
    """Returns from −21 to 21, estimated from the share of points won, with a line at the target."""

    def __init__(self, target: float | None) -> None:
        """Take the target return."""
        self._target = target

    def axis(self, points: Points) -> Axis:
        """Return the axis of the curve of these `points`."""
        labels = {21.0: "+21", 0.0: "0", -21.0: "−21"}
        lines = () if self._target is None else (self._target,)
        labels |= {value: signed(value, 0) for value in lines}
        return Axis(21.0, -21.0, labels, lines, "estimated return, once 1,000 points are played")

    def list_metrics(self, progress: Progress, stats: UpdateStats) -> dict[str, str]:
        """Return the metrics by name."""
        won = progress.points_won_1000
        return {
            "points won": "–" if won is None else f"{100 * won:.1f} %",
            "estimated return": signed(progress.estimated_return),
            "steps per second": f"{stats.steps_per_second:,.0f}",
            "mean of the last 100": signed(progress.mean_return_100),
        }

    def draw_bar(self, points: Points) -> str:
        """Draw nothing: the curve shows how far it is."""
        return ""


class ScoreGauge:
    """The mean score of the last 100 games, with lines at random play and a person."""

    def __init__(self, game: str, best: float | None = None) -> None:
        """Take the game, and the best score of its games so far."""
        self._game, self._best = game, best
        self._scores = find_scores(game)

    def axis(self, points: Points) -> Axis:
        """Return the axis of the curve of these `points`.

        A person's score that is far above all others is left out, because the curve would be flat.
        """
        values = [value for _, value in points]
        lines: tuple[float, ...] = ()
        if self._scores is not None:
            random, human = self._scores.random, self._scores.human
            reach = _HIGHEST * max([abs(random), *map(abs, values)])
            lines = (random, human) if abs(human) <= reach else (random,)
        ends = [*values, *lines] or [0.0]
        bottom = min(ends)
        top = max(*ends, bottom + 1)
        labels = {value: in_game(value, self._game, 0) for value in (top, bottom)}
        names = dict(zip(lines, ("random", "human"), strict=False))
        return Axis(top, bottom, labels | names, lines, "mean score of the last 100 games")

    def list_metrics(self, progress: Progress, stats: UpdateStats) -> dict[str, str]:
        """Return the metrics by name."""
        returns = [it.episode_return for it in stats.episodes if not it.explores]
        self._best = max([*returns, *([] if self._best is None else [self._best])], default=None)
        mean = progress.mean_return_100
        return {
            "best game": in_game(self._best, self._game, 0),
            "mean of the last 100": in_game(mean, self._game),
            "steps per second": f"{stats.steps_per_second:,.0f}",
            "human-normalised": percent(human_normalised(self._game, mean)),
        }

    def draw_bar(self, points: Points) -> str:
        """Draw the newest score between random play and a person; "" if one is not known.

        >>> ScoreGauge("breakout").draw_bar([(1000, 16.1)])
        'random 1.7 ━━━━━━━━━━━━━━━╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌ human 30.5: 50 %'
        """
        if self._scores is None or not points:
            return ""
        share = human_normalised(self._game, points[-1][1])
        assert share is not None
        num_full = round(_BAR * min(max(share, 0.0), 1.0))
        bar = "━" * num_full + "╌" * (_BAR - num_full)
        both = self._scores.random, self._scores.human
        random, human = (in_game(value, self._game) for value in both)
        return f"random {random} {bar} human {human}: {percent(share)}"


def make_gauge(config: Config, record: Record) -> PongGauge | ScoreGauge:
    """Make the gauge of a run, which may have been trained before."""
    if config.game == PONG:
        return PongGauge(config.until_return)
    return ScoreGauge(config.game, max(record.returns()[1], default=None))
