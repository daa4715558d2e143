"""What this process may use of its machine."""

from __future__ import annotations

import os

import pytest

from pixelpong.machine import count_cores


@pytest.mark.parametrize(
    ("limit", "cores"),
    [("150000 100000", 1), ("400000 100000", 4), ("50000 100000", 1), ("max 100000", 64), ("", 64)],
)
def test_the_limit_of_the_container_holds(tmp_path, monkeypatch, limit, cores):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(64))
    (tmp_path / "cpu.max").write_text(limit)
    assert count_cores(tmp_path / "cpu.max") == cores


def test_without_control_groups_the_cores_of_the_process_count(tmp_path):
    assert count_cores(tmp_path / "none") == len(os.sched_getaffinity(0))
