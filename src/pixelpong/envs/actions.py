"""The actions of the environments and the console's actions for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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

# The index of an action among all eighteen: [left, neither, right], [down, neither, up], [button].
_BY_DIRECTION = np.array(
    [[[9, 17], [4, 12], [7, 15]], [[5, 13], [0, 1], [2, 10]], [[8, 16], [3, 11], [6, 14]]]
)


def find_moves(options: EnvOptions) -> NDArray[np.int64]:
    """The console's action for each index that an environment accepts."""
    if options.game == PONG:
        numbers = SOLO_ACTIONS if options.opponent == BUILTIN else DUEL_ACTIONS
        chosen = ALL_ACTIONS if options.has_all_actions else ACTION_SETS[options.actions or "six"]
        return np.array([numbers[k] for k in chosen])
    facts = cartridge(options.game)
    return np.array(facts.legal_actions if options.has_all_actions else facts.actions)


def find_direction(actions: NDArray[Any], threshold: float) -> NDArray[np.int64]:
    """The index among all eighteen actions of continuous ones, [N, 3]: radius, angle, button.

    As in ale-py, a direction or the button counts if it is beyond the threshold.
    """
    radius, angle, button = actions.T
    across, along = (
        1 + (it > threshold).astype(np.int64) - (it < -threshold)
        for it in (radius * np.cos(angle), radius * np.sin(angle))
    )
    numbers: NDArray[np.int64] = _BY_DIRECTION[across, along, (button > threshold).astype(np.int64)]
    return numbers
