"""The ROM: where it is, and whether it is the one that all figures are of."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pixelpong.disk import read_bytes
from pixelpong.doctor.records import FAILURE, OK, Case, Check, trouble

ROM_SHA256 = "41623e3c26148f96cbe77d56512845d224a63c8fe5bf90e38527155e39ec96d3"
"""Of the ROM that every recorded figure of this project was measured with: ale-py 0.12.1's."""

ROM_LIMIT = 1 << 20


def check_rom(case: Case) -> Iterator[Check]:
    """The ROM: where it is, and whether it is the one that was measured with."""
    path = _rom_path()
    facts: dict[str, Any] = {"path": str(path), "sha256": None, "md5": None}
    wanted, advice = f"Pong's ROM in {path.parent}", _advice()
    try:
        content = read_bytes(path, ROM_LIMIT)
    except OSError as error:
        got = error.strerror or str(error)
        yield trouble(FAILURE, "rom", wanted, got, advice, facts=facts)
        return
    facts["sha256"] = hashlib.sha256(content).hexdigest()
    facts["md5"] = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if facts["sha256"] != ROM_SHA256:
        got = f"another file: SHA-256 {facts['sha256'][:16]}… instead of {ROM_SHA256[:16]}…"
        yield trouble(FAILURE, "rom", wanted, got, advice, facts=facts)
        return
    from pixelpong.env.pong import find_rom

    find_rom()  # raises what a training would
    text = f"SHA-256 {ROM_SHA256[:16]}…, MD5 {facts['md5'][:16]}…: the one all figures are of"
    yield Check("rom", OK, text, facts)


def _rom_path() -> Path:
    """Where ale-py looks, found without loading it."""
    if folder := os.environ.get("ALE_ROMS_DIR"):
        return Path(folder) / "pong.bin"
    found = importlib.util.find_spec("ale_py")
    place = Path((found and found.origin) or "ale_py/__init__.py").parent
    return place / "roms" / "pong.bin"


def _advice() -> str:
    if os.environ.get("ALE_ROMS_DIR"):
        return "unset ALE_ROMS_DIR, or put ale-py's own there"
    return "reinstall the emulator: pip install --force-reinstall --no-deps ale-py"
