"""Random generators, each made for one purpose: no two share numbers, and none is global."""

from __future__ import annotations

import numpy as np

_PURPOSES = {
    "params": 0,
    "train": 1,
    "evaluate": 2,
    "bootstrap": 3,
    "bench": 4,
    "learn": 5,
    "play": 6,
    "tournament": 7,
}


def make_rng(seed: int, purpose: str, *index: int) -> np.random.Generator:
    """Make the generator for one use of a purpose; the index may be update and place in batch.

    The bit generator is named, instead of NumPy's current default, so that a seed will always mean
    the same numbers.

    >>> make_rng(0, "train", 1, 2).random() == make_rng(0, "train", 1, 2).random()
    True
    """
    sequence = np.random.SeedSequence(entropy=seed, spawn_key=(_PURPOSES[purpose], *index))
    return np.random.Generator(np.random.PCG64(sequence))
