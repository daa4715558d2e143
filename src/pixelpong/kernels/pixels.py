"""What the two networks see of a screen, sparsely."""

from __future__ import annotations

import numpy as np
from numba import njit

from pixelpong.env.cells import NUM_CELLS
from pixelpong.trajectory import NUM_PIXELS

_kernel = njit(cache=True, nogil=True)

MAX_ACTIVE = 2 * NUM_PIXELS
"""More active inputs than this no step of the classic network can have."""

MAX_INPUTS = 2 * NUM_CELLS + 1
"""More active inputs than this no step of the fast network can have."""


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
        memory: [3] int64, which of the two is newest, its number of pixels and the other's;
            changed.
    """
    memory[0] = 1 - memory[0]
    memory[2] = memory[1]
    memory[1] = find_active(screen, is_active, pixels[memory[0]])


@_kernel
def _mark_cells(shapes, pixels, num_pixels, is_on, cells):  # type: ignore[no-untyped-def]
    """List the cells that are on and mark them; a cell's pixels may come in any order."""
    count = base = 0
    for shape in range(len(shapes)):
        rows, columns = shapes[shape]
        per_line = 80 // columns
        for k in range(num_pixels):
            pixel = np.int64(pixels[k])
            cell = base + pixel // 80 // rows * per_line + pixel % 80 // columns
            if not is_on[cell]:
                is_on[cell] = True
                cells[count] = cell
                count += 1
        base += 80 // rows * per_line
    return count


@_kernel
def observe_cells(  # type: ignore[no-untyped-def]
    shapes, pixels, memory, last_action, is_on, cells, indices, start
):
    """Write the inputs that are 1 into ``indices[start:]``.

    Definition: `pixelpong.env.cells.observe_cells`. They come in an order that follows from the
    pixels alone: the cells of now as they are first met, those that vanished, the last action.

    Args:
        shapes: [·, 2] int64, `pixelpong.env.cells.CELL_SHAPES`.
        pixels: [2, NUM_PIXELS] uint16, the active pixels of two frames in turn.
        memory: [3] int64, which of the two is newest, its number of pixels and the other's.
        last_action: place in `ACTIONS`.
        is_on: [2, NUM_CELLS] bool, all False; the same afterwards.
        cells: [2, NUM_CELLS] uint16, overwritten.
        indices: [≥ start + MAX_INPUTS] uint16; changed.
        start: where to begin.

    Returns:
        Where the written part ends.
    """
    newest, num_cells = memory[0], is_on.shape[1]
    num_now = _mark_cells(shapes, pixels[newest], memory[1], is_on[0], cells[0])
    num_before = _mark_cells(shapes, pixels[1 - newest], memory[2], is_on[1], cells[1])
    end = start
    for k in range(num_now):
        cell = cells[0, k]
        indices[end] = cell if is_on[1, cell] else num_cells + cell
        end += 1
    for k in range(num_before):
        cell = cells[1, k]
        if not is_on[0, cell]:
            indices[end] = 2 * num_cells + cell
            end += 1
    indices[end] = 3 * num_cells + last_action
    for k in range(num_now):
        is_on[0, cells[0, k]] = False
    for k in range(num_before):
        is_on[1, cells[1, k]] = False
    return end + 1
