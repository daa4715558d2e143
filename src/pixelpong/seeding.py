"""Random generators, one for each purpose; no two share numbers, and none is global."""

from __future__ import annotations

import numpy as np

# A purpose's position is part of the seed, so new purposes are added at the end.
_PURPOSES = (
    "params",
    "train",
    "evaluate",
    "bootstrap",
    "bench",
    "learn",
    "play",
    "tournament",
    "sight",
)


def make_rng(seed: int, purpose: str, *index: int) -> np.random.Generator:
    """Make the generator for a purpose and an index, such as update and position in the batch.

    The bit generator is fixed instead of NumPy's current default, so a seed always gives the same
    numbers.

    >>> make_rng(0, "train", 1, 2).random() == make_rng(0, "train", 1, 2).random()
    True
    """
    spawn_key = _PURPOSES.index(purpose), *index
    sequence = np.random.SeedSequence(entropy=seed, spawn_key=spawn_key)
    return np.random.Generator(np.random.PCG64(sequence))
