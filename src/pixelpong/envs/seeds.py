"""Seeds of the games of an environment, of any size, and what is drawn from them alone."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from pixelpong.errors import ConfigError, must_be

_BLOCK = 4096  # numbers that are skipped at once


def read_seed(seed: Any) -> int:
    """A seed as a Python number, of any size, or refuse it."""
    try:
        number = operator.index(seed.item() if hasattr(seed, "item") else seed)
    except (TypeError, ValueError):
        number = -1
    if number < 0 or isinstance(seed, bool | np.bool_):
        raise ConfigError(must_be("seed", "a whole number of at least 0", repr(seed)))
    return number


def read_seeds(seed: Any, count: int) -> list[int]:
    """The seeds of games from one number, from which they count on, or from one number each."""
    if np.ndim(seed) == 0:
        first = read_seed(seed)
        seeds = [first + i for i in range(count)]
    else:
        seeds = [read_seed(each) for each in seed]
    if len(seeds) != count:
        raise ConfigError(f"{count} games need {count} seeds, not {len(seeds)}.")
    return [_shorten(each) for each in seeds]


def _shorten(seed: int) -> int:
    """The seed itself, or if it has more than 63 bits, as many that depend on all of it.

    >>> _shorten(3), _shorten(2**64 + 3) < 2**63
    (3, True)
    """
    if seed < 2**63:
        return seed
    return int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] >> np.uint64(1))


def find_wait(seed: int, episode: int, noop_max: int) -> int:
    """The number of frames without a press with which an episode of a seed begins.

    As ale-py on Linux does: the k-th episode takes the k-th number of C++'s ``mt19937``.
    """
    if noop_max == 0:
        return 0
    twister = np.random.RandomState(seed & 0xFFFFFFFF)
    for first in range(0, episode + 1, _BLOCK):
        count = min(_BLOCK, episode + 1 - first)
        numbers = twister.randint(2**32, size=count, dtype=np.uint32)
    return int(numbers[-1]) * noop_max >> 32
