"""One table gives the picture its colours; ALE's own are the measure."""

from __future__ import annotations

import ale_py
import numpy as np

from pixelpong.atari.palette import PALETTE
from pixelpong.env.rom import rom_path

GAME_TIME, COLOUR_SHIFT = 0x09, 0x0A
"""Memory of the idle game: at 0 nobody plays; what is added to all colours."""


def test_all_128_colours_are_those_of_ale():
    """Left alone, the game goes through all colours, so as not to burn the screen."""
    ale = ale_py.ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    ale.loadROM(rom_path())
    ale.reset_game()
    seen = set()
    for shift in range(256):
        for _ in range(2):
            ale.setRAM(COLOUR_SHIFT, shift)
            ale.setRAM(GAME_TIME, 0)
            ale.act(0)
            picture = ale.getScreen()
            np.testing.assert_array_equal(PALETTE[picture], ale.getScreenRGB())
            seen |= set(np.unique(picture).tolist())
    assert seen == set(range(0, 256, 2))


def test_the_lowest_bit_of_an_index_has_no_meaning():
    np.testing.assert_array_equal(PALETTE[1::2], PALETTE[::2])
    assert (PALETTE.shape, PALETTE.dtype) == ((256, 3), np.uint8)
