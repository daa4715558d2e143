"""Rollouts of the next update while the learner works on this one: `--lag 1`.

The rollouts of update u + 1 are played with the parameters that update u began with, whoever is
quicker. So it is deterministic; it is another training than that of lag 0, and says so in the
configuration. It pays where learning takes time that workers elsewhere could play in; on one
machine both share the cores.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pixelpong.config import BudgetConfig
from pixelpong.engines import Engine
from pixelpong.errors import Interrupted
from pixelpong.learners import Learner, UpdateStats
from pixelpong.trajectory import Params


class Ahead:
    """Plays and learns at the same time."""

    def __init__(self, learner: Learner, engine: Engine, budget: BudgetConfig) -> None:
        """Nothing is played yet.

        Args:
            learner: its `acting` params play the first round.
            engine: where rounds are played.
            budget: nothing is played ahead of the last update.
        """
        self._learner = learner
        self._engine = engine
        self._budget = budget
        self._played: tuple[list[Any], float] | None = None

    def update(self) -> UpdateStats:
        """Learn from a round, and play the next one meanwhile.

        Raises:
            Interrupted: a stop was asked for before the round was played.
        """
        learner = self._learner
        results, seconds = self._played or self._play(learner.items(), learner.acting)
        self._played = None
        items = learner.items(after=results)
        # A copy, because learning changes the params in place.
        acting = {name: w.copy() for name, w in learner.params.items()}
        is_last = self._budget.updates == learner.progress.update + 1
        with ThreadPoolExecutor(1, "update") as pool:
            learning = pool.submit(learner.apply, results)
            if not is_last:
                self._play_ahead(items, acting)
            stats = learning.result()
        learner.acting = acting  # not before: where nothing was learned, the round is played again
        return dataclasses.replace(stats, rollout_seconds=seconds)

    def _play_ahead(self, items: Any, acting: Params) -> None:
        # A stop leaves this update complete, to be recorded; then the next round stops at once.
        with contextlib.suppress(Interrupted):
            self._played = self._play(items, acting)

    def _play(self, items: Any, acting: Params) -> tuple[list[Any], float]:
        begin = time.perf_counter()
        return list(self._engine.run(items, acting)), time.perf_counter() - begin
