"""Packages, cores, memory and disk."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from pixelpong import __version__
from pixelpong.faces.doctor import FAILURE, NOTE, OK, WARNING, Check, problem
from pixelpong.machine import (
    count_cores,
    describe_machine,
    groups_of,
    read_core_limit,
    read_kernel_file,
)

CORE = {
    "numpy": "numpy", "ale-py": "ale_py", "gymnasium": "gymnasium", "numba": "numba",
    "llvmlite": "llvmlite", "msgspec": "msgspec", "rich": "rich", "safetensors": "safetensors",
    "threadpoolctl": "threadpoolctl",
}  # fmt: skip
"""What always has to be there: name of the distribution, name of the module."""

EXTRAS = {
    "ray": ("ray",),
    "video": ("av", "PIL"),
    "plot": ("matplotlib",),
    "web": ("starlette", "sse_starlette", "uvicorn", "websockets"),
    "play": ("starlette", "sse_starlette", "uvicorn", "websockets"),
    "track": ("tensorboardX",),
    "onnx": ("onnx",),
}
"""Modules of each extra."""

TRAINING_BYTES = 400e6
"""Peak memory of a fast training. Source: benchmarks/solve.json."""

RUN_BYTES = 500e6
"""Disk space that a fast run takes in the end."""

_BUSY = 1.5
"""Load per core above which other programs are plainly at work."""


def check_packages() -> Iterator[Check]:
    """Python, this package, and what it can't do without."""
    missing = [name for name, module in CORE.items() if not _has_module(module)]
    facts = {"python": platform.python_version(), "pixelpong": __version__}
    if missing:
        advice = "pip install " + " ".join(missing)
        got = f"no {', no '.join(missing)}"
        yield problem("packages", FAILURE, "all packages of the core", got, advice, **facts)
        return
    facts |= {name: metadata.version(name) for name in CORE}
    yield Check("packages", OK, ", ".join(f"{name} {each}" for name, each in facts.items()), facts)


def check_extras() -> Iterator[Check]:
    """The extras that are installed; none of them is needed to train."""
    present = [name for name, modules in EXTRAS.items() if all(map(_has_module, modules))]
    missing = [name for name in EXTRAS if name not in present]
    text = f"installed: {', '.join(present) or 'none'}"
    if missing:
        text += f"; for the others: pip install 'pixelpong[{','.join(missing)}]'"
    level = NOTE if missing else OK
    yield Check("extras", level, text, {"present": present, "missing": missing})


def check_cores() -> Iterator[Check]:
    """How many cores this process may use, and whether they are idle."""
    usable, limit = count_cores(), read_core_limit()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    processor = describe_machine()["processor"]
    facts = {"cores": os.cpu_count(), "usable": usable, "cgroup_limit": limit, "load": load}
    if load > _BUSY * usable:
        advice = "wait for the other programs: until then everything takes longer"
        got = f"a load of {load:.1f} on {usable}"
        yield problem("cores", NOTE, "idle cores", got, advice, **facts)
        return
    limited = "" if limit is None else f", limited to {limit:g} by cgroup"
    yield Check("cores", OK, f"{usable} of {os.cpu_count()}{limited}: {processor}", facts)


def check_memory() -> Iterator[Check]:
    """Memory that is free, also within the limit of this process's control group."""
    available, left = _read_available(), read_memory_left()
    known = [size for size in (available, left) if size is not None]
    facts = {"available_bytes": available, "cgroup_left_bytes": left}
    if known and min(known) < TRAINING_BYTES:
        wanted = f"{_megabytes(TRAINING_BYTES)} of free memory"
        got = _megabytes(min(known))
        yield problem("memory", WARNING, wanted, got, "close other programs", **facts)
        return
    free = f"{_megabytes(min(known))} free" if known else "free memory is unknown here"
    needs = f"a fast training needs {_megabytes(TRAINING_BYTES)}"
    yield Check("memory", OK, f"{free}; {needs}", facts)


def check_disk() -> Iterator[Check]:
    """Room where new runs go, and the right to write there."""
    yield check_folder("disk", Path("runs"))


def check_folder(name: str, folder: Path) -> Check:
    """Whether a folder takes a run's files.

    Args:
        name: of the check.
        folder: if it does not exist, the nearest one above it that does.
    """
    place = folder.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        free = shutil.disk_usage(place).free
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"\0" * 4096)
            file.flush()
    except OSError as error:
        got = error.strerror or str(error)
        advice = "choose another place with --run DIR"
        return problem(name, FAILURE, f"to write to {place}", got, advice, folder=str(place))
    facts = {"folder": str(place), "free_bytes": free}
    if free < RUN_BYTES:
        wanted = f"{_megabytes(RUN_BYTES)} for a run in {place}"
        return problem(name, WARNING, wanted, _megabytes(free), "make room there", **facts)
    return Check(name, OK, f"{_megabytes(free)} free in {place}", facts)


def read_memory_left(root: Path = Path("/")) -> int | None:
    """Bytes until the control group's limit is reached; None if there is no limit.

    Args:
        root: the file system; another one in tests.
    """
    left, files = [], ("memory.max", "memory.current")
    files_of_v1 = ("memory.limit_in_bytes", "memory.usage_in_bytes")
    for folder in groups_of(root, "memory"):
        for limit, used in (files, files_of_v1):
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


def _has_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _megabytes(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
