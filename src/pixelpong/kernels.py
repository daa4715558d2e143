"""The fast forms: sparse, compiled, in a fixed order of summation. The only file with numba.

Each kernel has its definition in `pixelpong.learn` or `pixelpong.env.preprocess` and is tested
against it. They agree to within 1e-4 of the largest entry in float32 and 1e-11 in float64: the
sums run over active pixels only, and in another order than a matrix product's.

No ``fastmath``: a sum's order is part of the promise "same seed, same bits".
Compiled once per machine and kept in numba's cache: beside this file, or where the package is
read-only, in the user's cache directory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pixelpong.learn.optimizer import EPSILON
from pixelpong.trajectory import NUM_PIXELS, UP, SparseGrads, Trajectory

# numba's cache notices a change of this file alone, not of the constants imported above: they
# are part of the file formats and never change.
_kernel = njit(cache=True, nogil=True)

MAX_ACTIVE = 2 * NUM_PIXELS
"""More active inputs than this no step can have."""


@_kernel
def find_active(screen, is_active, active):  # type: ignore[no-untyped-def]
    """Write the indices of the drawn pixels of the field into `active`, ascending.

    Definition: `pixelpong.env.preprocess.preprocess`, on palette indices instead of colours.

    Args:
        screen: [210, 160] uint8, palette indices.
        is_active: [256] bool.
        active: [NUM_PIXELS] uint16, overwritten from the start.

    Returns:
        How many there are.
    """
    count = 0
    for row in range(80):
        line = screen[35 + 2 * row]
        # Most lines show one colour from end to end: one vectorised pass tells, and where
        # that colour is background, the line is done.
        first = line[0]
        mixed = np.uint8(0)
        for column in range(160):
            mixed |= line[column] ^ first
        if mixed == 0 and not is_active[first]:
            continue
        for column in range(80):
            if is_active[line[2 * column]]:
                active[count] = row * 80 + column
                count += 1
    return count


@_kernel
def find_difference(previous, num_previous, current, num_current, indices, start):  # type: ignore[no-untyped-def]
    """Write the signed indices of the pixels that changed into ``indices[start:]``.

    Definition: `pixelpong.env.preprocess.difference`; the sign is encoded as in `Trajectory`.
    Both inputs are ascending, so one merge finds what stands in only one of them.

    Args:
        previous, num_previous: active pixels of the frame before, and their number.
        current, num_current: active pixels of this frame, and their number.
        indices: [≥ start + MAX_ACTIVE] uint16.
        start: where to begin.

    Returns:
        Where the written part ends.
    """
    i, j, end = 0, 0, start
    while i < num_previous or j < num_current:
        if j == num_current or (i < num_previous and previous[i] < current[j]):
            indices[end] = previous[i] + NUM_PIXELS
            i += 1
            end += 1
        elif i == num_previous or current[j] < previous[i]:
            indices[end] = current[j]
            j += 1
            end += 1
        else:
            i += 1
            j += 1
    return end


@_kernel
def observe(screen, is_active, pixels, memory, indices, start):  # type: ignore[no-untyped-def]
    """Write the observation of `screen` into ``indices[start:]``, and keep what the next one needs.

    Args:
        screen: [210, 160] uint8, palette indices.
        is_active: [256] bool.
        pixels: [2, NUM_PIXELS] uint16, the active pixels of two frames in turn; changed.
        memory: [2] int64, which of the two is newest, and how many pixels it has, −1 where there
            is none yet; changed.
        indices: [≥ start + MAX_ACTIVE] uint16; changed.
        start: where to begin.

    Returns:
        Where the written part ends.
    """
    previous, num_previous = memory
    current = 1 - previous
    num_current = find_active(screen, is_active, pixels[current])
    end = start
    if num_previous >= 0:
        end = find_difference(
            pixels[previous], num_previous, pixels[current], num_current, indices, start
        )
    memory[0], memory[1] = current, num_current
    return end


@_kernel
def up_probability(W1, W2, indices, start, stop, hidden, t):  # type: ignore[no-untyped-def]
    """The policy's probability of UP for the observation ``indices[start:stop]``.

    Definition: `pixelpong.learn.network.forward`. Leaves the hidden activations in ``hidden[t]``.
    """
    h = hidden[t]
    h[:] = 0
    for k in range(start, stop):
        index = indices[k]
        if index < NUM_PIXELS:
            row = W1[index]
            for unit in range(len(h)):
                h[unit] += row[unit]
        else:
            row = W1[index - NUM_PIXELS]
            for unit in range(len(h)):
                h[unit] -= row[unit]
    for unit in range(len(h)):
        if h[unit] < 0:
            h[unit] = 0
    z = _dot(h, W2)
    smaller = np.exp(-abs(z))
    return (1.0 if z >= 0 else smaller) / (1.0 + smaller)


@_kernel
def _dot(a, b):  # type: ignore[no-untyped-def]
    # Four sums side by side: one alone would wait for itself. Their order is fixed.
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    whole = len(a) - len(a) % 4
    for i in range(0, whole, 4):
        s0 += a[i] * b[i]
        s1 += a[i + 1] * b[i + 1]
        s2 += a[i + 2] * b[i + 2]
        s3 += a[i + 3] * b[i + 3]
    for i in range(whole, len(a)):
        s0 += a[i] * b[i]
    return (s0 + s1) + (s2 + s3)


@_kernel
def _find_rows(indices, slots):  # type: ignore[no-untyped-def]
    """The touched rows, ascending; ``slots[row]`` becomes a row's place among them."""
    slots[:] = -1
    for index in indices:
        slots[index if index < NUM_PIXELS else index - NUM_PIXELS] = 0
    rows = np.empty(NUM_PIXELS, np.uint16)
    count = 0
    for row in range(NUM_PIXELS):
        if slots[row] == 0:
            slots[row] = count
            rows[count] = row
            count += 1
    return rows[:count].copy()


