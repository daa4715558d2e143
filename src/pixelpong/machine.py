"""The processor and the libraries: the promise "same bits" depends on them and the seed."""

from __future__ import annotations

import os
import platform
import subprocess
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


def count_cores() -> int:
    """The cores this process may use, at least 1, as limited by a container or batch system."""
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    limit = read_core_limit()
    return cores if limit is None else max(1, min(cores, int(limit)))


def read_core_limit(root: Path = Path("/")) -> float | None:
    """Cores that the control group (version 2) of this process allows; None for no limit."""
    top, limits = root / "sys/fs/cgroup", []
    for line in _read(root / "proc/self/cgroup").splitlines():
        if line.startswith("0::"):
            group = top / line.removeprefix("0::").strip("/")
            inside = [each for each in (group, *group.parents) if each.is_relative_to(top)]
            words = [_read(each / "cpu.max").split() for each in inside]
            limits += [int(it[0]) / int(it[1]) for it in words if it and it[0].isdecimal()]
    return min(limits, default=None)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""
