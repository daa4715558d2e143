"""How a game on the cartridge is chosen: from facts about its memory to compiled functions.

Source: ALE presses SELECT until the memory has these values, and walks through a menu; tests
compare every game's starts.
"""

from __future__ import annotations

import re
from types import ModuleType
from typing import TYPE_CHECKING

from pixelpong.atari.machine.formulas import make_module, to_typed

if TYPE_CHECKING:
    from pixelpong.atari.machine.cartridge import Select

RESET_ACTION = 40  # as in `atari.machine.cartridge.SWITCH_ACTIONS`

_SOURCE = '''"""How a game on the cartridge is chosen."""

from __future__ import annotations

from pixelpong.atari.machine.digits import *
from pixelpong.atari.machine.record import FRAME_DONE
from pixelpong.atari.machine.resetting import act, reset_menu, tap
from pixelpong.atari.machine.typed import Int, Machine


def is_chosen(m: Machine) -> Int:
    return 1 if {} else 0
'''


def make_choosing(name: str, select: Select) -> ModuleType:
    """Make the module with a cartridge's `is_chosen` and, if it has a menu, its `walk_menu`."""
    source = _SOURCE.format(to_typed(select.until))
    if select.menu:
        steps = [line for action, until in select.menu for line in _write_step(action, until)]
        source += "\n".join(["", "", "def walk_menu(m: Machine) -> None:", *steps, ""])
    return make_module(f"choice of {name}", source)


def _write_step(action: int, until: str | int) -> list[str]:
    """Write a step through a menu; the score, which begins later, notes its own values."""
    if isinstance(until, int):
        if action == RESET_ACTION:
            return [f"    reset_menu(m, {until})"]
        return [f"    act(m, {action})"] * until
    noted = re.findall(r"\bold\.(\w+)", until)
    lines = [f"    m.noted[{at}] = {to_typed(name)}" for at, name in enumerate(noted)]
    return [
        *lines,
        f"    while m.stop == FRAME_DONE and (1 if {to_typed(until, noted)} else 0) == 0:",
        f"        tap(m, {action})",
    ]
