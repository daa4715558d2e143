"""The processor and the libraries, which the promise "same bits" depends on besides the seed."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

_PACKAGES = ("pixelpong", "numpy", "ale-py", "numba", "llvmlite")


def collect_versions() -> dict[str, str]:
    """Versions of Python and of the packages involved in the arithmetic."""
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return versions


def describe_commit() -> str:
    """The commit of the current working copy, or "unknown" if the package is installed."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=Path(__file__).parent, capture_output=True, text=True, check=True,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def describe_machine() -> dict[str, Any]:
    """The processor's name, and the system."""
    return {"processor": _processor_name(), "system": platform.system(), "arch": platform.machine()}


def _processor_name() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return platform.processor()
    wanted = ("model name", "cpu family", "model", "stepping")
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() in wanted:
            found.setdefault(key.strip(), value.strip())
    name = found.pop("model name", platform.processor())
    return ", ".join([name, *(f"{key} {value}" for key, value in found.items())])


def peak_mb(pid: int | str = "self") -> float:
    """Peak resident memory of a process, by default this one, in MB; 0 where it is not told."""
    for line in (read_kernel_file(Path(f"/proc/{pid}/status")) or "").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def count_cores() -> int:
    """The cores this process may use, at least 1, as limited by a container or batch system."""
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    limit = read_core_limit()
    return cores if limit is None else max(1, min(cores, int(limit)))


def read_core_limit(root: Path = Path("/")) -> float | None:
    """Cores that the control group of this process allows; None for no limit.

    Args:
        root: the file system; tests use their own.
    """
    limits = []
    for folder in groups_of(root, "cpu"):
        words = (read_kernel_file(folder / "cpu.max") or "").split()
        if not words:
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            words = [read_kernel_file(folder / name) or "" for name in names]
        if len(words) == 2 and all(word.isdecimal() and int(word) for word in words):
            limits.append(int(words[0]) / int(words[1]))
    return min(limits, default=None)


def groups_of(root: Path, controller: str) -> Iterator[Path]:
    """The folders of this process's control group and of those above it, in both versions."""
    for line in (read_kernel_file(root / "proc/self/cgroup") or "0::/").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers and controller not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / (controllers and controller)
        folder = top / path.strip("/")
        yield folder
        while folder != top and top in folder.parents:
            folder = folder.parent
            yield folder


def read_kernel_file(path: Path) -> str | None:
    """The text of a file of the kernel; None if it does not exist."""
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return None
