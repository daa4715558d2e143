"""Whether a game on the cartridge is chosen: from a fact about its memory to a compiled function.

Source: ALE presses SELECT until the memory has these values; tests compare every game's starts.
"""

from __future__ import annotations

from types import ModuleType

from pixelpong.atari.machine.formulas import make_module, to_typed

_SOURCE = '''"""Whether a game on the cartridge is chosen."""

from __future__ import annotations

from pixelpong.atari.machine.digits import *
from pixelpong.atari.machine.typed import Int, Machine


def is_chosen(m: Machine) -> Int:
    return 1 if {} else 0
'''


def make_choosing(name: str, until: str) -> ModuleType:
    """Make the module with a cartridge's `is_chosen`; `until` is that of its `Select`."""
    return make_module(f"choice of {name}", _SOURCE.format(to_typed(until)))
