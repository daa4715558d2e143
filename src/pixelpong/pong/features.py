"""The inputs of the fast network: cells of the field, pairs of cells, and the last action.

A cell is a rectangle of the preprocessed field. It is on if any of its pixels is on. Small cells
say where something is; large cells carry over what was learned in one spot to its neighbourhood.

A pair is a displacement: it is on if two small cells that are this many columns and rows apart are
on. It contains the column only roughly, and the height not at all. So what the network learns about
two approaching objects holds wherever they meet; with cells alone it would have to learn it again
at each spot. Every row of the displacement matters, because where the ball hits the paddle decides
how it bounces.

Each cell and each pair is a feature. In two consecutive frames it becomes one of three inputs:

    stayed    on in both
    appeared  on now, not before
    vanished  on before, not now

Three more inputs say which action the agent chose last, because sticky actions may still hold it.
All inputs are 0 or 1, and about 80 of them are 1. Nothing here is specific to balls and paddles.
This is the dense definition; `pixelpong.kernels.observing.observe_features` is the fast form.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.items import ACTIONS

CELL_SHAPES = ((1, 8), (8, 1), (8, 8))  # rows and columns of a cell; they divide 80
NUM_CELLS = sum((80 // rows) * (80 // columns) for rows, columns in CELL_SHAPES)

PAIR_SHAPE = (1, 2)  # rows and columns of the cells that form pairs
PAIR_ROWS, PAIR_COLUMNS = 80 // PAIR_SHAPE[0], 80 // PAIR_SHAPE[1]
PAIR_BAND = 8  # adjacent columns of these cells that count as one; they divide PAIR_COLUMNS
NUM_OFFSETS = 2 * PAIR_ROWS - 1  # rows between two cells: 1 − PAIR_ROWS … PAIR_ROWS − 1

# For each band of the right cell, the index of its closest displacement; then the total number of
# displacements. A band has as many as there are columns to the left of its rightmost column.
BAND_STARTS = tuple(
    int(start) for start in np.cumsum([0, *range(PAIR_BAND - 1, PAIR_COLUMNS, PAIR_BAND)])
)

NUM_PAIRS = BAND_STARTS[-1] * NUM_OFFSETS
NUM_FEATURES = NUM_CELLS + NUM_PAIRS
NUM_INPUTS = 3 * NUM_FEATURES + len(ACTIONS)


def find_cells(field: NDArray[Any]) -> NDArray[np.bool_]:
    """Find the cells that are on, [NUM_CELLS]: row by row for the first shape, then the next shape.

    In all functions here, `field` is [80, 80], and a pixel is on if it is not 0.
    """
    return np.concatenate([_divide(field, shape).ravel() for shape in CELL_SHAPES])


def find_pairs(field: NDArray[Any]) -> NDArray[np.bool_]:
    """Find the pairs that are on, [NUM_PAIRS].

    They are ordered by the band of columns of the right cell, then by the columns from the left
    cell to it, starting at 1, then by the rows that the left cell is below it, starting at
    1 − PAIR_ROWS.
    """
    is_on = _divide(field, PAIR_SHAPE)
    pairs = np.zeros((BAND_STARTS[-1], NUM_OFFSETS), np.bool_)
    rights = np.argwhere(is_on)
    for row, column in np.argwhere(is_on):
        distances = rights[:, 1] - column
        ours = distances > 0
        bands = rights[ours, 1] // PAIR_BAND
        indices = np.array(BAND_STARTS)[bands] + distances[ours] - 1
        pairs[indices, row - rights[ours, 0] + PAIR_ROWS - 1] = True
    return pairs.ravel()


def find_features(field: NDArray[Any]) -> NDArray[np.bool_]:
    """Find the features that are on, cells before pairs: [NUM_FEATURES] bool.

    A field with more than half of its pixels on has no features: after 18 minutes the cartridge
    stops the game and cycles through all colours.
    """
    if 2 * np.count_nonzero(field) > field.size:
        return np.zeros(NUM_FEATURES, np.bool_)
    return np.concatenate([find_cells(field), find_pairs(field)])


def observe_features(
    previous: NDArray[Any], current: NDArray[Any], last_action: int
) -> NDArray[np.float32]:
    """Compute the inputs of the network: [NUM_INPUTS] of 0 and 1.

    `previous` is all zeros at the first step of an episode; `last_action` is an index in `ACTIONS`.
    """
    before, now = find_features(previous), find_features(current)
    asked = np.arange(len(ACTIONS)) == last_action
    parts = (before & now, now & ~before, before & ~now, asked)
    return np.concatenate(parts).astype(np.float32)


@functools.cache
def list_cells_of_pixels() -> NDArray[np.uint16]:
    """List the cells that contain each pixel, [6400, number of shapes + 1]; do not change them.

    There is one column per shape, with an index in the result of `find_cells`. The last column has
    the cell that forms pairs, as row · PAIR_COLUMNS + column.
    """
    row, column = np.divmod(np.arange(80 * 80), 80)
    columns, base = [], 0
    for shape in CELL_SHAPES:
        columns.append(base + row // shape[0] * (80 // shape[1]) + column // shape[1])
        base += (80 // shape[0]) * (80 // shape[1])
    columns.append(row // PAIR_SHAPE[0] * PAIR_COLUMNS + column // PAIR_SHAPE[1])
    return np.stack(columns, axis=1).astype(np.uint16)


@functools.cache
def list_geometry() -> NDArray[np.int64]:
    """Return the geometry for `pixelpong.kernels.observing.observe_features`, [2 + PAIR_COLUMNS].

    The first two entries are NUM_FEATURES and NUM_OFFSETS. The others are for the columns of a
    pair's right cell: the feature whose left cell is in the same row, one column to the left. Do
    not change the array.
    """
    bands = np.arange(PAIR_COLUMNS) // PAIR_BAND
    beside = NUM_CELLS + np.array(BAND_STARTS)[bands] * NUM_OFFSETS + PAIR_ROWS - 1
    return np.array([NUM_FEATURES, NUM_OFFSETS, *beside])


def share_among_pixels(
    now: NDArray[np.integer[Any]],
    before: NDArray[np.integer[Any]],
    inputs: NDArray[np.integer[Any]],
    shares: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Divide the contribution of each input equally among the pixels that turn it on.

    A cell that stayed or appeared has its pixels in the newest frame; one that vanished has them in
    the previous frame. A pair gives half to the pixels of each cell. The last action gives nothing.
    `now` and `before` hold active pixels; `shares` is the contribution of each of the `inputs` that
    are 1. The result, [80, 80], adds up to the sum of `shares` without the last action's share.
    """
    worth = np.zeros(NUM_INPUTS)
    worth[inputs] = shares
    stayed, appeared, vanished = worth[: 3 * NUM_FEATURES].reshape(3, NUM_FEATURES)
    pixels = np.zeros(80 * 80)
    for frame, worths in ((now, stayed + appeared), (before, vanished)):
        cells = list_cells_of_pixels()[frame].astype(np.intp)
        for column in range(len(CELL_SHAPES)):
            pixels[frame] += _share(cells[:, column], worths)
        pixels[frame] += _share(cells[:, -1], _worths_in_pairs(np.unique(cells[:, -1]), worths))
    return pixels.reshape(80, 80)


