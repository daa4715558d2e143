"""What programs ask of the attribute ``ale`` of ale-py's `AtariVectorEnv`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pixelpong.atari.action import Action
from pixelpong.atari.envs.actions import find_numbers
from pixelpong.atari.envs.errors import EnvIndexError, EnvValueError
from pixelpong.atari.games.memory import read_array
from pixelpong.errors import must_be


class VectorAle:
    """Reads and resets many games, as ale-py's `ALEVectorInterface` does.

    Steps are played by the environment alone: by `step`, or by `send` and `recv`.
    """

    def __init__(self, envs: Any) -> None:
        """Read the games of a `VectorEnv`."""
        self._envs = envs

    def get_action_set(self) -> list[Action]:
        """The console's action for each index; with continuous actions, all that there are."""
        options = self._envs._options
        return list(map(Action, find_numbers(options, options.all_games[0], self._envs.plugs)))

    def get_num_envs(self) -> int:
        """The number of games."""
        return self._envs.num_envs

    def get_observation_shape(self) -> tuple[int, ...]:
        """The shape of one game's observation."""
        return self._envs._view.shape

    def reset(self, env_ids: Sequence[int], seeds: Sequence[int]) -> tuple[Any, dict[str, Any]]:
        """Start episodes in these games, each with its seed; −1 in all: the next episodes.

        Like the environment's own `reset`, it returns the observations and infos of all games.
        """
        which, size = read_array("env_ids", env_ids, EnvValueError), self._envs.num_envs
        given = read_array("seeds", seeds, EnvValueError)
        if which.ndim != 1 or which.shape != given.shape:
            what = f"{list(which.shape)} env_ids need as many seeds, not {list(given.shape)}"
            raise EnvValueError(f"{what}: env_ids and seeds must have the same size.")
        if len(set(which.tolist())) < len(which):
            raise EnvValueError(f"env_ids has a game twice: {which.tolist()}.")
        if not set(which.tolist()) <= set(range(size)):
            raise EnvIndexError(must_be("env_ids", f"from 0 to {size - 1}", which.tolist()))
        order = np.argsort(which)
        mask = np.isin(np.arange(size), which)
        is_next = (given == -1).all()
        seed = None if is_next else [seeds[i] for i in order]
        return self._envs.reset(seed=seed, options={"reset_mask": mask})
