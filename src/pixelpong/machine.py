"""The machine, its cores, and the versions of the libraries, which a run records."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

from pixelpong.control_groups import find_limit
from pixelpong.errors import ConfigError, as_argument

# What tells processors of one name apart, on x86 and on ARM, where they have no name.
_MODEL = ("cpu family", "model", "stepping", "CPU implementer", "CPU part", "CPU variant")
_PACKAGES = ("pixelpong", "numpy", "ale-py", "numba", "llvmlite")


def collect_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that affect the arithmetic."""
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return versions


def describe_machine() -> dict[str, Any]:
    """Return the processor's name, and the system."""
    return {"processor": _processor_name(), "system": platform.system(), "arch": platform.machine()}


def _processor_name() -> str:
    facts: dict[str, str] = {}  # the facts about the first core
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            key, _, value = line.partition(":")
            facts.setdefault(key.strip(), value.strip())
    name = facts.get("model name") or platform.processor() or platform.machine()
    return ", ".join([name, *(f"{key} {facts[key]}" for key in _MODEL if key in facts)])


def count_cores(root: Path = Path("/")) -> int:
    """Count the cores this process may use; `root` is that of the control groups' paths."""
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return max(1, round(min(cores, find_limit(root))))  # 1.9 CPUs keep two threads busy


def is_installed(library: str) -> bool:
    """Whether a library can be imported; a folder with its name does not count."""
    spec = importlib.util.find_spec(library)
    return spec is not None and spec.origin is not None


def require(feature: str, *libraries: str, extra: str) -> None:
    """Raise an error that names the `extra` to install if a library is not installed."""
    for library in libraries:
        if not is_installed(library):
            raise ConfigError(f"{feature} {library}: {how_to_install(extra)}")


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra, to be run in the clone of pixelpong."""
    what = as_argument(f".[{extra}]")
    return f"run pip install -c constraints.txt -e {what} in the clone of pixelpong"
