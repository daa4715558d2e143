"""Proximal policy optimisation with Adam: several passes over each round of segments.

Source: Schulman et al. (2017), algorithm 1.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.config import Config
from pixelpong.env.features import NUM_INPUTS
from pixelpong.items import (
    ACTIONS,
    NUM_PIXELS,
    UP,
    Params,
    SegmentItem,
    SegmentResult,
    StreamState,
    Tally,
)
from pixelpong.learn import gated
from pixelpong.learn.ppo import LossStats, LossWeights, generalized_advantages
from pixelpong.learners import (
    State,
    UpdateStats,
    count_episodes,
    refuse_non_finite,
    refuse_other_shapes,
    refuse_overflow,
    restoring,
    rows_in,
)
from pixelpong.learners.passes import Crew, Passes, Steps
from pixelpong.learners.progress import Progress
from pixelpong.machine import count_cores
from pixelpong.play.replay import RecorderState, Replay, StreamRecorder
from pixelpong.schema import Count, Meta, convert, restore
from pixelpong.seeding import make_rng


@dataclass(frozen=True)
class _Stream:
    """What a checkpoint counts of a stream."""

    last_action: Annotated[int, Meta(ge=0, lt=len(ACTIONS))]
    tally: dict[str, Any]


@dataclass(frozen=True)
class _Counters:
    """What a checkpoint counts beside `Progress`; see the attributes of `PPOLearner`.

    The defaults are those of checkpoints from before there were such counters.
    """

    adam_steps: Count = 0
    attempt: Count = 1
    first_step: Count = 0
    streams: tuple[_Stream, ...] = ()
    replay: RecorderState | None = None


class PPOLearner:
    """See `pixelpong.learners.Learner`."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self.progress = Progress()
        self.is_whole = True
        self._begin(1)
        self._streams: list[StreamState | None] = [None] * config.ppo.streams
        self._recorder = StreamRecorder(config, stream=0)
        self._passes = Passes(config.network.hidden, config.network.dtype)
        self._num_threads = count_cores()

    def _begin(self, attempt: int) -> None:
        """Parameters and memory as they are before the first step of an attempt."""
        config = self._config
        rng = make_rng(config.seed, "params", *([attempt] if attempt > 1 else []))
        self.params: Params = gated.init_params(
            rng, NUM_INPUTS, config.network.hidden, config.network.dtype
        )
        self._means = {f"m.{name}": np.zeros_like(w) for name, w in self.params.items()}
        self._squares = {f"v.{name}": np.zeros_like(w) for name, w in self.params.items()}
        self._adam_steps = 0
        self._attempt, self._first_step = attempt, self.progress.steps

    def items(self) -> list[SegmentItem]:
        """See `pixelpong.learners.Learner.items`."""
        update = self.progress.update + 1
        return [
            SegmentItem(self._config.seed, update, stream, state)
            for stream, state in enumerate(self._streams)
        ]

    def apply(self, results: Iterable[SegmentResult]) -> UpdateStats:
        """See `pixelpong.learners.Learner.apply`."""
        update = self.progress.update + 1
        begin = time.perf_counter()
        played = list(results)
        since = time.perf_counter()
        with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is refused
            left = self._share_left()
            gae_lambda = self._lambda_at(left)
            steps, numbers = _lay_out(played, self._config.learning.discount, gae_lambda)
            self._refuse_non_finite(numbers, f"the rollouts of update {update}")
            reduced = time.perf_counter()
            self.is_whole = False
            grad_norm, losses = self._learn(update, steps, left)
            attempt = self._attempt
        replays = self._record(update, played[0])
        self._streams = [result.state for result in played]
        counts = self._count(played)
        if self._is_behind(counts["steps"]):
            self._begin(self._attempt + 1)
            self.progress.recent_points.clear()
        self.is_whole = True
        return UpdateStats(
            **counts,
            grad_norm=grad_norm,
            rollout_seconds=since - begin,
            reduce_seconds=reduced - since,
            learn_seconds=time.perf_counter() - reduced,
            attempt=attempt,
            losses=losses,
            replays=replays,
        )

    def touched_rows(self) -> NDArray[np.intp]:
        """See `pixelpong.learners.Learner.touched_rows`."""
        return rows_in(self._squares["v.W1"])

    def get_state(self) -> State:
        """See `pixelpong.learners.Learner.get_state`."""
        arrays = self._means | self._squares
        self._refuse_own_non_finite(f"after update {self.progress.update}")
        streams = []
        for number, state in enumerate(self._streams):
            if state is not None:
                arrays |= {
                    f"stream.{number}.snapshot": np.frombuffer(state.snapshot, np.uint8),
                    f"stream.{number}.previous": state.previous,
                    f"stream.{number}.current": state.current,
                }
                tally = dataclasses.asdict(state.tally)
                streams.append({"last_action": state.last_action, "tally": tally})
        arrays["stream.actions"], replay = self._recorder.get_state()
        counters = dataclasses.asdict(self.progress) | {
            "adam_steps": self._adam_steps,
            "attempt": self._attempt,
            "first_step": self._first_step,
        }
        return self.params, arrays, counters | {"streams": streams, "replay": replay}

    def set_state(
        self, params: Params, arrays: dict[str, NDArray[Any]], counters: dict[str, Any]
    ) -> None:
        """See `pixelpong.learners.Learner.set_state`."""
        memory = {name: w for name, w in arrays.items() if not name.startswith("stream.")}
        refuse_other_shapes(self.params, params)
        refuse_other_shapes(self._means | self._squares, memory)
        with restoring():
            refuse_non_finite(params, "the parameters")
            refuse_non_finite(memory, "the optimizer's memory")
            own = convert(counters, _Counters)
            if own.replay is not None:
                self._recorder.set_state(arrays["stream.actions"], own.replay)
            self.progress = Progress.from_dict(counters)
            states: list[StreamState | None] = [
                _read_stream(arrays, number, stream) for number, stream in enumerate(own.streams)
            ]
        self._adam_steps, self._attempt = own.adam_steps, own.attempt
        self._first_step = own.first_step
        self.params = dict(params)
        self._means = {name: memory[name] for name in self._means}
        self._squares = {name: memory[name] for name in self._squares}
        # Where the number of streams was changed, those that are new start at their start.
        num_streams = len(self._streams)
        self._streams = (states + [None] * num_streams)[:num_streams]

    def _is_behind(self, steps: int) -> bool:
        """Whether this attempt is given up.

        Learning to win has a heavy tail: one attempt in some fifteen finds only long rallies, and
        takes twice as long or more than the others. It shows early, and another one is quicker
        than waiting. Looked at once, in the update that completes `restart_after` steps.
        Source: Gomes, Selman and Kautz (1998), for search.

        Args:
            steps: of the update.
        """
        limit, won = self._config.ppo.restart_after, self.progress.points_won_1000
        played = self.progress.steps - self._first_step
        is_time = 0 < limit <= played < limit + steps
        return is_time and won is not None and won < self._config.ppo.anneal_from

    def _share_left(self) -> float:
        """The share of the learning rate that is left, and, squared, of the entropy bonus.

        It falls with the share of points lost: the fewer are lost, the rarer is what can be
        learned from, while the noise of a step stays as it was. With it lambda goes from its start
        to its end: a value that has learned much is to be believed sooner.
        """
        won, start = self.progress.points_won_1000, self._config.ppo.anneal_from
        if won is None or won <= start:
            return 1.0
        return (1 - won) / (1 - start)

    def _lambda_at(self, left: float) -> float:
        config = self._config.ppo
        return config.gae_lambda_end + left * (config.gae_lambda - config.gae_lambda_end)

    def _learn(self, update: int, steps: Steps, left: float) -> tuple[float, dict[str, float]]:
        """All passes over the round, with the share of rate and bonus that is left by now."""
        config = self._config.ppo
        learning_rate = left * self._config.learning.learning_rate
        bonus = left**2 * config.entropy_bonus
        weights = LossWeights(config.clip_ratio, config.value_weight, bonus)
        rng = make_rng(self._config.seed, "learn", update)
        norms, losses, num_chunks = [], [], min(config.minibatches, len(steps))
        with Crew(self._num_threads) as crew:
            for _ in range(config.epochs):
                for chosen in np.array_split(rng.permutation(len(steps)), num_chunks):
                    stats = self._passes.differentiate(
                        self.params, steps, np.sort(chosen), weights, crew
                    )
                    losses.append(self._finite(stats, update))
                    norms.append(self._descend(update, learning_rate, crew))
        means = {name: math.fsum(each[name] for each in losses) / len(losses) for name in losses[0]}
        del means["entropy"]  # the rollouts have it, of the policy that played
        return math.fsum(norms) / len(norms), means | {"learning_rate": learning_rate}

    def _descend(self, update: int, learning_rate: float, crew: Crew) -> float:
        """One step of Adam along the gradient that was found last; its norm."""
        self._adam_steps += 1
        arrays = {
            name: (w, self._means[f"m.{name}"], self._squares[f"v.{name}"])
            for name, w in self.params.items()
        }
        squares = self._passes.descend(arrays, learning_rate, self._adam_steps, crew)
        grads = {name: [g] for name, g in self._passes.grads.items()}
        refuse_overflow(squares, grads, update)
        return math.sqrt(math.fsum(squares.values()))

    def _finite(self, stats: LossStats, update: int) -> dict[str, float]:
        """Means of a minibatch by name; they are finite."""
        losses = dict(vars(stats))
        self._refuse_non_finite(losses, f"the losses of update {update}")
        return losses

    def _refuse_non_finite(self, numbers: dict[str, Any], of: str) -> None:
        """Refuse them; if the parameters or the memory have it too, it came from there."""
        if not all(np.isfinite(each).all() for each in numbers.values()):
            self._refuse_own_non_finite(f"in update {self.progress.update + 1}")
            refuse_non_finite(numbers, of)

    def _refuse_own_non_finite(self, when: str) -> None:
        # In this order: from the memory it spreads to the parameters, not the other way.
        refuse_non_finite(self._means | self._squares, f"the optimizer's memory {when}")
        refuse_non_finite(self.params, f"the parameters {when}")

    def _record(self, update: int, result: SegmentResult) -> tuple[Replay, ...]:
        """The replays to be kept of episodes that ended in stream 0, whose results come first."""
        state = self._streams[0]
        return self._recorder.take(
            update,
            result.segment.actions,
            result.episodes,
            steps_before=0 if state is None else state.tally.steps,
            number=self.progress.episodes + 1,
        )

    def _count(self, played: list[SegmentResult]) -> dict[str, Any]:
        segments = [each.segment for each in played]
        rewards = np.concatenate([segment.rewards for segment in segments])
        points = [int(r) for r in rewards[np.concatenate([each.is_end for each in segments])] if r]
        actions = np.concatenate([segment.actions for segment in segments])
        steps, ups = len(actions), int((actions == ACTIONS.index(UP)).sum())
        episodes = [stats for each in played for stats in each.episodes]
        self.progress.count(steps, sum(each.frames for each in played), points)
        running_means = count_episodes(self.progress, episodes)
        self.progress.update += 1
        return {
            "episodes": tuple(episodes),
            "running_means": running_means,
            "steps": steps,
            "points_won": points.count(1),
            "points_lost": points.count(-1),
            "entropy": math.fsum(each.entropy for each in played) / len(played),
            "up_share": ups / steps,
            "play_seconds": math.fsum(each.play_seconds for each in played),
        }


