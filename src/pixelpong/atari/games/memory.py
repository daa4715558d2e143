"""The memory of many games, and its states, which are checked completely before they are used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.games.opponents import Opponents
from pixelpong.atari.games.views import View
from pixelpong.atari.machine.record import WIDTH
from pixelpong.atari.steps.records import CHANCE, GAME, GENERATORS, are_chances
from pixelpong.errors import ConfigError, must_be, number_of

State = tuple[NDArray[Any], ...]  # copies of the arrays of a `Memory`


class Restored(NamedTuple):
    """A state that was checked, and the rows of games that continue from it."""

    rows: Any  # a slice or [K]
    state: State


_MOST = 2**31 - 1  # the largest value of any count
_START = 512  # more frames than the start of any game plays
# The smallest and largest value of each field of `GAME` that compiled code or generators use in
# computations. The limits of `num_frames` and `newest` depend on the options.
_BOUNDS = {
    "seed": (0, 2**63 - 1), "episode": (-1, _MOST), "steps": (0, _MOST), "is_on": (0, 1),
    "held": (0, 17), "episode_frames": (0, _MOST), "total_frames": (0, 2**63 - 1 - _MOST),
    "points": (0, _MOST), "may_end": (0, 1), "is_over": (0, 1), "is_cut": (0, 1),
}  # fmt: skip


def read_array(name: str, value: Any, error: type[ConfigError] = ConfigError) -> NDArray[Any]:
    """Convert what a program has given to an array, or raise an `error`."""
    try:
        return np.asarray(value)
    except Exception as reason:  # also what an object's own conversion raises
        raise error(must_be(name, "an array", f"{type(value).__name__}: {reason}")) from reason


def _form(array: NDArray[Any]) -> tuple[Any, int]:
    return array.dtype, array.ndim


class Memory:
    """Everything on which the future of N games depends, in arrays with one row per game.

    The first array, [N, 32] uint8, holds a hash of each game's rules, so that no game continues
    under the rules of another one.
    """

    def __init__(
        self,
        size: int,
        state_size: int,
        view: View,
        max_frames: int,
        rules: Sequence[bytes],
        opponents: Opponents | None,
    ) -> None:
        """Make the memory of `size` games of at most `max_frames` frames.

        A console's state has `state_size` bytes; `rules` are hashes of 32 bytes; `opponents` play
        the second side.
        """
        self.rules = np.frombuffer(bytearray().join(rules), np.uint8).reshape(size, -1)
        self.games = np.zeros(size, GAME)
        self.games["episode"] = -1
        self.chances = np.zeros(size, CHANCE)
        self.states = np.zeros((size, state_size), np.uint8)
        self._opponents, self._observation = opponents, view.observation
        record = opponents.record if opponents else np.dtype(np.uint8)
        self.remembered: NDArray[Any] = np.zeros(size if opponents else 0, record)
        self.frames = np.zeros((size if view.keeps_frames else 0, view.rows, WIDTH), np.uint8)
        self.observed = view.observation.make_arrays(size, view)
        ring = self.observed[0].shape[1] if self.observed else 1
        self._max_frames, self._num_newest = max_frames, ring

    def arrays(self) -> State:
        """Return the arrays themselves, not copies; each has a row for each game."""
        played = self.rules, self.games, self.chances, self.states
        nothing = np.zeros((len(self.games), 0), np.uint8)
        if_any = (array if len(array) else nothing for array in (self.remembered, self.frames))
        return *played, *if_any, *self.observed

    def read(
        self,
        state: Any,
        which: NDArray[np.integer[Any]] | None = None,
        *,
        include_rng: bool = True,
    ) -> Restored:
        """Copy a state; raise a `ConfigError` if these games, or `which`, cannot continue from it.

        Without the generators, the copy has those that the games have now.
        """
        rows: Any = slice(None) if which is None else which
        ours = self.arrays()
        if not isinstance(state, (tuple, list)) or not state:
            given = f"a {type(state).__name__}"
            raise ConfigError(must_be("the state", "one from clone_state()", given))
        theirs = tuple(read_array("the state", each).copy() for each in state)
        size, rules = len(self.rules[rows]), theirs[0]
        if _form(rules) == _form(ours[0]):  # other games may have other arrays after this one
            known = {each.tobytes() for each in self.rules}
            if any(each.tobytes() not in known for each in rules):
                advice = "make both environments with the same options and the same opponent"
                raise ConfigError(f"The state belongs to games with other options; {advice}.")
        if list(map(_form, theirs)) != list(map(_form, ours)):
            raise ConfigError("The state does not come from this version's clone_state().")
        if len(rules) != size:
            advice = "repeat or select rows of each array"
            games = number_of(len(rules), "game")
            raise ConfigError(f"The state has {games}, not {size}; {advice}.")
        for i in np.flatnonzero((rules != self.rules[rows]).any(axis=1)):
            raise ConfigError(f"Row {i} of the state belongs to another game; give each its own.")
        never = theirs[1]["episode"] < 0
        if never.any() and not never.all():
            first = np.flatnonzero(never)[0]
            raise ConfigError(f"Game {first} of the state was never reset; reset it before.")
        if len(never) < len(self.rules) and (self.games["episode"] < 0).any():
            raise ConfigError("No game was reset yet, so no other could play on; call reset().")
        shapes = [(size, *array.shape[1:]) for array in ours]
        if [array.shape for array in theirs] != shapes or not self._is_sound(theirs):
            raise ConfigError("The state is damaged: no game can be in it.")
        if not include_rng:
            for array, names in ((1, ("seed", "episode")), (2, GENERATORS)):
                for name in names:
                    theirs[array][name] = ours[array][name][rows]
        return Restored(rows, theirs)

    def _is_sound(self, state: State) -> bool:
        """Whether all numbers of a state with the right shapes are possible in a game.

        A console may be in any state: compiled code stays inside its record.
        """
        _, games, chances, _, remembered, _, *observed = state
        most_frames = self._max_frames + _START  # a start may be beyond the limit
        of_rules = {"num_frames": (0, most_frames), "newest": (0, self._num_newest - 1)}
        are_games = all(
            (least <= games[name]).all() and (games[name] <= most).all()
            for name, (least, most) in (_BOUNDS | of_rules).items()
        )
        are_remembered = self._opponents is None or self._opponents.are_sound(remembered)
        are_observed = self._observation.are_sound(tuple(observed))
        return are_games and are_chances(chances) and are_remembered and are_observed

    def write(self, restored: Restored) -> None:
        """Continue from what `read` has returned."""
        for ours, theirs in zip(self.arrays(), restored.state, strict=True):
            ours[restored.rows] = theirs

    def forget(self) -> None:
        """Return to the initial state, with no episode in progress and no seed."""
        self.games["is_on"] = 0
        self.games["episode"] = -1
