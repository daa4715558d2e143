"""The fast forms: sparse, compiled, in a fixed order of summation. Only this folder uses numba.

Each kernel has its definition in `pixelpong.learn` or `pixelpong.env` and is tested against it.
They agree to within 1e-4 of the largest entry in float32 and 1e-11 in float64: the sums run only
over active inputs, and in a different order from a matrix product's.

No ``fastmath``: a sum's order is part of the promise "same seed, same bits".
Numba compiles them once per machine and caches them next to the file or, if the package is
read-only, in the user's cache directory. The cache notices only changes of the kernel's own file.
So no kernel calls one in another file, except `pixelpong.kernels.intrinsics`, and values that may
change elsewhere, such as the geometry of the features, are arguments; constants would go stale.
"""

from pixelpong.kernels.optimizer import adam_rows, rmsprop, sum_of_squares
from pixelpong.kernels.playing import MAX_ACTIVE, play_gated, play_plain
from pixelpong.kernels.ppo import differentiate, list_steps, sum_rows
from pixelpong.kernels.records import (
    GAME,
    GATED_STEP,
    MAX_INPUTS,
    MEMORY,
    NUM_MARKS,
    PLAIN_STEP,
)
from pixelpong.kernels.reinforce import add_rows, discounted_returns, episode_gradient

__all__ = [
    "GAME",
    "GATED_STEP",
    "MAX_ACTIVE",
    "MAX_INPUTS",
    "MEMORY",
    "NUM_MARKS",
    "PLAIN_STEP",
    "adam_rows",
    "add_rows",
    "differentiate",
    "discounted_returns",
    "episode_gradient",
    "list_steps",
    "play_gated",
    "play_plain",
    "rmsprop",
    "sum_of_squares",
    "sum_rows",
]