def _share(cells: NDArray[np.intp], worths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide each cell's contribution equally among its pixels, given the cell of each pixel."""
    counts = np.bincount(cells, minlength=len(worths))
    return worths[cells] / counts[cells]


def _worths_in_pairs(cells: NDArray[np.intp], worths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the contribution of each cell that forms pairs: half of each pair's."""
    rows, columns = np.divmod(cells, PAIR_COLUMNS)
    left, right = np.nonzero(columns[:, None] < columns[None, :])
    beside = list_geometry()[2:]
    pairs = (
        beside[columns[right]]
        + (columns[right] - columns[left] - 1) * NUM_OFFSETS
        + rows[left]
        - rows[right]
    )
    halves = _share(pairs, worths) / 2
    worth_of_cells = np.zeros(PAIR_ROWS * PAIR_COLUMNS)
    for side in (left, right):
        np.add.at(worth_of_cells, cells[side], halves)
    return worth_of_cells


def _divide(field: NDArray[Any], shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Find the cells of a shape that are on: [rows of cells, columns of cells] bool."""
    assert field.shape == (80, 80), field.shape
    rows, columns = shape
    blocks = (field != 0).reshape(80 // rows, rows, 80 // columns, columns)
    is_on: NDArray[np.bool_] = blocks.any(axis=(1, 3))
    return is_on
