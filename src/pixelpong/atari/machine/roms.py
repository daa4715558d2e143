"""Reads a cartridge's ROM, and checks that it is the version whose facts are known.

The ROMs are part of the ale-py package, or in the folder that the variable ALE_ROMS_DIR names.
ale-py itself is not loaded, because the machine needs nothing else from it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from pathlib import Path

from pixelpong.atari.machine.cartridge import Cartridge
from pixelpong.errors import EmulatorError

ALE_PY = "0.12.1"
"""The version of ale-py with which all facts and results were measured."""

_MOST_BYTES = 1 << 16  # size limit of a ROM in bytes; the largest has a quarter of it


def rom_path(name: str) -> Path:
    """Return the path where a cartridge's ROM should be, without opening it."""
    if folder := os.environ.get("ALE_ROMS_DIR"):
        return Path(folder) / f"{name}.bin"
    spec = importlib.util.find_spec("ale_py")
    package = Path((spec and spec.origin) or "ale_py/__init__.py").parent
    return package / "roms" / f"{name}.bin"


def read_rom(cartridge: Cartridge, path: Path | None = None) -> bytes:
    """Read a cartridge's ROM and check it; `path` overrides the usual file."""
    title = cartridge.name.replace("_", " ").title()
    failure = f"cannot use {title}'s ROM in ale-py"
    advice = f"install the version with that ROM: pip install --no-deps ale-py=={ALE_PY}"
    if os.environ.get("ALE_ROMS_DIR"):
        failure = f"cannot use {title}'s ROM in the folder ALE_ROMS_DIR"
        advice = "unset ALE_ROMS_DIR, or put the ROM of ale-py there"
    path = path or rom_path(cartridge.name)
    if path.exists() and not path.is_file():  # reading a named pipe would wait
        raise EmulatorError(f"{failure}: {path} is not a regular file; {advice}")
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES)
    except OSError as error:
        raise EmulatorError(f"{failure}: {error}; {advice}") from error
    checksum = hashlib.sha256(content).hexdigest()
    if checksum != cartridge.sha256:
        why = f"its SHA-256 is {checksum[:16]}… instead of {cartridge.sha256[:16]}…"
        raise EmulatorError(f"{failure}: {why}; {advice}")
    return content
