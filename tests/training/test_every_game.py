"""Every game is learned to the same bits in every way; the ways are those of `pixelpong verify`."""

from __future__ import annotations

import pytest
from promises import promise
from toys import toy_config

from pixelpong import verification
from pixelpong.atari.machine.cartridges import scored_names
from pixelpong.config import can_be_learned
from pixelpong.config.protocols import PONG

FEW = ("boxing", "ms_pacman")
OTHERS = [name for name in scored_names() if can_be_learned(name) and name != PONG]


@promise("any engine")
@promise("stop and resume")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("game", "engines"),
    [
        *((it, ["serial", "threads"]) for it in FEW),
        *(pytest.param(it, ["serial", "threads", "ray"], marks=pytest.mark.soak) for it in OTHERS),
    ],
)
def test_a_game_is_learned_to_the_same_bits_in_every_way(game, engines):
    ways = list(verification.compare_ways(toy_config("atari", game=game, updates=2), engines))
    assert len(ways) >= 6
    assert [way["is_same"] for way in ways] == [True] * len(ways)
