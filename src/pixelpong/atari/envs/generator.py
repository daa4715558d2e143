"""The generator that Gymnasium's environments have, kept with the game of a single environment.

Wrappers draw from it. With ale-py's coins, a range of frames to a step is drawn from it too, by the
same call as in ale-py, before the step. A call that is interrupted changes both or none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Kept(NamedTuple):
    """What is kept beside the game; see `Pending.kept`."""

    generator: np.random.Generator | None = None
    seed: int | None = None
    # The generator's state before a number was drawn for a step that has not begun, else None.
    undrawn: Any = None


class OwnGenerator:
    """What a `SingleEnv` does with its generator."""

    _envs: Any
    np_random: np.random.Generator  # of Gymnasium's, which makes the generator if there is none

    @property
    def _kept(self) -> Kept:
        """What is kept, with the generator as it was before a step that never began."""
        kept: Kept = self._envs._pending.kept or Kept()
        if kept.undrawn is not None and kept.generator is not None:
            kept.generator.bit_generator.state = kept.undrawn
            kept = kept._replace(undrawn=None)
            self._envs._keep(kept)
        return kept

    # Gymnasium's names.

    @property
    def _np_random(self) -> np.random.Generator | None:
        return self._kept.generator

    @_np_random.setter
    def _np_random(self, generator: np.random.Generator | None) -> None:
        self._envs._keep(self._kept._replace(generator=generator))

    @property
    def _np_random_seed(self) -> int | None:
        return self._kept.seed

    @_np_random_seed.setter
    def _np_random_seed(self, seed: int | None) -> None:
        self._envs._keep(self._kept._replace(seed=seed))

    def _draw_below(self, low: int, high: int) -> tuple[int, Kept]:
        """Draw the number of frames of a step; return it and what to keep when the step begins."""
        generator, kept = self.np_random, self._kept
        self._envs._keep(kept._replace(undrawn=generator.bit_generator.state))
        return int(generator.integers(low, high)), kept
