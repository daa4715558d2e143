"""How many cores Linux's control groups leave a process: the limits that containers set.

Version 1 has them in ``cpu.cfs_quota_us`` and ``cpu.cfs_period_us``, version 2 in ``cpu.max``, and
a group is also bound by the limits of those around it. A process's own groups and where their
folders are mounted are in ``/proc/self``. Sources: the manual pages cgroups(7) and proc(5).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath


def find_limit(root: Path) -> float:
    """Return the lowest limit in cores; infinity without one. `root` is that of all paths."""
    limits = (_read_limit(folder) for folder in _own_groups(root))
    return min(limits, default=float("inf"))


def _own_groups(root: Path) -> Iterator[Path]:
    """Yield the folders of this process's groups for processors, and of those around each."""
    groups = _read_groups(root)
    with contextlib.suppress(OSError, ValueError):
        for line in (root / "proc/self/mountinfo").read_text("utf-8", "replace").splitlines():
            mount, _, kind = line.partition(" - ")
            (_, _, _, top, point, *_), (name, _, options) = mount.split(), kind.split(None, 2)
            if name == "cgroup2" or (name == "cgroup" and "cpu" in options.split(",")):
                group = groups.get("" if name == "cgroup2" else "cpu", PurePosixPath("/"))
                # In a container, the folder that is mounted may be the group itself.
                inner = group.relative_to(top) if group.is_relative_to(top) else PurePosixPath()
                folder = PurePosixPath(point).relative_to("/")
                yield from (root / folder / part for part in (inner, *inner.parents))


def _read_groups(root: Path) -> dict[str, PurePosixPath]:
    """Return this process's group of each controller; that of version 2 has the name ""."""
    groups: dict[str, PurePosixPath] = {}
    with contextlib.suppress(OSError, ValueError):
        for line in (root / "proc/self/cgroup").read_text("utf-8", "replace").splitlines():
            _, controllers, group = line.split(":", 2)
            groups |= dict.fromkeys(controllers.split(","), PurePosixPath(group))
    return groups


def _read_limit(folder: Path) -> float:
    """Return a group's own limit in cores; infinity if it has none."""
    with contextlib.suppress(OSError, ValueError):  # "max" means none
        quota, period = map(int, (folder / "cpu.max").read_text().split())
        return quota / period
    with contextlib.suppress(OSError, ValueError):
        quota = int((folder / "cpu.cfs_quota_us").read_text())
        if quota > 0:  # -1 means none
            return quota / int((folder / "cpu.cfs_period_us").read_text())
    return float("inf")
