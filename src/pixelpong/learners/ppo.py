"""Proximal policy optimisation with Adam, in several passes over the steps of each update.

Source: Schulman et al. (2017), algorithm 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.config import Config
from pixelpong.errors import CheckpointError
from pixelpong.items import BUILTIN, HALF, SELF, Indices, Item, Played, Result
from pixelpong.learn.optimizer import adam_scales
from pixelpong.learn.ppo import LossWeights, Minibatch, generalized_advantages, steer
from pixelpong.learners import Learner
from pixelpong.learners.passes import Steps, adam_step, thread_pool
from pixelpong.machine import count_cores
from pixelpong.seeding import make_rng

MAX_ITEMS = 16  # most items per update; an even number, see `PPOLearner._opponents`


class PPOLearner(Learner):
    """Learns from the next steps of all streams, in several passes."""

    moments = "m.", "v."

    def __init__(self, config: Config) -> None:
        """Start with the parameters drawn from the seed."""
        super().__init__(config)
        self._streams = np.zeros(config.num_envs, self._scene.stream)
        # If `workers` is set, several runs can share a machine's cores.
        workers = config.workers if config.engine == "threads" else None
        self._num_threads = min(workers or count_cores(), count_cores())

    def items(self) -> list[Item]:
        """Return the next steps of all streams; item i has streams i, i + `MAX_ITEMS`, etc."""
        seed, update = self.config.seed, self.progress.update + 1
        self._draw_preferences(update)
        opponents, rows = self._opponents(), as_bytes(self._streams)
        return [
            Item(
                "train", seed, update, index, steps=self.config.num_steps,
                streams=np.ascontiguousarray(rows[index::MAX_ITEMS]).view(self._scene.stream)[:, 0],
                opponent=opponents[index],
            )
            for index in range(min(len(rows), MAX_ITEMS))
        ]  # fmt: skip

    def _opponents(self, option: str | None = None) -> list[str]:
        """Return each stream's opponent in all its games; by default for the current option."""
        option = option or self.config.opponent
        even, odd = (SELF, BUILTIN) if option == HALF else (option, option)
        return [odd if index % 2 else even for index in range(len(self._streams))]

    def _count(self, played: list[Result]) -> dict[str, Any]:
        length = self.config.num_steps + 1
        sides = [side for result in played for side in result.sides]
        steps = joined(sides, length)[:, :-1]
        points: list[tuple[str, int]] = []
        for opponent, result in zip(self._opponents(), played, strict=False):
            rewards = self._scene.list_points(joined(result.sides[:1], length)[:, :-1])
            points += [(opponent, reward) for reward in rewards]
        entropy, ups = float(steps["entropy"].ravel().sum()), self._scene.count_ups(steps)
        return self.progress.count(played, points, steps.size, entropy, ups)

    def get_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the parameters, Adam's moments, the streams and the counts."""
        arrays, counters = super().get_state()
        arrays["streams"] = as_bytes(self._streams)
        return arrays, counters

    def _restore(self, arrays: Mapping[str, NDArray[Any]], counters: dict[str, Any]) -> None:
        super()._restore(arrays, counters)
        # A game has one opponent, so if the opponent has changed, the stream starts a new game.
        streams = np.ascontiguousarray(arrays["streams"]).view(self._scene.stream)[:, 0]
        if not self._scene.are_streams(streams):
            what = "a stream has an index that is out of range"
            raise CheckpointError(f"the checkpoint is damaged: {what}")
        self._streams = np.zeros_like(self._streams)
        before, now = self._opponents(self.progress.opponent), self._opponents()
        kept = [k for k in range(min(len(streams), len(now))) if before[k] == now[k]]
        as_bytes(self._streams)[kept] = as_bytes(streams)[kept]

    def _draw_preferences(self, update: int) -> None:
        """Draw the preferences of the games that explore, for this update.

        They fade with the learning rate's fall. Of the games, those with the first numbers explore.
        """
        config, left = self.config, self.share_left()
        preferences = self._scene.preferences_of(self._streams)
        num_games, num_actions = preferences.shape
        count = int(config.explore_share * num_games)
        scale = config.explore_scale * left
        drawn = make_rng(config.seed, "explore", update).standard_normal((count, num_actions))
        preferences[:] = 0.0
        preferences[:count] = scale * drawn

    def _finish_update(self, steps: int) -> None:
        """Start a new attempt if this one is behind.

        The time to win has a heavy tail: about one attempt in fifteen learns only long rallies and
        takes at least twice as long as the others. This is visible early, and starting again is
        faster than waiting. It is checked once, in the update that completes `restart_after` steps,
        and only against the built-in opponent, because only there shares of points are comparable.
        Source: Gomes, Selman and Kautz (1998), for search.
        """
        limit, won = self.config.restart_after, self.progress.points_won_1000
        played = self.progress.steps - self.progress.attempt_began
        is_time = self.config.opponent == BUILTIN and 0 < limit <= played < limit + steps
        if is_time and won is not None and won < self.config.anneal_from:
            self.progress.attempt += 1
            self.progress.attempt_began = self.progress.steps
            self.progress.adam_steps = 0
            self.progress.recent_points.clear()
            self._reset_params()

    def share_left(self) -> float:
        """Return the fraction of the learning rate in effect; its square scales the entropy bonus.

        It falls with the share of points lost. The fewer points are lost, the less there is to
        learn from, while the noise of a step stays the same. Against opponents that also learn,
        that share means nothing, so the fraction falls with the steps (``anneal_steps``). GAE
        lambda moves from its start to its end at the same rate, because a well-trained value
        function can be trusted sooner. In a game without points, it stays 1.
        """
        if steps := self.config.anneal_steps:
            return max(1 - self.progress.steps / steps, 0.0)
        won, start = self.progress.points_won_1000, self.config.anneal_from
        if won is None or won <= start:
            return 1.0
        return (1 - won) / (1 - start)

    def _learn(self, played: list[Result]) -> tuple[dict[str, float], Indices]:
        """Do all passes over the steps, with the current learning rate and entropy bonus."""
        config, left, progress = self.config, self.share_left(), self.progress
        gae_lambda = config.gae_lambda_end + left * (config.gae_lambda - config.gae_lambda_end)
        parts, preferences = self._scene.parts, self._preferences()
        steps = lay_out(played, config.num_steps, config.gamma, gae_lambda, parts, preferences)
        is_steered = config.target_kl > 0
        rate = config.learning_rate if progress.learning_rate is None else progress.learning_rate
        learning_rate = rate * (min(1.0, 2 * left) if is_steered else left)
        weights = LossWeights(config.clip_coef, config.vf_coef, left**2 * config.ent_coef)
        rng = make_rng(config.seed, "learn", self.progress.update)
        losses, num_minibatches = [], min(config.num_minibatches, len(steps))
        with thread_pool(self._num_threads) as run_all:
            for _ in range(config.update_epochs):
                for chosen in np.array_split(rng.permutation(len(steps)), num_minibatches):
                    self.progress.adam_steps += 1
                    scales = adam_scales(learning_rate, self.progress.adam_steps)
                    loss, norm = adam_step(
                        self.state, steps, np.sort(chosen), weights, scales, run_all
                    )
                    losses.append(loss._asdict() | {"grad_norm": norm})
        self._keep_streams(played)
        means = {name: math.fsum(it[name] for it in losses) / len(losses) for name in losses[0]}
        if is_steered and left > 0.5:
            progress.learning_rate = steer(rate, means["kl"], config.target_kl)
        rows = np.flatnonzero(np.bincount(steps.indices)).astype(steps.indices.dtype)
        return means | {"learning_rate": learning_rate}, rows

    def _preferences(self) -> NDArray[np.float64]:
        """Return the preferences of each item's games in order, [num_envs, A]."""
        preferences = self._scene.preferences_of(self._streams)
        return np.concatenate([preferences[index::MAX_ITEMS] for index in range(MAX_ITEMS)])

    def _keep_streams(self, played: list[Result]) -> None:
        """Store the streams after this update, with the opponent that they played against."""
        self._streams = np.zeros_like(self._streams)
        for index, result in enumerate(played):
            assert result.streams is not None
            as_bytes(self._streams)[index::MAX_ITEMS] = as_bytes(result.streams)
        self.progress.opponent = self.config.opponent


