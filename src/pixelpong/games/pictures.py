"""What is seen of games; and pictures made smaller: where their pixels lie in the large one.

Source: OpenCV's ``resize`` with ``INTER_AREA``, which ale-py uses. A pixel is the mean over the
area it covers; pixels on its border count in part. The weights are its float32 numbers, in the
order of its sums.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine import ROWS, WIDTH
from pixelpong.atari.palette import PALETTE
from pixelpong.atari.shrinking import Shares, Shrinking
from pixelpong.errors import ConfigError


@dataclass(frozen=True)
class View:
    """What is seen of games."""

    observation: str  # "atari", "frame", "field", "pixels", or "nothing"
    keeps_frames: bool = False  # the newest frames are kept
    # Of "atari" alone.
    height: int = 84
    width: int = 84
    channels: int = 1  # 1: grey, 3: colour
    stack: int = 4  # pictures
    takes_two: bool = False  # a picture is the maximum of two frames

    @property
    def has_pictures(self) -> bool:
        """Whether the console has to draw pictures; otherwise it draws fields."""
        return self.observation == "atari" or self.keeps_frames

    @property
    def has_levels(self) -> bool:
        """Whether the console draws the levels of the only channel, not palette indices."""
        return self.observation == "atari" and self.channels == 1 and not self.keeps_frames

    @property
    def levels(self) -> NDArray[np.uint8]:
        """[channels, 256], by palette index."""
        return GREYS if self.channels == 1 else COLOURS


_LEAST_SHARE = 1e-3  # of a pixel; less is left out

# [3, 256] and [1, 256]: levels by palette index.
COLOURS = np.ascontiguousarray(PALETTE.T)
GREYS = np.rint(PALETTE @ np.array([0.2989, 0.587, 0.114])).astype(np.uint8)[None]


@functools.cache
def make_shrinking(height: int, width: int, num_rows: int = ROWS) -> Shrinking:
    """Make what makes pictures of `num_rows` rows smaller."""
    is_whole = num_rows % height == 0 and WIDTH % width == 0
    if is_whole and (height, width) != (num_rows, WIDTH):
        sizes = f"img_height {height} and img_width {width} divide {num_rows} and {WIDTH}"
        raise ConfigError(f"{sizes}, which is not supported; 84 and 84 are usual.")
    return Shrinking(list_shares(WIDTH, width), list_shares(num_rows, height))


def list_shares(size: int, small: int) -> Shares:
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
    return Shares(sources[:, :used].T, weights[:, :used].T)
