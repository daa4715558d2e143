"""The weights that reduce pictures to a smaller size.

Source: OpenCV's ``resize`` with ``INTER_AREA``, which ale-py uses. Each small pixel is the mean
over the area it covers; pixels on its border count in part. The weights are OpenCV's float32
numbers, and the sums have the same order.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from pixelpong.atari.machine.record import ROWS, WIDTH
from pixelpong.atari.machine.shrinking import Shares, Shrinking
from pixelpong.errors import ConfigError

_LEAST_SHARE = 1e-3  # smaller shares of a pixel are left out


def check_size(height: int, width: int, num_rows: int = ROWS) -> None:
    """Refuse a size that divides both sides of a picture, because OpenCV adds differently then."""
    is_whole = num_rows % height == 0 and WIDTH % width == 0
    if is_whole and (height, width) != (num_rows, WIDTH):
        sizes = f"img_height {height} and img_width {width} divide {num_rows} and {WIDTH}"
        raise ConfigError(f"{sizes}, which is not supported; 84 and 84 are usual.")


@functools.cache
def make_shrinking(height: int, width: int, num_rows: int = ROWS) -> Shrinking:
    """Make the function that reduces pictures of `num_rows` rows to this size."""
    check_size(height, width, num_rows)
    return Shrinking(list_shares(WIDTH, width), list_shares(num_rows, height))


def list_shares(size: int, small: int) -> Shares:
    """Compute the share that each of `size` pixels has in each of `small` pixels."""
    scale = size / small
    room = math.ceil(scale) + 1
    sources, weights = np.zeros((small, room), np.int64), np.zeros((small, room), np.float32)
    for i in range(small):
        begin, end = i * scale, (i + 1) * scale
        whole = min(scale, size - begin)
        first, last = math.ceil(begin), min(math.floor(end), size - 1)
        first = min(first, last)
        shares = [(k, 1 / whole) for k in range(first, last)]
        if first - begin > _LEAST_SHARE:
            shares.insert(0, (first - 1, (first - begin) / whole))
        if end - last > _LEAST_SHARE:
            shares.append((last, min(end - last, 1.0, whole) / whole))
        sources[i] = shares[-1][0]
        sources[i, : len(shares)], weights[i, : len(shares)] = zip(*shares, strict=True)
    used = weights.any(axis=0).sum()
    return Shares(sources[:, :used].T, weights[:, :used].T)
