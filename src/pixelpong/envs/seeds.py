"""The seeds of an environment's games, of any size."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from pixelpong.errors import ConfigError, must_be


def read_seed(seed: Any) -> int:
    """Check a seed, of any size, and return it as a Python number."""
    try:
        number = operator.index(seed.item() if hasattr(seed, "item") else seed)
    except (TypeError, ValueError):
        number = -1
    if number < 0 or isinstance(seed, bool | np.bool_):
        raise ConfigError(must_be("seed", "a whole number of at least 0", repr(seed)))
    return number


def read_seeds(seed: Any, count: int) -> list[int]:
    """The seeds of `count` games: consecutive from one number, or one number for each game."""
    if np.ndim(seed) == 0:
        first = read_seed(seed)
        seeds = [first + i for i in range(count)]
    else:
        seeds = [read_seed(each) for each in seed]
    if len(seeds) != count:
        raise ConfigError(f"{count} games need {count} seeds, not {len(seeds)}.")
    return [_shorten(each) for each in seeds]


def _shorten(seed: int) -> int:
    """The seed itself, or 63 bits that depend on all of it if it is longer.

    >>> _shorten(3), _shorten(2**64 + 3) < 2**63
    (3, True)
    """
    if seed < 2**63:
        return seed
    return int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] >> np.uint64(1))
