"""What the machine must know of a cartridge: facts as data, and hints as text.

None of a cartridge's own code is here; that is in its ROM, on the user's machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from pixelpong.atari.banks import LINE, NONE, QUARTERS, WHOLE
from pixelpong.atari.disassembly import BankedRom
from pixelpong.atari.machine import MACHINE, MAX_LINES, ROWS, TOP

_SCHEMES = {"2K": NONE, "4K": NONE, "F8": WHOLE, "F6": WHOLE, "E0": QUARTERS, "FE": LINE}


@dataclass(frozen=True)
class Cartridge:
    """The facts about a cartridge."""

    name: str
    sha256: str  # of its ROM
    scheme: str  # of its banks: 2K, 4K, F8, F6, E0 or FE; with 128 bytes of memory F8SC or F6SC
    top: int = TOP  # the line of the first row of its picture
    rows: int = ROWS
    max_lines: int = MAX_LINES
    has_combs: bool = True  # whether HMOVE blanks pixels
    # For a cartridge that is compiled as one module, with typed functions of its own: places of
    # code that is reached by jumps through memory; modules whose functions replace the machine's;
    # code by place in the ROM that is added in front of an instruction; constants; the record.
    entries: tuple[int, ...] = ()
    modules: tuple[ModuleType, ...] = ()
    hints: Mapping[int, str] = field(default_factory=dict)
    constants: Mapping[str, int] = field(default_factory=dict)
    record: np.dtype[Any] = MACHINE

    def banked(self, content: bytes) -> BankedRom:
        """Its ROM with its banks."""
        return BankedRom(content, _SCHEMES[self.scheme[:2]], self.scheme.endswith("SC"))

    def all_constants(self, rom: BankedRom) -> dict[str, int]:
        """The constants of the machine's modules that this cartridge gives."""
        return {
            "SCHEME": rom.scheme,
            "ROM_SIZE": len(rom.content),
            "HOTSPOT": rom.hotspot,
            "HAS_RAM": int(rom.has_ram),
            "TOP": self.top,
            "ROWS": self.rows,
            "MAX_LINES": self.max_lines,
            "HAS_COMBS": int(self.has_combs),
            **self.constants,
        }
