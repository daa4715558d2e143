"""Steps of Adam on minibatches, computed by several threads.

The work on a minibatch has two parts, and threads compute pieces of each in parallel. In the first
part, a piece covers some of the steps: it computes the gradient of their pre-activations from their
inputs. In the second part, a piece covers some of the inputs: it computes the new parameters from
that gradient. The pieces depend on the minibatch, not on the threads, and their sums are added in
order, so the number of threads does not change a bit of the result.

An input that is 0 in all steps of the minibatch has no gradient. Its row of the first layer, and
Adam's moments for it, do not change.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.steps.records import aligned_zeros
from pixelpong.items import Indices, Params, as_matrix
from pixelpong.kernels.optimizer import AdamArrays, adam_rows
from pixelpong.kernels.ppo import Scratch, differentiate, list_steps, sum_rows
from pixelpong.learn.optimizer import AdamScales
from pixelpong.learn.ppo import LossStats, LossWeights, Minibatch
from pixelpong.learn.returns import standardize

PIECE = 256  # steps per piece, which take a few tenths of a millisecond
MAX_PIECES = 16  # most pieces of a minibatch; more threads than this would be idle
# The cost of Adam's step on a row of the first layer, relative to adding one row of the gradient.
_ROW_COST = 12

RunAll = Callable[[Sequence[Callable[[], Any]]], list[Any]]


@dataclass(frozen=True)
class Steps:
    """T consecutive steps to learn from."""

    # [N], the inputs that are 1 at step 0, then those of step 1 and so on.
    indices: Indices
    offsets: NDArray[np.int32]  # [T + 1]; step t has ``indices[offsets[t]:offsets[t + 1]]``
    batch: Minibatch  # all T steps, with advantages that are not standardised yet
    parts: NDArray[np.int64]  # [A, ·], the parts of the actions, see `pixelpong.learn.ppo`

    def __len__(self) -> int:
        return len(self.batch.actions)


@contextlib.contextmanager
def thread_pool(num_threads: int) -> Iterator[RunAll]:
    """Yield a function that makes several calls in parallel and returns the results in order."""

    def run_all(calls: Sequence[Callable[[], Any]]) -> list[Any]:
        results = [None] * len(calls)
        waiting = enumerate(calls)  # shared, so that each thread wakes only once for all its calls

        def work() -> None:
            for index, call in waiting:
                results[index] = call()

        others = [pool.submit(work) for _ in range(num_threads - 1)]
        work()
        for other in others:
            other.result()
        return results

    with ThreadPoolExecutor(num_threads, "learner") as pool:
        yield run_all


def adam_step(
    state: Params,
    steps: Steps,
    chosen: NDArray[np.int64],
    weights: LossWeights,
    scales: AdamScales,
    run_all: RunAll,
) -> tuple[LossStats, float]:
    """Do one optimizer step on a minibatch; return the loss and the gradient's norm.

    Args:
        state: the parameters, and Adam's running means ``m.NAME`` of the gradient and ``v.NAME`` of
            its square; changed.
        steps: all steps of the update.
        chosen: [M], the minibatch as ascending indices of `steps`; steps close in time share inputs
            and are thus processed together.
        weights: the weights of the parts of the loss.
        scales: the factors of Adam's running means.
        run_all: from `thread_pool`.
    """
    work = _MinibatchWork(state, steps, chosen, weights, scales)
    first_part = [partial(work.differentiate, piece) for piece in work.pieces_of_steps()]
    _, *results = run_all([work.list_inputs, *first_part])
    second_part = [partial(work.update_inputs, piece) for piece in work.pieces_of_inputs()]
    squares = sum(run_all(second_part))
    gradients, losses = zip(*results, strict=True)
    output_squares = work.update_outputs(np.sum(gradients, axis=0))
    means = np.sum(losses, axis=0) / len(chosen)
    return LossStats(*means.tolist()), math.sqrt(math.fsum([squares, *output_squares]))


class _MinibatchWork:
    """The work of one optimizer step, cut into pieces for threads.

    First part: `list_inputs`, and `differentiate` for each piece. Second part: `update_inputs` for
    each piece, and `update_outputs`.
    """

    def __init__(
        self,
        state: Params,
        steps: Steps,
        chosen: NDArray[np.int64],
        weights: LossWeights,
        scales: AdamScales,
    ) -> None:
        """Take the arguments of `adam_step`."""
        self._steps, self._chosen, self._weights, self._scales = steps, chosen, weights, scales
        self._W1, self._W2, self._b2 = (_adam_arrays(state, name) for name in ("W1", "W2", "b2"))
        self._outputs = _join_outputs(state["W2"], state["b2"])
        batch = Minibatch(*(column[chosen] for column in steps.batch))
        self._batch = batch._replace(advantages=standardize(batch.advantages))
        self._num_pieces = min(MAX_PIECES, -(-len(chosen) // PIECE))
        # The pre-activations of each step; `differentiate` replaces them by their gradient.
        w = self._W1.w
        self._z = aligned_zeros(len(chosen), w.shape[1], dtype=w.dtype)

    def pieces_of_steps(self) -> list[slice]:
        """Cut the steps into pieces of about the same size."""
        shares = np.arange(self._num_pieces + 1)
        return _slices(len(self._chosen) * shares // self._num_pieces)

    def differentiate(self, piece: slice) -> tuple[NDArray[Any], LossStats]:
        """Compute the gradients of the pre-activations for some steps.

        Returns the gradient with respect to the output layer, and the sums of the losses.
        """
        offsets, chosen, z = self._steps.offsets, self._chosen[piece], self._z[piece]
        sum_rows(self._W1.w, self._steps.indices, offsets[chosen], offsets[chosen + 1], z)
        (num_outputs, columns), dtype = self._outputs.shape, z.dtype
        dW2, units = (aligned_zeros(length, columns, dtype=dtype) for length in (num_outputs, 2))
        units[:] = 1
        loss = differentiate(
            self._outputs,
            z,
            Minibatch(*(column[piece] for column in self._batch)),
            self._weights,
            len(self._chosen),
            self._steps.parts,
            Scratch(units, aligned_zeros(3, num_outputs)),
            dW2,
        )
        return dW2, loss

    def list_inputs(self) -> None:
        """List the inputs that are 1 at any step, and the steps of each, for `update_inputs`."""
        num_inputs = len(self._W1.w)
        inputs = np.empty(num_inputs, self._steps.indices.dtype)
        slots = np.empty(num_inputs, np.int32)
        starts = np.empty(num_inputs + 1, np.int32)
        small = np.uint16 if len(self._chosen) <= 1 << 16 else np.uint32
        self._positions = np.empty(len(self._steps.indices), small)
        count = list_steps(
            self._steps.indices,
            self._steps.offsets,
            self._chosen,
            slots,
            inputs,
            starts,
            self._positions,
        )
        self._inputs, self._starts = inputs[:count], starts[: count + 1]

    def pieces_of_inputs(self) -> list[slice]:
        """Cut the listed inputs into pieces with about the same amount of work."""
        work = self._starts + _ROW_COST * np.arange(len(self._starts))
        shares = np.arange(self._num_pieces + 1)
        return _slices(np.searchsorted(work, int(work[-1]) * shares // self._num_pieces))

    def update_inputs(self, piece: slice) -> float:
        """Update the rows of W1 for some inputs; return the gradient's squared norm."""
        inputs, W1 = self._inputs[piece], self._W1
        g = aligned_zeros(len(inputs), W1.w.shape[1], dtype=W1.w.dtype)
        starts, stops = self._starts[:-1][piece], self._starts[1:][piece]
        sum_rows(self._z, self._positions, starts, stops, g)
        return _step(W1, g, inputs, self._scales)

    def update_outputs(self, dW2: NDArray[Any]) -> list[float]:
        """Update W2 and b2; return the squared norms of their gradients."""
        layer, gradients = (self._W2, self._b2), _split_outputs(dW2)
        rows = np.arange(len(dW2), dtype=self._steps.indices.dtype)
        return [_step(w, g, rows, self._scales) for w, g in zip(layer, gradients, strict=True)]


