"""What the fast network sees: cells of the field, how they lie to each other, the last action.

A cell is a rectangle of the preprocessed field, and it is on where any of its pixels is. Small
cells say where something is, large ones let what was learned at one place hold beside it.

A pair is two columns of cells and an offset: it is on where a cell in the first column is on and
one in the second, so many rows lower. It does not say at which height. So what was learned of two
things that approach each other holds wherever they meet; of cells alone it is learned anew at
each height.

Each cell and each pair is a feature, which is seen in two consecutive frames as one of three
inputs:

    stayed    on in both
    appeared  on now, not before
    vanished  on before, not now

Three more inputs say which action was asked for last: with sticky actions it may still be held.
All inputs are 0 or 1, and some 90 of them are 1. Nothing here knows of balls and paddles.

Covered: the dense definition. Not covered: the fast form (`pixelpong.kernels.observe_features`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.trajectory import ACTIONS

CELL_SHAPES = ((1, 8), (8, 1), (2, 2), (4, 4), (8, 8))
"""Rows and columns of a cell; they divide 80."""

NUM_CELLS = sum((80 // rows) * (80 // columns) for rows, columns in CELL_SHAPES)

PAIR_SHAPE = (2, 8)
"""Rows and columns of the cells that make pairs."""

PAIR_ROWS, PAIR_COLUMNS = 80 // PAIR_SHAPE[0], 80 // PAIR_SHAPE[1]

NUM_OFFSETS = 2 * PAIR_ROWS - 1

NUM_PAIRS = PAIR_COLUMNS * (PAIR_COLUMNS - 1) // 2 * NUM_OFFSETS

NUM_FEATURES = NUM_CELLS + NUM_PAIRS

NUM_INPUTS = 3 * NUM_FEATURES + len(ACTIONS)


def find_cells(field: NDArray[Any]) -> NDArray[np.bool_]:
    """Which cells are on: those of the first shape row by row, then those of the next.

    Args:
        field: [80, 80], not 0 where a pixel is on.

    Returns:
        [NUM_CELLS] bool.
    """
    return np.concatenate([_divide(field, shape).ravel() for shape in CELL_SHAPES])


def find_pairs(field: NDArray[Any]) -> NDArray[np.bool_]:
    """Which pairs of cells are on.

    Args:
        field: [80, 80], not 0 where a pixel is on.

    Returns:
        [NUM_PAIRS] bool: for the columns (0, 1), (0, 2) … in turn, NUM_OFFSETS places: by how many
        rows the second cell lies below the first, plus PAIR_ROWS − 1.
    """
    is_on = _divide(field, PAIR_SHAPE)
    # Two columns' correlation counts the pairs of rows at each offset.
    counts = [
        np.correlate(is_on[:, right].astype(int), is_on[:, left].astype(int), "full")
        for left in range(PAIR_COLUMNS)
        for right in range(left + 1, PAIR_COLUMNS)
    ]
    return np.concatenate(counts) > 0


def find_features(field: NDArray[Any]) -> NDArray[np.bool_]:
    """Cells, then pairs: [NUM_FEATURES] bool."""
    return np.concatenate([find_cells(field), find_pairs(field)])


def observe_features(
    previous: NDArray[Any], current: NDArray[Any], last_action: int
) -> NDArray[np.float32]:
    """The inputs of the network: [NUM_INPUTS] of 0 and 1.

    Args:
        previous: [80, 80], the frame before; all zeros at the first step of an episode.
        current: [80, 80].
        last_action: place in `ACTIONS` of what was asked for at the step before.
    """
    before, now = find_features(previous), find_features(current)
    asked = np.arange(len(ACTIONS)) == last_action
    parts = (before & now, now & ~before, before & ~now, asked)
    return np.concatenate(parts).astype(np.float32)


def list_cells_of_pixels() -> NDArray[np.uint16]:
    """For each pixel of the field, the cells that it is in.

    Returns:
        [6400, number of shapes + 1]: of each shape, the place in what `find_cells` returns; in
        the last column the cell that makes pairs, row · PAIR_COLUMNS + column.
    """
    row, column = np.divmod(np.arange(80 * 80), 80)
    columns, base = [], 0
    for shape in CELL_SHAPES:
        columns.append(base + row // shape[0] * (80 // shape[1]) + column // shape[1])
        base += (80 // shape[0]) * (80 // shape[1])
    columns.append(row // PAIR_SHAPE[0] * PAIR_COLUMNS + column // PAIR_SHAPE[1])
    return np.stack(columns, axis=1).astype(np.uint16)


def _divide(field: NDArray[Any], shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Which cells of a shape are on: [rows of cells, columns of cells] bool."""
    assert field.shape == (80, 80), field.shape
    rows, columns = shape
    blocks = (field != 0).reshape(80 // rows, rows, 80 // columns, columns)
    return blocks.any(axis=(1, 3))
