"""What this process may use of its machine."""

from __future__ import annotations

import pytest

from pixelpong.machine import count_cores, read_core_limit


@pytest.mark.parametrize(
    ("inner", "outer", "limit"),
    [
        ("150000 100000", "max 100000", 1.5),
        ("max 100000", "400000 100000", 4.0),
        ("800000 100000", "200000 100000", 2.0),
        ("max 100000", "max 100000", None),
        ("", "", None),
    ],
)
def test_the_smallest_limit_of_the_control_groups_holds(tmp_path, inner, outer, limit):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/slice/container\n")
    group = tmp_path / "sys/fs/cgroup/slice/container"
    group.mkdir(parents=True)
    (group / "cpu.max").write_text(inner)
    (group.parent / "cpu.max").write_text(outer)
    assert read_core_limit(tmp_path) == limit


def test_without_control_groups_the_cores_of_the_process_count(tmp_path):
    assert read_core_limit(tmp_path) is None
    assert count_cores() >= 1
