"""The observation of any game, as parts of the kernels that play.

Definition: `pixelpong.sight.view`; the order of all lists is the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.steps.compiling import kernel_part
from pixelpong.kernels.blobs import (
    BOTTOM,
    KIND,
    LEFT,
    RIGHT,
    SIZE,
    TOP,
    X,
    Y,
    find_blobs,
    find_cells,
)
from pixelpong.sight.blobs import COLUMNS, MIDDLE, ROWS
from pixelpong.sight.view import (
    FAR_COLUMNS,
    FAR_ROWS,
    MAX_FEATURES,
    MAX_SMALL,
    MOST_CELLS,
    MOST_MOVED,
    MOVES,
    NEAR,
    NUM_FEATURES,
    REACH,
    SMALL_CLASSES,
    START_FAR,
    START_FAR_WAYS,
    START_MOVES,
    START_NEAR_WAYS,
    START_ROUGH,
    START_ROUGHER,
    START_ROUGHEST,
    WAY_CLASSES,
    WAYS,
)

MAX_VIEW_INPUTS = 2 * MAX_FEATURES + 1  # of a step
assert NUM_FEATURES <= 2**16, "a stream keeps features in 16 bits"

VIEW_FIELDS: list[Any] = [
    ("position", np.int64, 2),  # where the player is or was last: column and row in half cells
    ("has_position", np.int64),  # 1 if the player has been seen in this episode
    ("num_small", np.int64),  # number of small blobs of the newest frame
    ("num_features", np.int64, 2),  # of the last two frames; `newest` says which is newer
    ("small", np.int16, (MAX_SMALL, 4)),  # their classes, sizes and middles (column, row)
    ("features", np.uint16, (2, MAX_FEATURES)),
]
VIEW = np.dtype(VIEW_FIELDS)
"""What a stream keeps between two steps of what was seen; all zeros at first, without padding."""


def are_views(records: NDArray[np.void]) -> bool:
    """Whether these records, [N] with the fields of `VIEW`, keep compiled code inside its arrays.

    The streams' `newest` is not one of the fields.
    """
    limits = {
        "position": (2 * COLUMNS - 1, 2 * ROWS - 1),
        "has_position": 1,
        "num_small": MAX_SMALL,
        "num_features": MAX_FEATURES,
        "features": NUM_FEATURES - 1,
    }
    each = ((records[name], limit) for name, limit in limits.items())
    return all(bool(((0 <= values) & (values <= limit)).all()) for values, limit in each)


@kernel_part
def _find_position(stream):  # type: ignore[no-untyped-def]
    """Return where the player is thought to be."""
    if stream.has_position:
        return stream.position[0], stream.position[1]
    return np.int64(MIDDLE[0]), np.int64(MIDDLE[1])


@kernel_part
def _find_player(sight, stream, blobs, num_blobs):  # type: ignore[no-untyped-def]
    """Return the index of the player's blob, or −1."""
    best, player = 0, -1
    x, y = _find_position(stream)
    for i in range(num_blobs):
        blob, size = blobs[i], sight.player_size
        if blob[KIND] == sight.player and blob[SIZE] <= 3 * size and size <= 3 * blob[SIZE]:
            distance = 2 * abs(blob[SIZE] - size) + abs(blob[X] - x) + abs(blob[Y] - y)
            if player < 0 or distance < best:
                best, player = distance, i
    return player


# --- features ---------------------------------------------------------------------------------


@kernel_part
def _is_small(blob):  # type: ignore[no-untyped-def]
    """Whether a blob is small and of one of the most frequent classes."""
    width, height = blob[RIGHT] - blob[LEFT] + 1, blob[BOTTOM] - blob[TOP] + 1
    return width <= MOST_CELLS and height <= MOST_CELLS and blob[KIND] <= SMALL_CLASSES


