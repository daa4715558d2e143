"""A tournament: all games of all pairs, in several processes, and what came of them.

Two players are asked in every frame, in Python, so threads would wait for each other. A process
for each job (`pixelpong.engines.jobs`) takes longer to start than a game takes. So a pool of
processes plays. A game is a pure function: their number changes no result.
"""

from __future__ import annotations

import dataclasses
import itertools
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.synchronize import Event
from typing import Any

import numpy as np

from pixelpong.errors import WorkerError, expected
from pixelpong.interrupts import end_with_parent, interrupts_held
from pixelpong.machine import collect_versions, describe_commit, describe_machine
from pixelpong.tournament.games import Played, Rules, play_round
from pixelpong.tournament.players import Player
from pixelpong.tournament.ratings import find_triples, rate
from pixelpong.tournament.report import FORMAT

_POLL_SECONDS = 0.1
"""How often it is checked whether a stop was requested."""

_stops: list[Event] = []
"""In a process of the pool: what tells it to stop."""


def carry_out(
    players: Sequence[Player],
    rounds: int,
    rules: Rules,
    workers: int,
    should_stop: Callable[[], bool],
) -> Iterator[Played]:
    """Play all games, one round of all pairs after the other.

    Args:
        players: all of them.
        rounds: in each, a pair plays two games, one on each side.
        rules: of all games.
        workers: processes; with one, this process plays.
        should_stop: checked several times a second; games under way are then dropped.

    Yields:
        The games, in the order in which they end.

    Raises:
        EmulatorError: the game cannot be played here.
        WorkerError: a process died.
    """
    pairs = list(itertools.combinations(players, 2))
    tasks = ((*pair, number, rules) for number in range(rounds) for pair in pairs)
    if workers == 1:
        for task in itertools.takewhile(lambda _: not should_stop(), tasks):
            yield from play_round(*task, should_stop)
        return
    waiting: set[Future[list[Played]]] = set()
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    with ProcessPoolExecutor(workers, context, _begin, (stop,)) as pool:
        while True:
            if should_stop():
                stop.set()
            room = 0 if stop.is_set() else workers + 1 - len(waiting)
            with interrupts_held():
                waiting |= {pool.submit(_play_round, *it) for it in itertools.islice(tasks, room)}
            if not waiting:
                return
            done, waiting = wait(waiting, _POLL_SECONDS, FIRST_COMPLETED)
            try:
                for each in done:
                    yield from each.result()
            except BrokenProcessPool as error:
                if should_stop():  # the signal went to all processes
                    return
                advice = "look for too little memory, or give fewer --workers"
                what = "processes that play to the end"
                raise WorkerError(expected(what, "one that died", advice)) from error


def _begin(stop: Event) -> None:
    """In a process of the pool: end with the one that began it."""
    _stops.append(stop)
    end_with_parent()


def _play_round(one: Player, other: Player, number: int, rules: Rules) -> list[Played]:
    return play_round(one, other, number, rules, _stops[0].is_set)


def summarize(
    players: Sequence[Player], played: Sequence[Played], rounds: int, rules: Rules
) -> dict[str, Any]:
    """What came of a tournament: players by rank, pairs with their best rally, every game.

    Args:
        players: all of them, in any order.
        played: at least one game, in any order.
        rounds: that were to be played.
        rules: of all games.
    """
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
    names = [player.name for player in players]
    return {
        "format": FORMAT,
        "rules": dataclasses.asdict(rules),
        "rounds": rounds,
        "games_played": len(played),
        "games_planned": rounds * len(players) * (len(players) - 1),
        "players": [
            {
                "name": names[i],
                "sha256": players[i].sha256,
                "rating": ratings[i],
                "ci95": ends[i].tolist(),
                **_add_up([score for j in order for score in points.get((i, j), [])]),
            }
            for i in order
        ],
        "matrix": [[_add_up(points.get((i, j), []))["mean_return"] for j in order] for i in order],
        "triples": [[names[i] for i in ring] for ring in find_triples(pairs)],
        "pairs": [
            {"players": [names[i], names[j]], **_add_up(scores)}
            | _find_best_rally(played, {names[i], names[j]})
            for (i, j), scores in pairs.items()
        ],
        "games": list(map(_tell, played)),
        "versions": collect_versions(),
        "machine": describe_machine(),
        "commit": describe_commit(),
    }


def _find_best_rally(played: Sequence[Played], names: set[str]) -> dict[str, Any]:
    """The game of two players with their longest rally, and the moves to play that again."""
    theirs = [(each.rally, each) for each in played if each.rally and {*each.players} == names]
    if not theirs:
        return {"best_rally": None, "moves": ""}
    _, longest = max(theirs, key=lambda pair: pair[0][1] - pair[0][0])
    return {"best_rally": _tell(longest), "moves": longest.moves}


def _tell(played: Played) -> dict[str, Any]:
    """A game without its moves, which are long."""
    told = dataclasses.asdict(played)
    del told["moves"]
    return told


def _add_up(scores: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Points and return over games, of the first of two players."""
    won, lost = np.sum(scores, axis=0).tolist() if scores else (0, 0)
    mean_return = (won - lost) / len(scores) if scores else None
    numbers = {"mean_return": mean_return, "points_won": won, "points_lost": lost}
    return numbers | {"games": len(scores)}
