"""The actions of the environments and the console's actions for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.envs.inputs import read_actions, read_continuous
from pixelpong.atari.games.rules import PONG
from pixelpong.atari.machine.cartridges import cartridge
from pixelpong.atari.machine.record import PADDLE_TURN
from pixelpong.items import BUILTIN, DOWN, STAY, UP
from pixelpong.pong.cartridge import CODES, SERVE

if TYPE_CHECKING:
    from pixelpong.atari.envs.options import EnvOptions

# Each set in the numbers of ALE/Pong-v5.
ACTION_SETS = {"six": (0, 1, 2, 3, 4, 5), "three": (STAY, UP, DOWN), "two": (UP, DOWN)}
# The console's actions for these six: for a single player, and for one of two players.
SOLO_ACTIONS = (0, 1, 2, 3, 4, 5)
DUEL_ACTIONS = (SERVE, SERVE, SERVE + 2, SERVE + 3, SERVE + 2, SERVE + 3)
ALL_ACTIONS = CODES  # the console's eighteen actions, as indices of the six

# The index of an action among all eighteen: [left, neither, right], [down, neither, up], [button].
_BY_DIRECTION = np.array(
    [[[9, 17], [4, 12], [7, 15]], [[5, 13], [0, 1], [2, 10]], [[8, 16], [3, 11], [6, 14]]]
)


class ActionReader:
    """Reads the actions that a program gives to an environment, as the console's.

    Attributes:
        tables: the console's action for each game and index: [N, actions], or [1, actions] if all
            games are the same.
        count: number of actions that can be chosen.
    """

    def __init__(self, options: EnvOptions) -> None:
        """Make it for an environment with these options."""
        games = options.games or (options.game,)
        self.tables = np.array([_find_moves(options, game) for game in games])
        self.count = self.tables.shape[1]
        self._is_continuous, self._is_pong = options.continuous, {*games} == {PONG}
        self._threshold = options.continuous_action_threshold

    def read(self, actions: Any, shape: Any, rows: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """The moves, [B] or [B, 2], of the games with these numbers, see `Orders.moves`.

        Raises:
            EnvError: the actions, which need this shape, are not actions.
        """
        if self._is_continuous:  # as in ale-py, the sign of a radius is in the direction alone
            floats = read_continuous(actions, shape)
            turns = (PADDLE_TURN * abs(floats[:, 0].astype(np.float64))).astype(np.int64)
            numbers = find_direction(floats, self._threshold)
            return np.stack([self._look_up(numbers, rows), turns], axis=1)
        return self._look_up(read_actions(actions, shape, self.count, is_pong=self._is_pong), rows)

    def _look_up(
        self, numbers: NDArray[np.integer[Any]], rows: NDArray[np.integer[Any]]
    ) -> NDArray[np.int64]:
        moves: NDArray[np.int64]
        moves = self.tables[0][numbers] if len(self.tables) == 1 else self.tables[rows, numbers]
        return moves


def _find_moves(options: EnvOptions, game: str) -> NDArray[np.int64]:
    """The console's action for each index that a game accepts."""
    if game == PONG:
        numbers = SOLO_ACTIONS if options.opponent == BUILTIN else DUEL_ACTIONS
        chosen = ALL_ACTIONS if options.has_all_actions else ACTION_SETS[options.actions or "six"]
        return np.array([numbers[k] for k in chosen])
    facts = cartridge(game)
    return np.array(facts.legal_actions if options.has_all_actions else facts.actions)


def find_numbers(options: EnvOptions, game: str) -> tuple[int, ...]:
    """The action among the console's eighteen, in Gymnasium's order, for each index."""
    facts = cartridge(game)
    if options.has_all_actions:
        return facts.legal_actions
    chosen = ACTION_SETS[options.actions] if options.actions else range(len(facts.actions))
    return tuple(facts.actions[k] for k in chosen)


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
