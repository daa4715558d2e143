"""Atari Pong in native code: its cartridge with all that is known of it, and its rules.

On first use the cartridge is read from the ROM in ale-py, translated and compiled, which takes two
seconds; later processes load the code from the cache in milliseconds. The compiled code contains
the game's logic and stays on the user's machine.
"""

from __future__ import annotations

import dataclasses
import functools

from pixelpong.atari.games.rules import Rules
from pixelpong.atari.machine.cartridge import Cartridge, Select
from pixelpong.atari.machine.cartridges import cartridge as find_cartridge
from pixelpong.config.protocols import Protocol
from pixelpong.pong import cartridge, field
from pixelpong.pong.field import PONG_MACHINE
from pixelpong.pong.modes import MODE

PONG = dataclasses.replace(
    find_cartridge("pong"),
    entries=cartridge.ENTRIES,
    modules=(field, cartridge),
    hints=cartridge.HINTS,
    constants={"FIRST_OWN_ROW": field.FIELD_TOP},
    record=PONG_MACHINE,
    own_drawing="field",
    codes=cartridge.CODES,
    scoring=None,  # `cartridge.score` is faster
)


@functools.cache
def for_two(mode: int = MODE) -> Cartridge:
    """Return the cartridge set to one of its games for two; `mode` is ALE's number of that game.

    It is chosen with SELECT, as by multi-agent-ale-py. The cartridge reads four paddles. The two
    unused ones are in the middle there, and at 0 in ale-py; one picture in a hundred shows the
    difference. In mode 0, the game for one, the console plays the left side whatever its action.
    """
    codes = tuple(cartridge.DUEL_CODES[code] for code in PONG.codes)
    if mode == 0:
        return dataclasses.replace(PONG, codes=codes)
    presses = mode - 1
    return dataclasses.replace(
        PONG,
        controls="four paddles",
        select=Select(2, f"x{128 + cartridge.MODE:X} == {presses}"),
        start_actions=((0, 2),),
        constants={**PONG.constants, "COUNTED_FRAMES": -presses},  # presses do not count
        codes=codes,
    )


def rules_of(protocol: Protocol, num_sides: int = 1) -> Rules:
    """Return the rules of a protocol, for one or two sides."""
    low, high = protocol.frame_skips
    sticky = protocol.sticky, protocol.sticky
    facts = for_two() if num_sides == 2 else PONG
    return Rules(facts, low, high, protocol.max_frames, sticky, num_sides)
