"""The gated network, and what it sees, sparsely: a step of a rollout but for the emulator."""

from __future__ import annotations

import numpy as np

from pixelpong.env.features import NUM_FEATURES, PAIR_COLUMNS, PAIR_ROWS
from pixelpong.kernels.compiling import compiled

# The NumPy error model: a division that cannot fail needs no check, and so can be vectorised.
_kernel = compiled(error_model="numpy")

MAX_INPUTS = 2 * NUM_FEATURES + 1
"""More active inputs than this no step can have."""

NUM_MARKS = NUM_FEATURES + PAIR_ROWS * PAIR_COLUMNS
"""Features, and the cells that make pairs. No kernel reads these two: see `kernels`."""


@_kernel
def _mark_cells(cells, column, pixels, num_pixels, base, is_on, found, count):  # type: ignore[no-untyped-def]
    """Mark the cells of one shape that are on, and add them to a list."""
    for k in range(num_pixels):
        cell = base + cells[pixels[k], column]
        if not is_on[cell]:
            is_on[cell] = 1
            found[count] = cell
            count += 1
    return count


@_kernel
def _mark_features(sight, pixels, num_pixels, is_on, found):  # type: ignore[no-untyped-def]
    """Mark the features of a frame, and list them; their order follows from the pixels alone."""
    cells, geometry = sight
    last, count = cells.shape[1] - 1, 0
    for column in range(last):
        count = _mark_cells(cells, column, pixels, num_pixels, 0, is_on, found, count)
    num_features, num_offsets, beside = geometry[0], geometry[1], geometry[2:]
    # The cells that make pairs stand behind the features, for as long as they are needed.
    small = found[num_features:]
    num_small = _mark_cells(cells, last, pixels, num_pixels, num_features, is_on, small, 0)
    for k in range(num_small):
        is_on[small[k]] = 0
        small[k] -= num_features
    for i in range(num_small):
        row, column = small[i] // len(beside), small[i] % len(beside)
        for j in range(num_small):
            right = small[j] % len(beside)
            if right > column:
                below = row - small[j] // len(beside)
                pair = beside[right] + (right - column - 1) * num_offsets + below
                if not is_on[pair]:
                    is_on[pair] = 1
                    found[count] = pair
                    count += 1
    return count


@_kernel
def observe_features(sight, pixels, memory, scratch, indices, start):  # type: ignore[no-untyped-def]
    """Write the inputs that are 1 into ``indices[start:]``.

    Definition: `pixelpong.env.features.observe_features`. They come in an order that follows from
    the pixels alone: the features of now as they are first met, those that vanished, the last
    action.

    Args:
        sight: [NUM_PIXELS, ·] uint16, `pixelpong.env.features.list_cells_of_pixels`, and
            int64, `pixelpong.env.features.list_geometry`.
        pixels: [2, NUM_PIXELS] uint16, the active pixels of two frames in turn.
        memory: [≥ 5] int64, which of the two is newest, its number of pixels and the other's, the
            place in `ACTIONS` of what was asked for last, and the other's number of features, −1
            where they have to be found; changed: the newest's stands there, for the next frame.
        scratch: [4, NUM_MARKS] uint16, changed: for the two frames in turn, a 1 at each feature
            that is on, all 0 in the newest and where they have to be found; and their list.
        indices: [≥ start + MAX_INPUTS] uint16; changed.
        start: where to begin.

    Returns:
        Where the written part ends.
    """
    newest, num_features = memory[0], sight[1][0]
    is_now, is_before = scratch[newest], scratch[1 - newest]
    now, before = scratch[2 + newest], scratch[3 - newest]
    num_now, num_before = _mark_features(sight, pixels[newest], memory[1], is_now, now), memory[4]
    if num_before < 0:
        num_before = _mark_features(sight, pixels[1 - newest], memory[2], is_before, before)
    end = start
    for k in range(num_now):
        feature = now[k]
        indices[end] = feature if is_before[feature] else num_features + feature
        end += 1
    for k in range(num_before):
        feature = before[k]
        if not is_now[feature]:
            indices[end] = 2 * num_features + feature
            end += 1
    indices[end] = 3 * num_features + memory[3]
    for k in range(num_before):
        is_before[before[k]] = 0
    memory[4] = num_now
    return end + 1


@_kernel
def decide(params, z, sight, pixels, memory, scratch, record, draw):  # type: ignore[no-untyped-def]
    """Observe, choose an action, and write both down: a step of a rollout but for the emulator.

    Definition: `pixelpong.learn.gated.forward` with a softmax, of the inputs of `observe_features`.

    Args:
        params: W1 [D, 2H], W2 [4, 2H], b2 [4].
        z: [2H], scratch; changed.
        sight, pixels, scratch: as in `observe_features`.
        memory: [6] int64, as there, and the number t of this step; changed: t grows by one, and
            the last action becomes the one chosen.
        record: what is written at step t:
            indices [N] uint16, the inputs that are 1, from ``offsets[t]`` on;
            offsets [≥ t + 2] int64;
            actions [≥ t + 1] int8, places in `ACTIONS`;
            numbers [≥ t + 1, 3] float64, the action's log-probability, the value, the policy's
            entropy.
        draw: in [0, 1), chooses the action; a negative one takes the most probable.

    Returns:
        The action's place in `ACTIONS`.
    """
    W1, W2, b2 = params
    indices, offsets, actions, numbers = record
    t = memory[5]
    end = observe_features(sight, pixels, memory, scratch, indices, offsets[t])
    offsets[t + 1] = end
    _add_rows(W1, indices, offsets[t], end, 0, z)
    _activate(z)
    y0, y1, y2 = (_dot(W2[0], z) + b2[0], _dot(W2[1], z) + b2[1], _dot(W2[2], z) + b2[2])
    highest = max(y0, y1, y2)
    log_sum = highest + np.log(np.exp(y0 - highest) + np.exp(y1 - highest) + np.exp(y2 - highest))
    log0, log1, log2 = y0 - log_sum, y1 - log_sum, y2 - log_sum
    p0, p1, p2 = np.exp(log0), np.exp(log1), np.exp(log2)
    if draw < 0:
        action = 0 if y0 == highest else 1 if y1 == highest else 2
    else:
        action = 0 if draw < p0 else 1 if draw < p0 + p1 else 2
    actions[t] = action
    numbers[t, 0] = log0 if action == 0 else log1 if action == 1 else log2
    numbers[t, 1] = _dot(W2[3], z) + b2[3]
    numbers[t, 2] = -(p0 * log0 + p1 * log1 + p2 * log2)
    memory[3], memory[5] = action, t + 1
    return action


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
