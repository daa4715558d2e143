"""A tournament: all games of all pairs, in several processes, and their results.

Two players decide in every frame, in Python, where threads would wait for each other, so a pool of
processes plays. A game is a pure function, so the number of processes changes no result.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import numpy as np

from pixelpong.errors import WorkerError
from pixelpong.machine import collect_versions, describe_machine
from pixelpong.processes import Processes
from pixelpong.tournaments.games import Played, Player, Rules, play
from pixelpong.tournaments.ratings import rate


def carry_out(
    players: Sequence[Player],
    rounds: int,
    rules: Rules,
    workers: int,
    should_stop: Callable[[], bool],
) -> Iterator[Played]:
    """Play all games, round by round.

    In a round, each pair plays two games, one on each side. With one worker, this process plays.
    Once `should_stop()` is True, no new game begins.
    """
    pairs = list(itertools.combinations(players, 2))
    tasks = ((*pair, number, rules) for number in range(2 * rounds) for pair in pairs)
    if workers == 1:
        yield from (play(*task) for task in itertools.takewhile(lambda _: not should_stop(), tasks))
        return
    with Processes(workers) as pool:
        games = [pool.submit(play, *task) for task in tasks]
        try:
            for game in as_completed(games):
                if not game.cancelled():
                    yield game.result()
                if should_stop():
                    for each in games:
                        each.cancel()  # those that have not begun
        except BrokenProcessPool as error:
            if not should_stop():  # otherwise a signal ended all processes
                advice = "check the free memory, or give fewer --workers"
                raise WorkerError(f"A process that played games died; {advice}.") from error
        finally:
            pool.shutdown(cancel_futures=True)


def summarize(
    players: Sequence[Player], played: Sequence[Played], rounds: int, rules: Rules
) -> dict[str, Any]:
    """Summarise at least one game: players by rank, the matrix of returns, all games."""
    places = {player.name: place for place, player in enumerate(players)}
    played = sorted(played, key=lambda each: (each.number, each.players))
    points: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for each in played:
        left, right = (places[name] for name in each.players)
        points.setdefault((left, right), []).append(each.points)
        points.setdefault((right, left), []).append((each.points[1], each.points[0]))
    pairs = {(i, j): scores for (i, j), scores in sorted(points.items()) if i < j}
    ratings, ends = rate(pairs, len(players))
    order = np.argsort(-ratings, kind="stable").tolist()
    return {
        "rules": dataclasses.asdict(rules),
        "rounds": rounds,
        "games_played": len(played),
        "games_planned": rounds * len(players) * (len(players) - 1),
        "players": [
            {
                "name": players[i].name,
                "sha256": players[i].sha256,
                "rating": ratings[i],
                "ci95": ends[i].tolist(),
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
    """Points and mean return of the first of two players."""
    won, lost = np.sum(scores, axis=0).tolist() if scores else (0, 0)
    mean_return = (won - lost) / len(scores) if scores else None
    numbers = {"mean_return": mean_return, "points_won": won, "points_lost": lost}
    return numbers | {"games": len(scores)}
