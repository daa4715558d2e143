"""Cores, memory, disk and shared memory: what there is of them, and what is really ours."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pixelpong.config import EngineConfig
from pixelpong.doctor.records import FAILURE, NOTE, OK, WARNING, Case, Check, megabytes, trouble
from pixelpong.machine import (
    count_cores,
    describe_machine,
    groups_of,
    read_core_limit,
    read_kernel_file,
)

DRIVER_BYTES, WORKER_BYTES = 190e6, 170e6
"""Peak memory of a fast training's processes. Source: benchmarks/startup.json."""

RUN_BYTES = 300e6
"""What a fast run takes in the end: at most five checkpoints of 48 MB at a time and milestones of
3 MB each, fourteen by update 1,000."""

STOP_BYTES = 100e6
"""With less, its second checkpoint finds no room."""

STORE_BYTES = 256 << 20
"""The object store of a Ray of our own."""

_BUSY = 1.5
"""Load for each core from which on others are plainly at work."""


def check_cores(case: Case) -> Iterator[Check]:
    """How many cores there are, and how many of them this process may use."""
    ours, quota = count_cores(), read_core_limit()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    facts = {
        "cores": os.cpu_count(),
        "usable": ours,
        "cgroup_limit": quota,
        "load": load,
        "workers": _count_workers(case.config.engine),
        **describe_machine(),
    }
    limit = "" if quota is None else f", a limit of {quota:g} by cgroup"
    text = f"{ours} of {os.cpu_count()}{limit}: {facts['processor']}"
    if quota is not None and quota < facts["workers"]:
        got = f"a limit of {quota:g} by cgroup for {facts['workers']} workers"
        advice = f"give --workers {max(1, int(quota))}"
        yield trouble(WARNING, "cores", "a core for each worker", got, advice, facts=facts)
    elif load is not None and load > _BUSY * ours:
        got = f"a load of {load:.1f} on {ours}"
        advice = "wait for what else is at work: figures of speed are too low until then"
        yield trouble(NOTE, "cores", "idle cores", got, advice, facts=facts)
    else:
        yield Check("cores", OK, text, facts)


def check_memory(case: Case) -> Iterator[Check]:
    """Memory that is free, and within the limit of this process's group."""
    available, left = _read_available(), read_memory_left()
    known = [size for size in (available, left) if size is not None]
    workers = _count_workers(case.config.engine)
    needed = DRIVER_BYTES + workers * WORKER_BYTES
    facts = {"available_bytes": available, "cgroup_left_bytes": left, "needed_bytes": int(needed)}
    if not known:
        text = "this system does not say how much is free"
        yield Check("memory", NOTE, text, facts)
    elif min(known) < needed:
        wanted = f"{megabytes(needed)} of free memory for {workers} workers"
        advice = "close other programs, or give fewer --workers"
        yield trouble(WARNING, "memory", wanted, megabytes(min(known)), advice, facts=facts)
    else:
        text = f"{megabytes(min(known))} free; a fast training needs {megabytes(needed)}"
        yield Check("memory", OK, text, facts)


def check_disk(case: Case) -> Iterator[Check]:
    """Room where runs go, and the right to write there."""
    yield look_at_folder("disk", case.runs_folder)


def look_at_folder(name: str, folder: Path) -> Check:
    """Whether a folder, or the first one above it that exists, takes a run's files.

    Args:
        name: of the check.
        folder: it need not be there.
    """
    place = folder.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    facts = {"folder": str(folder.absolute()), "free_bytes": None, "needed_bytes": int(RUN_BYTES)}
    try:
        free = facts["free_bytes"] = shutil.disk_usage(place).free
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"\0" * 4096)
            file.flush()
    except OSError as error:
        got = error.strerror or str(error)
        advice = "give --run DIR in another place"
        return trouble(FAILURE, name, f"to write to {place}", got, advice, facts=facts)
    if free < RUN_BYTES:
        level = FAILURE if free < STOP_BYTES else WARNING
        wanted = f"{megabytes(RUN_BYTES)} for a run in {place}"
        return trouble(level, name, wanted, megabytes(free), "make room there", facts=facts)
    return Check(name, OK, f"{megabytes(free)} free in {place}", facts)


def check_shared_memory(case: Case, folder: Path = Path("/dev/shm")) -> Iterator[Check]:
    """Shared memory with names, which Ray alone needs: our own processes share it without."""
    facts: dict[str, object] = {"folder": str(folder), "free_bytes": None}
    needs_it = case.config.engine.engine == "ray"
    level = WARNING if needs_it else NOTE
    wanted = f"{megabytes(STORE_BYTES)} in {folder} for --engine ray"
    advice = "give the container more, as docker's --shm-size=1g does; other engines need none"
    try:
        free = facts["free_bytes"] = shutil.disk_usage(folder).free
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        got = error.strerror or str(error)
        yield trouble(level, "shared_memory", wanted, got, advice, facts=facts)
        return
    if free < STORE_BYTES:
        yield trouble(level, "shared_memory", wanted, megabytes(free), advice, facts=facts)
        return
    yield Check("shared_memory", OK, f"{megabytes(free)} free in {folder}", facts)


def read_memory_left(root: Path = Path("/")) -> int | None:
    """Bytes until the control group's limit is reached; None for no limit."""
    left = []
    for folder in groups_of(root, "memory"):
        for limit, used in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            numbers = [read_kernel_file(folder / name) or "" for name in (limit, used)]
            if all(map(str.isdecimal, numbers)) and int(numbers[0]) < 1 << 60:
                left.append(max(0, int(numbers[0]) - int(numbers[1])))
    return min(left, default=None)


def _read_available() -> int | None:
    for line in (read_kernel_file(Path("/proc/meminfo")) or "").splitlines():
        words = line.split()
        if words[:1] == ["MemAvailable:"]:
            return int(words[1]) << 10
    return None


def _count_workers(engine: EngineConfig) -> int:
    return engine.workers or count_cores()
