"""What has changed of arrays since their start: back to the same bits, or refused."""

from __future__ import annotations

import tracemalloc
import zlib

import numpy as np
import pytest

from pixelpong.run.packing import pack, unpack

ROWS, COLUMNS = 5_000, 8


def make_start(dtype="float32"):
    rng = np.random.default_rng(0)
    return {"W1": rng.standard_normal((ROWS, COLUMNS, 2)).astype(dtype), "b": np.zeros(4, dtype)}


def changed(start, rows, value):
    arrays = {name: w.copy() for name, w in start.items()}
    arrays["W1"][rows] = value
    return arrays


ODD = np.frombuffer(np.uint32([0x7FC00001, 0xFFC0FFEE]).tobytes(), np.float32)
"""Two that are not numbers, with bits of their own."""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [[], [0], [3, 4, ROWS - 1], range(ROWS)], ids=len)
@pytest.mark.parametrize("value", [0.0, -0.0, 1e-45, 3.5, ODD[0], ODD[1]], ids=str)
def test_what_is_packed_comes_back_to_the_bit(dtype, rows, value):
    start = make_start(dtype)
    arrays = changed(start, list(rows), value)
    back = unpack(pack(arrays, start), lambda: make_start(dtype))
    assert back.keys() == arrays.keys()
    for name, w in arrays.items():
        assert (back[name].dtype, back[name].shape) == (w.dtype, w.shape)
        assert back[name].tobytes() == w.tobytes()


def test_what_has_no_start_is_kept_as_it_is():
    start = make_start()
    others = {
        "W1": start["W1"].astype(np.float64),
        "b": np.ones(4),
        "stream.0.snapshot": np.arange(100_000, dtype=np.uint8),
    }
    packed = pack(others, start)
    assert packed.keys() == others.keys()
    assert all(packed[name] is w for name, w in others.items())
    assert unpack(packed, draw=lambda: pytest.fail("nothing needs a start")) == packed


def test_a_row_that_has_not_changed_takes_no_room():
    start = make_start()
    packed = pack(changed(start, [7, 9], 1.0), start)
    assert packed["W1/rows"].tolist() == [7, 9]
    assert sum(w.nbytes for w in packed.values()) < 200


def test_exponents_are_deflated():
    start = {"W1": np.zeros((ROWS, COLUMNS), np.float32)}
    values = np.random.default_rng(1).standard_normal((ROWS, COLUMNS)).astype(np.float32)
    packed = pack({"W1": values}, start)
    sizes = [len(packed[f"W1/{place}"]) for place in range(4)]
    assert sizes[:3] == [values.size] * 3, "the others are as good as random"
    assert sizes[3] < 0.6 * values.size


def bomb(size: int):
    return np.frombuffer(zlib.compress(bytes(size), 9), np.uint8)


def of_plane(change):
    return lambda packed: packed | {"W1/3": change(packed["W1/3"])}


ODD_PACKS = {
    "rows in another order": lambda p: p | {"W1/rows": p["W1/rows"][::-1].copy()},
    "a row twice": lambda p: p | {"W1/rows": np.full(ROWS, 3, np.uint32)},
    "a row beyond": lambda p: p | {"W1/rows": p["W1/rows"] + np.uint32(1)},
    "rows of another type": lambda p: p | {"W1/rows": p["W1/rows"].astype(np.float32)},
    "no rows": lambda p: {name: w for name, w in p.items() if name != "W1/rows"},
    "no plane": lambda p: {name: w for name, w in p.items() if name != "W1/2"},
    "both": lambda p: p | {"W1": np.zeros((ROWS, COLUMNS, 2), np.float32)},
    "an unknown name": lambda p: p | {"W9/rows": p["W1/rows"]},
    "a plane of numbers": of_plane(lambda w: w.astype(np.uint16)),
    "a plane in two dimensions": of_plane(lambda w: w.reshape(1, -1)),
    "a plane that is cut": of_plane(lambda w: w[:-1].copy()),
    "a plane that ends later": of_plane(lambda w: np.append(w, w[:1])),
    "a plane of nothing": of_plane(lambda w: w[:0]),
    "what is not deflated": of_plane(lambda w: np.arange(77, dtype=np.uint8)),
    "a plane that is too small": of_plane(lambda w: bomb(100)),
    "a plane that is too large by one": of_plane(lambda w: bomb(ROWS * COLUMNS * 2 + 1)),
}


@pytest.mark.parametrize("change", ODD_PACKS.values(), ids=ODD_PACKS)
def test_what_is_something_else_is_refused(change):
    start = {"W1": np.zeros((ROWS, COLUMNS, 2), np.float32)}
    values = np.random.default_rng(1).standard_normal((ROWS, COLUMNS, 2)).astype(np.float32)
    packed = pack({"W1": values}, start)
    with pytest.raises(ValueError, match="W"):
        unpack(change(packed), lambda: {"W1": np.zeros((ROWS, COLUMNS, 2), np.float32)})


@pytest.mark.slow
def test_nothing_larger_than_the_start_is_inflated():
    """A gigabyte of zeros is a megabyte here."""
    start = make_start()
    packed = pack(changed(start, [1], 2.0), start) | {"W1/0": bomb(1 << 30)}
    drawn = make_start()
    tracemalloc.start()
    with pytest.raises(ValueError, match="a plane of W1 of another size"):
        unpack(packed, lambda: drawn)
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()
