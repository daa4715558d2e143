"""What the fast network sees: which cells of the field are on, at several resolutions.

A cell is a rectangle of the preprocessed field, and it is on where any of its pixels is. Each
cell of each shape is seen in two consecutive frames, as one of three inputs:

    stayed    on in both
    appeared  on now, not before
    vanished  on before, not now

so that what moves has inputs of its own. Three more inputs say which action was asked for last:
with sticky actions it may still be held. All inputs are 0 or 1, and some 70 of them are 1.

Nothing here knows of balls and paddles. Small cells say where something is, large ones let what
was learned at one place hold beside it.

Covered: the dense definition. Not covered: the fast form (`pixelpong.kernels.observe_cells`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.trajectory import ACTIONS

CELL_SHAPES = ((1, 8), (8, 1), (2, 2), (4, 4), (8, 8))
"""Rows and columns of a cell; they divide 80."""

NUM_CELLS = sum((80 // rows) * (80 // columns) for rows, columns in CELL_SHAPES)

NUM_INPUTS = 3 * NUM_CELLS + len(ACTIONS)


def find_cells(field: NDArray[Any]) -> NDArray[np.bool_]:
    """Which cells are on: those of the first shape row by row, then those of the next.

    Args:
        field: [80, 80], not 0 where a pixel is on.

    Returns:
        [NUM_CELLS] bool.
    """
    assert field.shape == (80, 80), field.shape
    maps = []
    for rows, columns in CELL_SHAPES:
        blocks = (field != 0).reshape(80 // rows, rows, 80 // columns, columns)
        maps.append(blocks.any(axis=(1, 3)).ravel())
    return np.concatenate(maps)


def observe_cells(
    previous: NDArray[Any], current: NDArray[Any], last_action: int
) -> NDArray[np.float32]:
    """The inputs of the network: [NUM_INPUTS] of 0 and 1.

    Args:
        previous: [80, 80], the frame before; all zeros at the first step of an episode.
        current: [80, 80].
        last_action: place in `ACTIONS` of what was asked for at the step before.
    """
    before, now = find_cells(previous), find_cells(current)
    asked = np.arange(len(ACTIONS)) == last_action
    parts = (before & now, now & ~before, before & ~now, asked)
    return np.concatenate(parts).astype(np.float32)
