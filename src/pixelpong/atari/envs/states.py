"""States of the games of an environment: copied, continued from, and written to a pickle."""

from __future__ import annotations

from typing import Any

import numpy as np

from pixelpong.atari.envs.ale_state import AleState
from pixelpong.atari.envs.errors import EnvOrderError, EnvValueError
from pixelpong.atari.envs.maker import Maker
from pixelpong.atari.envs.pending import Pending
from pixelpong.atari.games.memory import State, read_array
from pixelpong.errors import must_be


class States:
    """What a `VectorEnv` does with states."""

    _options: Any
    _games: Any
    _turns: Any
    _pending: Any
    _all: Any
    _has_batches: bool

    def clone_state(self) -> State:
        """Return the state on which the future of all games depends, for `restore_state`.

        It is a tuple of arrays with a row for each game, so rows can be selected and repeated:
        ``tuple(array[[3, 3, 5]] for array in state)``.

        Raises:
            EnvOrderError: the environment has a `batch_size`; some results may not be received.
        """
        with self._turns.lock:
            self._require_states()
            self._turns.settle()
            return self._games.clone()

    def restore_state(self, state: State, games: Any = None, *, include_rng: bool = True) -> None:
        """Continue from a state of these games, or of as many with the same options.

        Results that were not received are forgotten.

        Args:
            state: from `clone_state`, with a row for each of the `games`.
            games: the indices of the games that continue from it, [K]; the others play on. By
                default all games, in their order.
            include_rng: whether the games also continue with the generators of the state. Otherwise
                each keeps its own, so that games which continue from the same row differ from then
                on where chance has a part.

        Raises:
            ConfigError: the state does not fit these games; nothing has changed.
        """
        with self._turns.lock:
            self._require_states()
            self._turns.settle()
            if isinstance(state, AleState) and state.lacks:
                what = "The state has no generator"
                raise EnvValueError(f"{what}; continue from it with restore_state of make_env.")
            which = None if games is None else self._read_games(games)
            self._games.restore(
                state,
                Pending(self._all, kept=self._pending.kept),
                which=which,
                include_rng=include_rng,
            )

    def _read_games(self, games: Any) -> Any:
        """Read indices of games, each at most once."""
        given = read_array("games", games, EnvValueError)
        which = given if given.size else given.astype(np.int64)
        are_numbers = which.ndim == 1 and which.dtype.kind in "iu"
        if not are_numbers or len(set(which.tolist()) & set(self._all.tolist())) < len(which):
            allowed = f"different whole numbers from 0 to {len(self._all) - 1}"
            raise EnvValueError(must_be("games", allowed, repr(games)))
        return which

    def _require_states(self) -> None:
        """Refuse states if some results may not be received yet."""
        if self._has_batches:
            raise EnvOrderError("With batch_size < num_envs there are no states; leave it out.")

    def __getstate__(self) -> tuple[Any, ...]:
        with self._turns.lock:
            return self._options, self.clone_state(), self._pending.kept

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        options, memory, kept = state
        game, games = (None, options.games) if options.games else (options.game, None)
        maker = Maker("make_vec", draws_frames=True)  # the options have been checked
        again = vars(options) | {"game": game, "games": games, "_maker": maker}
        self.__init__(**again)  # type: ignore[misc]
        self._games.restore(memory, Pending(self._all, kept=kept))
