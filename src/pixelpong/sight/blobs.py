"""From a picture to the blobs in it and the player's figure: what a game's sight consists of.

A picture is divided into cells of 2 × 2 pixels. A cell is lit if it differs from the game's
background. Lit cells of one class that touch, also at a corner, are a blob. One kind of blob moves
as the actions say: that is the player's figure. See `pixelpong.sight.view`, which says what for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

ROWS, COLUMNS = 105, 80  # of cells
NUM_CLASSES = 15  # 1 … 15
MAX_LIT = 3000  # a picture with more lit cells shows nothing
MAX_BLOBS = 256  # the first ones, row by row
# Where the player is thought to be until it is seen, in half cells. Before it is, the nearest blob
# is rather the figure than one of the lives that are left, as in Asterix, at the screen's edge.
MIDDLE = COLUMNS, ROWS - 1


@dataclass(frozen=True, eq=False)
class Sight:
    """What is known about how a game looks; `pixelpong.play.finding` learns it."""

    background: NDArray[np.uint8]  # [210, 160], palette indices
    is_by_row: bool  # whether each pair of rows has a background of its own in each picture
    classes: NDArray[np.uint8]  # [256], the class of each palette index, 1 … NUM_CLASSES
    player: int  # the class of the player's figure; 0: none was found
    player_size: int  # its size in cells


class Blob(NamedTuple):
    """A blob: its class, bounding box (in cells, inclusive), size in cells, and middle."""

    kind: int
    left: int
    right: int
    top: int
    bottom: int
    size: int
    x: int  # in half cells
    y: int


def find_cells(
    sight: Sight, picture: NDArray[np.uint8]
) -> tuple[NDArray[np.intp], NDArray[np.uint8]]:
    """Find the lit cells, row by row, and their classes; none if there are too many.

    The class is that of the cell's first pixel that differs from the background.
    """
    background = find_row_background(picture) if sight.is_by_row else sight.background
    colours, differs = _divide(picture), _divide(picture != background)
    cells = np.flatnonzero(differs.any(axis=1))
    if len(cells) > MAX_LIT:
        cells = cells[:0]
    return cells, sight.classes[colours[cells, differs[cells].argmax(axis=1)]]


def find_row_background(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Find the colour of most pixels in each pair of rows, [210, 1].

    If there is a majority, the vote of Boyer and Moore finds it. Every fourth pixel of the upper
    row has a vote.
    """
    colours, lead = picture[::2, 0], np.zeros(ROWS, np.int64)
    for x in range(0, 2 * COLUMNS, 4):
        pixels = picture[::2, x]
        colours = np.where(lead == 0, pixels, colours)
        lead += np.where(pixels == colours, 1, -1)
    return np.repeat(colours, 2)[:, None]


def find_blobs(
    cells: NDArray[np.intp], classes: NDArray[np.uint8]
) -> tuple[list[Blob], NDArray[np.intp]]:
    """Find the blobs, in the order of their first cells; also the blob of each cell, or −1."""
    rows, columns = np.divmod(cells, COLUMNS)
    positions = [(int(y), int(x)) for y, x in zip(rows, columns, strict=True)]
    index_at = {position: k for k, position in enumerate(positions)}
    members, blobs = np.full(len(cells), -1, np.intp), list[Blob]()
    for first, kind in enumerate(classes.tolist()):
        if members[first] >= 0 or len(blobs) == MAX_BLOBS:
            continue
        members[first], left = len(blobs), [first]
        while left:
            row, column = positions[left.pop()]
            for step in range(9):  # the cell itself and its neighbours
                other = index_at.get((row + step // 3 - 1, column + step % 3 - 1))
                if other is not None and members[other] < 0 and classes[other] == kind:
                    members[other] = len(blobs)
                    left.append(other)
        ys, xs = rows[members == len(blobs)], columns[members == len(blobs)]
        box = int(xs.min()), int(xs.max()), int(ys.min()), int(ys.max())
        blobs.append(Blob(kind, *box, len(xs), _mean(xs), _mean(ys)))
    return blobs, members


def find_player(
    sight: Sight, blobs: Sequence[Blob], position: tuple[int, int] | None
) -> int | None:
    """Return the index of the player's blob, or None if it is not in the picture."""

    def distance(i: int) -> int:
        x, y = position or MIDDLE
        away = abs(blobs[i].x - x) + abs(blobs[i].y - y)
        return 2 * abs(blobs[i].size - sight.player_size) + away

    own = [i for i, blob in enumerate(blobs) if blob.kind == sight.player]
    own = [i for i in own if blobs[i].size <= 3 * sight.player_size <= 9 * blobs[i].size]
    return min(own, key=distance, default=None)


def _divide(picture: NDArray[Any]) -> NDArray[Any]:
    """Divide a picture into cells, [cells, 4]: upper left, upper right, lower left, lower right."""
    return picture.reshape(ROWS, 2, COLUMNS, 2).swapaxes(1, 2).reshape(-1, 4)


def _mean(positions: NDArray[np.intp]) -> int:
    """Return the mean of positions in half cells, rounded (a half is rounded up)."""
    return int(4 * positions.sum() + len(positions)) // (2 * len(positions))
