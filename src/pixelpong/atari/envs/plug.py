"""What a game may bring of its own to its environments, as one value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from pixelpong.atari.games.opponents import Opponents
from pixelpong.atari.games.views import OBSERVATIONS, Observation
from pixelpong.atari.machine.cartridge import Cartridge


@dataclass(frozen=True, eq=False)
class Plug:
    """What a game brings to its environments, which have such values in `plugs`, by game.

    A game without one is played by the facts about its cartridge alone.
    """

    # With a record, typed functions and hints of its own, and perhaps its own action codes.
    cartridge: Cartridge
    # The same for two players; its `codes` are the actions of one side.
    for_two: Cartridge | None = None
    # What can be observed besides the `OBSERVATIONS` of every game, by name.
    observations: Mapping[str, Observation] = field(default_factory=dict)
    # Named choices among its actions: indices of the cartridge's `actions`.
    action_sets: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    # Makes those who play the second side, from the value of the option `opponent` and the number
    # of games.
    make_opponents: Callable[[str, int], Opponents] | None = None
    coins: str = "ale"  # the default of the option `coins` of its single environment
    # What the info of its single environment has besides ale-py's, from its `GAME`.
    describe: Callable[[np.void], dict[str, Any]] = lambda game: {}


Plugs = Mapping[str, Plug]

# The names of observations and of choices of actions, for type checkers.
ObservationName = TypeVar("ObservationName", bound=str)
ActionsName = TypeVar("ActionsName", bound=str)


def find_observations(plugs: Plugs, game: str) -> dict[str, Observation]:
    """Return all kinds of observation that a game has, by name."""
    own = plugs[game].observations if game in plugs else {}
    return {**OBSERVATIONS, **own}
