"""Registers our environments in Gymnasium, and makes Gymnasium's own.

An id means one game, whether one environment is made or many: that of `pixelpong.make_env`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium
from numpy.typing import NDArray

from pixelpong.atari.machine.cartridges import scored_names

if TYPE_CHECKING:
    from pixelpong.atari.envs.vector import VectorEnv


def id_of(game: str, namespace: str = "pixelpong", version: int = 0) -> str:
    """The name of a game's environment in Gymnasium.

    >>> id_of("ms_pacman"), id_of("pong", "ALE", 5)
    ('pixelpong/MsPacman-v0', 'ALE/Pong-v5')
    """
    return f"{namespace}/{game.title().replace('_', '')}-v{version}"


def make_theirs(game: str = "pong", **options: Any) -> gymnasium.Env[NDArray[Any], Any]:
    """Make Gymnasium's own environment of a game, from ale-py."""
    import ale_py

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    gymnasium.register_envs(ale_py)
    return gymnasium.make(id_of(game, "ALE", 5), **options)


def make_many(num_envs: int = 1, observation: Any = "frame", **options: Any) -> VectorEnv:
    """Make the games of `pixelpong.make_env`, with its options, as one environment."""
    from pixelpong.atari.envs.single import OF_ID, vector_options
    from pixelpong.atari.envs.vector import VectorEnv

    return VectorEnv(num_envs, observation, **vector_options(OF_ID, **options))


ID = id_of("pong")
# The environments check their input themselves. Gymnasium's checks take longer than a step.
for _game in scored_names():
    gymnasium.register(
        id_of(_game),
        "pixelpong.atari.envs.single:SingleEnv",
        vector_entry_point="pixelpong.atari.envs.gym:make_many",
        disable_env_checker=True,
        kwargs={"game": _game},
    )