@_kernel
def _episode_gradient(W2, hidden, indices, offsets, dz):  # type: ignore[no-untyped-def]
    slots = np.empty(NUM_PIXELS, np.int32)
    rows = _find_rows(indices, slots)
    dW1 = np.zeros((len(rows), len(W2)), W2.dtype)
    dW2 = np.zeros_like(W2)
    dh = np.empty_like(W2)
    for t in range(len(dz)):
        h = hidden[t]
        for unit in range(len(h)):
            dW2[unit] += dz[t] * h[unit]
            dh[unit] = dz[t] * W2[unit] if h[unit] > 0 else 0
        for k in range(offsets[t], offsets[t + 1]):
            index = indices[k]
            if index < NUM_PIXELS:
                row = dW1[slots[index]]
                for unit in range(len(dh)):
                    row[unit] += dh[unit]
            else:
                row = dW1[slots[index - NUM_PIXELS]]
                for unit in range(len(dh)):
                    row[unit] -= dh[unit]
    return rows, dW1, dW2


def episode_gradient(
    W2: NDArray[Any], trajectory: Trajectory, advantages: NDArray[Any]
) -> SparseGrads:
    """The REINFORCE gradient of one episode, from the activations that it was played with.

    Definition: `pixelpong.learn.reinforce.episode_gradient`.

    Args:
        W2: [H], of the parameters that played.
        trajectory: T steps.
        advantages: [T].
    """
    labels = trajectory.actions == UP
    dz = ((labels - trajectory.up_probabilities) * advantages).astype(W2.dtype)
    rows, dW1, dW2 = _episode_gradient(
        W2, trajectory.hidden, trajectory.indices, trajectory.offsets, dz
    )
    return SparseGrads(rows, dW1, dW2)


@_kernel
def add_rows(total, rows, values):  # type: ignore[no-untyped-def]
    """Add `values` [K, H] to the rows [K] of `total` [NUM_PIXELS, H], in place."""
    for k in range(len(rows)):
        target = total[rows[k]]
        for unit in range(values.shape[1]):
            target[unit] += values[k, unit]


@_kernel
def rmsprop(w, g, c, learning_rate, decay_rate):  # type: ignore[no-untyped-def]
    """One step of RMSProp on flat arrays, `w` and `c` in place.

    Definition: `pixelpong.learn.optimizer.rmsprop`.
    """
    rate, decay = w.dtype.type(learning_rate), w.dtype.type(decay_rate)
    keep_out, epsilon = w.dtype.type(1 - decay_rate), w.dtype.type(EPSILON)
    for i in range(len(w)):
        c[i] = decay * c[i] + keep_out * g[i] * g[i]
        w[i] += rate * g[i] / (np.sqrt(c[i]) + epsilon)


@_kernel
def discounted_returns(rewards, discount):  # type: ignore[no-untyped-def]
    """Definition: `pixelpong.learn.returns.discounted_returns`."""
    returns = np.zeros(len(rewards))
    following = 0.0
    for t in range(len(rewards) - 1, -1, -1):
        following = rewards[t] if rewards[t] != 0 else discount * following
        returns[t] = following
    return returns


@_kernel
def sum_of_squares(g):  # type: ignore[no-untyped-def]
    """Σ g² of a flat array in float64, in a fixed order; not finite where an entry is not."""
    lanes = np.zeros(16)
    whole = len(g) - len(g) % 16
    for i in range(0, whole, 16):
        for lane in range(16):
            value = np.float64(g[i + lane])
            lanes[lane] += value * value
    for i in range(whole, len(g)):
        value = np.float64(g[i])
        lanes[i - whole] += value * value
    total = 0.0
    for lane in range(16):
        total += lanes[lane]
    return total
