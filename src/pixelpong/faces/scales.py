"""The vertical scale of returns in a plot.

Runs of Pong have its returns, runs of another game have its scores, and runs of several games are
compared by shares of a person's score (`pixelpong.scores`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pixelpong.config.protocols import PONG
from pixelpong.run.words import in_game, signed
from pixelpong.scores import find_scores
from pixelpong.sweeps.settings import Setting

_HIGHEST = 4.0  # a person's score is drawn if it is at most this many times the highest one


class Mark(NamedTuple):
    """A thin line at a value, with its text."""

    value: float
    text: str


class PongScale:
    """Returns from −21 to 21."""

    label = "return, estimated from the last 1,000 points"
    note = "band: lowest to highest, where all have data; cross: started again"
    evaluations = "greedy"
    empty = "There is no estimated return to plot yet; train for 1,000 points or more."

    def convert(self, game: str, values: Any) -> NDArray[np.float64]:
        """Return the returns themselves."""
        return np.asarray(values, np.float64)

    def limits(self, low: float, high: float) -> tuple[float, float]:
        """Return the ends of the axis for values from `low` to `high`."""
        return -21.8, float(np.clip(high + 2, -19, 21.8))  # else, early runs would be a flat line

    def marks(self, settings: Iterable[Setting]) -> list[Mark]:
        """List the target returns."""
        targets = {setting.config.until_return for setting in settings}
        return [Mark(it, f"target {signed(it)}") for it in targets if it is not None]


class ScoreScale:
    """The scores of a game."""

    label, unit = "mean score of the last 100 games", "score"
    note = "band: lowest to highest, where all have data"
    evaluations = "sampled"
    empty = "There is no score to plot yet; train until a game has ended."

    def __init__(self, game: str) -> None:
        """Take the game."""
        self._game = game

    def convert(self, game: str, values: Any) -> NDArray[np.float64]:
        """Return the scores themselves."""
        return np.asarray(values, np.float64)

    def limits(self, low: float, high: float) -> tuple[float, float]:
        """Return the ends of the axis for values from `low` to `high`."""
        scores = find_scores(self._game)
        ends = [low, high]
        if scores is not None:
            ends.append(scores.random)
            reach = _HIGHEST * max(map(abs, ends))
            ends += [scores.human] if abs(scores.human) <= reach else []
        margin = 0.05 * (max(ends) - min(ends)) or 1.0
        return min(ends) - margin, max(ends) + margin

    def marks(self, settings: Iterable[Setting]) -> list[Mark]:
        """List random play and a person."""
        scores = find_scores(self._game)
        named = {"random": scores.random, "human": scores.human} if scores else {}
        return [Mark(it, f"{name} {in_game(it, self._game)}") for name, it in named.items()]


class ShareScale:
    """Scores of several games in percent, from random play to a person."""

    label, unit = "human-normalised score of 100 games, %", "human-normalised score, %"
    note = "band: lowest to highest, where all have data"
    evaluations = "evaluation"
    empty = "There is no score to compare: either no game has ended, or no person's score is known."

    def convert(self, game: str, values: Any) -> NDArray[np.float64]:
        """Return the percentages; NaN for a game without a known score of a person."""
        scores, values = find_scores(game), np.asarray(values, np.float64)
        if scores is None:
            return np.full(values.shape, np.nan)
        return 100 * (values - scores.random) / (scores.human - scores.random)

    def limits(self, low: float, high: float) -> tuple[float, float]:
        """Return the ends of the axis for values from `low` to `high`."""
        return min(low, 0.0) - 5, max(high * 1.05, 105.0)

    def marks(self, settings: Iterable[Setting]) -> list[Mark]:
        """List random play and a person."""
        return [Mark(0.0, "random"), Mark(100.0, "human")]


Scale = PongScale | ScoreScale | ShareScale


def make_scale(settings: Iterable[Setting]) -> Scale:
    """Make the scale for some settings."""
    games = {setting.config.game for setting in settings}
    if len(games) > 1:
        return ShareScale()
    (game,) = games
    return PongScale() if game == PONG else ScoreScale(game)
