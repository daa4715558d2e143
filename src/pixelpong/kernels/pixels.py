"""The drawn pixels of a screen, and what the classic network sees of them."""

from __future__ import annotations

import numpy as np

from pixelpong.kernels.compiling import compiled
from pixelpong.trajectory import NUM_PIXELS

_kernel = compiled()

MAX_ACTIVE = 2 * NUM_PIXELS
"""More active inputs than this no step of the classic network can have."""


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
def take_frame(screen, is_active, pixels, memory):  # type: ignore[no-untyped-def]
    """Make `screen` the newest of two frames; the newest becomes the one before.

    Args:
        screen: [210, 160] uint8, palette indices.
        is_active: [256] bool.
        pixels: [2, NUM_PIXELS] uint16, the active pixels of two frames in turn; changed.
        memory: [≥ 3] int64, which of the two is newest, its number of pixels and the other's;
            changed.
    """
    memory[0] = 1 - memory[0]
    memory[2] = memory[1]
    memory[1] = find_active(screen, is_active, pixels[memory[0]])
