"""What travels to Ray's workers and back arrives as it was."""

from __future__ import annotations

import pickle
from timeit import repeat

import numpy as np
import pytest

from pixelpong.pickling import dumps

ARRAYS = {
    "numbers": np.arange(5),
    "small ones": np.arange(5, dtype=np.int8),
    "fractions": np.array([0.5, -0.0, np.nan, np.inf]),
    "single": np.array([1.5], np.float32),
    "bits": np.array([True, False]),
    "none": np.zeros(0, np.uint16),
    "another byte order": np.arange(3, dtype=">i4"),
    "a table": np.arange(6.0).reshape(2, 3),
    "a table by columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "every second one": np.arange(6)[::2],
    "backwards": np.arange(6)[::-1],
    "no dimension": np.array(3.0),
    "records": np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
    "words": np.array(["up", "down"]),
    "objects": np.array([None, "up"], dtype=object),
    "dates": np.array(["2026-01-01"], dtype="M8[D]"),
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("is_writable", [True, False])
def test_an_array_arrives_as_pickle_would_have_it(name, is_writable):
    array = ARRAYS[name]
    if not is_writable:
        array = array.view()
        array.flags.writeable = False
    expected = pickle.loads(pickle.dumps(array, protocol=5))
    (found,) = pickle.loads(memoryview(dumps([array])))
    np.testing.assert_array_equal(found, array)
    for attribute in ("dtype", "shape", "strides"):
        assert getattr(found, attribute) == getattr(expected, attribute)
    assert found.flags.writeable == expected.flags.writeable


def test_an_array_that_is_in_two_places_stays_one():
    array = np.arange(4)
    first, second = pickle.loads(dumps({"first": array, "second": array})).values()
    assert first is second


def test_a_round_of_small_arrays_is_pickled_faster_than_by_pickle_itself():
    arrays = [np.arange(100, dtype=np.uint16) + i for i in range(600)]
    ours, pickles = (
        min(repeat(lambda dump=dump: dump(arrays), number=1, repeat=20))
        for dump in (dumps, lambda it: pickle.dumps(it, protocol=5))
    )
    assert ours < pickles
