"""What the fast network sees: cells of the field, how things lie to each other, the last action.

A cell is a rectangle of the preprocessed field, and it is on where any of its pixels is. Each
cell of each shape is seen in two consecutive frames, as one of three inputs:

    stayed    on in both
    appeared  on now, not before
    vanished  on before, not now

Small cells say where something is, large ones let what was learned at one place hold beside it.

How things lie to each other is told by pairs of cells of one shape, the first taken from one
frame and the second from the next:

    pair      two columns of cells, and how many rows the second cell lies below the first

A pair does not say at which height it was seen. So what was learned of two things that approach
each other holds wherever they meet, and what moved alone is a pair with itself.

Three more inputs say which action was asked for last: with sticky actions it may still be held.
All inputs are 0 or 1, and some 120 of them are 1. Nothing here knows of balls and paddles.

Covered: the dense definition. Not covered: the fast form (`pixelpong.kernels.observe`).
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

NUM_PAIRS = PAIR_COLUMNS * PAIR_COLUMNS * (2 * PAIR_ROWS - 1)

NUM_INPUTS = 3 * NUM_CELLS + NUM_PAIRS + len(ACTIONS)


def find_cells(field: NDArray[Any]) -> NDArray[np.bool_]:
    """Which cells are on: those of the first shape row by row, then those of the next.

    Args:
        field: [80, 80], not 0 where a pixel is on.

    Returns:
        [NUM_CELLS] bool.
    """
    return np.concatenate([_divide(field, shape).ravel() for shape in CELL_SHAPES])


def find_pairs(previous: NDArray[Any], current: NDArray[Any]) -> NDArray[np.bool_]:
    """Which pairs there are of a cell that was on and one that is on now.

    Args:
        previous: [80, 80], the frame before.
        current: [80, 80].

    Returns:
        [PAIR_COLUMNS, PAIR_COLUMNS, 2 · PAIR_ROWS − 1] bool: the first cell's column, the
        second's, and by how many rows the second lies below the first, plus PAIR_ROWS − 1.
    """
    pairs = np.zeros((PAIR_COLUMNS, PAIR_COLUMNS, 2 * PAIR_ROWS - 1), np.bool_)
    seconds = np.argwhere(_divide(current, PAIR_SHAPE))
    for row, column in np.argwhere(_divide(previous, PAIR_SHAPE)):
        pairs[column, seconds[:, 1], seconds[:, 0] - row + PAIR_ROWS - 1] = True
    return pairs


def observe_features(
    previous: NDArray[Any], current: NDArray[Any], last_action: int
) -> NDArray[np.float32]:
    """The inputs of the network: [NUM_INPUTS] of 0 and 1.

    Args:
        previous: [80, 80], the frame before; all zeros at the first step of an episode.
        current: [80, 80].
        last_action: place in `ACTIONS` of what was asked for at the step before.
    """
    before, now = find_cells(previous), find_cells(current)
    pairs = find_pairs(previous, current).ravel()
    asked = np.arange(len(ACTIONS)) == last_action
    parts = (before & now, now & ~before, before & ~now, pairs, asked)
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
