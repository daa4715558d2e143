"""From a picture to the blobs in it, as parts of kernels.

Definition: `pixelpong.sight.blobs`; the order is the same. A picture is read as 64-bit words, so
eight pixels are compared with the background at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.steps.compiling import kernel_part
from pixelpong.sight.blobs import COLUMNS, MAX_BLOBS, MAX_LIT, NUM_CLASSES, ROWS, Sight
from pixelpong.sight.view import MAX_SMALL, NUM_FEATURES


class ViewSight(NamedTuple):
    """`pixelpong.sight.blobs.Sight` for compiled code."""

    background: NDArray[np.uint64]  # [210, 20], palette indices as 64-bit words
    classes: NDArray[np.uint8]  # [256]
    is_by_row: int  # 0 or 1
    player: int
    player_size: int


class ViewScratch(NamedTuple):
    """What is found in a picture; changed."""

    background: NDArray[np.uint64]  # [210, 20], of this picture if it is by row
    cells: NDArray[np.int32]  # [·, 3], row, column and class of each lit cell
    runs: NDArray[np.int32]  # [MAX_LIT, 6], see RUN_ROW and so on
    blobs: NDArray[np.int32]  # [MAX_BLOBS, 8], see KIND and so on
    candidates: NDArray[np.int32]  # [·], features with repetitions
    marks: NDArray[np.uint8]  # [NUM_FEATURES], zeros between two calls


# The columns of ``ViewScratch.runs``: adjacent cells of one class in a row. A run's parent is an
# earlier run of the same blob, or itself; the blob is −1 for those after the first MAX_BLOBS.
RUN_ROW, RUN_LEFT, RUN_RIGHT, RUN_KIND, PARENT, BLOB = range(6)
# The columns of ``ViewScratch.blobs``. While the blob grows, X and Y are sums.
KIND, LEFT, RIGHT, TOP, BOTTOM, SIZE, X, Y = range(8)

_ONES = np.uint64(0x0101010101010101)
_BYTE, _PAIR = np.uint64(0xFF), np.uint64(0xFFFF)


def make_view_sight(sight: Sight) -> ViewSight:
    """Convert a sight for compiled code."""
    assert sight.background.shape == (2 * ROWS, 2 * COLUMNS), sight.background.shape
    assert sight.classes.shape == (256,), sight.classes.shape
    assert ((sight.classes > 0) & (sight.classes <= NUM_CLASSES)).all(), sight.classes
    background = np.ascontiguousarray(sight.background).view(np.uint64)
    facts = int(sight.is_by_row), int(sight.player), int(sight.player_size)
    return ViewSight(background, sight.classes, *facts)


def make_view_scratch() -> ViewScratch:
    """Make the arrays that a thread needs to look at pictures."""
    return ViewScratch(
        background=np.zeros((2 * ROWS, 2 * COLUMNS // 8), np.uint64),
        cells=np.zeros((MAX_LIT + COLUMNS, 3), np.int32),
        runs=np.zeros((MAX_LIT, 6), np.int32),
        blobs=np.zeros((MAX_BLOBS, 8), np.int32),
        candidates=np.zeros(MAX_SMALL**2 + 2 * MAX_SMALL + 3 + 2 * MAX_LIT, np.int32),
        marks=np.zeros(NUM_FEATURES, np.uint8),
    )


@kernel_part
def vote(row):  # type: ignore[no-untyped-def]
    """Return the colour with most votes in a row of pixels, [20] words."""
    colour, lead = row[0] & _BYTE, 0
    for k in range(len(row)):
        for half in range(2):
            pixel = row[k] >> np.uint64(32 * half) & _BYTE
            if lead == 0:
                colour = pixel
            lead += 1 if pixel == colour else -1
    return colour


@kernel_part
def find_cells(words, sight, scratch):  # type: ignore[no-untyped-def]
    """List the lit cells of a picture, [≥ 210, 20] words; return their number, or 0 if too many."""
    if sight.is_by_row:
        _fill_rows(words, scratch.background)
        return _list_cells(words, scratch.background, sight.classes, scratch.cells)
    return _list_cells(words, sight.background, sight.classes, scratch.cells)


@kernel_part
def _fill_rows(words, background):  # type: ignore[no-untyped-def]
    """Make the background by row."""
    for y in range(0, 2 * ROWS, 2):
        fill = vote(words[y]) * _ONES
        for k in range(background.shape[1]):
            background[y, k] = background[y + 1, k] = fill


@kernel_part
def _list_cells(words, background, classes, cells):  # type: ignore[no-untyped-def]
    """List the cells that differ from the background; return their number, or 0 if too many."""
    count = 0
    for y in range(ROWS):
        differs = np.uint64(0)
        for k in range(2 * COLUMNS // 8):  # the processor can do several at a time
            differs |= words[2 * y, k] ^ background[2 * y, k]
            differs |= words[2 * y + 1, k] ^ background[2 * y + 1, k]
        if differs == 0:
            continue
        for k in range(2 * COLUMNS // 8):
            first = words[2 * y, k] ^ background[2 * y, k]
            second = words[2 * y + 1, k] ^ background[2 * y + 1, k]
            changed = first | second
            if changed == 0:
                continue
            for cell in range(4):  # `lowest_bit` would make the loop around it twice as slow
                shift = np.uint64(16 * cell)
                if changed >> shift & _PAIR == 0:
                    continue
                pixels, differs = words[2 * y, k] >> shift, first >> shift & _PAIR
                if differs == 0:
                    pixels, differs = words[2 * y + 1, k] >> shift, second >> shift & _PAIR
                if differs & _BYTE == 0:
                    pixels >>= np.uint64(8)
                cells[count, 0], cells[count, 1] = y, 4 * k + cell
                cells[count, 2] = classes[pixels & _BYTE]
                count += 1
        if count > MAX_LIT:
            return 0
    return count


@kernel_part
def find_blobs(scratch, num_cells):  # type: ignore[no-untyped-def]
    """Find the blobs of the listed cells; return their number."""
    runs, blobs = scratch.runs, scratch.blobs
    num_runs = _find_runs(scratch.cells, num_cells, runs)
    count = 0
    for r in range(num_runs):
        first = _find_first(runs, r)
        left, right, y = runs[r, RUN_LEFT], runs[r, RUN_RIGHT], runs[r, RUN_ROW]
        size = right - left + 1
        if first == r:
            runs[r, BLOB] = -1
            if count < MAX_BLOBS:
                runs[r, BLOB] = count
                blob = blobs[count]
                blob[KIND], blob[SIZE] = runs[r, RUN_KIND], size
                blob[LEFT], blob[RIGHT] = left, right
                blob[TOP], blob[BOTTOM] = y, y
                blob[X], blob[Y] = (left + right) * size, 2 * y * size
                count += 1
        elif runs[first, BLOB] >= 0:
            blob = blobs[runs[first, BLOB]]
            if left < blob[LEFT]:
                blob[LEFT] = left
            if right > blob[RIGHT]:
                blob[RIGHT] = right
            blob[BOTTOM] = y
            blob[SIZE] += size
            blob[X] += (left + right) * size
            blob[Y] += 2 * y * size
    for i in range(count):
        size = blobs[i, SIZE]
        blobs[i, X] = (2 * blobs[i, X] + size) // (2 * size)
        blobs[i, Y] = (2 * blobs[i, Y] + size) // (2 * size)
    return count


@kernel_part
def _find_runs(cells, num_cells, runs):  # type: ignore[no-untyped-def]
    """List the runs, and join those that touch; return their number."""
    count = k = above = end_above = start = 0
    y = -2
    while k < num_cells:
        row, left, kind = cells[k, 0], cells[k, 1], cells[k, 2]
        right = left
        k += 1
        while k < num_cells and cells[k, 0] == row and cells[k, 2] == kind:
            if cells[k, 1] != right + 1:
                break
            right += 1
            k += 1
        if row != y:
            above, end_above = (start, count) if row == y + 1 else (count, count)
            start, y = count, row
        runs[count, RUN_ROW], runs[count, RUN_KIND] = row, kind
        runs[count, RUN_LEFT], runs[count, RUN_RIGHT] = left, right
        runs[count, PARENT] = count
        while above < end_above and runs[above, RUN_RIGHT] < left - 1:
            above += 1
        other = above
        while other < end_above and runs[other, RUN_LEFT] <= right + 1:
            if runs[other, RUN_KIND] == kind:
                a, b = _find_first(runs, other), _find_first(runs, count)
                if a < b:
                    runs[b, PARENT] = a
                else:
                    runs[a, PARENT] = b
            other += 1
        count += 1
    return count


@kernel_part
def _find_first(runs, r):  # type: ignore[no-untyped-def]
    """Return the first run of the blob that run r belongs to."""
    while runs[r, PARENT] != r:
        r = runs[r, PARENT]
    return r
