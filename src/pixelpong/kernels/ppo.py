"""The gated network and its gradient, sparsely, in slices of hidden units.

Slices of units share nothing but the sums over all units, so threads can work side by side:
whoever works on a slice, its arithmetic is the same.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_kernel = njit(cache=True, nogil=True)


@_kernel
def decide(W1, W2, b2, indices, start, stop, z, y):  # type: ignore[no-untyped-def]
    """Policy and value for the observation ``indices[start:stop]``.

    Definition: `pixelpong.learn.gated.forward`, with the softmax applied.

    Args:
        W1, W2, b2: the parameters, [D, 2, H], [4, 2, H], [4].
        indices, start, stop: the inputs that are 1.
        z: [2, H], scratch; changed.
        y: [8] float64; changed: three probabilities, the value, three log-probabilities and
            the entropy.
    """
    _add_rows(W1, indices, start, stop, 0, z)
    _head(W2, z, 0, y)
    for output in range(4):
        y[output] += b2[output]
    highest = max(y[0], y[1], y[2])
    total = 0.0
    for action in range(3):
        total += np.exp(y[action] - highest)
    y[7] = 0
    for action in range(3):
        y[4 + action] = y[action] - highest - np.log(total)
        y[action] = np.exp(y[4 + action])
        y[7] -= y[action] * y[4 + action]


@_kernel
def _add_rows(W1, indices, start, stop, first, z):  # type: ignore[no-untyped-def]
    width = z.shape[1]
    za, zb = z[0], z[1]
    za[:] = 0
    zb[:] = 0
    for k in range(start, stop):
        a, b = W1[indices[k], 0, first : first + width], W1[indices[k], 1, first : first + width]
        for unit in range(width):
            za[unit] += a[unit]
            zb[unit] += b[unit]


@_kernel
def _head(W2, z, first, y):  # type: ignore[no-untyped-def]
    # Four outputs side by side, each a sum in the order of the units.
    y0, y1, y2, y3 = 0.0, 0.0, 0.0, 0.0
    for unit in range(z.shape[1]):
        a = z[0, unit]
        if a > 0:
            b, place = z[1, unit], first + unit
            y0 += a * (W2[0, 0, place] + b * W2[0, 1, place])
            y1 += a * (W2[1, 0, place] + b * W2[1, 1, place])
            y2 += a * (W2[2, 0, place] + b * W2[2, 1, place])
            y3 += a * (W2[3, 0, place] + b * W2[3, 1, place])
    y[0], y[1], y[2], y[3] = y0, y1, y2, y3


@_kernel
def find_rows(place, is_found, rows):  # type: ignore[no-untyped-def]
    """The inputs that are 1 at any of the chosen steps, in the order in which they are met.

    Args:
        place: indices [N] uint16 and offsets [T + 1] int64 of all steps, and the numbers of the
            chosen ones [M] int64.
        is_found: [D] bool, all False; the same afterwards.
        rows: [D] uint16, overwritten from the start.

    Returns:
        How many there are.
    """
    indices, offsets, chosen = place
    count = 0
    for step in chosen:
        for k in range(offsets[step], offsets[step + 1]):
            index = indices[k]
            if not is_found[index]:
                is_found[index] = True
                rows[count] = index
                count += 1
    for k in range(count):
        is_found[rows[k]] = False
    return count


@_kernel
def forward_slice(W1, W2, place, first, z, y):  # type: ignore[no-untyped-def]
    """What the units from `first` on add to the outputs.

    Definition: `pixelpong.learn.gated.forward`, summed over all slices and with b2 added.

    Args:
        W1, W2: [D, 2, H], [4, 2, H].
        place: as in `find_rows`.
        first: the slice's first unit.
        z: [M, 2, width of the slice]; changed: the pre-activations.
        y: [M, 4]; changed.
    """
    indices, offsets, chosen = place
    sums = np.empty(4)
    for m in range(len(chosen)):
        step = chosen[m]
        _add_rows(W1, indices, offsets[step], offsets[step + 1], first, z[m])
        _head(W2, z[m], first, sums)
        for output in range(4):
            y[m, output] = sums[output]


@_kernel
def backward_slice(W2, place, dy, first, z, rows, dW1, dW2):  # type: ignore[no-untyped-def]
    """The gradient of the units from `first` on.

    Definition: `pixelpong.learn.gated.backward`.

    Args:
        W2: [4, 2, H].
        place, rows: as in `find_rows`.
        dy: [M, 4].
        first: the slice's first unit.
        z: [M, 2, width of the slice], from `forward_slice`; changed: their gradient.
        dW1: [D, 2, H]; changed in `rows` and in the slice's units.
        dW2: [4, 2, H]; changed in the slice's units.
    """
    indices, offsets, chosen = place
    width = z.shape[2]
    last = first + width
    for row in rows:
        dW1[row, :, first:last] = 0
    dW2[:, :, first:last] = 0
    for m in range(len(chosen)):
        za, zb = z[m, 0], z[m, 1]
        for output in range(4):
            d = dy[m, output]
            plain, gated = dW2[output, 0, first:last], dW2[output, 1, first:last]
            for unit in range(width):
                h = max(za[unit], za.dtype.type(0))
                plain[unit] += d * h
                gated[unit] += d * (h * zb[unit])
        d0, d1, d2, d3 = dy[m, 0], dy[m, 1], dy[m, 2], dy[m, 3]
        for unit in range(width):
            at = first + unit
            plain_ = d0 * W2[0, 0, at] + d1 * W2[1, 0, at] + d2 * W2[2, 0, at] + d3 * W2[3, 0, at]
            gated_ = d0 * W2[0, 1, at] + d1 * W2[1, 1, at] + d2 * W2[2, 1, at] + d3 * W2[3, 1, at]
            a, b = za[unit], zb[unit]
            is_on = za.dtype.type(1) if a > 0 else za.dtype.type(0)
            za[unit] = (plain_ + gated_ * b) * is_on
            zb[unit] = gated_ * a * is_on
        step = chosen[m]
        for k in range(offsets[step], offsets[step + 1]):
            a_row, b_row = dW1[indices[k], 0, first:last], dW1[indices[k], 1, first:last]
            for unit in range(width):
                a_row[unit] += za[unit]
                b_row[unit] += zb[unit]
