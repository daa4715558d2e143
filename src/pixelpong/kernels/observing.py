"""The observations of a network: parts of the kernels that play.

The classic network sees the pixels that changed; the gated one sees features of the last two
frames.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.steps.compiling import kernel_part
from pixelpong.atari.steps.intrinsics import lowest_bit, reverse
from pixelpong.items import NUM_PIXELS


class Geometry(NamedTuple):
    """The geometry of the gated network's features; see `pixelpong.pong.features`."""

    cells: NDArray[np.uint16]  # [NUM_PIXELS, ·], `list_cells_of_pixels`
    numbers: NDArray[np.int64]  # `list_geometry`


class Seen(NamedTuple):
    """The features that one side saw in the previous frame, and scratch; changed."""

    # [4, NUM_MARKS]: for each of the two frames, a 1 at each feature that is on; then for each
    # frame, the list of these features.
    marks: NDArray[np.uint16]
    # [1], the number of features in the previous frame, or −1 if they are not known yet and all
    # marks are 0.
    num_before: NDArray[np.int64]
    pixels: NDArray[np.uint16]  # [NUM_PIXELS]


MAX_ACTIVE = NUM_PIXELS  # the most active inputs that a step of the classic network can have


@kernel_part
def find_difference(stream, indices, start):  # type: ignore[no-untyped-def]
    """Write the signed indices of the changed pixels to ``indices[start:]``, in ascending order.

    Definition: `pixelpong.pong.preprocess.difference`; the sign is encoded as in `Played`. At the
    first step of an episode nothing is written. `indices` needs room for `MAX_ACTIVE` entries.
    Returns the end of the written part.
    """
    game, end = stream.game, start
    now, before = stream.fields[game.newest], stream.fields[1 - game.newest]
    for word in range(160 if game.steps > 0 else 0):
        bits = now[word >> 1, word & 1]
        changed = bits ^ before[word >> 1, word & 1]
        while changed != 0:
            bit = lowest_bit(changed)
            is_on = bits >> np.uint64(bit) & np.uint64(1)
            pixel = (word >> 1) * 80 + (word & 1) * 64 + bit
            indices[end] = pixel if is_on else NUM_PIXELS + pixel
            end += 1
            changed &= changed - np.uint64(1)
    return end


@kernel_part
def list_pixels(field, is_left, pixels):  # type: ignore[no-untyped-def]
    """List a field's active pixels in order, mirrored for the left side; return their number."""
    count = 0
    for word in range(160):
        bits = field[word >> 1, word & 1]
        if is_left:  # column x becomes 79 − x
            first, second = reverse(field[word >> 1, 0]), reverse(field[word >> 1, 1])
            bits = first >> 48 if word & 1 else first << 16 | second >> 48
        while bits != 0:
            pixels[count] = (word >> 1) * 80 + (word & 1) * 64 + lowest_bit(bits)
            count += 1
            bits &= bits - np.uint64(1)
    return count


@kernel_part
def _mark_features(geometry, field, is_left, pixels, is_on, features):  # type: ignore[no-untyped-def]
    """Mark and list the features of a frame, in an order that depends only on the pixels."""
    cells, numbers = geometry.cells, geometry.numbers
    num_features, num_offsets, beside = numbers[0], numbers[1], numbers[2:]
    num_columns, num_shapes = len(beside), cells.shape[1] - 1
    num_pixels = list_pixels(field, is_left, pixels)
    if num_pixels > NUM_PIXELS // 2:
        return 0
    count = end = base = 0
    for shape in range(num_shapes + 1):
        if shape == num_shapes:
            # The cells that form pairs are stored after the features while needed.
            count, base, end = end, num_features, num_features
        for k in range(num_pixels):
            cell = base + cells[pixels[k], shape]
            if not is_on[cell]:
                is_on[cell] = 1
                features[end] = cell
                end += 1
    for i in range(num_features, end):
        is_on[features[i]] = 0
        features[i] -= num_features
    for i in range(num_features, end):
        row, column = features[i] // num_columns, features[i] % num_columns
        for j in range(num_features, end):
            distance = features[j] % num_columns - column
            if distance > 0:
                below = row - features[j] // num_columns
                pair = beside[column + distance] + (distance - 1) * num_offsets + below
                if not is_on[pair]:
                    is_on[pair] = 1
                    features[count] = pair
                    count += 1
    return count


@kernel_part
def observe_features(geometry, stream, side, seen, indices, start):  # type: ignore[no-untyped-def]
    """Write the indices of the inputs that are 1 for a side (0: right) to ``indices[start:]``.

    Definition: `pixelpong.pong.features.observe_features`. The order depends only on the pixels:
    the newest frame's features as they were found, then the vanished ones, then the last action.

    Args:
        geometry: `Geometry`.
        stream: `STREAM`.
        seen: this side's `Seen`; changed.
        indices: [≥ start + MAX_INPUTS] uint16; changed.

    Returns the end of the written part.
    """
    marks, pixels, fields = seen.marks, seen.pixels, stream.fields
    num_features, end = geometry.numbers[0], start
    now, before = stream.game.newest, 1 - stream.game.newest
    is_now, is_before = marks[now], marks[before]
    if seen.num_before[0] < 0:
        seen.num_before[0] = _mark_features(
            geometry, fields[before], side, pixels, is_before, marks[2 + before]
        )
    num_now = _mark_features(geometry, fields[now], side, pixels, is_now, marks[2 + now])
    for k in range(num_now):
        feature = marks[2 + now, k]
        indices[end] = feature if is_before[feature] else num_features + feature
        end += 1
    for k in range(seen.num_before[0]):
        feature = marks[2 + before, k]
        is_before[feature] = 0
        if not is_now[feature]:
            indices[end] = 2 * num_features + feature
            end += 1
    indices[end] = 3 * num_features + stream.last_actions[side]
    seen.num_before[0] = num_now
    return end + 1