def lay_out(
    played: list[Result],
    num_steps: int,
    gamma: float,
    gae_lambda: float,
    parts: NDArray[np.int64],
    preferences: NDArray[np.float64],
) -> Steps:
    """Join the results of an update into one list of steps.

    `parts` and `preferences`, [games, A], are as in `pixelpong.learn.ppo`.
    """
    sides = [side for result in played for side in result.sides]
    records = joined(sides, num_steps + 1)
    steps, values = records[:, :-1], records["value"]
    advantages = generalized_advantages(steps["reward"], steps["is_end"], values, gamma, gae_lambda)
    targets = advantages + values[:, :-1]
    # Kernels read wherever the offsets point. Only a bug could produce offsets that do not fit.
    lengths = np.concatenate([np.diff(side.offsets) for side in sides]).reshape(records.shape)
    is_whole = [(side.offsets[0], side.offsets[-1]) == (0, len(side.indices)) for side in sides]
    if not all(is_whole) or lengths.min() < 0 or lengths[:, -1].any():
        raise RuntimeError("offsets do not fit the entries of their steps")
    indices = np.concatenate([side.indices for side in sides])
    assert len(indices) < 1 << 31, "more inputs than 32 bits can count"
    offsets = np.concatenate([[0], lengths[:, :-1].ravel()]).cumsum(dtype=np.int32)
    batch = Minibatch(
        actions=steps["action"].ravel(),
        log_probabilities=steps["log_probability"].ravel(),
        advantages=advantages.ravel(),
        targets=targets.ravel(),
        preferences=spread_preferences(preferences, steps.shape),
    )
    return Steps(indices, offsets, batch, parts)


def spread_preferences(
    preferences: NDArray[np.float64], shape: tuple[int, ...]
) -> NDArray[np.float64]:
    """Repeat the preferences of each game for its steps; `shape` is the games and steps of each."""
    games, steps = shape
    width = preferences.shape[1]
    return np.repeat(preferences, steps, axis=0) if width else np.zeros((games * steps, 0))


def joined(sides: Sequence[Played], length: int) -> NDArray[np.void]:
    """Join the steps of several sides, one row per stream: [·, length]."""
    rows: NDArray[Any] = np.concatenate([as_bytes(side.steps) for side in sides])
    return np.reshape(rows.view(sides[0].steps.dtype), (-1, length))


def as_bytes(records: NDArray[np.void]) -> NDArray[np.uint8]:
    """View N records as bytes [N, ·], because copying them field by field is much slower."""
    return records.view(np.uint8).reshape(len(records), -1)
