"""The view of games, and the weights that reduce pictures to a smaller size.

Source: OpenCV's ``resize`` with ``INTER_AREA``, which ale-py uses. Each small pixel is the mean
over the area it covers; pixels on its border count in part. The weights are OpenCV's float32
numbers, and the sums have the same order.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine.palette import GREYS, PALETTES
from pixelpong.atari.machine.record import ROWS, WIDTH
from pixelpong.atari.machine.shrinking import Shares, Shrinking
from pixelpong.errors import ConfigError


@dataclass(frozen=True)
class View:
    """The observation of games."""

    observation: str  # "atari", "frame", "field", "pixels", or "nothing"
    keeps_frames: bool = False  # whether the newest frames are kept
    # These are only for "atari".
    height: int = 84
    width: int = 84
    channels: int = 1  # 1: grey, 3: colour
    stack: int = 4  # number of pictures
    takes_two: bool = False  # whether a picture is the maximum of two frames
    # Facts about the game's picture; of several games, the most rows.
    rows: int = ROWS
    palette: str = "NTSC"

    @property
    def has_pictures(self) -> bool:
        """Whether the console has to draw pictures; otherwise it draws fields."""
        return self.observation == "atari" or self.keeps_frames

    @property
    def has_levels(self) -> bool:
        """Whether the console draws the levels of a single channel instead of palette indices."""
        return self.observation == "atari" and self.channels == 1 and not self.keeps_frames

    @property
    def levels(self) -> NDArray[np.uint8]:
        """The level of each palette index, [channels, 256]."""
        if self.channels == 1:
            return GREYS[self.palette][None]
        return np.ascontiguousarray(PALETTES[self.palette].T)


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
    """The share that each of `size` pixels has in each of `small` pixels."""
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
