"""The inputs of the fast network in any game: what is where, as seen from the player's figure.

1. Cells. A picture is divided into cells of 2 × 2 pixels. A cell is lit if it differs from the
   game's background, which was learned from random play. Its class says which colour it has.
2. Blobs. Lit cells of one class that touch, also at a corner, are a blob.
3. The player. One kind of blob moves as the actions say: that is the player's figure (Bellemare,
   Veness and Bowling, 2012, call this contingency awareness). It is the blob of the player's class
   that is nearest in size and to its last position.
4. Features, all relative to the player: for each lit cell that is not the player's own, its class
   and the tile it is in, near (2 × 2 cells, within 33 cells) and far (8 × 8 cells, everywhere).
   For each small blob that has moved since the frame before: how far, and the way that it goes, one
   of eight, with the tile that its middle is in, near (4 × 4 cells, within 32) and far. Also where
   the player is.
5. Inputs. In two consecutive frames a feature stayed, appeared or vanished. F features f make the
   inputs f, F + f and 2F + f; input 3F + a says that a was the last action.

So what is learned about something to the left of the player holds wherever both are. Pairs of all
blobs, as in Blob-PROST (Liang, Machado, Talvitie and Bowling, 2016), were measured and were worse:
after 0.3 million steps 5 points instead of 16 to 34 in Boxing, 9 instead of 25 in Breakout.

Places are in half cells, which are pixels: a blob's middle is the mean of its cells. This is the
definition; `pixelpong.kernels.viewing` is the fast form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.sight.blobs import (
    COLUMNS,
    MIDDLE,
    NUM_CLASSES,
    ROWS,
    Blob,
    Sight,
    find_blobs,
    find_cells,
    find_player,
)

MAX_FEATURES = 1200  # of a frame, the first ones
MAX_SMALL, MOST_CELLS, SMALL_CLASSES = 64, 40, 8  # small blobs: number, width and height, classes
MOST_MOVED = 16  # the farthest that a blob moves between two frames, in half cells
WAYS, WAY_CLASSES = 9, 4  # 3 × 3, of which the middle is none; classes c and c + 4 share them

# The sizes of the groups of features, and where each group starts.
NEAR, REACH = 33, 33  # tiles in each direction; cells to the left and above
FAR_ROWS, FAR_COLUMNS = 27, 20
MOVES = MOST_MOVED + 1  # in each direction, in cells
START_FAR = NUM_CLASSES * NEAR * NEAR
START_MOVES = START_FAR + NUM_CLASSES * FAR_ROWS * FAR_COLUMNS
START_ROUGH = START_MOVES + SMALL_CLASSES * MOVES * MOVES  # the player's position: exact column, …
START_ROUGHER = START_ROUGH + 80 * 7  # … exact row, …
START_ROUGHEST = START_ROUGHER + 5 * 105  # … neither
START_FAR_WAYS = START_ROUGHEST + 20 * 27
START_NEAR_WAYS = START_FAR_WAYS + WAY_CLASSES * WAYS * FAR_COLUMNS * FAR_ROWS
NUM_FEATURES = START_NEAR_WAYS + WAY_CLASSES * WAYS * 16 * 16


@dataclass(frozen=True, eq=False)
class View:
    """What is seen of one frame."""

    blobs: Sequence[Blob]
    position: tuple[int, int] | None  # where the player is or was last, in half cells
    # [L, 2], a feature and a cell (row · COLUMNS + column) that turns it on, in the order found
    links: NDArray[np.intp]
    features: NDArray[np.intp]  # [≤ MAX_FEATURES]


def see(sight: Sight, picture: NDArray[np.uint8], before: View | None) -> View:
    """Look at a picture, [≥ 210, 160] palette indices; `before` is the frame before, if any."""
    cells, classes = find_cells(sight, picture[: 2 * ROWS])
    blobs, members = find_blobs(cells, classes)
    position = before.position if before else None
    index = find_player(sight, blobs, position)
    player = None if index is None else blobs[index]
    position = (player.x, player.y) if player else position
    links = [np.zeros((0, 2), np.intp)]
    for i, feature in find_moves(blobs, before.blobs if before else (), position or MIDDLE):
        links.append(_link(cells[members == i], feature))
    if player:
        for feature in find_place(player.x, player.y):
            links.append(_link(cells[members == index], feature))
    links.append(find_tiles(cells, classes, player, position))
    all_links = np.concatenate(links)
    _, first = np.unique(all_links[:, 0], return_index=True)
    return View(blobs, position, all_links, all_links[np.sort(first)[:MAX_FEATURES], 0])


def observe(now: View, before: View | None, last_action: int) -> NDArray[np.intp]:
    """List the inputs that are 1; `last_action` is the index of the last action."""
    old = before.features if before else np.zeros(0, np.intp)
    appeared = ~np.isin(now.features, old) * NUM_FEATURES
    vanished = 2 * NUM_FEATURES + old[~np.isin(old, now.features)]
    return np.concatenate([now.features + appeared, vanished, [3 * NUM_FEATURES + last_action]])


def find_moves(
    blobs: Sequence[Blob], before: Sequence[Blob], position: tuple[int, int]
) -> list[tuple[int, int]]:
    """List how small blobs moved: pairs of a blob's index and a feature.

    A blob may come from each one that was near, of its class and about its size. If none was where
    it is, it goes the way from the nearest; `position` is the player's.
    """
    moves, old = [], [before[i] for i in list_small(before)]
    for i in list_small(blobs):
        kind, size, x, y = blobs[i].kind, blobs[i].size, blobs[i].x, blobs[i].y
        alike = [it for it in old if it.kind == kind and 2 * abs(it.size - size) <= size]
        steps = [(x - it.x, y - it.y) for it in alike]
        steps = [step for step in steps if max(map(abs, step)) <= MOST_MOVED]
        for dx, dy in steps:
            if (dx, dy) != (0, 0):
                move = ((dx >> 1) + MOVES // 2) * MOVES + (dy >> 1) + MOVES // 2
                moves.append((i, START_MOVES + (kind - 1) * MOVES * MOVES + move))
        if steps and (0, 0) not in steps:
            step = min(steps, key=lambda it: abs(it[0]) + abs(it[1]))
            moves += [(i, each) for each in find_way(kind, step, x - position[0], y - position[1])]
    return moves


def find_way(kind: int, step: tuple[int, int], x: int, y: int) -> list[int]:
    """Return the features that say which way a blob goes, at an offset from the player."""
    right, down = np.sign(step).tolist()
    way = (kind - 1) % WAY_CLASSES * WAYS + 3 * right + down + 4
    far = START_FAR_WAYS + (way * FAR_COLUMNS + ((x + 160) >> 4)) * FAR_ROWS + ((y + 216) >> 4)
    near = START_NEAR_WAYS + (way * 16 + ((x + 64) >> 3)) * 16 + ((y + 64) >> 3)
    return [far, near] if -64 <= min(x, y) and max(x, y) < 64 else [far]


def list_small(blobs: Sequence[Blob]) -> list[int]:
    """List the indices of the small blobs of the most frequent classes."""
    small = []
    for i, blob in enumerate(blobs):
        side = max(blob.right - blob.left, blob.bottom - blob.top) + 1
        if side <= MOST_CELLS and blob.kind <= SMALL_CLASSES:
            small.append(i)
    return small[:MAX_SMALL]


def find_place(x: int, y: int) -> tuple[int, int, int]:
    """Return the features that say where the player is."""
    return (
        START_ROUGH + (x >> 1) * 7 + (y >> 5),
        START_ROUGHER + (x >> 5) * 105 + (y >> 1),
        START_ROUGHEST + (x >> 3) * 27 + (y >> 3),
    )


def find_tiles(
    cells: NDArray[np.intp],
    classes: NDArray[np.uint8],
    player: Blob | None,
    position: tuple[int, int] | None,
) -> NDArray[np.intp]:
    """Link cells and the tiles that they turn on, [·, 2]: for each cell near, then far."""
    rows, columns = np.divmod(cells, COLUMNS)
    is_other = np.ones(len(cells), np.bool_)
    if player:
        is_other = (classes != player.kind) | (columns < player.left) | (columns > player.right)
        is_other |= (rows < player.top) | (rows > player.bottom)
    column, row = (each >> 1 for each in position or MIDDLE)
    dx, dy, kinds = columns - column, rows - row, classes.astype(np.intp) - 1
    near = (kinds * NEAR + ((dy + REACH) >> 1)) * NEAR + ((dx + REACH) >> 1)
    far = (kinds * FAR_ROWS + ((dy + 108) >> 3)) * FAR_COLUMNS + ((dx + 80) >> 3)
    is_near = (abs(2 * dx + 1) < 2 * REACH) & (abs(2 * dy + 1) < 2 * REACH)  # −33 … 32
    links = np.stack([_link(cells, near), _link(cells, START_FAR + far)], axis=1)
    return links[np.stack([is_near & is_other, is_other], axis=1)]


def _link(cells: NDArray[np.intp], features: Any) -> NDArray[np.intp]:
    """Link each cell with a feature, or with its own: [N, 2], the feature first."""
    return np.stack([np.broadcast_to(features, cells.shape), cells], axis=1)
