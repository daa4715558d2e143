"""The cores that containers leave: limits of both versions of control groups, wherever they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pixelpong.machine import count_cores

V1 = "33 31 0:30 {top} {point} rw,relatime - cgroup cgroup rw,cpu,cpuacct"
V2 = "41 31 0:38 {top} {point} rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate"
OTHERS = [
    "22 1 0:21 / / rw,relatime - ext4 /dev/vda1 rw",
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory",
]
AT = "/sys/fs/cgroup"


@pytest.fixture
def system(tmp_path, monkeypatch):
    """Makes a system with 64 cores: its mounts, this process's groups, and the groups' files."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(64), raising=False)

    def write(name: str, text: str) -> None:
        path = tmp_path / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def make(mounts: list[str], groups: list[str], files: dict[str, str]) -> Path:
        write("proc/self/mountinfo", "\n".join([*OTHERS, *mounts]))
        write("proc/self/cgroup", "\n".join(["9:memory:/elsewhere", *groups]))
        for name, text in files.items():
            write(name, text)
        return tmp_path

    return make


def v2(point: str = AT, top: str = "/") -> list[str]:
    return [V2.format(top=top, point=point)]


def v1(point: str = f"{AT}/cpu", top: str = "/") -> list[str]:
    return [V1.format(top=top, point=point)]


def quota(folder: str, microseconds: int) -> dict[str, str]:
    """Version 1's files of a group."""
    return {
        f"{folder}/cpu.cfs_quota_us": f"{microseconds}\n",
        f"{folder}/cpu.cfs_period_us": "100000\n",
    }


@pytest.mark.parametrize(
    ("limit", "cores"),
    [
        ("140000 100000", 1),
        ("190000 100000", 2),
        ("400000 100000", 4),
        ("50000 100000", 1),
        ("max 100000", 64),
        ("9000000 100000", 64),
        ("", 64),
    ],
)
def test_a_container_with_a_namespace_of_its_own_sees_its_limit_at_the_root(system, limit, cores):
    assert count_cores(system(v2(), ["0::/"], {f"{AT}/cpu.max": limit})) == cores


def test_the_limit_of_a_group_further_in_is_seen_without_a_namespace(system):
    """As with `systemd-run -p CPUQuota=`, and Slurm."""
    groups = {f"{AT}/system.slice/job.scope/cpu.max": "300000 100000"}
    assert count_cores(system(v2(), ["0::/system.slice/job.scope"], groups)) == 3


def test_the_lowest_limit_counts_of_a_group_and_those_around_it(system):
    groups = {
        f"{AT}/a/b/cpu.max": "max 100000",
        f"{AT}/a/cpu.max": "200000 100000",
        f"{AT}/cpu.max": "800000 100000",
    }
    assert count_cores(system(v2(), ["0::/a/b"], groups)) == 2


def test_the_limit_of_another_group_does_not_count(system):
    groups = {f"{AT}/other/cpu.max": "100000 100000"}
    assert count_cores(system(v2(), ["0::/mine"], groups)) == 64


def test_version_1_has_a_quota_and_a_period(system):
    assert count_cores(system(v1(), ["1:cpu,cpuacct:/t"], quota(f"{AT}/cpu/t", 150_000))) == 2
    assert count_cores(system(v1(), ["1:cpu,cpuacct:/t"], quota(f"{AT}/cpu/t", -1))) == 64


def test_version_1_in_a_container_has_the_group_itself_mounted(system):
    mounts, groups = v1(top="/docker/1f"), ["1:cpu,cpuacct:/docker/1f"]
    assert count_cores(system(mounts, groups, quota(f"{AT}/cpu", 200_000))) == 2


def test_both_versions_at_once_with_the_limit_in_either(system):
    mounts, groups = v1() + v2(f"{AT}/unified"), ["1:cpu,cpuacct:/t", "0::/u"]
    assert count_cores(system(mounts, groups, quota(f"{AT}/cpu/t", 500_000))) == 5
    both = {f"{AT}/unified/u/cpu.max": "400000 100000"}
    assert count_cores(system(mounts, groups, both)) == 4


def test_without_control_groups_or_with_unreadable_ones_all_cores_count(system, tmp_path):
    assert count_cores(tmp_path / "nowhere") == 64, "no /proc, as on a Mac"
    assert count_cores(system(["nonsense"], ["more nonsense"], {})) == 64
    assert count_cores(system(v2(), ["0::/../outside"], {})) == 64


def test_the_machine_that_runs_this_has_a_core():
    assert 1 <= count_cores() <= os.cpu_count()
