"""Atari games as environments for other programs.

env = pixelpong.make_env(game="breakout")                    one game
envs = pixelpong.make_vec(64, game="breakout")               many games at once
env = pixelpong.make_two()                                   Pong for two learners

gymnasium.make("pixelpong.envs:pixelpong/Breakout-v0") and gymnasium.make_vec make the same. For a
program that was written for ale-py, `AtariVectorEnv` here has the arguments of ale-py's.
"""

from typing import Any

from pixelpong.atari.envs.gym import ID as ID  # which registers the environments
from pixelpong.atari.envs.maker import Maker
from pixelpong.atari.envs.single import SingleEnv
from pixelpong.atari.envs.vector import VectorEnv
from pixelpong.envs.two import TwoPlayerEnv

_ATARI_VECTOR_ENV = Maker("envs.AtariVectorEnv", {"games": None})
make_env, make_vec, make_two = SingleEnv, VectorEnv, TwoPlayerEnv


def AtariVectorEnv(game: str, num_envs: int, **options: Any) -> VectorEnv:  # noqa: N802
    """The same as `pixelpong.make_vec`, with the arguments of ale-py's class of this name."""
    options = _ATARI_VECTOR_ENV.complete(options)
    return VectorEnv(num_envs, game=game, _maker=_ATARI_VECTOR_ENV, **options)
