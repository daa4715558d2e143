"""This machine: packages, cores, memory, disk; the game's ROM, and what plays it."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import tempfile
import time
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
"""Required packages: name of the distribution, name of the module."""

_WEB = ("starlette", "sse_starlette", "uvicorn", "websockets")

EXTRAS = {
    "ray": ("ray",), "video": ("av", "PIL"), "plot": ("matplotlib",), "web": _WEB, "play": _WEB,
    "track": ("tensorboardX",), "onnx": ("onnx",),
    "completion": ("argcomplete",),
}  # fmt: skip
"""Modules of each extra."""

TRAINING_BYTES = 400e6
"""Peak memory of a fast training. Source: benchmarks/solve.json."""

RUN_BYTES = 500e6
"""Disk space of a complete fast run."""

_BUSY = 1.5
"""Load per core above which other programs must be running."""

_GROUP_FILES = (
    ("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes"),
)  # fmt: skip
"""Limit and use of a control group's memory, in its second version and its first."""


def check_packages() -> Check:
    """Python, this package, and the packages it requires."""
    missing = [name for name, module in CORE.items() if not _has_module(module)]
    facts = {"python": platform.python_version(), "pixelpong": __version__}
    if missing:
        advice = "pip install " + " ".join(missing)
        got = f"no {', no '.join(missing)}"
        return problem("packages", FAILURE, "all packages of the core", got, advice, **facts)
    facts |= {name: metadata.version(name) for name in CORE}
    text = ", ".join(f"{name} {version}" for name, version in facts.items())
    return Check("packages", OK, text, facts)


def check_extras() -> Check:
    """The extras that are installed; none of them is needed to train."""
    present = [name for name, modules in EXTRAS.items() if all(map(_has_module, modules))]
    missing = [name for name in EXTRAS if name not in present]
    text = f"installed: {', '.join(present) or 'none'}"
    if missing:
        text += f"; for the others: pip install 'pixelpong[{','.join(missing)}]'"
    facts = {"present": present, "missing": missing}
    return Check("extras", NOTE if missing else OK, text, facts)


def check_cores() -> Check:
    """How many cores this process may use, and whether they are idle."""
    usable, limit = count_cores(), read_core_limit()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    facts = {"cores": os.cpu_count(), "usable": usable, "cgroup_limit": limit, "load": load}
    if load > _BUSY * usable:
        advice = "wait for the other programs, which slow everything down"
        got = f"a load of {load:.1f} on {usable}"
        return problem("cores", NOTE, "idle cores", got, advice, **facts)
    limited = "" if limit is None else f", limited to {limit:g} by cgroup"
    text = f"{usable} of {os.cpu_count()}{limited}: {describe_machine()['processor']}"
    return Check("cores", OK, text, facts)


def check_memory() -> Check:
    """Free memory, also within the limit of this process's control group."""
    available, left = _read_available(), read_memory_left()
    free = min([size for size in (available, left) if size is not None], default=None)
    facts = {"available_bytes": available, "cgroup_left_bytes": left}
    needed = _megabytes(TRAINING_BYTES)
    if free is not None and free < TRAINING_BYTES:
        wanted, advice = f"{needed} of free memory", "close other programs"
        return problem("memory", WARNING, wanted, _megabytes(free), advice, **facts)
    found = "free memory is unknown here" if free is None else f"{_megabytes(free)} free"
    return Check("memory", OK, f"{found}; a fast training needs {needed}", facts)


def check_rom() -> Check:
    """Whether the ROM exists and is the one that all figures were measured with."""
    from pixelpong.env.rom import ROM_SHA256, read_rom, rom_path

    read_rom()  # raises the same error as in a training
    text = f"SHA-256 {ROM_SHA256[:16]}…: the one that all figures were measured with"
    return Check("rom", OK, text, {"path": str(rom_path()), "sha256": ROM_SHA256})


def check_emulator() -> Check:
    """Whether the native emulator plays, how long it took to start, and where it is cached."""
    from pixelpong.atari.native import cache_folder
    from pixelpong.env.native import NotCoveredError, load_game

    begin = time.perf_counter()
    try:
        was_kept = load_game().was_kept
    except NotCoveredError as error:
        wanted = "the native emulator to play"
        advice = "ALE plays instead, with the same bits, about forty times slower"
        return problem("emulator", WARNING, wanted, error, advice, plays="ale")
    seconds, folder = time.perf_counter() - begin, cache_folder()
    facts = {
        "plays": "native",
        "folder": folder and str(folder),
        "was_kept": was_kept,
        "ready_seconds": round(seconds, 3),
    }
    if not was_kept and not (folder and os.access(folder, os.W_OK)):
        got = f"{folder or 'none'}, so each process compiles it anew ({seconds:.1f} s)"
        wanted, advice = "a writable folder for machine code", "set PIXELPONG_CACHE_DIR to one"
        return problem("emulator", WARNING, wanted, got, advice, **facts)
    how = "loaded" if was_kept else "compiled"
    return Check("emulator", OK, f"native, {how} in {seconds:.2f} s, kept in {folder}", facts)


def check_disk() -> Check:
    """Room and write permission where new runs go."""
    return check_folder("disk", Path("runs"))


def check_folder(name: str, folder: Path) -> Check:
    """Whether a run's files can be written to a folder.

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
        root: the file system; tests use their own.
    """
    left = []
    for folder in groups_of(root, "memory"):
        for files in _GROUP_FILES:
            numbers = [read_kernel_file(folder / name) or "" for name in files]
            if all(map(str.isdecimal, numbers)) and int(numbers[0]) < 1 << 60:
                left.append(max(0, int(numbers[0]) - int(numbers[1])))
    return min(left, default=None)


def _read_available() -> int | None:
    found = re.search(r"^MemAvailable: +(\d+)", read_kernel_file(Path("/proc/meminfo")) or "", re.M)
    return int(found[1]) << 10 if found else None


def _has_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _megabytes(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
