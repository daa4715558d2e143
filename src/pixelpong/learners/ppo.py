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
    Params,
    Segment,
    SegmentItem,
    SegmentResult,
    StreamState,
)
from pixelpong.learn.gated import NUM_OUTPUTS
from pixelpong.learn.ppo import LossWeights, generalized_advantages
from pixelpong.learners import (
    State,
    UpdateStats,
    count_episodes,
    cut_rows,
    draw_params,
    put_rows,
    refuse_non_finite,
    restoring,
)
from pixelpong.learners.passes import Crew, Passes, Steps, lines
from pixelpong.learners.progress import Progress
from pixelpong.learners.streams import StreamCounters, read_streams, write_streams
from pixelpong.machine import count_cores
from pixelpong.play.streams import PREFIX
from pixelpong.schema import convert
from pixelpong.seeding import make_rng


@dataclass(frozen=True)
class _Counters:
    """The counters in a checkpoint besides `Progress`."""

    adam_steps: int
    streams: tuple[StreamCounters, ...]


class PPOLearner:
    """Learns from segments of streams, in several passes over each round."""

    def __init__(self, config: Config, opponent: Params | None = None) -> None:
        """Begin at the start; `opponent` has the parameters of the other agent, if any."""
        self._config = config
        self._opponent = {PREFIX + name: w for name, w in (opponent or {}).items()}
        self.progress = Progress()
        self.is_whole = True
        self._begin()
        self._streams: list[StreamState | None] = [None] * config.ppo.num_envs
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

    def items(self) -> list[SegmentItem]:
        """The next segment of each stream."""
        update = self.progress.update + 1
        return [
            SegmentItem(self._config.seed, update, stream, state, self._opponent_of(stream))
            for stream, state in enumerate(self._streams)
        ]

    def params_to_play(self) -> Params:
        """The parameters, and those of the opponent under `PREFIX`."""
        return self.params | self._opponent

    def _opponent_of(self, stream: int) -> str:
        """Whom a stream plays against, from its first game to its last."""
        word = self._config.ppo.opponent
        return (SELF, BUILTIN)[stream % 2] if word == HALF else word

    def apply(self, results: Iterable[SegmentResult]) -> UpdateStats:
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
        self._streams = [result.state for result in played]
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
        of_streams, streams = write_streams(self._streams)
        counters = dataclasses.asdict(self.progress) | {"adam_steps": self._adam_steps}
        return arrays | of_streams, counters | {"streams": streams}

    def set_state(self, arrays: Mapping[str, NDArray[Any]], counters: dict[str, Any]) -> None:
        """Continue from a state of `get_state`."""
        with restoring():
            own = convert(counters, _Counters)
            self.progress = Progress.from_dict(counters)
            states = read_streams(arrays, own.streams)
            self._begin()
            put_rows(self.params | self._means | self._squares, arrays)
        self._has_memory[arrays["rows"]] = True
        self._adam_steps = own.adam_steps
        # With more streams than before, the new ones begin at their start; with another opponent,
        # those that do not play against it yet: an opponent is fixed for a game's life.
        self._streams = [None] * len(self._streams)
        for stream, state in enumerate(states[: len(self._streams)]):
            if state.opponent == self._opponent_of(stream):
                self._streams[stream] = state

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

    def _count(self, played: list[SegmentResult]) -> dict[str, Any]:
        segments = [segment for each in played for segment in each.segments]
        points = [(each.state.opponent, _points(each.segments[0])) for each in played]
        won, lost = (sum(rewards.count(r) for _, rewards in points) for r in (1, -1))
        builtin = [r for name, rewards in points if name == BUILTIN for r in rewards]
        actions = np.concatenate([segment.actions for segment in segments])
        steps, ups = len(actions), int((actions == ACTIONS.index(UP)).sum())
        episodes = [stats for each in played for stats in each.episodes]
        self.progress.count(steps, sum(each.frames for each in played), builtin)
        running_means = count_episodes(self.progress, episodes)
        self.progress.update += 1
        return {
            "episodes": tuple(episodes),
            "running_means": running_means,
            "steps": steps,
            "points_won": won,
            "points_lost": lost,
            "entropy": math.fsum(each.entropy for each in played) / len(played),
            "up_share": ups / steps,
            "play_seconds": math.fsum(each.play_seconds for each in played),
        }


def _points(segment: Segment) -> list[int]:
    """The rewards of the points that ended in a segment."""
    rewards: list[int] = segment.rewards[segment.rewards != 0].astype(int).tolist()
    return rewards


def lay_out(played: list[SegmentResult], gamma: float, gae_lambda: float) -> Steps:
    """Join the segments of an update, all of the same length, to one list of steps."""
    segments = [segment for result in played for segment in result.segments]
    rewards = np.array([segment.rewards for segment in segments])
    values = np.array([segment.values for segment in segments])
    is_end = np.array([segment.is_end for segment in segments])
    advantages = generalized_advantages(rewards, is_end, values, gamma, gae_lambda)
    log_probabilities = np.concatenate([segment.log_probabilities for segment in segments])
    offsets = _join_offsets(segments)
    return Steps(
        np.concatenate([segment.indices for segment in segments]),
        offsets,
        np.column_stack(
            [
                np.concatenate([segment.actions for segment in segments]),
                log_probabilities,
                advantages.ravel(),
                (advantages + values[:, :-1]).ravel(),
            ]
        ),
    )


def _join_offsets(segments: list[Segment]) -> NDArray[np.int32]:
    """The offsets of all segments, one after the other: [T + 1].

    Kernels read wherever these say. So segments whose own offsets do not cover their entries
    exactly, which only a bug could make, are refused.
    """
    each = np.array([segment.offsets for segment in segments])
    lengths, ends = np.diff(each), [len(segment.indices) for segment in segments]
    if each[:, 0].any() or lengths.min() < 0 or each[:, -1].tolist() != ends:
        raise RuntimeError("segments whose offsets do not fit their entries")
    offsets = np.zeros(lengths.size + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    assert offsets[-1] == sum(ends), "more inputs than 32 bits can count"
    return offsets
