"""REINFORCE with RMSProp: one step per batch along the sum of its episodes' gradients."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from pixelpong.items import BUILTIN, Indices, Item, Result, as_matrix, touched_indices
from pixelpong.kernels.optimizer import rmsprop, sum_of_squares
from pixelpong.learners import Learner, UpdateStats
from pixelpong.play.worker import games_per_item, groups_of, join


class ReinforceLearner(Learner):
    """Learns from whole episodes, one step per batch."""

    moments = ("v.",)

    def items(self) -> list[Item]:
        """Return the episodes of the next batch."""
        update = self.progress.update + 1
        seed, size = self.config.seed, self.config.batch_size
        games = games_per_item(size)
        return [
            Item("train", seed, update, index, games=min(games, size - index))
            for index in range(0, size, games)
        ]

    def apply(self, results: Iterable[Result]) -> UpdateStats:
        """Learn from the results of `items` in their order, and count them.

        Groups are summed as they arrive, so that summing overlaps with playing;
        `pixelpong.play.worker` explains the order.
        """

        def whole_batch() -> Iterator[Result]:
            yield join(join(group) for group in groups_of(results))

        return super().apply(whole_batch())

    def _learn(self, played: list[Result]) -> tuple[dict[str, float], Indices]:
        """Do a step of RMSProp along the sum of the gradients."""
        total = played[0].grads
        assert total is not None
        grads = {"W1": np.zeros_like(self.params["W1"]), "W2": total.W2}
        grads["W1"][total.rows] = total.W1
        # A mean square decays at every step, even if there is no gradient.
        touched = np.union1d(total.rows, np.flatnonzero(self.has_memory)).astype(np.uint16)
        for name, w in self.params.items():
            rmsprop(
                as_matrix(w),
                as_matrix(grads[name]),
                as_matrix(self.state[f"v.{name}"]),
                touched_indices(name, w, touched),
                self.config.learning_rate,
                self.config.decay_rate,
            )
        squares = sum_of_squares(total.W1, np.arange(len(total.rows), dtype=np.uint16))
        squares += float(np.square(total.W2, dtype=np.float64).sum())
        return {"grad_norm": math.sqrt(squares)}, touched

    def _count(self, played: list[Result]) -> dict[str, Any]:
        episodes = played[0].episodes
        return self.progress.count(
            played,
            [(BUILTIN, reward) for episode in episodes for reward in episode.rewards],
            sum(episode.steps for episode in episodes),
            math.fsum(episode.entropy for episode in episodes),
            sum(episode.ups or 0 for episode in episodes),
        )