@kernel_part
def _list_moves(stream, scratch, num_blobs):  # type: ignore[no-untyped-def]
    """List how small blobs moved; return the length of the list, with repetitions."""
    blobs, candidates, old, count, num_small = scratch.blobs, scratch.candidates, stream.small, 0, 0
    column, row = _find_position(stream)
    for i in range(num_blobs):
        if num_small == MAX_SMALL or not _is_small(blobs[i]):
            continue
        num_small += 1
        kind, size, x, y = blobs[i, KIND], blobs[i, SIZE], blobs[i, X], blobs[i, Y]
        start = START_MOVES + (kind - 1) * MOVES * MOVES
        nearest, right, down = 2 * MOST_MOVED + 1, 0, 0
        for j in range(stream.num_small):
            if old[j, 0] != kind or 2 * abs(old[j, 1] - size) > size:
                continue
            dx, dy = x - old[j, 2], y - old[j, 3]
            if abs(dx) > MOST_MOVED or abs(dy) > MOST_MOVED:
                continue
            if abs(dx) + abs(dy) < nearest:
                nearest, right, down = abs(dx) + abs(dy), dx, dy
            if dx != 0 or dy != 0:
                candidates[count] = (
                    start + ((dx >> 1) + MOVES // 2) * MOVES + (dy >> 1) + MOVES // 2
                )
                count += 1
        if 0 < nearest <= 2 * MOST_MOVED:
            way = (kind - 1) % WAY_CLASSES * WAYS + 3 * _sign(right) + _sign(down) + 4
            count = _add_way(candidates, count, way, x - column, y - row)
    return count


@kernel_part
def _sign(number):  # type: ignore[no-untyped-def]
    return np.int64(number > 0) - np.int64(number < 0)


@kernel_part
def _add_way(candidates, count, way, x, y):  # type: ignore[no-untyped-def]
    """Add which way a blob goes, at an offset from the player; return the new length."""
    column, row = (x + 160) >> 4, (y + 216) >> 4
    candidates[count] = START_FAR_WAYS + (way * FAR_COLUMNS + column) * FAR_ROWS + row
    if -64 <= x < 64 and -64 <= y < 64:
        candidates[count + 1] = (
            START_NEAR_WAYS + (way * 16 + ((x + 64) >> 3)) * 16 + ((y + 64) >> 3)
        )
        return count + 2
    return count + 1


@kernel_part
def _keep_small(stream, blobs, num_blobs):  # type: ignore[no-untyped-def]
    """Keep the small blobs for the next frame."""
    small, count = stream.small, 0
    for i in range(num_blobs):
        if count < MAX_SMALL and _is_small(blobs[i]):
            small[count, 0], small[count, 1] = blobs[i, KIND], blobs[i, SIZE]
            small[count, 2], small[count, 3] = blobs[i, X], blobs[i, Y]
            count += 1
    stream.num_small = count


@kernel_part
def _list_tiles(stream, scratch, num_cells, player, count):  # type: ignore[no-untyped-def]
    """List the tiles that lit cells turn on; return the length of the list, with repetitions."""
    cells, candidates = scratch.cells, scratch.candidates
    x, y = _find_position(stream)
    column, row = x >> 1, y >> 1
    own, left, right, top, bottom = 0, 0, 0, 0, 0
    if player >= 0:
        blob = scratch.blobs[player]
        own = blob[KIND]
        left, right, top, bottom = blob[LEFT], blob[RIGHT], blob[TOP], blob[BOTTOM]
    for k in range(num_cells):
        y, x, kind = cells[k, 0], cells[k, 1], cells[k, 2]
        if kind == own and left <= x <= right and top <= y <= bottom:
            continue
        dx, dy = x - column, y - row
        if -REACH <= dx < REACH and -REACH <= dy < REACH:
            near = ((kind - 1) * NEAR + ((dy + REACH) >> 1)) * NEAR + ((dx + REACH) >> 1)
            candidates[count] = near
            count += 1
        far = ((kind - 1) * FAR_ROWS + ((dy + 108) >> 3)) * FAR_COLUMNS + ((dx + 80) >> 3)
        candidates[count] = START_FAR + far
        count += 1
    return count


@kernel_part
def _drop_repetitions(candidates, num_candidates, marks, features):  # type: ignore[no-untyped-def]
    """Write the features in the order found, each once; return their number."""
    count = 0
    for k in range(num_candidates):
        feature = candidates[k]
        if marks[feature] == 0 and count < MAX_FEATURES:
            marks[feature] = 1
            features[count] = feature
            count += 1
    for k in range(count):
        marks[features[k]] = 0
    return count


# --- streams ----------------------------------------------------------------------------------


@kernel_part
def forget_view(stream):  # type: ignore[no-untyped-def]
    """Forget what was seen in the episode before."""
    stream.position[0] = stream.position[1] = stream.has_position = stream.num_small = 0
    stream.num_features[0] = stream.num_features[1] = 0


@kernel_part
def take_view(words, sight, scratch, stream):  # type: ignore[no-untyped-def]
    """Look at a picture and keep its features in a stream as those of the newest frame.

    Args:
        words: [≥ 210, 20] uint64, palette indices.
        sight: `ViewSight`.
        scratch: `ViewScratch`; changed.
        stream: a record with the fields of `VIEW`, and ``game.newest``, which changes, too.
    """
    game, blobs, candidates = stream.game, scratch.blobs, scratch.candidates
    game.newest = 1 - game.newest
    num_cells = find_cells(words, sight, scratch)
    num_blobs = find_blobs(scratch, num_cells)
    player = _find_player(sight, stream, blobs, num_blobs)
    if player >= 0:
        stream.position[0], stream.position[1] = blobs[player, X], blobs[player, Y]
        stream.has_position = 1
    count = _list_moves(stream, scratch, num_blobs)
    _keep_small(stream, blobs, num_blobs)
    if player >= 0:
        x, y = _find_position(stream)
        candidates[count] = START_ROUGH + (x >> 1) * 7 + (y >> 5)
        candidates[count + 1] = START_ROUGHER + (x >> 5) * 105 + (y >> 1)
        candidates[count + 2] = START_ROUGHEST + (x >> 3) * 27 + (y >> 3)
        count += 3
    count = _list_tiles(stream, scratch, num_cells, player, count)
    features = stream.features[game.newest]
    stream.num_features[game.newest] = _drop_repetitions(candidates, count, scratch.marks, features)


@kernel_part
def observe_view(sight, scratch, stream, action, indices, start):  # type: ignore[no-untyped-def]
    """Write the indices of the inputs that are 1 to ``indices[start:]``.

    Args:
        sight: `ViewSight`; the same arguments as for other observations.
        scratch: `ViewScratch`; changed.
        stream: as for `take_view`.
        action: the index of the last action, at most 17.
        indices: [≥ start + MAX_VIEW_INPUTS]; changed.

    Returns the end of the written part.
    """
    marks, now, before, end = scratch.marks, stream.game.newest, 1 - stream.game.newest, start
    newer, older = stream.features[now], stream.features[before]
    num_older = stream.num_features[before]
    for k in range(num_older):
        marks[older[k]] = 1
    for k in range(stream.num_features[now]):
        feature = newer[k]
        indices[end] = feature if marks[feature] else NUM_FEATURES + feature
        if marks[feature]:
            marks[feature] = 2  # it has not vanished
        end += 1
    for k in range(num_older):
        feature = older[k]
        if marks[feature] == 1:
            indices[end] = 2 * NUM_FEATURES + feature
            end += 1
    for k in range(num_older):
        marks[older[k]] = 0
    indices[end] = 3 * NUM_FEATURES + action
    return end + 1
