"""The actions of the environments and the console's actions for them."""

from __future__ import annotations

from pixelpong.env.cartridge import SERVE
from pixelpong.items import DOWN, STAY, UP

# Each set in the numbers of ALE/Pong-v5.
ACTION_SETS = {"six": (0, 1, 2, 3, 4, 5), "three": (STAY, UP, DOWN), "two": (UP, DOWN)}
# The console's actions for these six: for a single player, and for one of two players.
SOLO_ACTIONS = (0, 1, 2, 3, 4, 5)
DUEL_ACTIONS = (SERVE, SERVE, SERVE + 2, SERVE + 3, SERVE + 2, SERVE + 3)
# The console's eighteen actions, as indices of the six.
ALL_ACTIONS = (0, 1, 0, 2, 3, 0, 2, 3, 2, 3, 1, 4, 5, 1, 4, 5, 4, 5)
MEANINGS = ("NOOP", "FIRE", "RIGHT", "LEFT", "RIGHTFIRE", "LEFTFIRE")  # Gymnasium's words
