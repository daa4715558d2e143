"""Proximal policy optimisation with Adam: several passes over each round of segments.

Source: Schulman et al. (2017), algorithm 1.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong import kernels
from pixelpong.config import Config
from pixelpong.env.features import NUM_INPUTS
from pixelpong.items import (
    ACTIONS,
    BUILTIN,
    HALF,
    SELF,
    UP,
    Item,
    Params,
    Played,
    Result,
)
from pixelpong.learn.gated import NUM_OUTPUTS
from pixelpong.learn.ppo import LossWeights, generalized_advantages
from pixelpong.learners import (
    State,
    UpdateStats,
    cut_rows,
    draw_params,
    put_rows,
    refuse_non_finite,
    restoring,
)
from pixelpong.learners.passes import Crew, Passes, Steps, lines
from pixelpong.learners.progress import Progress
from pixelpong.machine import count_cores
from pixelpong.play.player import PREFIX
from pixelpong.schema import convert
from pixelpong.seeding import make_rng

_UP = ACTIONS.index(UP)


@dataclass(frozen=True)
class _Counters:
    """The counters in a checkpoint besides `Progress`."""

    adam_steps: int
    opponent: str  # the option, when the streams began


class PPOLearner:
    """Learns from segments of streams, in several passes over each round."""

    def __init__(self, config: Config, opponent: Params | None = None) -> None:
        """Begin at the start; `opponent` has the parameters of the other agent, if any."""
        self._config = config
        self._opponent = {PREFIX + name: w for name, w in (opponent or {}).items()}
        self.progress = Progress()
        self.is_whole = True
        self._begin()
        self._streams = np.zeros(config.ppo.num_envs, kernels.STREAM)
        self._passes = Passes(config.network.hidden, config.network.dtype)
        # Several trainings on one machine share its cores by their numbers of workers.
        engine = config.engine
        workers = engine.workers if engine.engine == "threads" else None
        self._num_threads = min(workers or count_cores(), count_cores())

    def _begin(self) -> None:
        """Set parameters and memory for the first step of the attempt."""
        network, seed = self._config.network, self._config.seed
        attempt = self.progress.attempt
        self.params = draw_params("ppo", network.hidden, network.dtype, seed, attempt)
        self._means = {f"m.{name}": np.zeros_like(w) for name, w in self.params.items()}
        self._squares = {f"v.{name}": np.zeros_like(w) for name, w in self.params.items()}
        self._has_memory = np.zeros(NUM_INPUTS, np.bool_)  # rows of W1 that had a gradient before
        self._adam_steps = 0

    def items(self) -> list[Item]:
        """The next steps of each stream."""
        round_of = self._config.seed, self.progress.update + 1
        num_steps, streams = self._config.ppo.num_steps, np.split(self._streams, len(self._streams))
        return [
            Item("train", *round_of, index, steps=num_steps, stream=stream, opponent=opponent)
            for index, (stream, opponent) in enumerate(zip(streams, self._opponents(), strict=True))
        ]

    def params_to_play(self) -> Params:
        """The parameters, and those of the opponent under `PREFIX`."""
        return self.params | self._opponent

    def _opponents(self, word: str | None = None) -> list[str]:
        """Whom each stream plays against, from its first game to its last; by the option now."""
        word = word or self._config.ppo.opponent
        both = (SELF, BUILTIN) if word == HALF else (word, word)
        return [both[index % 2] for index in range(len(self._streams))]

    def apply(self, results: Iterable[Result]) -> UpdateStats:
        """Learn from the segments, in their order, and count them."""
        update = self.progress.update + 1
        begin = time.perf_counter()
        played = list(results)
        since = time.perf_counter()
        with np.errstate(over="ignore", invalid="ignore"):  # the results are refused
            left = self.share_left()
            gae_lambda = self.lambda_at(left)
            steps = lay_out(played, self._config.learning.gamma, gae_lambda)
            self.is_whole = False
            grad_norm, losses = self._learn(update, steps, left)
        self._streams = np.concatenate([each.stream for each in played])
        counts = self._count(played)
        rows = np.flatnonzero(np.bincount(steps.indices)).astype(np.uint16)
        figures = {"grad_norm": grad_norm, "entropy": counts["entropy"]}
        refuse_non_finite(self._add_up(rows) | losses | figures, update)
        self._has_memory[rows] = True
        attempt = self.progress.attempt
        if self._is_behind(counts["steps"]):
            self.progress.attempt, self.progress.attempt_began = attempt + 1, self.progress.steps
            self.progress.recent_points.clear()
            self._begin()
        self.is_whole = True
        return UpdateStats(
            **counts,
            grad_norm=grad_norm,
            rollout_seconds=since - begin,
            learn_seconds=time.perf_counter() - since,
            attempt=attempt,
            losses=losses,
        )

    def get_state(self) -> State:
        """Parameters, Adam's memory, the streams, and the counts."""
        arrays = cut_rows(self.params | self._means | self._squares, self._has_memory)
        arrays["streams"] = self._streams.view(np.uint8).reshape(len(self._streams), -1)
        own = {"adam_steps": self._adam_steps, "opponent": self._config.ppo.opponent}
        return arrays, dataclasses.asdict(self.progress) | own

    def set_state(self, arrays: Mapping[str, NDArray[Any]], counters: dict[str, Any]) -> None:
        """Continue from a state of `get_state`."""
        with restoring():
            own = convert(counters, _Counters)
            self.progress = Progress.from_dict(counters)
            streams = np.ascontiguousarray(arrays["streams"]).view(kernels.STREAM)[:, 0]
            self._begin()
            put_rows(self.params | self._means | self._squares, arrays)
        self._has_memory[arrays["rows"]] = True
        self._adam_steps = own.adam_steps
        # With more streams than before, the new ones begin at their start; with another opponent,
        # those that do not play against it yet: an opponent is fixed for a game's life.
        self._streams = np.zeros(len(self._streams), kernels.STREAM)
        both = zip(self._opponents(own.opponent), self._opponents(), strict=True)
        for index, (before, now) in enumerate(both):
            if before == now and index < len(streams):
                self._streams[index] = streams[index]

    def _is_behind(self, steps: int) -> bool:
        """Whether to give up this attempt.

        The time to win has a heavy tail: about one attempt in fifteen finds only long rallies, and
        takes at least twice as long as the others. This shows early, and a new attempt is faster
        than waiting. Checked once, in the update that completes `restart_after` steps, and only
        against the built-in opponent, whose points can be compared.
        Source: Gomes, Selman and Kautz (1998), for search.
        """
        limit, won = self._config.ppo.restart_after, self.progress.points_won_1000
        played = self.progress.steps - self.progress.attempt_began
        is_alone = self._config.ppo.opponent == BUILTIN
        is_time = is_alone and 0 < limit <= played < limit + steps
        return is_time and won is not None and won < self._config.ppo.anneal_from

    def share_left(self) -> float:
        """The share of the learning rate that is left, and, squared, of the entropy bonus.

        It falls with the share of points lost: the fewer are lost, the less there is to learn from,
        while the noise of a step stays the same. Against opponents that learn as well, that share
        says nothing; there it falls with the steps (``anneal_steps``). Lambda goes from its start
        to its end at the same rate: a value that has learned much can be trusted sooner.
        """
        if steps := self._config.ppo.anneal_steps:
            return max(1 - self.progress.steps / steps, 0.0)
        won, start = self.progress.points_won_1000, self._config.ppo.anneal_from
        if won is None or won <= start:
            return 1.0
        return (1 - won) / (1 - start)

    def lambda_at(self, left: float) -> float:
        """Lambda of the advantages, from the share of the learning rate that is left."""
        config = self._config.ppo
        return config.gae_lambda_end + left * (config.gae_lambda - config.gae_lambda_end)

    def _learn(self, update: int, steps: Steps, left: float) -> tuple[float, dict[str, float]]:
        """All passes over the round, with the current share of rate and bonus."""
        config = self._config.ppo
        learning_rate = left * self._config.learning.learning_rate
        bonus = left**2 * config.ent_coef
        weights = LossWeights(config.clip_coef, config.vf_coef, bonus)
        rng = make_rng(self._config.seed, "learn", update)
        norms, losses, num_chunks = [], [], min(config.num_minibatches, len(steps))
        with Crew(self._num_threads) as crew:
            for _ in range(config.update_epochs):
                for chosen in np.array_split(rng.permutation(len(steps)), num_chunks):
                    stats = self._passes.differentiate(
                        self.params, steps, np.sort(chosen), weights, crew
                    )
                    losses.append(vars(stats))
                    norms.append(self._descend(learning_rate, crew))
        means = {name: math.fsum(each[name] for each in losses) / len(losses) for name in losses[0]}
        del means["entropy"]  # the rollouts have that of the policy that played
        return math.fsum(norms) / len(norms), means | {"learning_rate": learning_rate}

    def _descend(self, learning_rate: float, crew: Crew) -> float:
        """Take a step of Adam along the last gradient; return its norm."""
        self._adam_steps += 1
        arrays = {
            name: (w, self._means[f"m.{name}"], self._squares[f"v.{name}"])
            for name, w in self.params.items()
        }
        squares = self._passes.descend(arrays, learning_rate, self._adam_steps, crew)
        return math.sqrt(math.fsum(squares.values()))

    def _add_up(self, rows: NDArray[np.uint16]) -> dict[str, float]:
        """The sum of the squares of what an update has changed: of the first layer, some rows."""
        arrays = self.params | self._means | self._squares
        outputs = np.arange(NUM_OUTPUTS, dtype=np.uint16)
        return {
            name: kernels.sum_of_squares(lines(w), rows if name.endswith("W1") else outputs)
            for name, w in arrays.items()
        }

    def _count(self, played: list[Result]) -> dict[str, Any]:
        steps = np.concatenate([side.steps[:-1] for each in played for side in each.sides])
        points = []
        for opponent, result in zip(self._opponents(), played, strict=True):
            rewards = result.sides[0].steps["reward"][:-1]
            points += [(opponent, int(reward)) for reward in rewards[rewards != 0]]
        entropy, ups = steps["entropy"].sum(), np.count_nonzero(steps["action"] == _UP)
        return self.progress.count(played, points, len(steps), float(entropy), int(ups))


