"""REINFORCE with RMSProp: every episode's gradient, summed over the batch, into one step."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong import kernels
from pixelpong.config import Config
from pixelpong.items import BUILTIN, Item, Result
from pixelpong.learners import Learner
from pixelpong.play.sums import GROUP_SIZE, GradientSum, games_per_item

_ONLY_ROW = np.zeros(1, np.uint16)


class ReinforceLearner(Learner):
    """Learns from whole episodes, one step per batch."""

    algorithm, moments = "reinforce", ("v.",)

    def __init__(self, config: Config) -> None:
        """Begin at the start."""
        super().__init__(config)
        self._total, self._group = (
            GradientSum(config.network.hidden, config.network.dtype) for _ in range(2)
        )

    def items(self) -> list[Item]:
        """The episodes of the next batch."""
        update = self.progress.update + 1
        seed, size = self.config.seed, self.config.reinforce.batch_size
        games = games_per_item(size)
        return [
            Item("train", seed, update, index, games=min(games, size - index))
            for index in range(0, size, games)
        ]

    def _take(self, results: Iterable[Result]) -> list[Result]:
        """Add the gradients as they come, so that adding overlaps with playing.

        `pixelpong.play.sums` explains the order.
        """
        played, num_episodes = [], 0
        self._total.clear()
        self._group.clear()  # an earlier round may have been given up
        for result in results:
            if num_episodes % GROUP_SIZE == 0:
                self._total.add(self._group.take())
            assert result.grads is not None
            self._group.add(result.grads)
            num_episodes += len(result.episodes)
            played.append(result)
        self._total.add(self._group.take())
        return played

    def _learn(self, played: list[Result]) -> tuple[dict[str, float], NDArray[np.uint16]]:
        """Take a step of RMSProp along the sum of the gradients."""
        total = self._total.arrays
        rows = {"W1": _places(self._total.has_gradient), "W2": _ONLY_ROW}
        squares = [kernels.sum_of_squares(_lines(g), rows[name]) for name, g in total.items()]
        rows["W1"] = _places(self._has_memory | self._total.has_gradient)
        for name, w in self.params.items():
            kernels.rmsprop(
                *map(_lines, (w, total[name], self.memory[f"v.{name}"])),
                rows[name],
                self.config.learning.learning_rate,
                self.config.reinforce.decay_rate,
            )
        return {"grad_norm": math.sqrt(math.fsum(squares))}, rows["W1"]

    def _count(self, played: list[Result]) -> dict[str, Any]:
        episodes = [episode for each in played for episode in each.episodes]
        return self.progress.count(
            played,
            [(BUILTIN, reward) for each in episodes for reward in each.rewards],
            sum(each.steps for each in episodes),
            math.fsum(each.entropy for each in episodes),
            sum(each.ups for each in episodes),
        )


def _lines(array: NDArray[Any]) -> NDArray[Any]:
    """A view as lines [·, H]."""
    return array.reshape(-1, array.shape[-1])


def _places(is_on: NDArray[np.bool_]) -> NDArray[np.uint16]:
    return np.flatnonzero(is_on).astype(np.uint16)
