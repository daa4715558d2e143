"""Reading Pong's ROM, and checking that it is the one behind every result of this project.

The ROM is part of the ale-py package, or in the folder that the variable ALE_ROMS_DIR names. ale-py
itself is not loaded: the native emulator needs nothing else from it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from pathlib import Path

from pixelpong.errors import EmulatorError

# All recorded results were measured with the ROM in this version of ale-py.
ALE_PY = "0.12.1"
ROM_SHA256 = "41623e3c26148f96cbe77d56512845d224a63c8fe5bf90e38527155e39ec96d3"
ROM_SIZE = 2048  # bytes, the whole cartridge


def rom_path() -> Path:
    """The path where the ROM should be; it is not opened."""
    if folder := os.environ.get("ALE_ROMS_DIR"):
        return Path(folder) / "pong.bin"
    found = importlib.util.find_spec("ale_py")
    package = Path((found and found.origin) or "ale_py/__init__.py").parent
    return package / "roms" / "pong.bin"


def read_rom() -> bytes:
    """Read the ROM, [ROM_SIZE] bytes."""
    failure = "cannot use Pong's ROM in ale-py"
    advice = f"install the version with that ROM: pip install --no-deps ale-py=={ALE_PY}"
    if os.environ.get("ALE_ROMS_DIR"):
        failure = "cannot use Pong's ROM in the folder ALE_ROMS_DIR"
        advice = "unset ALE_ROMS_DIR, or put the ROM of ale-py there"
    path = rom_path()
    if path.exists() and not path.is_file():  # a named pipe would be waited for
        raise EmulatorError(f"{failure}: {path} is not a regular file; {advice}")
    try:
        with path.open("rb") as file:
            content = file.read(ROM_SIZE + 1)
    except OSError as error:
        raise EmulatorError(f"{failure}: {error}; {advice}") from error
    checksum = hashlib.sha256(content).hexdigest()
    if checksum != ROM_SHA256:
        why = f"its SHA-256 is {checksum[:16]}… instead of {ROM_SHA256[:16]}…"
        raise EmulatorError(f"{failure}: {why}; {advice}")
    return content
