"""A tournament: all games of all pairs, played in several processes, and the results.

Both players decide in every frame, in Python, where threads would wait for each other. So a pool of
processes plays. A game is a pure function, so the number of processes does not affect the results.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple

import numpy as np

from pixelpong.errors import PixelpongError, WorkerError
from pixelpong.machine import collect_versions, describe_machine
from pixelpong.processes import Processes
from pixelpong.tournaments.games import Played, Player, Rules, play_duel
from pixelpong.tournaments.ratings import rate


class Outcome(NamedTuple):
    """The end of a tournament, which may come before all games are played."""

    played: list[Played]
    error: PixelpongError | None  # the error that ended it, if one did


def hold_tournament(
    players: Sequence[Player],
    rounds: int,
    rules: Rules,
    workers: int,
    should_stop: Callable[[], bool],
    tell: Callable[[int], object],
) -> Outcome:
    """Play a tournament; a stop or an error ends it, and the games played until then are kept.

    `tell` is called after each game with the number of finished ones.
    """
    played: list[Played] = []
    error: PixelpongError | None = None
    try:
        for game in play_tournament(players, rounds, rules, workers, should_stop):
            played.append(game)
            tell(len(played))
    except PixelpongError as caught:
        error = caught
    return Outcome(played, error)


def play_tournament(
    players: Sequence[Player],
    rounds: int,
    rules: Rules,
    workers: int,
    should_stop: Callable[[], bool],
) -> Iterator[Played]:
    """Play all games, round by round.

    In a round, each pair plays two games, one on each side. With one worker, this process plays.
    Once `should_stop()` is True, no new game starts.
    """
    pairs = list(itertools.combinations(players, 2))
    tasks = ((*pair, number, rules) for number in range(2 * rounds) for pair in pairs)
    if workers == 1:
        yield from (
            play_duel(*task) for task in itertools.takewhile(lambda _: not should_stop(), tasks)
        )
        return
    with Processes(workers) as pool:
        games = [pool.submit(play_duel, *task) for task in tasks]
        try:
            for game in as_completed(games):
                if not game.cancelled():
                    yield game.result()
                if should_stop():
                    for waiting in games:
                        waiting.cancel()  # does nothing to games that have started
        except BrokenProcessPool as error:
            if not should_stop():  # otherwise a signal ended all processes
                advice = "Check the free memory, or lower --workers."
                raise WorkerError(f"A process that played games died. {advice}") from error
        finally:
            pool.shutdown(cancel_futures=True)


def count_games(players: Sequence[Player], rounds: int) -> int:
    """Count the games of a whole tournament."""
    return rounds * len(players) * (len(players) - 1)


def summarize(
    players: Sequence[Player], played: Sequence[Played], rounds: int, rules: Rules
) -> dict[str, Any]:
    """Summarise at least one game: the players by rank, the matrix of returns, and all games."""
    indices = {player.name: index for index, player in enumerate(players)}
    played = sorted(played, key=lambda game: (game.number, game.players))
    points: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for game in played:
        left, right = (indices[name] for name in game.players)
        points.setdefault((left, right), []).append(game.points)
        points.setdefault((right, left), []).append((game.points[1], game.points[0]))
    pairs = {(i, j): scores for (i, j), scores in sorted(points.items()) if i < j}
    ratings, intervals = rate(pairs, len(players))
    order = np.argsort(-ratings, kind="stable").tolist()
    return {
        "rules": dataclasses.asdict(rules),
        "rounds": rounds,
        "games_played": len(played),
        "games_planned": count_games(players, rounds),
        "players": [
            {
                "name": players[i].name,
                "sha256": players[i].sha256,
                "rating": ratings[i],
                "ci95": intervals[i].tolist(),
                **_add_up([score for j in order for score in points.get((i, j), [])]),
            }
            for i in order
        ],
        "matrix": [[_add_up(points.get((i, j), []))["mean_return"] for j in order] for i in order],
        "games": list(map(dataclasses.asdict, played)),
        "versions": collect_versions(),
        "machine": describe_machine(),
    }


def _add_up(scores: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Return the points and the mean return of the first of two players."""
    won, lost = np.sum(scores, axis=0).tolist() if scores else (0, 0)
    return {
        "mean_return": (won - lost) / len(scores) if scores else None,
        "points_won": won,
        "points_lost": lost,
        "games": len(scores),
    }
