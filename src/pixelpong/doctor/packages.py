"""Python and the packages: which are there, which are missing, and what brings them."""

from __future__ import annotations

import importlib.util
import platform
import re
import sys
from collections.abc import Iterator
from importlib import metadata

from pixelpong import __version__
from pixelpong.doctor.records import FAILURE, NOTE, OK, WARNING, Case, Check, trouble

MIN_PYTHON = (3, 11)

CORE = {
    "numpy": "numpy", "ale-py": "ale_py", "gymnasium": "gymnasium", "numba": "numba",
    "llvmlite": "llvmlite", "tyro": "tyro", "rich": "rich", "safetensors": "safetensors",
    "threadpoolctl": "threadpoolctl",
}  # fmt: skip
"""What always has to be there: name of the distribution, name of the module."""

EXTRAS = {
    "ray": ("ray",),
    "video": ("av", "PIL"),
    "plot": ("matplotlib",),
    "web": ("starlette", "uvicorn", "websockets", "plotly"),
    "play": ("starlette", "uvicorn", "websockets"),
    "track": ("tensorboardX",),
    "onnx": ("onnx",),
}
"""What shows a run, and clusters: modules of each extra."""


def check_python(case: Case) -> Iterator[Check]:
    """The interpreter, and this package."""
    facts = {
        "python": platform.python_version(),
        "pixelpong": __version__,
        "system": f"{platform.system()} {platform.machine()}",
        "executable": sys.executable,
    }
    text = f"Python {facts['python']}, pixelpong {__version__}, {facts['system']}"
    if sys.version_info < MIN_PYTHON:
        wanted = "Python {}.{} or newer".format(*MIN_PYTHON)
        yield trouble(
            FAILURE, "python", wanted, facts["python"], "install a newer one", facts=facts
        )
        return
    yield Check("python", OK, text, facts)


def check_packages(case: Case) -> Iterator[Check]:
    """What the core needs, and whether it is new enough."""
    versions = {name: version_of(name, module) for name, module in CORE.items()}
    missing = [name for name, version in versions.items() if version is None]
    if missing:
        command = "pip install " + " ".join(missing)
        got = "no " + ", no ".join(missing)
        yield trouble(FAILURE, "packages", "what the core needs", got, command, facts=versions)
        return
    old = [
        f"{name}>={minimum}"
        for name, minimum in _minimums().items()
        if name in versions and _parse(versions[name] or "") < _parse(minimum)
    ]
    if old:
        got = ", ".join(f"{name} {versions[name]}" for name in (o.split(">=")[0] for o in old))
        command = "pip install -U " + " ".join(f"'{each}'" for each in old)
        yield trouble(WARNING, "packages", ", ".join(old), got, command, facts=versions)
        return
    listed = ", ".join(f"{name} {version}" for name, version in versions.items())
    yield Check("packages", OK, listed, dict(versions))


def check_extras(case: Case) -> Iterator[Check]:
    """Which extras are there; none of them is needed to train."""
    present = [name for name, modules in EXTRAS.items() if all(map(_has_module, modules))]
    missing = [name for name in EXTRAS if name not in present]
    facts = {"present": present, "missing": missing}
    if missing:
        command = f"where you want them: pip install 'pixelpong[{','.join(missing)}]'"
        got = "none of them" if not present else "only " + ", ".join(present)
        wanted = "the extras for films, plots, pages, games and clusters"
        yield trouble(NOTE, "extras", wanted, got, command, facts=facts)
        return
    yield Check("extras", OK, ", ".join(present), facts)


def _has_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def version_of(name: str, module: str) -> str | None:
    """The version of a package; None where it is not there.

    Args:
        name: of the distribution; its metadata may have gone while it still works.
        module: that it brings.
    """
    if not _has_module(module):
        return None
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "of an unknown version"


def _minimums() -> dict[str, str]:
    """What this package asks for of others, where it is installed."""
    try:
        lines = metadata.requires("pixelpong") or []
    except metadata.PackageNotFoundError:
        return {}
    found = (re.match(r"([\w-]+)>=([\d.]+)$", line.strip()) for line in lines)
    return {match[1]: match[2] for match in found if match}


def _parse(version: str) -> tuple[int, ...]:
    """The numbers that a version begins with; of an unknown one none is asked for.

    >>> _parse("2.4.6rc1") < _parse("2.10"), _parse("of an unknown version") < _parse("2.0")
    (True, False)
    """
    numbers = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, numbers[0].split("."))) if numbers else (sys.maxsize,)
