"""The actions of the environments and the console's actions for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.cartridges import cartridge
from pixelpong.env.cartridge import SERVE
from pixelpong.games.console import PONG
from pixelpong.items import BUILTIN, DOWN, STAY, UP

if TYPE_CHECKING:
    from pixelpong.envs.options import EnvOptions

# Each set in the numbers of ALE/Pong-v5.
ACTION_SETS = {"six": (0, 1, 2, 3, 4, 5), "three": (STAY, UP, DOWN), "two": (UP, DOWN)}
# The console's actions for these six: for a single player, and for one of two players.
SOLO_ACTIONS = (0, 1, 2, 3, 4, 5)
DUEL_ACTIONS = (SERVE, SERVE, SERVE + 2, SERVE + 3, SERVE + 2, SERVE + 3)
# The console's eighteen actions, as indices of the six.
ALL_ACTIONS = (0, 1, 0, 2, 3, 0, 2, 3, 2, 3, 1, 4, 5, 1, 4, 5, 4, 5)
MEANINGS = ("NOOP", "FIRE", "RIGHT", "LEFT", "RIGHTFIRE", "LEFTFIRE")  # Gymnasium's words


def find_moves(options: EnvOptions) -> NDArray[np.int64]:
    """The console's action for each index that an environment accepts."""
    if options.game == PONG:
        numbers = SOLO_ACTIONS if options.opponent == BUILTIN else DUEL_ACTIONS
        chosen = ALL_ACTIONS if options.full_action_space else ACTION_SETS[options.actions or "six"]
        return np.array([numbers[k] for k in chosen])
    facts = cartridge(options.game)
    return np.array(facts.legal_actions if options.full_action_space else facts.actions)
