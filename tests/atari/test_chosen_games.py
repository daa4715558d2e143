"""Modes and difficulties: which a game has, and that each of them is ALE's game."""

from __future__ import annotations

import numpy as np
import pytest

from pixelpong.atari.lockstep import Lockstep, load_ale
from pixelpong.atari.machine import cartridges
from pixelpong.atari.machine.cartridge import Flavour
from pixelpong.atari.machine.cartridges import cartridge
from pixelpong.atari.machine.compiled import load_game

# The modes are numbers that SELECT counts, those of a list, or answers in a menu; ALE refuses the
# difficulty with which it loads the last one.
FEW = ("casino", "video_cube", "double_dunk", "backgammon")
# In these the game is over when it starts.
OVER = [("demon_attack", mode) for mode in (3, 5, 7)]
# The modes of ALE that are not covered, by game.
LEFT_OUT = {
    "adventure": {1, 2},
    "video_cube": {100 * cube + game for cube in range(2, 51) for game in range(3)},
}


def few_and_all() -> list:
    """Some games; in the soak all the others."""
    others = [name for name in cartridges.names() if name not in FEW]
    return [*FEW, *(pytest.param(name, marks=pytest.mark.soak) for name in others)]


@pytest.mark.slow
def test_modes_and_difficulties_are_ales():
    """Difficulties that change nothing are left out; with 0, ALE loads games that refuse it."""
    for name in cartridges.names():
        facts, ale = cartridge(name), load_ale(name)
        known = set(ale.getAvailableModes()) - LEFT_OUT.get(name, set())
        assert set(facts.modes) == known, name
        assert set(facts.difficulties) <= {0, *ale.getAvailableDifficulties()}, name


@pytest.mark.slow
@pytest.mark.parametrize("name", few_and_all())
def test_every_mode_with_every_difficulty_is_ales(name):
    game = load_game(name)
    for mode in game.cartridge.modes:
        for difficulty in game.cartridge.difficulties:
            lockstep = Lockstep(game, 8, Flavour(mode, difficulty))
            found = lockstep.run("purposeful", 200, np.random.default_rng([mode, difficulty]))
            assert found.differs_at is None, (mode, difficulty, found)
            assert found.frames == 200 or (name, mode) in OVER
