"""Steps of Adam on minibatches, computed by several threads.

The work on a minibatch has two parts, and threads take pieces of each in parallel. In the first
part, a piece is some of the steps, from the inputs to the gradient of the pre-activations. In the
second, a piece is some of the inputs, from that gradient to the new parameters. The pieces depend
on the minibatch, not on the threads, and their sums are added in order, so the number of threads
changes no bit.

An input that is 0 in all steps of the minibatch has no gradient. Its row of the first layer, and
Adam's memory of it, do not change.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong import kernels
from pixelpong.items import Params
from pixelpong.learn.gated import NUM_OUTPUTS
from pixelpong.learn.ppo import LossStats, LossWeights
from pixelpong.learn.returns import standardize
from pixelpong.learners import lines

PIECE = 256  # steps per piece: a few tenths of a millisecond of work
MAX_PIECES = 16  # of a minibatch; more threads than this are idle
# The cost of Adam's step on a row of the first layer, relative to adding one row of the gradient.
_ROW_COST = 12
ADVANTAGE = 2  # the advantage's column in `Steps.played`
_KINDS = ("", "m.", "v.")  # prefixes of the arrays in Adam's step: the parameters, its memory


@dataclass(frozen=True)
class Steps:
    """T consecutive steps to learn from."""

    # [N], the inputs that are 1 at step 0, then those of step 1 and so on
    indices: NDArray[np.uint16]
    offsets: NDArray[np.int32]  # [T + 1]; step t has ``indices[offsets[t]:offsets[t + 1]]``
    # [T, 4], index of the action in `ACTIONS`, its log-probability, advantage, value target
    played: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.played)


@contextlib.contextmanager
def sharing(num_threads: int) -> Iterator[Callable[..., list[Any]]]:
    """Share calls among threads, each of which wakes once for all; the results come in order."""

    def share(calls: list[Callable[[], Any]]) -> list[Any]:
        found, left = [None] * len(calls), enumerate(calls)

        def take() -> None:
            for place, call in left:
                found[place] = call()

        others = [pool.submit(take) for _ in range(num_threads - 1)]
        take()
        for each in others:
            each.result()
        return found

    with ThreadPoolExecutor(num_threads, "learner") as pool:
        yield share


def descend(
    own: Params,
    steps: Steps,
    chosen: NDArray[np.int64],
    weights: LossWeights,
    scales: NDArray[np.float64],
    share: Callable[..., list[Any]],
) -> tuple[LossStats, float]:
    """Do one optimizer step on a minibatch; return the loss and the gradient's norm.

    Args:
        own: the parameters, and Adam's running means ``m.NAME`` of the gradient and ``v.NAME`` of
            its square; changed.
        steps: all steps of the update.
        chosen: [M], the minibatch as indices of `steps`, ascending, so that steps close in time,
            which share inputs, are processed together.
        weights: of the parts of the loss.
        scales: [2] as in `pixelpong.kernels.adam_rows`.
        share: from `sharing`.
    """
    size, (W1, means, squares) = len(chosen), (lines(own[f"{it}W1"]) for it in _KINDS)
    W2, numbers = _join(own["W2"], own["b2"]), np.array([*vars(weights).values(), size])
    begins, ends = steps.offsets[chosen], steps.offsets[chosen + 1]
    played = steps.played[chosen]
    played[:, ADVANTAGE] = standardize(played[:, ADVANTAGE])
    all_z = kernels.unshared(size, W1.shape[1], dtype=W1.dtype)

    def differentiate(some: slice) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """For some steps, compute the gradients of the pre-activations and of W2."""
        z, zeros = all_z[some], kernels.unshared
        dW2, h = (zeros(number, W2.shape[1], dtype=W2.dtype) for number in (NUM_OUTPUTS, 2))
        sums, y = zeros(len(fields(LossStats))), zeros(NUM_OUTPUTS)
        h[:] = 1
        kernels.sum_rows(W1, steps.indices, begins[some], ends[some], z)
        kernels.differentiate(W2, z, played[some], numbers, h, y, dW2, sums)
        return dW2, sums

    def step(some: slice) -> float:
        """For some inputs, compute the new rows of W1 and return the gradient's squared norm."""
        g = kernels.unshared(some.stop - some.start, W1.shape[1], dtype=W1.dtype)
        kernels.sum_rows(all_z, places, starts[:-1][some], starts[1:][some], g)
        total = np.zeros(W1.shape[1], W1.dtype)
        kernels.adam_rows(W1, g, means, squares, rows[some], scales, total)
        return float(total.sum(dtype=np.float64))

    scratch, rows = np.empty(len(W1), np.int32), np.empty(len(W1), np.uint16)
    starts = np.empty(len(W1) + 1, np.int32)
    places = np.empty(len(steps.indices), np.uint16 if size <= 1 << 16 else np.uint32)
    lists = steps.indices, steps.offsets, chosen, scratch, rows, starts, places
    num_pieces = min(MAX_PIECES, -(-size // PIECE))
    shares = np.arange(num_pieces + 1)
    pieces = _cut(differentiate, size * shares // num_pieces)
    count, *found = share([partial(kernels.list_steps, *lists), *pieces])
    rows, starts = rows[:count], starts[: count + 1]
    work = starts + _ROW_COST * np.arange(count + 1)
    cuts = np.searchsorted(work, int(work[-1]) * shares // num_pieces)
    totals = [sum(share(_cut(step, cuts)))]
    for name, g in _split(np.sum([dW2 for dW2, _ in found], axis=0)).items():
        w, m, v = (lines(own[f"{it}{name}"]) for it in _KINDS)
        total = np.zeros(w.shape[1], w.dtype)
        kernels.adam_rows(w, g, m, v, np.arange(len(w), dtype=np.uint16), scales, total)
        totals.append(total.sum(dtype=np.float64))
    losses = np.sum([sums for _, sums in found], axis=0) / size
    return LossStats(*losses.tolist()), math.sqrt(math.fsum(totals))


def _cut(call: Callable[[slice], Any], ends: NDArray[Any]) -> list[Callable[[], Any]]:
    return [partial(call, slice(*both)) for both in itertools.pairwise(ends.tolist())]


def _join(W2: NDArray[Any], b2: NDArray[Any]) -> NDArray[Any]:
    """The output layer [4, H, 2] and [4] in the kernels' form: [4, 2H + 1]."""
    return np.concatenate([lines(W2.swapaxes(1, 2)), lines(b2)], axis=1)


def _split(dW2: NDArray[Any]) -> Params:
    """Undo `_join`: [4, 2H] and [4, 1]."""
    pairs = dW2[:, :-1].reshape(NUM_OUTPUTS, 2, -1).swapaxes(1, 2)
    return {"W2": lines(np.ascontiguousarray(pairs)), "b2": dW2[:, -1:].copy()}
