"""What this process may use of its machine."""

from __future__ import annotations

import os

import pytest

from pixelpong.machine import count_cores


@pytest.mark.parametrize(
    ("limit", "cores"),
    [("150000 100000", 1), ("400000 100000", 4), ("max 100000", 64), ("", 64), (None, 64)],
)
def test_the_limit_of_the_container_holds_if_there_is_one(tmp_path, monkeypatch, limit, cores):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(64))
    if limit is not None:
        (tmp_path / "cpu.max").write_text(limit)
    assert count_cores(tmp_path / "cpu.max") == cores