def lay_out(played: list[Result], gamma: float, gae_lambda: float) -> Steps:
    """Join what was played in an update, with the same number of steps each, to one list."""
    sides = [side for result in played for side in result.sides]
    records = np.stack([side.steps for side in sides])
    steps, values = records[:, :-1], records["value"]
    advantages = generalized_advantages(steps["reward"], steps["is_end"], values, gamma, gae_lambda)
    columns = steps["action"], steps["log_probability"], advantages, advantages + values[:, :-1]
    return Steps(
        np.concatenate([side.indices for side in sides]),
        _join_offsets(sides),
        np.column_stack([column.ravel() for column in columns]),
    )


def _join_offsets(sides: list[Played]) -> NDArray[np.int32]:
    """The offsets of all sides, one after the other: [T + 1].

    Kernels read wherever these say. So offsets that do not cover their entries exactly, which only
    a bug could make, are refused.
    """
    each = np.array([side.offsets for side in sides])
    lengths, ends = np.diff(each), [len(side.indices) for side in sides]
    if each[:, 0].any() or lengths.min() < 0 or each[:, -1].tolist() != ends:
        raise RuntimeError("steps whose offsets do not fit their entries")
    offsets = np.zeros(lengths.size + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    assert offsets[-1] == sum(ends), "more inputs than 32 bits can count"
    return offsets
