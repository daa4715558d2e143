"""The start of a training: parameters and optimizer's memory before the first step.

They follow from the configuration, the seed, and how often the training has started again. So a
checkpoint need not hold what is still as it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.config import Config
from pixelpong.env.features import NUM_INPUTS
from pixelpong.items import Params
from pixelpong.learn import gated, network
from pixelpong.schema import Count
from pixelpong.seeding import make_rng


@dataclass(frozen=True)
class Start:
    """What a training drew its parameters from: the seed of the run, and the attempt."""

    seed: Count
    attempt: Count = 1

    def make_rng(self) -> np.random.Generator:
        """The generator that they are drawn from."""
        return make_rng(self.seed, "params", *([self.attempt] if self.attempt > 1 else []))

    def draw(self, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """The first layer [D, H, 2] of the fast network."""
        return gated.init_params(self.make_rng(), shape[0], shape[1])["W1"]


def draw_start(config: Config, start: Start) -> tuple[Params, dict[str, NDArray[Any]]]:
    """New parameters, and the memory that the optimizer has of them.

    REINFORCE's has the parameters' names; PPO's is ``m.NAME``, means, and ``v.NAME``, mean squares.
    """
    hidden, dtype = config.network.hidden, config.network.dtype
    if config.learning.algorithm == "ppo":
        params = gated.init_params(start.make_rng(), NUM_INPUTS, hidden, dtype)
        kinds = ["m.", "v."]
    else:
        params = network.init_params(start.make_rng(), hidden, dtype)
        kinds = [""]
    return params, {kind + name: np.zeros_like(w) for kind in kinds for name, w in params.items()}
