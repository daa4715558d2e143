"""Results of some games at a time, for the option `batch_size`.

While a program computes the next actions of one batch of games, the other games are played. So the
results wait here, in the order in which their actions came; ale-py returns them in any order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Results = Any  # a tuple of arrays [N, …], and at the end infos, a dict of such arrays


class Waiting:
    """Results that nobody has received yet."""

    def __init__(self, batch_size: int) -> None:
        self._batch_size = batch_size
        self.clear()

    def clear(self) -> None:
        """Forget them."""
        self._parts: list[Results] = []
        self._count = 0

    @property
    def is_enough(self) -> bool:
        """Whether they fill a batch."""
        return self._count >= self._batch_size

    def add(self, rows: NDArray[np.integer[Any]], results: Results) -> None:
        """Add the results of these games, taken from those of all games."""
        self._parts.append(_pick(results, rows))
        self._count += len(rows)

    def take(self) -> Results:
        """Remove the next batch."""
        joined = _join(self._parts)
        rest = np.arange(self._batch_size, self._count)
        self._parts, self._count = [_pick(joined, rest)], len(rest)
        return _pick(joined, np.arange(self._batch_size))


def _pick(results: Results, rows: NDArray[np.integer[Any]]) -> Results:
    *arrays, infos = results
    return *(each[rows] for each in arrays), {name: each[rows] for name, each in infos.items()}


def _join(parts: list[Results]) -> Results:
    arrays = zip(*(part[:-1] for part in parts), strict=True)
    infos = {name: np.concatenate([part[-1][name] for part in parts]) for name in parts[-1][-1]}
    return *(np.concatenate(each) for each in arrays), infos
