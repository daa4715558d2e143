"""Steps of Adam along the gradient of minibatches, on several threads.

The work on a minibatch has two parts, and threads take pieces of each in parallel. In the first
part a piece is some of the steps, from the inputs to the gradient in the pre-activations. In the
second it is some of the inputs, from there to the new parameters. The pieces depend on the
minibatch, not on the threads, and their sums are added in their order. So the number of threads
changes no bit.

An input that no step of the minibatch has seen has no gradient. Its row of the first layer, and
Adam's memory of it, do not change.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong import kernels
from pixelpong.env.features import NUM_INPUTS
from pixelpong.items import Params
from pixelpong.learn.gated import NUM_OUTPUTS
from pixelpong.learn.ppo import LossStats, LossWeights
from pixelpong.learn.returns import standardize
from pixelpong.learners import lines

PIECE = 256  # steps per piece: some tenths of a millisecond of work
MAX_PIECES = 16  # of a minibatch; more threads than this have nothing to do
# Adam's work on a row of the first layer; the unit is adding up one row of the gradient.
_ROW_COST = 12
ADVANTAGE = 2  # the advantage's column in `Steps.played`
_KINDS = ("", "m.", "v.")  # of an array in Adam's step: the parameters, and its memory of them
_OUTPUTS = np.arange(NUM_OUTPUTS, dtype=np.uint16)


@dataclass(frozen=True)
class Steps:
    """T steps to learn from, one after the other."""

    # [N], the inputs that are 1 at step 0, then those of step 1 and so on
    indices: NDArray[np.uint16]
    offsets: NDArray[np.int32]  # [T + 1]; step t has ``indices[offsets[t]:offsets[t + 1]]``
    # [T, 4], place of the action in `ACTIONS`, its log-probability, advantage, target of the value
    played: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.played)


class Passes:
    """Buffers for the work on minibatches, reused from one to the next."""

    def __init__(self, hidden: int, dtype: str) -> None:
        """Make the buffers of fixed size."""
        columns, outer = 2 * hidden, 2 * hidden + 1
        self._place = np.zeros(NUM_INPUTS, np.int32)
        self._rows = np.zeros(NUM_INPUTS, np.uint16)
        self._starts = np.zeros(NUM_INPUTS + 1, np.int32)
        self._row_work = _ROW_COST * np.arange(NUM_INPUTS + 1, dtype=np.int32)
        self._steps = np.zeros(0, np.uint16)
        self._z = np.zeros((0, columns), dtype)
        self._dW1 = np.empty((NUM_INPUTS, columns), dtype)
        # One per piece, with unused room after it: two threads that write to the same cache line
        # would wait for each other.
        self._dW2 = np.zeros((MAX_PIECES, NUM_OUTPUTS + 1, outer), dtype)[:, :NUM_OUTPUTS]
        self._h = np.ones((MAX_PIECES, 3, outer), dtype)[:, :2]
        self._y = np.zeros((MAX_PIECES, 8, NUM_OUTPUTS))[:, 0]
        self._squares = np.zeros((MAX_PIECES, 2, columns), dtype)[:, 0]
        self._sums = np.zeros((MAX_PIECES, len(dataclasses.fields(LossStats))))

    def descend(
        self,
        own: Params,
        steps: Steps,
        chosen: NDArray[np.int64],
        weights: LossWeights,
        scales: NDArray[np.float64],
        pool: ThreadPoolExecutor,
    ) -> tuple[LossStats, float]:
        """Take a step along the gradient of a minibatch; return the loss and the gradient's norm.

        Args:
            own: the parameters and Adam's memory of them, the running means ``m.NAME`` of the
                gradient and ``v.NAME`` of its square; changed.
            chosen: [M], the minibatch as numbers of `steps`, ascending, so that steps close in
                time, which share inputs, are worked on together.
            scales: [2] as in `pixelpong.kernels.adam_rows`.
        """
        size, (W1, means, squares) = len(chosen), (lines(own[f"{it}W1"]) for it in _KINDS)
        W2, numbers = _join(own["W2"], own["b2"]), np.array([*vars(weights).values(), size])
        begins, ends = steps.offsets[chosen], steps.offsets[chosen + 1]
        played = steps.played[chosen]
        played[:, ADVANTAGE] = standardize(played[:, ADVANTAGE])
        self._make_room(size, len(steps.indices), W1)

        def differentiate(piece: int, some: slice) -> None:
            """From the inputs of some steps to the gradient in the pre-activations and in W2."""
            z = self._z[some]
            kernels.sum_rows(W1, steps.indices, begins[some], ends[some], z)
            kernels.differentiate(
                W2, z, played[some], numbers,
                self._h[piece], self._y[piece], self._dW2[piece], self._sums[piece],
            )  # fmt: skip

        def step(piece: int, some: slice) -> None:
            """From there to the new rows of some inputs."""
            g = self._dW1[some]
            kernels.sum_rows(self._z, self._steps, starts[:-1][some], starts[1:][some], g)
            kernels.adam_rows(W1, g, means, squares, rows[some], scales, self._squares[piece])

        lists = steps.indices, steps.offsets, chosen, self._place, self._rows, self._starts
        listing = pool.submit(kernels.list_steps, *lists, self._steps)
        num_pieces = min(MAX_PIECES, -(-size // PIECE))
        shares = np.arange(num_pieces + 1)
        list(pool.map(differentiate, range(num_pieces), _cut(size * shares // num_pieces)))
        count = listing.result()
        rows, starts = self._rows[:count], self._starts[: count + 1]
        work = starts + self._row_work[: count + 1]
        places = np.searchsorted(work, int(work[-1]) * shares // num_pieces)
        list(pool.map(step, range(num_pieces), _cut(places)))
        totals = [self._squares[:num_pieces].sum(dtype=np.float64)]
        for name, g in _split(self._dW2[:num_pieces].sum(axis=0)).items():
            w, m, v = (lines(own[f"{it}{name}"]) for it in _KINDS)
            sums = np.zeros(w.shape[1], w.dtype)
            kernels.adam_rows(w, g, m, v, _OUTPUTS, scales, sums)
            totals.append(sums.sum(dtype=np.float64))
        loss = LossStats(*(self._sums[:num_pieces].sum(axis=0) / size).tolist())
        return loss, math.sqrt(math.fsum(totals))

    def _make_room(self, size: int, num_entries: int, W1: NDArray[Any]) -> None:
        """Make room for a minibatch of this many steps, in a round of this many entries."""
        if len(self._z) < size:
            self._z = np.empty((size, W1.shape[1]), W1.dtype)
        kind = np.uint16 if size <= 1 << 16 else np.uint32
        if len(self._steps) < num_entries or self._steps.dtype != kind:
            self._steps = np.empty(num_entries, kind)


def _cut(ends: NDArray[Any]) -> Iterator[slice]:
    return itertools.starmap(slice, itertools.pairwise(ends.tolist()))


def _join(W2: NDArray[Any], b2: NDArray[Any]) -> NDArray[Any]:
    """The output layer [4, H, 2] and [4] in the kernels' form: [4, 2H + 1]."""
    return np.concatenate([lines(W2.swapaxes(1, 2)), lines(b2)], axis=1)


def _split(dW2: NDArray[Any]) -> Params:
    """The parts that `_join` joins, as lines [4, 2H] and [4, 1]."""
    pairs = dW2[:, :-1].reshape(NUM_OUTPUTS, 2, -1).swapaxes(1, 2)
    return {"W2": lines(np.ascontiguousarray(pairs)), "b2": dW2[:, -1:].copy()}
