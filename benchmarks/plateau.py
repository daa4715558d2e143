"""What loses the last points: a decision, or the sticky frames alone?

    python benchmarks/plateau.py runs/long --points 500

An agent plays greedy games. Each point that it loses is taken back to each of its last 30 steps.
From that exact state all three actions are tried, followed by the agent's own greedy play, many
times with new sticky frames. So a step costs what its action was worse than the best one; all else
that brought the loss is luck. The best action is chosen by one half of the tries and valued by the
other half: otherwise the best of three noisy means would always look better than it is.

A point also counts as *avoidable* if, with the very sticky frames that came, one other action at
one of these steps would have kept it from being lost in the next 80 steps: what a player could have
saved that knows them ahead, with one change. Prints JSON.
"""

from __future__ import annotations

import argparse
import sys
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from records import made_by, to_text

from pixelpong.agent.choice import open_agent
from pixelpong.agent.file import Agent
from pixelpong.items import ACTIONS, Item, Params
from pixelpong.kernels.records import STREAM
from pixelpong.machine import count_cores
from pixelpong.play.player import Player
from pixelpong.seeding import make_rng

_STREAMS = 64
_BACK = 30  # steps before the end of the point
_AHEAD = 80  # steps that a try goes on after its first action
_TRIES = 32  # of each action, with new sticky frames


class Replayer:
    """Plays on from given states."""

    def __init__(self, agent: Agent) -> None:
        self.params, self._player = agent.params, Player(agent.protocol, "ppo")
        self.width = 2 + agent.protocol.max_frame_skip
        # Networks of the same shape that choose one action, whatever they see.
        self._forced = []
        for action in range(len(ACTIONS)):
            own = {name: np.zeros_like(w) for name, w in self.params.items()}
            own["b2"][action] = 1
            self._forced.append(own)

    def play(self, params: Params, streams: Any, draws: NDArray[np.float64]) -> Any:
        """Play T steps with draws [N, T, ·]; return streams, and rewards and actions [N, T]."""
        item = Item("play", 0, 0, 0, is_greedy=True, steps=draws.shape[1], streams=streams)
        result = self._player.play(item, params, _Given(draws))  # type: ignore[arg-type]
        steps = result.sides[0].steps.reshape(len(streams), -1)[:, :-1]
        return result.streams, steps["reward"], steps["action"]

    def outcomes(self, streams: Any, action: int, draws: NDArray[np.float64]) -> NDArray[Any]:
        """Of each state, who wins the point after an action: −1, 1, or 0 if it goes on."""
        after, first, _ = self.play(self._forced[action], streams, draws[:, :1])
        _, rewards, _ = self.play(self.params, after, draws[:, 1:])
        rewards = np.concatenate([first, rewards], axis=1)
        ends = (rewards != 0).argmax(axis=1)
        return rewards[np.arange(len(rewards)), ends]


class _Given:
    """In place of a generator: numbers that are known."""

    def __init__(self, draws: NDArray[np.float64]) -> None:
        self._draws = draws

    def random(self, shape: tuple[int, ...]) -> NDArray[np.float64]:
        assert shape == self._draws.shape
        return self._draws.copy()


def find_lost_points(replayer: Replayer, count: int, seed: int) -> tuple[list[Any], int, int]:
    """Play until enough points are lost; return them, and the points and games played.

    Of a lost point: the states before its last steps, their actions and draws, the oldest first.
    """
    rng = make_rng(seed, "play")
    streams, lost, points, games = np.zeros(_STREAMS, STREAM), list[Any](), 0, 0
    past: deque[Any] = deque(maxlen=_BACK)
    while len(lost) < count:
        draws = rng.random((_STREAMS, 1, replayer.width))
        after, rewards, actions = replayer.play(replayer.params, streams, draws)
        past.append((streams, actions[:, 0], draws[:, 0]))
        points += int((rewards != 0).sum())
        games += int((after["game"]["steps"] == 0).sum())
        for place in np.flatnonzero(rewards[:, 0] < 0):
            rows = [tuple(part[place] for part in step) for step in past]
            is_one_point = [
                row[0]["tally"]["points"] == rows[-1][0]["tally"]["points"] for row in rows
            ]
            rows = [row for row, it in zip(rows, is_one_point, strict=True) if it]
            if len(rows) == _BACK:
                lost.append(rows)
        streams = after
    return lost[:count], points, games


