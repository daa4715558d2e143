"""What the promise "same bits" depends on besides the seed: the processor and the libraries."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

_PACKAGES = ("pixelpong", "numpy", "ale-py", "numba", "llvmlite")


def collect_versions() -> dict[str, str]:
    """Versions of Python and of the packages that take part in the arithmetic."""
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return versions


def describe_commit() -> str:
    """The commit of the working copy that is run, or "unknown" where the package is installed."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=Path(__file__).parent, capture_output=True, text=True, check=True,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def describe_machine() -> dict[str, Any]:
    """The processor by name, and the system."""
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
    """The cores this process may use, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
