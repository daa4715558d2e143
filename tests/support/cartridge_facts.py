"""What ALE says of a cartridge: the facts that `cartridges.json` states are measured here.

The rest of a line (the controls' ports, combs, how a game starts) shows in the frames and the
starts that are compared.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields
from typing import Any

import numpy as np
from ale_start import find_cartridge

from pixelpong.atari.lockstep import load_ale
from pixelpong.atari.machine.cartridge import Cartridge
from pixelpong.atari.machine.palette import PALETTE
from pixelpong.atari.machine.record import PADDLE_HIGHEST, PADDLE_LOWEST
from pixelpong.atari.machine.roms import rom_path

RIGHT = 3  # ALE's action


def measure(name: str) -> dict[str, Any]:
    """The facts that can be asked, by their names in the file."""
    ale = load_ale(name)
    data = ale.cloneState().serialize()
    scheme, constants = find_cartridge(data)
    ale.act(RIGHT)
    turned = np.frombuffer(ale.cloneState().serialize()[:8], "<i4")
    has_paddles = not np.array_equal(turned, np.frombuffer(data[:8], "<i4"))
    lowest, highest = np.frombuffer(data[-8:], "<i4").tolist()
    assert lowest == PADDLE_LOWEST
    return {
        "sha256": hashlib.sha256(rom_path(name).read_bytes()).hexdigest(),
        "scheme": scheme,
        "top": constants["TOP"],
        "rows": constants["ROWS"],
        "palette": _palette(ale),
        "has_paddles": has_paddles,
        "highest_ohm": highest if has_paddles else PADDLE_HIGHEST,
        "actions": [action.value for action in ale.getMinimalActionSet()],
        "legal_actions": [action.value for action in ale.getLegalActionSet()],
    }


def _palette(ale: Any) -> str:
    """The television's palette, by the colours of some frames."""
    for _ in range(60):
        ale.act(0)
        indices = ale.getScreen()
        if not np.array_equal(PALETTE[indices], ale.getScreenRGB()):
            return "PAL"
    return "NTSC"


def with_defaults(line: dict[str, Any], measured: dict[str, Any]) -> dict[str, Any]:
    """What a line of the file says of the facts that were measured."""
    defaults = {field.name: field.default for field in fields(Cartridge)}
    stated = {key: line.get(key, defaults.get(key)) for key in measured}
    stated["has_paddles"] = line.get("controls", "joystick").startswith("paddles")
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in stated.items()
    }
