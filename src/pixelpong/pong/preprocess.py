"""The preprocessing of frames in readable NumPy, which defines what the kernels compute.

Source: Karpathy, "Pong from Pixels" (2016): crop to the field, take every second pixel, set the
background to 0 and the rest to 1, and subtract consecutive frames. The originals write the zeros
and ones into the environment's own frame; this code does not change its input.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pixelpong.items import NUM_PIXELS
from pixelpong.pong import field as fields

FIELD_ROWS = slice(35, 195)  # rows of the frame without the points above and the border below
BACKGROUND_REDS = (0, 144, 109)  # black, during play, and in the first frame after a reset
IS_ACTIVE = np.array(fields.IS_ACTIVE, np.bool_)  # [256], whether a palette index becomes 1


def preprocess(frame: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Preprocess a frame for the classic network, from [210, 160, 3] to [80, 80] of 0 and 1."""
    assert frame.shape == (210, 160, 3), frame.shape
    red = frame[FIELD_ROWS][::2, ::2, 0]
    is_background = np.isin(red, BACKGROUND_REDS)
    return np.where(is_background, np.float32(0), np.float32(1))


def difference(
    previous: NDArray[np.float32] | None, current: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Subtract two preprocessed frames: [NUM_PIXELS] of −1, 0 and 1.

    At the first step of an episode, `previous` is None and the result is all zeros.
    """
    if previous is None:
        return np.zeros(NUM_PIXELS, np.float32)
    return (current - previous).ravel()


def pack_field(screen: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Preprocess a screen of palette indices, [210, 160], into the bits that the kernels read.

    Bit x of row y of the result, [80, 2], is set if `preprocess` returns 1 there.

    >>> screen = np.full((210, 160), 34, np.uint8)
    >>> screen[35 + 2 * 7, 2 * 65] = 200
    >>> hex(pack_field(screen)[7, 1])
    '0x2'
    """
    is_active = IS_ACTIVE[screen[FIELD_ROWS][::2, ::2]]
    field = np.zeros((80, 16), np.uint8)
    field[:, :10] = np.packbits(is_active, axis=1, bitorder="little")
    return field.view("<u8")


def are_fields(packed: NDArray[np.uint64]) -> bool:
    """Whether fields, [..., 80, 2], have no bits set outside their 80 columns."""
    return not (packed[..., 1] >> np.uint64(fields.FIELD_SIZE - 64)).any()


def mirror(screen: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Mirror a screen for the player on the left, so that its paddle is on the right.

    The columns that `preprocess` uses, every second one, are in reverse order.
    """
    return screen[:, (158 - np.arange(160)) % 160]