def _lay_out(
    played: list[SegmentResult], discount: float, gae_lambda: float
) -> tuple[Steps, dict[str, Any]]:
    """The segments of an update as one long list of steps, and by name what has to be finite."""
    segments = [result.segment for result in played]
    rewards = np.array([segment.rewards for segment in segments])
    values = np.array([segment.values for segment in segments])
    is_end = np.array([segment.is_end for segment in segments])
    advantages = generalized_advantages(rewards, is_end, values, discount, gae_lambda)
    log_probabilities = np.concatenate([segment.log_probabilities for segment in segments])
    lengths = np.diff(np.array([segment.offsets for segment in segments]))
    offsets = np.zeros(lengths.size + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    assert offsets[-1] == lengths.sum(), "more inputs than 32 bits can count"
    steps = Steps(
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
    return steps, {
        "the rewards": rewards,
        "the values": values,
        "the log-probabilities": log_probabilities,
        "the advantages": advantages,
        "the entropy": np.array([result.entropy for result in played]),
    }


def _read_stream(arrays: Params, number: int, stream: _Stream) -> StreamState:
    """Where a stream stood; the kernels rely on what is checked here.

    Raises:
        KeyError, ValueError: it is something else.
    """
    snapshot, previous, current = (
        arrays[f"stream.{number}.{name}"] for name in ("snapshot", "previous", "current")
    )
    for pixels in (previous, current):
        is_list = pixels.dtype == np.uint16 and pixels.ndim == 1 and len(pixels) <= NUM_PIXELS
        if not is_list or pixels.max(initial=0) >= NUM_PIXELS:
            raise ValueError(f"no pixels of stream {number}")
    tally = restore(stream.tally, Tally)
    return StreamState(snapshot.tobytes(), previous, current, stream.last_action, tally)
