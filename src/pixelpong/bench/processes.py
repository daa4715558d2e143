"""What processes use, as Linux tells it; 0 or nothing elsewhere."""

from __future__ import annotations

import contextlib
from pathlib import Path


def peak_mb(pid: int) -> float:
    """Peak resident memory of a process, in MB."""
    return _read_mb(pid, "status", "VmHWM:")


def memory_mb(pid: int) -> float:
    """Memory of a process, in MB, its part of what is shared."""
    return _read_mb(pid, "smaps_rollup", "Pss:")


def children(pid: int) -> list[int]:
    """Process ids of the children of a process."""
    with contextlib.suppress(OSError):
        return [int(x) for x in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def _read_mb(pid: int, file: str, key: str) -> float:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/{file}").read_text().splitlines():
            if line.startswith(key):
                return int(line.split()[1]) / 1024
    return 0.0