def ask(replayer: Replayer, rows: Any, number: int, seed: int) -> dict[str, Any]:
    """What each of the last steps of a lost point cost, and whether one change avoids the loss."""
    rng = make_rng(seed, "play", number)
    states = np.array([row[0] for row in rows])
    chosen = np.array([row[1] for row in rows])
    many = np.repeat(states, _TRIES)
    values = np.zeros((len(ACTIONS), _BACK, _TRIES))
    known = np.array([row[2] for row in rows])
    is_avoided = False
    for action in range(len(ACTIONS)):
        # The same numbers for all actions: what differs is then the action's doing.
        draws = make_rng(seed, "play", number, 1).random((len(many), 1 + _AHEAD, replayer.width))
        values[action] = replayer.outcomes(many, action, draws).reshape(_BACK, _TRIES)
        draws = rng.random((_BACK, 1 + _AHEAD, replayer.width))
        for back in range(_BACK):
            draws[back, : _BACK - back] = known[back:]
        outcomes = replayer.outcomes(states, action, draws)
        assert (outcomes[chosen == action] == -1).all(), "a replay that is not the game's"
        is_avoided |= bool((outcomes >= 0).any())
    one, two = values[:, :, ::2].mean(axis=2), values[:, :, 1::2].mean(axis=2)
    places, costs = np.arange(_BACK), np.zeros(_BACK)
    for choose, value in ((one, two), (two, one)):
        costs += (value[choose.argmax(axis=0), places] - value[chosen, places]) / 2
    expected = values[chosen, places].mean(axis=1)
    return {"costs": costs, "expected": expected, "is_avoided": is_avoided}


def parse(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("agent", help="a run, or an agent's file")
    parser.add_argument("--points", type=int, default=500, help="lost points (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of everything random (%(default)s)")
    return parser.parse_args(words)


def main() -> None:
    """Play, and print a report."""
    options = parse()
    (_, agent), cores = open_agent(options.agent), count_cores()
    lost, points, games = find_lost_points(Replayer(agent), options.points, options.seed)

    def ask_some(first: int) -> list[dict[str, Any]]:
        replayer = Replayer(agent)
        numbers = range(first, len(lost), cores)
        return [ask(replayer, lost[number], number, options.seed) for number in numbers]

    with ThreadPoolExecutor(cores) as pool:
        found = [each for some in pool.map(ask_some, range(cores)) for each in some]
    costs = np.array([each["costs"] for each in found])
    expected = np.array([each["expected"] for each in found]).mean(axis=0)
    totals = costs.sum(axis=1)
    report = {
        "agent": options.agent, "points": points, "games": games, "lost": len(lost),
        # The value of the agent's play, −1 … 1, so many steps before the loss.
        "expected": {str(_BACK - k): round(float(expected[k]), 3) for k in range(0, _BACK, 3)},
        # The part of its fall that decisions cost.
        "cost_of_decisions": round(float(totals.mean()), 3),
        "standard_error": round(float(totals.std(ddof=1) / len(totals) ** 0.5), 3),
        "share_with_a_step_that_cost_a_quarter": round(float((costs.max(axis=1) > 0.25).mean()), 3),
        "avoidable_by_one_action_with_the_coins_known": float(
            np.mean([each["is_avoided"] for each in found])
        ),
    }  # fmt: skip
    sys.stdout.write(to_text(made_by() | report))


if __name__ == "__main__":
    main()
