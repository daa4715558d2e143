"""Atari games as environments for other programs.

env = pixelpong.make_env(game="breakout")                    one game
envs = pixelpong.make_vec(64, game="breakout")               many games at once
env = pixelpong.make_two(game="boxing")                      a game for two learners

gymnasium.make("pixelpong.envs:pixelpong/Breakout-v0") and gymnasium.make_vec make the same. For a
program that was written for ale-py, `AtariVectorEnv` here has the arguments of ale-py's, and
`ale_options` has the options of `pixelpong.make_env` for its ids, such as ``"Breakout-v4"``.
"""

from typing import Any

import gymnasium

from pixelpong.atari.envs.ids import ale_options as ale_options
from pixelpong.atari.envs.maker import Maker
from pixelpong.atari.envs.single import OF_ID
from pixelpong.atari.machine.cartridges import id_of, scored_names
from pixelpong.envs.plugs import DEFAULT_GAME
from pixelpong.envs.single import SingleEnv
from pixelpong.envs.two import TwoPlayerEnv
from pixelpong.envs.vector import StableBaselinesEnv, VectorEnv

make_env, make_vec, make_two, make_sb3 = SingleEnv, VectorEnv, TwoPlayerEnv, StableBaselinesEnv

_ATARI_VECTOR_ENV = Maker("envs.AtariVectorEnv", {"games": None})


def AtariVectorEnv(game: str, num_envs: int, **options: Any) -> VectorEnv:  # noqa: N802
    """The same as `pixelpong.make_vec`, with the arguments of ale-py's class of this name."""
    options = _ATARI_VECTOR_ENV.complete(options)
    return VectorEnv(num_envs, game=game, _maker=_ATARI_VECTOR_ENV, **options)


def make_many(num_envs: int = 1, observation: Any = None, **options: Any) -> VectorEnv:
    """Make many games of `pixelpong.make_env`, with its options, as one environment."""
    options = SingleEnv.vector_options(OF_ID, observation=observation, **options)
    return VectorEnv(num_envs, **options)


# An id means one game, whether one environment is made or many. The environments check their input
# themselves; Gymnasium's checks take longer than a step.
ID = id_of(DEFAULT_GAME)
for _game in scored_names():
    gymnasium.register(
        id_of(_game),
        "pixelpong.envs:SingleEnv",
        vector_entry_point="pixelpong.envs:make_many",
        disable_env_checker=True,
        kwargs={"game": _game},
    )
