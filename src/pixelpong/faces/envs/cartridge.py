"""What the environments know of Pong; for another cartridge this would be another `Cartridge`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pixelpong.env.cartridge import SERVE
from pixelpong.env.duel import MODE
from pixelpong.env.native import NativeGame, load_game, start_of
from pixelpong.items import DOWN, STAY, UP


@dataclass(frozen=True)
class Cartridge:
    """A game: its code, and what the actions of an environment are for the console."""

    load: Callable[[], NativeGame]
    start: Callable[[NativeGame, int], NDArray[np.void]]  # a machine at the start of a game: [1]
    modes: tuple[int, int]  # the cartridge's own numbers of the game for one and for two
    actions: tuple[int, ...]  # of the only player
    duel_actions: tuple[int, ...]  # the same for one of two players
    all_actions: tuple[int, ...]  # of the console's eighteen, as an index of the others
    fire: int
    meanings: tuple[str, ...]  # of `actions`, in Gymnasium's words


PONG = Cartridge(
    load_game,
    start_of,
    modes=(0, MODE),
    actions=(0, 1, 2, 3, 4, 5),
    duel_actions=(SERVE, SERVE, SERVE + 2, SERVE + 3, SERVE + 2, SERVE + 3),
    all_actions=(0, 1, 0, 2, 3, 0, 2, 3, 2, 3, 1, 4, 5, 1, 4, 5, 4, 5),
    fire=1,
    meanings=("NOOP", "FIRE", "RIGHT", "LEFT", "RIGHTFIRE", "LEFTFIRE"),
)
# In the numbers of ALE/Pong-v5.
ACTION_SETS = {"six": (0, 1, 2, 3, 4, 5), "three": (STAY, UP, DOWN), "two": (UP, DOWN)}
