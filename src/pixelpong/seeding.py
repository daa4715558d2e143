"""Random generators, each made for one purpose: no two share numbers, and none is global."""

from __future__ import annotations

import numpy as np

# A purpose's place is part of its seed, so new ones come last.
_PURPOSES = ("params", "train", "evaluate", "bootstrap", "bench", "learn", "play", "tournament")


def make_rng(seed: int, purpose: str, *index: int) -> np.random.Generator:
    """Make the generator for one use of a purpose; the index may be update and place in batch.

    The bit generator is named, instead of NumPy's current default, so that a seed will always mean
    the same numbers.

    >>> make_rng(0, "train", 1, 2).random() == make_rng(0, "train", 1, 2).random()
    True
    """
    place = _PURPOSES.index(purpose)
    sequence = np.random.SeedSequence(entropy=seed, spawn_key=(place, *index))
    return np.random.Generator(np.random.PCG64(sequence))
