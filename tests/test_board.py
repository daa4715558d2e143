"""The board: what is written once is read in place by everybody, and nothing is left of it."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from pixelpong.engines.board import Board
from pixelpong.engines.processes import ProcessEngine

pytestmark = pytest.mark.alone  # deadlines of seconds, and a look at all shared memory


@pytest.mark.parametrize(
    "content",
    [
        None,
        {"W1": np.arange(6.0).reshape(2, 3), "b": np.zeros(0), "n": np.float32(3)},
        [np.arange(1000, dtype=np.uint16), "text", {"deep": np.ones((3, 3, 3), np.float32).T}],
    ],
)
def test_what_is_read_is_what_was_written(content):
    with closing(Board()) as board:
        np.testing.assert_equal(board.read(board.write(content)), content)


def test_it_grows_and_can_be_written_again():
    with closing(Board()) as board:
        for size in (10, 100_000, 5, 3_000_000):
            written = np.random.default_rng(size).random(size)
            np.testing.assert_array_equal(board.read(board.write(written)), written)


def test_arrays_are_aligned_writable_and_shared():
    with closing(Board()) as board:
        notice = board.write([np.ones(3, np.uint8), np.ones(5), np.ones(7, np.float32)])
        one, two = board.read(notice), board.read(notice)
        assert all(array.ctypes.data % 64 == 0 for array in one)
        one[1][2] = 5  # kernels are compiled for arrays that can be written to
        assert two[1][2] == 5


class SumWorker:
    """Adds up the params that it sees, and tells where its memory comes from."""

    def play(self, item, params):
        shared = [line for line in Path("/proc/self/maps").read_text().splitlines()
                  if "pixelpong" in line and "memfd" in line]  # fmt: skip
        return float(params["w"].sum()), len(shared)


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="looks at Linux's list of memory")
def test_workers_read_each_batchs_params_from_one_piece_of_memory():
    before = set(os.listdir("/dev/shm"))
    with closing(ProcessEngine(SumWorker, 2, 30.0)) as engine:
        for size in (1000, 10, 1_000_000):
            results = list(engine.run(range(6), {"w": np.full(size, 2.0)}))
            assert {total for total, _ in results} == {2.0 * size}
            assert all(maps >= 1 for _, maps in results)
        assert set(os.listdir("/dev/shm")) == before
