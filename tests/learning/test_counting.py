"""What is counted of a run: returns, their means, and points."""

from __future__ import annotations

import dataclasses

import pytest

from pixelpong.items import BUILTIN, Episode, Result
from pixelpong.learners.progress import Progress
from pixelpong.schema import convert


def test_running_mean_is_the_originals():
    progress = Progress()
    for ends in ((-1,) * 21, (1, 1) + (-1,) * 21):
        episode = Episode.of_points(10, 40, 5.0, 5, (), ends)
        progress.count([Result((episode,), 40, 0.0)], [(BUILTIN, -1)], 10, 5.0, 5)
    assert progress.running_mean == pytest.approx(-21 * 0.99 - 19 * 0.01)
    assert progress.mean_return_100 == -20.0
    assert (progress.episodes, progress.steps, progress.frames) == (2, 20, 80)
    assert convert(dataclasses.asdict(progress), Progress) == progress


def test_only_points_and_games_against_the_builtin_opponent_tell_how_strong_it_is():
    """A level game against itself says nothing."""
    progress = Progress()
    games = [Episode.of_points(10, 40, 5.0, 5, (), (1,) * 21, opponent="self")]
    games += [Episode.of_points(10, 40, 5.0, 5, (), (-1,) * 21)]
    stats = progress.count([Result(tuple(games), 80, 0.0)], [("self", 1), (BUILTIN, -1)], 20, 9, 9)
    assert (progress.recent_points, progress.recent_returns) == ([-1], [-21])
    assert (progress.running_mean, progress.mean_return_100, progress.episodes) == (-21, -21, 2)
    assert stats["metrics"]["points_won_share"] == 0.5, "of all"


def test_a_game_that_explores_is_an_episode_whose_return_counts_nowhere():
    progress = Progress()
    games = [Episode(10, 40, 5.0, 300.0), Episode(10, 40, 5.0, 900.0, explores=True)]
    stats = progress.count([Result(tuple(games), 80, 0.0)], [], 20, 9.0, None)
    assert (progress.recent_returns, progress.episodes) == ([300.0], 2)
    assert (progress.running_mean, stats["metrics"]["mean_return"]) == (300.0, 300.0)
    assert games[1].line()["explores"]
    assert "explores" not in games[0].line()
