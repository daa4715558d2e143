"""The colours of both kinds of television, and the greys made of them, are ALE's."""

from __future__ import annotations

import ale_py
import numpy as np
import pytest
from programs import END_FRAME, Pair, assemble, lines, load_ale

from pixelpong.atari.games.views import ATARI, View
from pixelpong.atari.machine.palette import PALETTES


@pytest.mark.parametrize(("game", "palette"), [("othello", "NTSC"), ("adventure", "PAL")])
def test_all_128_colours_are_those_of_ale(game, palette):
    """A program shows a colour as the background for most of a frame."""
    pair, seen = Pair(game), set()
    ale = pair.ale
    colours, (greys,) = PALETTES[palette], View(ATARI, palette=palette).levels
    for colour in range(0, 256, 2):
        shows = assemble(f"LDA imm 00; STA zp 01; LDA imm {colour:02X}; STA zp 09")
        state = pair.state(shows + lines(0xC8) + lines(0x40) + END_FRAME)
        ale.restoreState(ale_py.ALEState(state))
        ale.act(0)
        picture = ale.getScreen()
        np.testing.assert_array_equal(colours[picture], ale.getScreenRGB())
        np.testing.assert_array_equal(greys[picture], ale.getScreenGrayscale())
        seen |= set(np.unique(picture).tolist())
    assert seen == set(range(0, 256, 2))
    if palette == "NTSC":  # the lowest bit means nothing
        np.testing.assert_array_equal(colours[1::2], colours[::2])


def test_a_european_picture_loses_its_colours_as_ales():
    """In this game, most frames have an odd number of lines."""
    ale, colours, seen = load_ale("air_raid"), PALETTES["PAL"], set()
    (greys,) = View(ATARI, palette="PAL").levels
    for _ in range(300):
        ale.act(0)
        picture = ale.getScreen()
        np.testing.assert_array_equal(colours[picture], ale.getScreenRGB())
        np.testing.assert_array_equal(greys[picture], ale.getScreenGrayscale())
        seen |= set(np.unique(picture).tolist())
    assert sum(index % 2 for index in seen) > 10
