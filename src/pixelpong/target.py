"""The target return of a run: when it is tested, and which evaluations confirm it.

How it is tested is in `pixelpong.evaluation`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from pixelpong.learners.progress import Progress
from pixelpong.run.lines import Evaluation

# How far the estimate may be below the target for a test to start. The estimate is for sampled
# play; greedy play is better.
TEST_MARGIN = 0.1
TEST_EVERY = 50_000  # number of steps between two tests of the target


@dataclass(frozen=True)
class Target:
    """A target return, and the step from which on it may be tested again."""

    value: float | None  # mean return of greedy play, −21 … 21; None if there is no target
    next_test: int = 0  # number of steps of the run

    def find_win(self, evaluation: Evaluation | None) -> Evaluation | None:
        """Return the evaluation if it has confirmed this target, otherwise None."""
        return evaluation if evaluation and evaluation.has_confirmed(self.value) else None

    def should_test(self, progress: Progress, *, is_final: bool) -> bool:
        """Whether to test the target: if the estimate is near it, and at the end."""
        if self.value is None or progress.update == 0:
            return False
        estimate = progress.estimated_return
        is_promising = estimate is not None and estimate >= self.value - TEST_MARGIN
        return is_final or (is_promising and progress.steps >= self.next_test)

    def after_test(self, steps: int, *, is_passed: bool) -> Target:
        """Return the target after a test at this step.

        A win is tested again if the process dies before it is recorded.
        """
        return dataclasses.replace(self, next_test=steps + (0 if is_passed else TEST_EVERY))
