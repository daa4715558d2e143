"""Suites: settings that differ only in the game, and their scores compared over all games.

The score of a run is the mean of the games at its end. Scores of different games are compared as
shares from random play to a person (`pixelpong.scores`). Over several games, the interquartile mean
of all runs is the robust one, with an interval whose bootstrap draws the runs of each game apart.
Source: Agarwal et al. (2021), Deep Reinforcement Learning at the Edge of the Statistical Precipice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pixelpong.config import OPTIONS, Config
from pixelpong.config.protocols import PONG
from pixelpong.evaluation import stratified_interval
from pixelpong.run.lines import MIN_RUNS
from pixelpong.scores import human_normalised
from pixelpong.seeding import make_rng
from pixelpong.sweeps.grid import label_of, varied
from pixelpong.sweeps.settings import Setting


def interquartile_mean(values: Any, axis: int = -1) -> Any:
    """Return the mean of the middle half: a quarter of the values is cut off at each end.

    With fewer than four values, none is cut off. Source: Agarwal et al. (2021), section 4.3.

    >>> float(interquartile_mean([0.0, 1.0, 2.0, 90.0]))
    1.5
    """
    ordered = np.sort(np.moveaxis(np.asarray(values, np.float64), axis, -1), axis=-1)
    cut = ordered.shape[-1] // 4
    return ordered[..., cut : ordered.shape[-1] - cut].mean(axis=-1)


@dataclass(frozen=True)
class Suite:
    """The settings that differ only in the game."""

    label: str  # the options that differ among the suites; "" if there is only one suite
    settings: tuple[Setting, ...]  # one for each game

    def summarize(self) -> dict[str, Any]:
        """Sum up this suite, as JSON: each game, and all games whose scores can be compared.

        Only runs that are done count. ``interquartile_mean`` is None without such a run, and its
        ``ci95`` is None with fewer than `MIN_RUNS` runs, or with a single run of some game.
        """
        games = [_describe_game(setting) for setting in self.settings]
        groups = [group for setting in self.settings if (group := _list_shares(setting))]
        means = [float(np.mean(group)) for group in groups]
        return {
            "label": self.label,
            "games": games,
            "all": {
                "games": len(groups),
                "trainings": sum(game["trainings"] for game in games),
                "done": sum(game["done"] for game in games),
                "human_normalised": float(np.mean(means)) if means else None,
                "median_human_normalised": float(np.median(means)) if means else None,
                "interquartile_mean": _describe_middle(groups),
            },
        }


def make_suites(settings: Iterable[Setting]) -> list[Suite]:
    """Group settings into suites; if there is no game but Pong, there is none."""
    settings = list(settings)
    if all(setting.config.game == PONG for setting in settings):
        return []
    by_game: dict[str, list[Config]] = {}
    for setting in settings:
        by_game.setdefault(setting.config.game, []).append(setting.config)
    different = {name for configs in by_game.values() for name in varied(configs)}
    names = [name for name in OPTIONS if name in different]
    suites: dict[str, list[Setting]] = {}
    for setting in sorted(settings, key=lambda it: it.config.game):
        suites.setdefault(label_of(setting.config, names), []).append(setting)
    return [Suite(label, tuple(members)) for label, members in suites.items()]


def _list_scores(setting: Setting) -> list[float]:
    known = (record.best_known for record in setting.records if record.is_done)
    return [score for score in known if score is not None]


def _list_shares(setting: Setting) -> list[float]:
    """List the runs' scores as shares of a person's; none if that is not known."""
    shares = (human_normalised(setting.config.game, it) for it in _list_scores(setting))
    return [share for share in shares if share is not None]


def _describe_game(setting: Setting) -> dict[str, Any]:
    game, scores, shares = setting.config.game, _list_scores(setting), _list_shares(setting)
    score = float(np.mean(scores)) if scores else None
    return {
        "game": game,
        "trainings": len(setting.records),
        "done": sum(record.is_done for record in setting.records),
        "score": score,
        "human_normalised": human_normalised(game, score),
        "interquartile_mean": _describe_middle([shares] if shares else []),
    }


def _describe_middle(groups: Sequence[Sequence[float]]) -> dict[str, Any] | None:
    """Describe the interquartile mean of the shares of some games, a group for each."""
    if not groups:
        return None
    values, interval = np.concatenate(groups), None
    if len(values) >= MIN_RUNS and min(map(len, groups)) > 1:
        interval = stratified_interval(groups, make_rng(0, "bootstrap"), interquartile_mean)
    return {"mean": float(interquartile_mean(values)), "ci95": interval}
