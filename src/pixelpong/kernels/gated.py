"""The gated network and its gradient, sparsely; `pixelpong.kernels.playing` plays with it.

Learning works on slices of hidden units. They share nothing but the sums over all units, so
threads can work side by side: whoever works on a slice, its arithmetic is the same.
"""

from __future__ import annotations

import numpy as np

from pixelpong.kernels.compiling import compiled

# The NumPy error model: a division that cannot fail needs no check, and so can be vectorised.
_kernel = compiled(error_model="numpy")


@_kernel
def _add_rows(W1, indices, start, stop, first, z):  # type: ignore[no-untyped-def]
    last = first + len(z)
    z[:] = 0
    for k in range(start, stop):
        row = W1[indices[k], first:last]
        for i in range(len(z)):
            z[i] += row[i]


@_kernel
def _activate(z):  # type: ignore[no-untyped-def]
    """Pre-activations (a, b) side by side become activations (max(a, 0), max(a, 0) b)."""
    for i in range(0, len(z), 2):
        relu = max(z[i], z.dtype.type(0))
        z[i] = relu
        z[i + 1] *= relu


@_kernel
def _dot(a, b):  # type: ignore[no-untyped-def]
    # Eight sums side by side: one alone would wait for itself. Their order is fixed. Written
    # out, the compiler keeps them in registers, which it does not do with an array of eight.
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = a.dtype.type(0)
    whole = len(a) - len(a) % 8
    for i in range(0, whole, 8):
        s0 += a[i] * b[i]
        s1 += a[i + 1] * b[i + 1]
        s2 += a[i + 2] * b[i + 2]
        s3 += a[i + 3] * b[i + 3]
        s4 += a[i + 4] * b[i + 4]
        s5 += a[i + 5] * b[i + 5]
        s6 += a[i + 6] * b[i + 6]
        s7 += a[i + 7] * b[i + 7]
    for i in range(whole, len(a)):
        s0 += a[i] * b[i]
    return np.float64((s0 + s1) + (s2 + s3)) + np.float64((s4 + s5) + (s6 + s7))


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
    """What a slice of units adds to the outputs.

    Definition: `pixelpong.learn.gated.forward`, summed over all slices and with b2 added.

    Args:
        W1, W2: [D, 2H], [4, 2H].
        place: as in `find_rows`.
        first: the slice's first column.
        z: [M, columns of the slice]; changed: the pre-activations.
        y: [M, 4] float64; changed.
    """
    indices, offsets, chosen = place
    last = first + z.shape[1]
    h = np.empty_like(z[0])
    for m in range(len(chosen)):
        step = chosen[m]
        _add_rows(W1, indices, offsets[step], offsets[step + 1], first, z[m])
        h[:] = z[m]
        _activate(h)
        for output in range(4):
            y[m, output] = _dot(W2[output, first:last], h)


@_kernel
def backward_slice(W2, place, dy, first, z, rows, dW1, dW2):  # type: ignore[no-untyped-def]
    """The gradient of a slice of units.

    Definition: `pixelpong.learn.gated.backward`.

    Args:
        W2: [4, 2H].
        place, rows: as in `find_rows`.
        dy: [M, 4].
        first: the slice's first column.
        z: [M, columns of the slice], from `forward_slice`.
        dW1: [D, columns of the slice]; changed in `rows`. Of the slice alone, because two threads
            that write to halves of one row would quarrel over the cache line between them.
        dW2: [4, columns of the slice]; changed.
    """
    indices, offsets, chosen = place
    last = first + z.shape[1]
    for row in rows:
        dW1[row] = 0
    dW2[:] = 0
    h, dz = np.empty_like(z[0]), np.empty_like(z[0])
    for m in range(len(chosen)):
        h[:] = z[m]
        _activate(h)
        dz[:] = 0
        for output in range(4):
            d, row, total = dy[m, output], W2[output, first:last], dW2[output]
            for i in range(len(h)):
                total[i] += d * h[i]
                dz[i] += d * row[i]
        _pass_back(z[m], dz)
        step = chosen[m]
        for k in range(offsets[step], offsets[step + 1]):
            target = dW1[indices[k]]
            for i in range(len(dz)):
                target[i] += dz[i]


@_kernel
def _pass_back(z, dz):  # type: ignore[no-untyped-def]
    """The gradient in the activations becomes that in the pre-activations."""
    for i in range(0, len(z), 2):
        relu = max(z[i], z.dtype.type(0))
        is_on = z.dtype.type(1) if z[i] > 0 else z.dtype.type(0)
        dz[i] = (dz[i] + dz[i + 1] * z[i + 1]) * is_on
        dz[i + 1] *= relu
