"""The actions of the environments and the console's actions for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.envs.inputs import read_actions, read_continuous
from pixelpong.atari.envs.options import EnvOptions
from pixelpong.atari.envs.plug import Plugs
from pixelpong.atari.machine.cartridge import Cartridge
from pixelpong.atari.machine.record import PADDLE_TURN
from pixelpong.atari.sides import BUILTIN

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

    def __init__(self, options: EnvOptions, plugs: Plugs) -> None:
        """Make a reader for an environment with these options."""
        games = options.games or (options.game,)
        self.tables = np.array([_find_moves(options, game, plugs) for game in games])
        self.count = self.tables.shape[1]
        self._num_all = len(options.cartridge(games[0]).actions)
        self._is_continuous = options.continuous
        self._threshold = options.continuous_action_threshold

    def read(self, actions: Any, shape: Any, rows: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Convert the actions of the games `rows` to moves, [B] or [B, 2]; see `Orders.moves`.

        Raises:
            EnvError: the actions, which need this shape, are not actions.
        """
        if self._is_continuous:  # as in ale-py, the sign of a radius is in the direction alone
            floats = read_continuous(actions, shape)
            turns = (PADDLE_TURN * abs(floats[:, 0].astype(np.float64))).astype(np.int64)
            numbers = find_direction(floats, self._threshold)
            return np.stack([self._look_up(numbers, rows), turns], axis=1)
        return self._look_up(read_actions(actions, shape, self.count, self._num_all), rows)

    def _look_up(
        self, numbers: NDArray[np.integer[Any]], rows: NDArray[np.integer[Any]]
    ) -> NDArray[np.int64]:
        moves: NDArray[np.int64]
        moves = self.tables[0][numbers] if len(self.tables) == 1 else self.tables[rows, numbers]
        return moves


def find_cartridge(options: EnvOptions, game: str, plugs: Plugs) -> Cartridge:
    """Return the cartridge that plays a game with these options."""
    if (plug := plugs.get(game)) is None:
        return options.cartridge(game)
    facts = plug.cartridge if options.opponent == BUILTIN else plug.for_two
    assert facts is not None, "the options have been checked"
    return facts


def _find_moves(options: EnvOptions, game: str, plugs: Plugs) -> NDArray[np.int64]:
    """Return the console's action for each index that a game accepts."""
    facts = find_cartridge(options, game, plugs)
    numbers = range(18) if options.continuous else find_numbers(options, game, plugs)
    return np.array([facts.code_of(number) for number in numbers])


def find_numbers(options: EnvOptions, game: str, plugs: Plugs) -> tuple[int, ...]:
    """Return the number, among the eighteen actions, for each index that a game accepts."""
    facts = options.cartridge(game)
    if options.has_all_actions:
        return facts.legal_actions
    if options.actions is None:
        return facts.actions
    return tuple(facts.actions[k] for k in plugs[game].action_sets[options.actions])


def find_direction(actions: NDArray[Any], threshold: float) -> NDArray[np.int64]:
    """Convert continuous actions, [N, 3] radius, angle and button, to numbers of the eighteen.

    As in ale-py, a direction or the button counts if it is beyond the threshold.
    """
    radius, angle, button = actions.T
    across, along = (
        1 + (it > threshold).astype(np.int64) - (it < -threshold)
        for it in (radius * np.cos(angle), radius * np.sin(angle))
    )
    numbers: NDArray[np.int64] = _BY_DIRECTION[across, along, (button > threshold).astype(np.int64)]
    return numbers
