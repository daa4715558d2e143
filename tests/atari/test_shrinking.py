"""Pictures made smaller by compiled code are those of the definition, summed one by one.

That the definition is OpenCV's is tested where whole environments are compared with ale-py's.
"""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest

from pixelpong.atari.games.pictures import list_shares, make_shrinking
from pixelpong.atari.machine.record import WIDTH
from pixelpong.atari.machine.shrinking import LANES, Shares, Shrinking, make_ir
from pixelpong.errors import ConfigError

SIZES = [(84, 84), (210, 160), (1, 1), (1, 160), (209, 1), (17, 9), (100, 61), (64, 64), (53, 159)]


def sum_shares(lines, shares):
    """The weighted sums over the first axis, in float32, each addend in its turn."""
    total = np.zeros((shares.sources.shape[1], lines.shape[1]), np.float32)
    for sources, weights in zip(shares.sources, shares.weights, strict=True):
        total = total + weights[:, None] * lines[sources]
    return total


def shrink_slowly(first, second, columns, rows):
    """What the function should write."""
    levels = np.maximum(first, second).astype(np.float32)
    return np.rint(sum_shares(sum_shares(levels.T, columns).T, rows)).astype(np.uint8)


def shrink(shrinking, first, second, height, width):
    """What it writes; nothing around the arrays may change."""
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(shrinking.address)
    out = np.full(height * width + 64, 77, np.uint8)
    scratch = np.full(shrinking.scratch_size + 16, 77, np.float32)
    pictures = first.copy(), second.copy()
    function(*(each.ctypes.data for each in (*pictures, out, scratch)))
    assert np.array_equal(pictures, (first, second))
    assert (out[height * width :] == 77).all()
    assert (scratch[shrinking.scratch_size :] == 77).all()
    return out[: height * width].reshape(height, width)


def make_pictures(num_rows, rng):
    """Pairs of pictures [num_rows, 160]: noise, all equal, and rectangles that move."""
    yield tuple(rng.integers(0, 256, (2, num_rows, WIDTH), np.uint8))
    yield tuple(np.full((2, num_rows, WIDTH), 255, np.uint8))
    for count in (1, 4, 30):
        first = np.full((num_rows, WIDTH), rng.integers(256), np.uint8)
        second = first.copy()
        for _ in range(count):
            y, x, level = rng.integers(num_rows), rng.integers(WIDTH), rng.integers(256)
            height, width = rng.integers(1, 40, 2)
            first[y : y + height, x : x + width] = level
            second[y + 1 : y + 1 + height, x + 1 : x + 1 + width] = level
        yield first, second


@pytest.mark.parametrize("num_rows", [210, 214, 220, 230, 250])
def test_every_byte_is_the_definitions(num_rows, tmp_path):
    rng = np.random.default_rng(num_rows)
    others = [tuple(rng.integers(1, most + 1) for most in (num_rows, WIDTH)) for _ in range(4)]
    for height, width in SIZES + others:
        columns, rows = list_shares(WIDTH, width), list_shares(num_rows, height)
        shrinking = Shrinking(columns, rows, tmp_path)
        for first, second in make_pictures(num_rows, rng):
            want = shrink_slowly(first, second, columns, rows)
            for pair in ((first, second), (second, first)):
                seen = shrink(shrinking, *pair, height, width)
                np.testing.assert_array_equal(seen, want, f"{height} × {width}")


def test_the_sums_are_not_the_same_in_another_order():
    """So the pictures above would show it."""
    columns, rows = list_shares(WIDTH, 84), list_shares(210, 84)
    seen = []
    for step in (1, -1):
        turned = [Shares(*(each[::step] for each in shares)) for shares in (columns, rows)]
        seen.append(
            [shrink_slowly(*pair, *turned) for pair in make_pictures(210, np.random.default_rng(1))]
        )
    assert any((a != b).any() for a, b in zip(*seen, strict=True))


def test_a_pixel_is_the_mean_of_what_it_covers(tmp_path):
    """Within a rounding: of the exact area, by a cumulative sum in float64."""
    rng = np.random.default_rng(2)
    for height, width in SIZES:
        picture = rng.integers(0, 256, (210, WIDTH), np.uint8)
        exact = picture.astype(float)
        for axis, small in ((0, height), (1, width)):
            size = exact.shape[axis]
            sums = np.insert(np.cumsum(exact, axis), 0, 0, axis)
            edges = np.linspace(0, size, small + 1)
            whole = np.minimum(edges.astype(int), size - 1)
            low, high = (np.take(sums, whole + k, axis) for k in (0, 1))
            parts = np.expand_dims(edges - whole, 1 - axis)
            exact = np.diff(low + (high - low) * parts, axis=axis) * small / size
        shrinking = Shrinking(list_shares(WIDTH, width), list_shares(210, height), tmp_path)
        seen = shrink(shrinking, picture, picture, height, width)
        assert np.abs(seen - exact).max() < 0.51, (height, width)


def test_no_row_is_read_beyond_its_end():
    """The bytes that are read are constants of the code."""
    rows = list_shares(210, 84)
    for width in (*range(1, WIDTH, 13), 84, WIDTH):
        code = make_ir(list_shares(WIDTH, width), rows)
        begins = dict(re.findall(r"%([pq].address\d+) = .* ptr %\w+\.row, i64 (\d+)", code))
        counts = re.findall(r"load <(\d+) x i8>, ptr %([pq].address\d+)", code)
        assert len(begins) == len(counts) == 2 * -(-width // LANES), width
        assert max(int(begins[place]) + int(count) for count, place in counts) == WIDTH, width


def test_a_size_that_opencv_computes_otherwise_is_refused():
    with pytest.raises(ConfigError, match=r"img_height \d+ and img_width \d+ divide 210 and 160"):
        make_shrinking(105, 80)
