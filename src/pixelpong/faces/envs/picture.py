"""Making pictures smaller: where the pixels of the small picture lie in the large one.

Source: OpenCV's ``resize`` with ``INTER_AREA``, which ale-py uses. A pixel is the mean over the
area it covers; pixels on its border count in part. The weights are its float32 numbers, in the
order of its sums.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine import ROWS, WIDTH
from pixelpong.atari.palette import PALETTE
from pixelpong.errors import ConfigError, expected

_LEAST_SHARE = 1e-3  # of a pixel; less is left out

# [3, 256] and [1, 256]: levels by palette index.
COLOURS = np.ascontiguousarray(PALETTE.T, np.float32)
GREYS = np.rint(PALETTE @ np.array([0.2989, 0.587, 0.114])).astype(np.float32)[None]

# Of each of N pixels of the small picture: the K pixels of the large one that it covers, [K, N],
# and their weights, [K, N]. If it covers fewer, the last one is repeated with weight 0.
Shares = tuple[NDArray[np.int64], NDArray[np.float32]]


def make_tables(height: int, width: int) -> tuple[Shares, Shares, NDArray[np.int64]]:
    """Make what kernels need to make pictures smaller: shares of columns, of rows, and twins.

    A row's twin, or −1, is an earlier row with the same weights: both are equal if all rows that
    they cover are.
    """
    is_whole = ROWS % height == 0 and WIDTH % width == 0
    if is_whole and (height, width) != (ROWS, WIDTH):
        what = f"img_height or img_width not to divide {ROWS} and {WIDTH}"
        raise ConfigError(expected(what, f"{height} and {width}", "84 and 84 are usual"))
    rows = _list_shares(ROWS, height)
    seen: dict[bytes, int] = {}
    twins = np.full(height, -1)
    for y in range(height):
        key = rows[1][:, y].tobytes()
        twins[y] = seen.get(key, -1)
        seen[key] = y
    return _list_shares(WIDTH, width), rows, twins


def _list_shares(size: int, small: int) -> Shares:
    """The shares of `size` pixels in each of `small` pixels."""
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
    return np.ascontiguousarray(sources[:, :used].T), np.ascontiguousarray(weights[:, :used].T)
