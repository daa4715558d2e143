"""The plan of a sweep: the name and the configuration of every run, in ``sweep.json``.

It is written before any run and never changed, so a run whose folder is lost is not forgotten. A
sweep that an earlier version made has no plan; its runs are those in its folder.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pixelpong.config import OPTIONS, Config
from pixelpong.errors import RunError, refusing
from pixelpong.run.files import read_file, write_new
from pixelpong.run.folders import PLAN_FILE
from pixelpong.schema import decode, encode

_FORMAT = 1
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")  # never a path that leads elsewhere
_LIMIT = 1 << 26  # size limit in bytes, enough for 10,000 runs that differ in every option


@dataclass(frozen=True)
class _Plan:
    """The content of the file."""

    format: int
    shared: dict[str, Any]  # the options of all runs
    runs: dict[str, dict[str, Any]]  # for each run, the options in which it differs
    sha256: str = ""


def write_plan(folder: Path, configs: Mapping[str, Config]) -> None:
    """Write the plan of a new sweep; raise an `OSError` if that fails."""
    first = vars(next(iter(configs.values())))
    runs = {
        name: {key: value for key, value in vars(config).items() if value != first[key]}
        for name, config in configs.items()
    }
    plan = {"format": _FORMAT, "shared": first, "runs": runs}
    write_new(folder / PLAN_FILE, encode(plan | {"sha256": _hash_of(plan)}, indent=1) + b"\n")


def read_plan(sweep: Path) -> dict[str, Config]:
    """Read the configuration of every run by name; {} if an earlier version made the sweep."""
    file = sweep / PLAN_FILE
    advice = "restore it, or remove it to continue with the runs that are there"
    with refusing(f"cannot read the plan {file}", RunError, advice):
        try:
            content = read_file(file, _LIMIT)
        except FileNotFoundError:
            return {}
        plan = decode(content, _Plan)
        facts = {"format": plan.format, "shared": plan.shared, "runs": plan.runs}
        if plan.format != _FORMAT or not plan.shared.keys() <= OPTIONS.keys():
            raise ValueError("another version wrote it")
        if plan.sha256 != _hash_of(facts):
            raise ValueError("it is damaged: its SHA-256 is wrong")
        if odd := [name for name in plan.runs if not _NAME.fullmatch(name)]:
            raise ValueError(f"a run cannot be called {odd[0][:40]!r}")
        return {
            name: Config().updated(plan.shared | changes, str(file))
            for name, changes in plan.runs.items()
        }


def _hash_of(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(encode(facts)).hexdigest()
