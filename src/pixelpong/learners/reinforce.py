"""REINFORCE with RMSProp: every episode's gradient, summed over the batch, into one step."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong import kernels
from pixelpong.config import Config
from pixelpong.items import BUILTIN, NUM_PIXELS, Item, Params, Result
from pixelpong.learners import (
    State,
    UpdateStats,
    cut_rows,
    draw_params,
    put_rows,
    refuse_non_finite,
    restoring,
)
from pixelpong.learners.progress import Progress
from pixelpong.play.sums import GROUP_SIZE, GradientSum, games_per_item

_ONLY_ROW = np.zeros(1, np.uint16)


class ReinforceLearner:
    """Learns from whole episodes, one step per batch."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._begin()
        self._total, self._group = (
            GradientSum(config.network.hidden, config.network.dtype) for _ in range(2)
        )
        self.progress = Progress()
        self.is_whole = True  # False during an optimizer step, when nothing may be saved

    def _begin(self) -> None:
        """Set parameters and memory for the first step."""
        network, seed = self._config.network, self._config.seed
        self.params = draw_params("reinforce", network.hidden, network.dtype, seed, attempt=1)
        self.cache = {name: np.zeros_like(w) for name, w in self.params.items()}
        self._has_memory = np.zeros(NUM_PIXELS, np.bool_)  # rows of W1 that had a gradient before

    def items(self) -> list[Item]:
        """The episodes of the next batch."""
        update = self.progress.update + 1
        seed, size = self._config.seed, self._config.reinforce.batch_size
        games = games_per_item(size)
        return [
            Item("train", seed, update, index, games=min(games, size - index))
            for index in range(0, size, games)
        ]

    def params_to_play(self) -> Params:
        """The parameters themselves."""
        return self.params

    def apply(self, results: Iterable[Result]) -> UpdateStats:
        """Learn from the results of `items` and count them.

        Results are added as they come, so that adding overlaps with playing, and in the order that
        `pixelpong.play.sums` explains.
        """
        update = self.progress.update + 1
        begin = time.perf_counter()
        played: list[Result] = []
        self._total.clear()
        self._group.clear()  # an earlier round may have been given up
        for result in results:
            if sum(len(each.episodes) for each in played) % GROUP_SIZE == 0:
                self._total.add(self._group.take())
            assert result.grads is not None
            self._group.add(result.grads)
            played.append(result)
        self._total.add(self._group.take())
        since = time.perf_counter()
        grad_norm = self._step()
        stats = self._count(played)
        figures = {"grad_norm": grad_norm, "entropy": stats["entropy"]}
        refuse_non_finite(self._add_up() | figures, update)
        self.is_whole = True
        return UpdateStats(
            **stats,
            grad_norm=grad_norm,
            rollout_seconds=since - begin,
            learn_seconds=time.perf_counter() - since,
        )

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return self.params | {f"v.{name}": w for name, w in self.cache.items()}

    def get_state(self) -> State:
        """Parameters, mean squares, and the counts."""
        return cut_rows(self._arrays(), self._has_memory), dataclasses.asdict(self.progress)

    def set_state(self, arrays: Mapping[str, NDArray[Any]], counters: dict[str, Any]) -> None:
        """Continue from a state of `get_state`."""
        with restoring():
            self.progress = Progress.from_dict(counters)
            self._begin()
            put_rows(self._arrays(), arrays)
        self._has_memory[arrays["rows"]] = True

    def _count(self, played: list[Result]) -> dict[str, Any]:
        episodes = [episode for each in played for episode in each.episodes]
        return self.progress.count(
            played,
            [(BUILTIN, reward) for each in episodes for reward in each.rewards],
            sum(each.steps for each in episodes),
            math.fsum(each.entropy for each in episodes),
            sum(each.ups for each in episodes),
        )

    def _step(self) -> float:
        total = self._total.arrays
        rows = {"W1": _places(self._total.has_gradient), "W2": _ONLY_ROW}
        squares = {name: kernels.sum_of_squares(_lines(g), rows[name]) for name, g in total.items()}
        self.is_whole = False
        self._has_memory |= self._total.has_gradient
        rows["W1"] = _places(self._has_memory)
        for name, w in self.params.items():
            kernels.rmsprop(
                *map(_lines, (w, total[name], self.cache[name])),
                rows[name],
                self._config.learning.learning_rate,
                self._config.reinforce.decay_rate,
            )
        return math.sqrt(math.fsum(squares.values()))

    def _add_up(self) -> dict[str, float]:
        """The sum of the squares of the parameters and of the optimizer's memory."""
        return {
            name: kernels.sum_of_squares(_lines(w), np.arange(len(_lines(w)), dtype=np.uint16))
            for name, w in self._arrays().items()
        }


def _lines(array: NDArray[Any]) -> NDArray[Any]:
    """A view as lines [·, H]."""
    return array.reshape(-1, array.shape[-1])


def _places(is_on: NDArray[np.bool_]) -> NDArray[np.uint16]:
    return np.flatnonzero(is_on).astype(np.uint16)
