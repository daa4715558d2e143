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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong import kernels
from pixelpong.env.features import NUM_INPUTS
from pixelpong.items import Params
from pixelpong.learn.gated import NUM_OUTPUTS
from pixelpong.learn.optimizer import ADAM_DECAYS
from pixelpong.learn.ppo import LossStats, LossWeights
from pixelpong.learn.returns import standardize
from pixelpong.learners import lines

PIECE = 256  # steps per piece: some tenths of a millisecond of work
MAX_PIECES = 16  # of a minibatch; more threads than this have nothing to do
# Adam's work on a row of the first layer; the unit is adding up one row of the gradient.
_ROW_COST = 12
ADVANTAGE = 2  # the advantage's column in `Steps.played`
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
        self._num_rows = self._num_pieces = 0
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

    def differentiate(
        self,
        params: Params,
        steps: Steps,
        chosen: NDArray[np.int64],
        weights: LossWeights,
        pool: ThreadPoolExecutor,
    ) -> LossStats:
        """Find the gradient in the pre-activations and the output layer; return the loss.

        The minibatch is `chosen` [M], numbers of steps, ascending, so that steps close in time,
        which share inputs, are worked on together.
        """
        size = len(chosen)
        W1, W2 = lines(params["W1"]), _join(params["W2"], params["b2"])
        numbers = np.array([*vars(weights).values(), size])
        starts, stops = steps.offsets[chosen], steps.offsets[chosen + 1]
        played = steps.played[chosen]
        played[:, ADVANTAGE] = standardize(played[:, ADVANTAGE])
        self._make_room(size, len(steps.indices), W1)

        num_rows = pool.submit(
            kernels.list_steps,
            steps.indices, steps.offsets, chosen,
            self._place, self._rows, self._starts, self._steps,
        )  # fmt: skip

        def differentiate(piece: int, some: slice) -> None:
            z = self._z[some]
            kernels.sum_rows(W1, steps.indices, starts[some], stops[some], z)
            kernels.differentiate(
                W2, z, played[some], numbers,
                self._h[piece], self._y[piece], self._dW2[piece], self._sums[piece],
            )  # fmt: skip

        self._num_pieces = count = min(MAX_PIECES, -(-size // PIECE))
        pieces = _cut([size * piece // count for piece in range(count + 1)])
        list(pool.map(differentiate, range(count), pieces))
        self._num_rows = num_rows.result()
        return LossStats(*(self._sums[:count].sum(axis=0) / size).tolist())

    def descend(
        self,
        params: Params,
        memory: Params,
        learning_rate: float,
        step: int,
        pool: ThreadPoolExecutor,
    ) -> float:
        """Take a step along the gradient found, and return its norm; steps are numbered from 1.

        Changes the parameters and Adam's memory of them: the running means ``m.NAME`` of the
        gradient and ``v.NAME`` of its square.
        """
        arrays = {
            name: [lines(each) for each in (w, memory[f"m.{name}"], memory[f"v.{name}"])]
            for name, w in params.items()
        }
        decay_m, decay_v = ADAM_DECAYS
        scales = np.array([learning_rate / (1 - decay_m**step), 1 / (1 - decay_v**step)])
        count, num_pieces = self._num_rows, self._num_pieces
        rows, starts = self._rows[:count], self._starts[: count + 1]
        W1, means, squares = arrays["W1"]

        def descend(piece: int, some: slice) -> None:
            g = self._dW1[some]
            kernels.sum_rows(self._z, self._steps, starts[:-1][some], starts[1:][some], g)
            kernels.adam_rows(W1, g, means, squares, rows[some], scales, self._squares[piece])

        work = starts + self._row_work[: count + 1]
        shares = [int(work[-1]) * piece // num_pieces for piece in range(num_pieces + 1)]
        pieces = _cut(np.searchsorted(work, shares).tolist())
        list(pool.map(descend, range(num_pieces), pieces))
        totals = [self._squares[:num_pieces].sum(dtype=np.float64)]
        for name, g in _split(self._dW2[:num_pieces].sum(axis=0)).items():
            w, m, v = arrays[name]
            sums = np.zeros(w.shape[1], w.dtype)
            kernels.adam_rows(w, g, m, v, _OUTPUTS, scales, sums)
            totals.append(sums.sum(dtype=np.float64))
        return math.sqrt(math.fsum(totals))

    def _make_room(self, size: int, num_entries: int, W1: NDArray[Any]) -> None:
        """Make room for a minibatch of this many steps, in a round of this many entries."""
        if len(self._z) < size:
            self._z = np.empty((size, W1.shape[1]), W1.dtype)
        kind = np.uint16 if size <= 1 << 16 else np.uint32
        if len(self._steps) < num_entries or self._steps.dtype != kind:
            self._steps = np.empty(num_entries, kind)


def _cut(ends: list[int]) -> list[slice]:
    return list(itertools.starmap(slice, itertools.pairwise(ends)))


def _join(W2: NDArray[Any], b2: NDArray[Any]) -> NDArray[Any]:
    """The output layer [4, H, 2] and [4] in the kernels' form: [4, 2H + 1]."""
    return np.concatenate([lines(W2.swapaxes(1, 2)), lines(b2)], axis=1)


def _split(dW2: NDArray[Any]) -> Params:
    """The parts that `_join` joins, as lines [4, 2H] and [4, 1]."""
    pairs = dW2[:, :-1].reshape(NUM_OUTPUTS, 2, -1).swapaxes(1, 2)
    return {"W2": lines(np.ascontiguousarray(pairs)), "b2": dW2[:, -1:].copy()}
