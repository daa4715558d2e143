"""The state of one game, as ale-py's `ALEState`: with some parts of it left out, if so desired."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.games.memory import State
from pixelpong.atari.machine.cartridge import Flavour
from pixelpong.atari.steps.records import CHANCE, GAME
from pixelpong.errors import ConfigError, must_be

# What an `ALEState` lacks: the action that sticks, and how far it turns a paddle; without the
# generator, what decides which frames stick, and how an episode opens.
NEVER_KEPT = ("held", "turn")
GENERATOR = ("seed", "episode", "opening", "coins")
_GAMES, _CHANCES = 1, 2  # the arrays of a state that have these fields
_NAMES = ("mode", "difficulty", "lacks")


class AleState(tuple[NDArray[Any], ...]):
    """The arrays of a state, each with one row, see `VectorEnv.clone_state`.

    Two are equal if the games have the same future, as far as the states know it.
    """

    flavour: Flavour
    lacks: tuple[str, ...]  # the fields of `GAME` and `CHANCE` that are left out; they are zero

    def __new__(
        cls,
        arrays: Iterable[NDArray[Any]],
        flavour: Flavour = Flavour(),  # noqa: B008 - it is never changed
        lacks: tuple[str, ...] = (),
    ) -> AleState:
        """Take the arrays; those that have fields to leave out are changed."""
        state = super().__new__(cls, arrays)
        state.flavour, state.lacks = flavour, lacks
        for array in state:
            for name in set(lacks) & set(array.dtype.names or ()):
                array[name] = np.zeros_like(array[name])
        return state

    @classmethod
    def read(cls, serialized: bytes) -> AleState:
        """Read what `serialize` has returned.

        Raises:
            ConfigError: it is something else.
        """
        try:
            with np.load(io.BytesIO(serialized), allow_pickle=False) as file:
                arrays = dict(file)
            mode, difficulty, lacks = (arrays.pop(name) for name in _NAMES)
            flavour = Flavour(int(mode), int(difficulty))
            known = {*(GAME.names or ()), *(CHANCE.names or ())}
            if not set(lacks.tolist()) <= known:
                raise ValueError("it lacks something unknown")
            return cls(arrays.values(), flavour, tuple(lacks.tolist()))
        except (OSError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
            allowed = "what serialize() has returned"
            raise ConfigError(must_be("the state", allowed, f"{type(error).__name__}")) from error

    def serialize(self) -> bytes:
        """Return the state as bytes, for `read`: equal ones of equal states."""
        file = io.BytesIO()
        names = dict(zip(_NAMES, (*self.flavour, np.array(self.lacks, "U16")), strict=True))
        arrays = {f"part{k}": array for k, array in enumerate(self)}
        np.savez(file, **arrays, **names)  # type: ignore[arg-type]
        return file.getvalue()

    def complete(self, current: State) -> State:
        """Return all arrays, with what is left out as in a current state of the game."""
        arrays = tuple(array.copy() for array in self)
        for array, now in zip(arrays, current, strict=False):
            for name in set(self.lacks) & set(array.dtype.names or ()):
                if name in (now.dtype.names or ()):
                    array[name] = now[name]
        return arrays

    def equals(self, other: AleState) -> bool:
        """Whether both states are equal."""
        return self == other

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AleState) and self.serialize() == other.serialize()

    __ne__ = object.__ne__

    def __hash__(self) -> int:
        return hash(self.serialize())

    def getFrameNumber(self) -> int:
        """The number of frames since the game was seeded."""
        return int(self[_GAMES]["total_frames"][0])

    def getEpisodeFrameNumber(self) -> int:
        """The number of frames of the episode."""
        return int(self[_GAMES]["episode_frames"][0])

    def getCurrentMode(self) -> int:
        """The game on the cartridge."""
        return self.flavour.mode

    def getDifficulty(self) -> int:
        """The console's difficulty switches."""
        return self.flavour.difficulty