def _adam_arrays(state: Params, name: str) -> AdamArrays:
    """Return a parameter and its Adam moments, as matrices."""
    return AdamArrays(*(as_matrix(state[prefix + name]) for prefix in ("", "m.", "v.")))


def _step(arrays: AdamArrays, g: NDArray[Any], rows: Indices, scales: AdamScales) -> float:
    """Do Adam's step on some rows; return the squared norm of their gradient."""
    squares = np.zeros(g.shape[1], g.dtype)
    adam_rows(arrays, g, rows, scales, squares)
    return float(squares.sum(dtype=np.float64))


def _slices(ends: NDArray[Any]) -> list[slice]:
    return [slice(start, stop) for start, stop in itertools.pairwise(ends.tolist())]


def _join_outputs(W2: NDArray[Any], b2: NDArray[Any]) -> NDArray[Any]:
    """Join the output layer, [O, H, 2] and [O], into the kernels' form, [O, 2H + 1]."""
    return np.concatenate([as_matrix(W2.swapaxes(1, 2)), as_matrix(b2)], axis=1)


def _split_outputs(dW2: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Undo `_join_outputs` for a gradient: [O, 2H] for W2 and [O, 1] for b2."""
    pairs = dW2[:, :-1].reshape(len(dW2), 2, -1).swapaxes(1, 2)
    return as_matrix(np.ascontiguousarray(pairs)), dW2[:, -1:].copy()
