"""Generators, each built from what it is for: no two purposes share numbers, none is global."""

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
}


def make_rng(seed: int, purpose: str, *index: int) -> np.random.Generator:
    """The generator for the `index`-th thing of a purpose in a run.

    The bit generator is named, not NumPy's default of the day, so that a seed means the same
    numbers in years to come.

    Args:
        seed: the run's seed.
        purpose: a key of the table above.
        index: whole numbers of at least 0, as update and place in the batch.

    >>> make_rng(0, "train", 1, 2).random() == make_rng(0, "train", 1, 2).random()
    True
    """
    sequence = np.random.SeedSequence(entropy=seed, spawn_key=(_PURPOSES[purpose], *index))
    return np.random.Generator(np.random.PCG64(sequence))
